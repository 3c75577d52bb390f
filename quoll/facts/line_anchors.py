"""Anchors of source lines: ``file.c:LINE~checksum``, of the text of the line and its function.

An edit moves lines, and a fact would silently be about another one. The text is compared with that
of all lines of the file that have code: the fact follows its text to another number in the same
function, and a text that is gone, or is there several times, is an error. White space, comments and
the contents of strings do not count.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from quoll.errors import FactsError
from quoll.facts.fact import ANCHOR
from quoll.image.image import Image
from quoll.input_files import Unreadable, read_input
from quoll.printable import shortened
from quoll.source.c_parser import structure
from quoll.source.tokens import tokens

__all__ = ["ANCHORED", "LineAnchors"]

ANCHORED = re.compile(
    rf"(?<![^\s:,()])(?P<file>[^\s:,()]+):(?P<line>[0-9]{{1,18}})~(?P<anchor>{ANCHOR})"
)
DIGITS = 8
LARGEST = 8 << 20  # bytes of a source file


@dataclass(frozen=True, slots=True)
class _SourceFile:
    """The checksum of each line with code that has a word, and the text of each line."""

    anchors: dict[int, str]
    texts: tuple[str, ...]

    def lines_with(self, anchor: str) -> list[int]:
        return [line for line, known in self.anchors.items() if known == anchor]


@dataclass(frozen=True, slots=True)
class LineAnchors:
    """The texts of the lines that have code in one image, whose compiler ran in ``folder``."""

    image: Image
    kernel: Path
    folder: Path
    remarks: list[str] = field(default_factory=list)  # about lines that were followed
    known: dict[str, _SourceFile | None] = field(default_factory=dict)  # by path; None: unreadable

    def anchored(self, addr: int) -> str | None:
        """``file.c:LINE~checksum`` of the instruction at ``addr``.

        None if another line with code has the same checksum, if the path has a form that facts do
        not have, or if the file is not readable or newer than the ELF.
        """
        line = self.image.line(addr)
        if line is None or self._paths(line.file) != [line.path]:
            return None
        source = self._source(line.path)
        anchor = None if source is None else source.anchors.get(line.line)
        if source is None or anchor is None or source.lines_with(anchor) != [line.line]:
            return None
        place = f"{line.file}:{line.line}~{anchor}"
        usable = ANCHORED.fullmatch(place) and not self._is_newer(line.path)
        return place if usable else None

    def followed(self, text: str, where: str) -> str:
        """``text`` with the number of today in place of each anchored line.

        Raises FactsError for a line whose text is gone, or is there several times.
        """
        return ANCHORED.sub(partial(self._number, where), text)

    def _number(self, where: str, place: re.Match[str]) -> str:
        file, number = place["file"], int(place["line"])
        path = self._path(file, where)
        source = self._source(path)
        if source is None:
            raise FactsError(
                f"{self.folder / path} cannot be read, so that the text of {place[0]} is not known",
                where=where,
                hint=f"say where the compiler ran with --source-dir, or write {file}:{number}",
            )
        same = source.lines_with(place["anchor"])
        if len(same) != 1:
            raise _lost(place, source, same, where)
        if same[0] != number:
            self._follow(place[0], path, same[0], where)
        return f"{file}:{same[0]}"

    def _follow(self, place: str, path: str, number: int, where: str) -> None:
        if self._is_newer(path):
            raise FactsError(
                f"the text of {place} is on line {number} now, and {self.folder / path} is newer "
                f"than {self.kernel.name}",
                where=where,
                hint="build the kernel from this source, so that its line table has the new lines",
            )
        self.remarks.append(f"{where}: the text of {place} is followed to line {number}")

    def _path(self, file: str, where: str) -> str:
        paths = self._paths(file)
        if len(paths) != 1:
            known = f"is the name of {len(paths)} files" if paths else "has no code in this ELF"
            raise FactsError(f"{file} {known}", where=where, hint="is it compiled with -g?")
        return paths[0]

    def _paths(self, file: str) -> list[str]:
        table = self.image.lines
        return [path for path in table.paths_named(file) if table.lines_with_code(path)]

    def _source(self, path: str) -> _SourceFile | None:
        """The file recorded as ``path``; None if it is not readable, or not C as the parser reads.

        The same parser reads facts in comments.
        """
        if path not in self.known:
            try:
                text = read_input(self.folder / path, LARGEST).decode("utf-8", "replace")
                self.known[path] = _read(text, path, self.image.lines.lines_with_code(path))
            except (Unreadable, FactsError):
                self.known[path] = None
        return self.known[path]

    def _is_newer(self, path: str) -> bool:
        """Whether the source was written after the ELF, so that its lines may be others."""
        return (self.folder / path).stat().st_mtime > self.kernel.stat().st_mtime


def _read(text: str, path: str, with_code: tuple[int, ...]) -> _SourceFile:
    """Raises FactsError if its statements nest too deep."""
    read = tokens(text, path)
    words: dict[int, list[str]] = {}
    for token in read.tokens:
        words.setdefault(token.line, []).append(token.text)
    functions = () if read.assembly else structure(read.tokens)[0]
    within: dict[int, str] = {}
    for function in functions:
        name = " ".join(sorted(function.names))
        within |= dict.fromkeys(range(function.first, function.last + 1), name)
    anchors = {
        line: _checksum((within.get(line, ""), *words[line]))
        for line in with_code
        if any(map(str.isalnum, "".join(words.get(line, ()))))
    }
    return _SourceFile(anchors, tuple(text.split("\n")))


def _checksum(words: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:DIGITS]


def _lost(place: re.Match[str], source: _SourceFile, same: list[int], where: str) -> FactsError:
    """The error for a text that is on no line with code, or on several lines."""
    file, number = place["file"], int(place["line"])
    if same:
        return FactsError(
            f"the text of {place[0]} is on lines {', '.join(map(str, same))}: nothing says which "
            "one is meant",
            where=where,
            hint=f"name one by symbol+0xOFFSET, or as {file}:LINE",
        )
    anchor = source.anchors.get(number)
    text = shortened(source.texts[number - 1].strip()) if 0 < number <= len(source.texts) else ""
    meant = f"; if it is still meant, write {file}:{number}~{anchor}" if anchor else ""
    return FactsError(
        f"the text of {place[0]} is on no line of its function that has code: it has changed since "
        "the fact was written",
        where=where,
        hint=f"line {number} is '{text}' now{meant}; {file}:LINE names another line",
    )
