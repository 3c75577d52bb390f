"""Prose for a terminal: paragraphs and lists filled to its width, tables row by row.

Lines to be copied, which are indented or in a fence, stay whole.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator

__all__ = ["HelpText", "filled", "page_filled"]

ITEM = re.compile(r"(?P<mark>\s+\S+\s\s+|\s*(?:[-*]|[0-9]+\.)\s+)(?P<text>\S.*)")
CODE = re.compile(r" {4}|\t")
CELLS = re.compile(r"(?<!\\)\|")
RULE = re.compile(r"[|:\- ]+")
FENCE = "```"
INSIDE = "    "  # indentation of the other cells of a row
BETWEEN = " · "
LEAST = 12  # columns


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Formats a command's help with description and examples as wide as the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return filled(text, width)


def filled(text: str, columns: int, copied: int = 1) -> str:
    """The description of a command: its paragraphs and items at most ``columns`` wide.

    Lines that are indented by ``copied`` characters or more, outside items, stay unchanged.
    """
    found: list[str] = []
    words: list[str] = []
    mark = ""  # before the first word; other lines have the same indentation
    for line in [*text.split("\n"), ""]:
        item = ITEM.fullmatch(line)
        indent = len(line) - len(line.lstrip())
        goes_on = item is None and bool(line.strip()) and (indent < copied or indent == len(mark))
        if words and not (goes_on and indent == len(mark)):
            found += _fill(" ".join(words), mark, columns)
            words.clear()
        if item is not None:
            mark = item["mark"]
            words.append(item["text"])
        elif goes_on:
            mark = mark if words else " " * indent
            words.append(line.strip())
        else:
            found.append(line)
    return "\n".join(found[:-1])


def page_filled(text: str, columns: int) -> str:
    """A page of Markdown, filled like ``filled``; a row of a table starts with its first cell."""
    found: list[str] = []
    prose: list[str] = []
    fenced = False
    for line in [*text.splitlines(), FENCE]:
        fence = line.startswith(FENCE)
        row = line.lstrip().startswith("|") and CODE.match(line) is None
        if not (fenced or fence or row or CODE.match(line) or line.startswith(("#", "<!--"))):
            prose.append(line)
            continue
        if prose:
            found.append(filled("\n".join(prose), columns, len(INSIDE)))
            prose.clear()
        if row and not fenced:
            found += _row(line, columns)
        elif not fence and not line.startswith("<!--"):
            found.append(line)
        fenced ^= fence
    return "\n".join(found) + "\n"


def _row(line: str, columns: int) -> Iterator[str]:
    if RULE.fullmatch(line):
        return
    first, *others = (cell.strip().replace(r"\|", "|") for cell in CELLS.split(line.strip())[1:-1])
    yield from _fill(first, "", columns)
    text = BETWEEN.join(cell for cell in others if cell)
    if text:
        yield from _fill(text, INSIDE, columns)


def _fill(text: str, mark: str, columns: int) -> list[str]:
    """``text`` behind ``mark``, with all lines indented accordingly."""
    return textwrap.wrap(
        text,
        max(columns, len(mark) + LEAST),
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
