"""Tables in ``docs/``, between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``.

A campaign of the evaluation has ``--write``. It also has ``--sections FILE``: ``campaigns.paper``
runs campaigns side by side, collects their tables, and writes the pages itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.testing.harness import build

__all__ = ["add_write", "inside", "markdown", "replace", "write"]


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


def add_write(parser: argparse.ArgumentParser, page: str) -> None:
    """Add ``--write`` and ``--sections``, which ``write`` reads; ``page`` is for the help."""
    parser.add_argument("--write", action="store_true", help=f"into {page}")
    parser.add_argument(
        "--sections", type=Path, metavar="FILE", help="add the tables to FILE, a JSON list a line"
    )


def write(options: argparse.Namespace, document: str, tables: Mapping[str, str]) -> None:
    """The tables, by the names of their marks: into a document, a file, or nowhere."""
    if options.sections is not None:
        with options.sections.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps([document, *table])}\n" for table in tables.items())
    if options.write:
        for name, text in tables.items():
            replace(document, name, text)
