"""Only ``quoll/arm`` and ``quoll/semantics`` read encodings: later stages ask about effects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
MODULES = [
    path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if not any(path.is_relative_to(ROOT / "quoll" / folder) for folder in ("arm", "semantics"))
]
# Where bytes are a key, or are printed; and bytes of files, which are no instructions.
BYTES = {
    "quoll/facts/anchors.py",
    "quoll/indirect/stack_frames.py",
    "quoll/listing/program_text.py",
    "wcet/analysis/raw_memory.py",
}
# Which row of the manual's cycle-timing tables an instruction takes goes by its name; and where
# names are a key.
NAMES = {"pipeline/classes.py", "pipeline/vector_classes.py", "quoll/facts/anchors.py"}
ALLOWED = {"raw": BYTES, "mnemonic": NAMES}
DISASSEMBLERS = frozenset(["capstone", "pypcode"])


def breaches(tree: ast.AST, path: str) -> Iterator[str]:
    """Where a module looks at bits, names or printed instructions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("raw", "mnemonic"):
            if path not in ALLOWED[node.attr]:
                yield f"{path}:{node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Attribute) and _is_encoding(node):
            yield f"{path}:{node.lineno}: .encoding"
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = {alias.name for alias in node.names}
            modules = names | {getattr(node, "module", None) or ""}
            if "status_mask" in names or modules & DISASSEMBLERS:
                yield f"{path}:{node.lineno}: import of {sorted(names)}"
        for part in _decides(node):
            if any(_is_text(inner) for inner in ast.walk(part)):
                yield f"{path}:{part.lineno}: a decision by .text"


def _is_encoding(node: ast.Attribute) -> bool:
    """Not the encoding of a stream of characters."""
    stream = isinstance(node.value, ast.Attribute | ast.Name) and ast.unparse(node.value)
    return node.attr == "encoding" and stream not in ("file", "stream", "sys.stdout", "sys.stderr")


def _decides(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that decide control, or parse a printed instruction."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield node.test
    elif isinstance(node, ast.Match):
        yield node.subject
    elif isinstance(node, ast.comprehension):
        yield from node.ifs
    elif isinstance(node, ast.Compare | ast.BoolOp):
        yield node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from [node.func.value] if _is_text(node.func.value) else []
        yield from node.args if node.func.attr in MATCHING else []


MATCHING = frozenset(["match", "fullmatch", "search", "findall"])


def _is_text(node: ast.AST) -> bool:
    """Whether a node is the printed form of an instruction."""
    if not (isinstance(node, ast.Attribute) and node.attr == "text"):
        return False
    owner = ast.unparse(node.value)
    return owner.rpartition(".")[2] in ("insn", "last", "before", "i", "instruction")


@pytest.mark.slow("parses all of the product")
def test_encodings_stay_in_the_decoder() -> None:
    assert not [
        breach
        for path in MODULES
        for breach in breaches(ast.parse(path.read_text()), str(path.relative_to(ROOT)))
    ]


def test_a_breach_is_found() -> None:
    lines = [
        "word = insn.encoding >> 4",
        "half = insn.raw[0]",
        "move = insn.mnemonic == 'mov'",
        "from quoll.arm.status import status_mask",
        "import capstone",
        "a = 1 if insn.text.startswith('cps') else 2",
        "found = [x for x in y if '#' in block.last.text]",
        "found = PATTERN.fullmatch(insn.text)",
        "return_ = any(insn.text.startswith(S) for insn in y)",
    ]
    assert not [line for line in lines if not list(breaches(ast.parse(line), "some.py"))]


def test_the_exceptions_are_needed() -> None:
    for attribute, paths in ALLOWED.items():
        for path in paths:
            nodes = ast.walk(ast.parse((ROOT / path).read_text()))
            assert any(isinstance(n, ast.Attribute) and n.attr == attribute for n in nodes)
