"""The words of a source file with their lines; comments separate, strings and directives left out.

Nothing is preprocessed: both branches of a preprocessor condition are present.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

__all__ = ["CComment", "CToken", "SourceText", "tokens"]

OF_C = r"//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)"
OF_ASSEMBLY = rf"{OF_C}|@[^\n]*"
REST = r"""
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
    |^[ \t]*\#(?:\\\n|/\*.*?(?:\*/|\Z)|[^\n])*
    |(?P<token>[A-Za-z_]\w*|[^\s"'])
    |\S
"""
FLAGS = re.VERBOSE | re.DOTALL | re.MULTILINE
PATTERNS = {
    assembly: re.compile(rf"(?P<comment>{comment}){REST}", FLAGS)
    for assembly, comment in ((False, OF_C), (True, OF_ASSEMBLY))
}
ASSEMBLY = (".s", ".S", ".asm")


@dataclass(frozen=True, slots=True)
class CToken:
    """A word or a mark, and its line (from 1)."""

    text: str
    line: int

    @property
    def is_word(self) -> bool:
        """Whether it is an identifier or a keyword."""
        return self.text[0] == "_" or self.text[0].isalpha()


@dataclass(frozen=True, slots=True)
class CComment:
    """The text of a comment with its marks, and its first line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file in order."""

    tokens: tuple[CToken, ...]
    comments: tuple[CComment, ...]
    assembly: bool


def tokens(text: str, path: str) -> SourceText:
    """The words and the comments of ``text``; the ending of ``path`` gives the language."""
    assembly = path.endswith(ASSEMBLY)
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    found: list[CToken] = []
    comments: list[CComment] = []
    for match in PATTERNS[assembly].finditer(text):
        line = bisect_right(starts, match.start())
        if match["comment"]:
            comments.append(CComment(match[0], line))
        elif match["token"]:
            found.append(CToken(match[0], line))
    return SourceText(tuple(found), tuple(comments), assembly)
