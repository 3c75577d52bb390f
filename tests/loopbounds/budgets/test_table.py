"""Every constant of the search stands in one table, with its unit and its reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from loopbounds.budgets import table

ROOT = Path(table.__file__).parent.parent
FOLDERS = ("reduction", "slicing", "sampling", "strategies", "proof")
LINE = re.compile(r"[A-Z_]+ = [^#]+  # (?P<unit>[^:]+): (?P<reason>.+)")


def assigned(path: Path) -> dict[str, ast.expr]:
    """The module constants of a file, with their values."""
    return {
        target.id: node.value
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }


def test_each_line_has_a_unit_and_a_reason() -> None:
    lines = Path(table.__file__).read_text().splitlines()
    rows = [line for line in lines if re.match(r"[A-Z_]+ = ", line)]
    assert len(rows) == len(assigned(Path(table.__file__)))
    assert [row for row in rows if not LINE.fullmatch(row)] == []


def test_each_constant_is_used() -> None:
    texts = [path.read_text() for path in ROOT.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"\btable\.([A-Z_]+)\b", text)}
    assert used == set(assigned(Path(table.__file__)))


#: Numbers of the machine or of a format, which no measurement decides.
GIVEN = {"WORDS", "AFTER", "DISJOINT", "SP", "FLAG", "WORD", "STACK", "SHOWN", "FRAMES", "PAGE"}
GIVEN |= {"EVERY_EVENT"}


def test_there_is_no_other_number() -> None:
    found = {
        f"{path.name}: {name}"
        for folder in FOLDERS
        for path in (ROOT / folder).glob("*.py")
        for name, value in assigned(path).items()
        if name not in GIVEN
        and all(isinstance(n, ast.Constant | ast.BinOp | ast.operator) for n in ast.walk(value))
        and any(isinstance(n, ast.Constant) and isinstance(n.value, int) for n in ast.walk(value))
    }
    assert not found
