"""Statements of text formats: words with their lines, up to a semicolon or a closing brace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quoll.exchange.stated import refused

__all__ = ["ExchangeToken", "statements"]

LONGEST = 4000  # words of a statement
WORDS = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |"(?P<string>[^"\n]*)"
    |(?P<open>/\*)
    |(?P<word>[A-Za-z_][\w.-]*|0[xX][0-9a-fA-F]+|[0-9]+|\.\.|\S)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ExchangeToken:
    """A word, a mark, or the text between quotes."""

    text: str
    line: int
    quoted: bool = False


def statements(text: str, file: str) -> Iterator[Sequence[ExchangeToken]]:
    """Each statement without its semicolon; raises FactsError if the last one does not end."""
    found: list[ExchangeToken] = []
    depth, line = 0, 1
    for match in WORDS.finditer(text):
        word = match["word"]
        if match["open"] is not None:
            raise refused(file, line, "/*", "the comment has no end")
        if match["skip"] is None:
            quoted = match["string"] is not None
            found.append(ExchangeToken(match["string"] if quoted else word, line, quoted))
            depth += (not quoted) * ((word == "{") - (word == "}"))
            ends = not quoted and depth <= 0 and word in (";", "}")
            if len(found) > LONGEST:
                raise refused(file, found[0].line, found[0].text, "the statement has no end")
            if ends:
                if word == ";":
                    found.pop()
                if found:
                    yield found
                found, depth = [], 0
        line += match[0].count("\n")
    if found:
        raise refused(file, found[0].line, found[0].text, "the statement has no end")
