"""Names and docstrings of the product have the words of the field, not our former ones."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
# Packages whose docstrings and comments have no clause that begins with "what".
PLAIN = (*PACKAGES, "kernels", "campaigns", "bench", "scripts")

# A former word of ours as a part of a name: the field's.
NAMES = {
    "kept": "cached, stored, preserved",
    "recalled": "cached",
    "asked": "query",
    "question": "query",
    "questions": "queries",
    "answers": "results",
    "pieces": "subgraphs, segments, recorded paths",
    "rests": "assumptions",
    "weed": "Houdini",
    "guess": "candidate invariant",
    "guesses": "candidate invariants",
    "growth": "call-graph fixed point",
    "nearby": "local resolver",
    "landing": "target check",
    "landings": "target checks",
    "paid": "credited",
    "begun": "submitted, started",
    "beside": "worker",
    "meanwhile": "async",
    "lever": "suggestion",
    "levers": "suggestions",
    "survival": "evidence",
    "misfit": "schema error",
    "misfits": "schema errors",
}
# Words that mean something else: a JSON key of baselines (asked), a field name in the text of an
# assumption (misfit), and the intervals of a piecewise affine function (pieces, convex_pieces).
EXEMPT = {"asked", "convex_pieces", "misfit", "pieces"}
PHRASES = {
    r"(?<!the )rest(?:s|ing)? on": "depends on, assumes",
    r"(?:given?|gives|gave|giving) back": "preserved",
    r"(?:every|each|one|first|no) turns?": "iteration",
    r"only execution": "concrete execution",
    r"(?<!\.)levers?": "suggestion",
    r"misfits?": "schema error",
    r"recalled": "cached",
    r"shared contexts?": "merged contexts",
    r"found out": "computed, proved",
    r"fetche?[sd]? ahead": "prefetch",
}


def parts(name: str) -> list[str]:
    """Words of a name in snake or camel case, in small letters."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def bound(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a module binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def former_names(text: str) -> list[str]:
    return [
        f"{line}: {name}: {NAMES[word]}"
        for line, name in bound(ast.parse(text))
        for word in parts(name)
        if word in NAMES and name not in EXEMPT
    ]


@cache
def prose(path: Path) -> tuple[tuple[int, str], ...]:
    """Comments and strings of three quotes, without quoted code; each with its line."""
    return tuple(_prose(path))


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT or token.string.startswith('"""'):
                text = re.sub(r"``[^`]*``|`[^`]*`", "", token.string.replace('"""', ""))
                yield token.start[0], re.sub(r"\s+#?\s*", " ", text)


def what_clauses(text: str) -> list[str]:
    """The clauses of ``text`` that begin with "what", outside of quotations."""
    return re.findall(r"(?i)\bwhat(?:ever)?\b[^.,;:]*", re.sub(r'"[^"]*"', "", text))


def test_names_have_the_words_of_the_field() -> None:
    found = {str(path.relative_to(ROOT)): former_names(path.read_text()) for path in FILES}
    assert not {path: names for path, names in found.items() if names}


def test_files_have_the_words_of_the_field() -> None:
    found = [path for path in FILES for word in parts(path.stem) if word in NAMES]
    assert not found


def test_prose_has_the_words_of_the_field() -> None:
    pattern = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]}"
        for path in FILES
        for line, text in prose(path)
        for match in pattern.finditer(text)
    ]
    assert not found


def test_no_clause_begins_with_what() -> None:
    """A noun of the field says at first sight what a clause makes the reader work out."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {clause}"
        for package in PLAIN
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in prose(path)
        for clause in what_clauses(text)
    ]
    assert not found


def test_a_clause_is_seen() -> None:
    assert what_clauses("The report lists what is missing, and why.") == ["what is missing"]
    assert what_clauses("What the model costs; whatever it is") == [
        "What the model costs",
        "whatever it is",
    ]
    assert not what_clauses('the words "what" and "what it costs", somewhat')


def test_a_former_name_is_seen() -> None:
    text = "class KeptProof: ...\ndef kept_by(askedFor, whole): survival = whole.paid = 1"
    assert [line.partition(": ")[2] for line in former_names(text)] == [
        "KeptProof: cached, stored, preserved",
        "kept_by: cached, stored, preserved",
        "askedFor: query",
        "survival: evidence",
        "paid: credited",
    ]
