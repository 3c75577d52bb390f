"""No decision is taken on a text that is written for people.

Assumptions, reasons and errors are records: their kinds, places and sources decide. Their texts are
made where they are printed, and nothing compares, searches, matches, splits or cuts one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.testing.harness.build import ROOT

PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]

# Names of attributes that hold such a text, and of variables: ``text`` is mostly one of a file.
TEXTS = frozenset(
    ("claim", "doubt", "explained", "failure", "hint", "label", "message", "note", "reason", "text",
     "unanswered", "why")
)  # fmt: skip
VARIABLES = TEXTS - {"label", "text", "why"}
METHODS = frozenset(
    ("count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace",
     "rfind", "rindex", "rpartition", "rsplit", "split", "splitlines", "startswith", "translate")
)  # fmt: skip
PATTERNS = frozenset(("findall", "finditer", "fullmatch", "match", "search", "sub", "subn"))

# Files that read a text which is no message of this program, with the kind of text.
READ: dict[str, str] = {
    "quoll/arm/architecture.py": "an instruction, as the disassembler writes it",
    "quoll/arm/decode.py": "an instruction, as the disassembler writes it",
    "quoll/arm/floating_point.py": "an instruction, as the disassembler writes it",
    "quoll/arm/relocated_insn.py": "an instruction, as the disassembler writes it",
    "quoll/facts/annotations.py": "a comment of a source file",
    "quoll/facts/misspelt.py": "a form of facts, compared with a line of a facts file",
    "quoll/facts/read.py": "a line of a facts file",
    "quoll/image/elf.py": "a constant of an ELF header, as the reader of these names it",
    "quoll/semantics/corrections.py": "an instruction, as the disassembler writes it",
    "quoll/source/c_parser.py": "a word of a source file",
    "quoll/source/tokens.py": "a word of a source file",
    "wcet/atomic.py": "an argument of the command line",
    "wcet/cli.py": "what argparse says of a command line",
    "wcet/gate/compare.py": "a line of a source file",
    "wcet/gate/record.py": "an assumption for a baseline, which no address changes",
    "wcet/process.py": "what the system and the interpreter say of a failure",
}

INJECTED = """
def chosen(error, bound, found, program):
    if "returns" in error.message: {}
    if bound.reason.startswith("solver"): {}
    if any("masked" in str(a) for a in program.assumptions): {}
    if re.search("no path", found.hint): {}
    if found.hint == "state it": {}
    if found.reason in KNOWN: {}
    return (bound.explained or found.note).rpartition(": ")[2], str(found)[3:]
"""
PLAIN = """
def chosen(error, bound, found, places):
    if bound.reason.kind is SOLVER_FAILED and found.asks in KINDS: {}
    if str(fact.source) in places or error.exit_status == 3: {}
    return f"{error}: {bound.reason}", f"({found.hint})" if found.hint else ""
"""


def is_text(node: ast.expr, *, made: bool = True) -> bool:
    """Whether an expression is a text for people, or is made into one."""
    match node:
        case ast.Attribute(attr=name):
            return name in TEXTS
        case ast.Name(id=name):
            return name in VARIABLES
        case ast.Call(func=ast.Name(id="str"), args=[_]):
            return made
        case ast.BoolOp(values=values):
            return any(map(is_text, values))
        case ast.Call(func=ast.Attribute(value=value, attr="lower" | "upper" | "strip")):
            return is_text(value)
    return False


def decisions(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions that look into a text, or compare it with another."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                for op, a, b in zip(ops, (left, *others), others, strict=False):
                    looks = isinstance(op, ast.In | ast.NotIn) and is_text(b)
                    same = isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq)
                    if looks or (same and (is_text(a, made=False) or is_text(b, made=False))):
                        yield node
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=arguments):
                searched = name in PATTERNS and any(map(is_text, arguments))
                if searched or (name in METHODS and is_text(value)):
                    yield node
            case ast.Subscript(value=value) if is_text(value):
                yield node


def test_no_decision_is_taken_on_a_message() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for node in decisions(ast.parse(path.read_text(encoding="utf-8"))):
            file = str(path.relative_to(ROOT))
            found.setdefault(file, []).append(f"{node.lineno}: {ast.unparse(node)}")
    assert {file: lines for file, lines in found.items() if file not in READ} == {}
    assert READ.keys() <= found.keys(), "nothing is allowed that no longer happens"


def test_decisions_on_messages_are_seen() -> None:
    found = sorted(node.lineno for node in decisions(ast.parse(INJECTED.replace("{}", "pass"))))
    assert found == [3, 4, 5, 6, 7, 8, 9, 9]


def test_records_and_printed_texts_are_no_decisions() -> None:
    assert not list(decisions(ast.parse(PLAIN.replace("{}", "pass"))))
