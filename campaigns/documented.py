"""Tables in ``docs/``, between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.testing.harness import build

__all__ = ["inside", "markdown", "replace"]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def inside(whole: str, name: str) -> str:
    """The text between the marks ``name``. Raises ValueError without these."""
    _, rest = whole.split(f"<!-- {name}: begin -->\n")
    text, _ = rest.split(f"<!-- {name}: end -->\n")
    return text.strip()


def replace(document: str, name: str, text: str) -> None:
    """Put ``text`` between the marks ``name`` of a document. Raises ValueError without these."""
    path: Path = build.ROOT / "docs" / document
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    whole = path.read_text(encoding="utf-8")
    before, rest = whole.split(begin)
    _, after = rest.split(end)
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
