"""Facts in comments of the source: ``// wcet: loop at most 33``.

The files are those in the line table that can be read. In a comment ``here`` is the place of the
fact: the line of the comment, or the next one if the comment stands alone. A fact about a loop
concerns only the loop statement that begins there: ``LoopStatement`` holds its lines, and
``loopbounds.places`` finds the loops of the binary compiled from them.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quoll.errors import FactsError
from quoll.facts.count_facts import LoopFact, LoopParameter
from quoll.facts.fact import Fact, FactSource
from quoll.facts.invariants import ListAtMostFact
from quoll.facts.read import FORMS, read_fact
from quoll.image.image import Image
from quoll.input_files import Unreadable, read_input
from quoll.printable import shortened
from quoll.source.c_parser import FunctionText, LoopText, structure
from quoll.source.loop_statement import LoopStatement
from quoll.source.tokens import SourceText, tokens

__all__ = ["Annotations", "read_annotations"]

MARK = b"wcet"
LARGEST = 8 << 20  # bytes of a source file
LEAD = re.compile(r"^\s*(?:/\*+|//+|\*+(?!/)|@+)?\s*wcet:(?P<fact>.*)")
MISPLACED = re.compile(r"\bwcet\s*:", re.IGNORECASE)
# Words that may be omitted because the place is known.
SHORT = (
    (re.compile(r"^loop (?!here\b)"), "loop here "),
    (re.compile(r"^list (?!at\b)"), "list at here "),
    (re.compile(r"^(?=executes |never executes)"), "here "),
    (re.compile(r"^branch is "), "branch at here is "),
    (re.compile(r"^targets are "), "targets of here are "),
)
EXAMPLES = (
    "'loop at most N', 'list has at most N elements', 'executes at most N times', 'never "
    "executes', 'branch is always taken', 'targets are PLACE, ...', or another fact with 'here' as "
    "its place"
)


@dataclass(frozen=True, slots=True)
class Annotations:
    """The facts in all comments, and warnings about comments that are not read."""

    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _File:
    """A source file: its recorded path, the path by which it was read, its structure."""

    path: str
    name: str
    text: SourceText
    functions: tuple[FunctionText, ...] = ()
    loops: tuple[LoopText, ...] = ()


def read_annotations(image: Image, kernel: Path, folder: Path) -> Annotations:
    """The annotations in the sources of ``kernel``, whose compiler ran in ``folder``.

    Raises FactsError for a comment that begins with ``wcet:`` and is no fact about its place.
    """
    texts = dict(_texts(image, folder))
    marked = [path for path, text in texts.items() if MARK in text.lower()]
    if not marked:
        return Annotations()
    files = [_file(path, folder, text) for path, text in texts.items()]
    reader = _Reader(image, files)
    for file in files:
        if file.path in marked:
            reader.read(file)
            reader.look_elsewhere(file, texts[file.path])
    read = [folder / file.path for file in files if file.name in reader.lines]
    return Annotations(tuple(reader.facts), (*_changed(kernel, read), *reader.warnings))


def _texts(image: Image, folder: Path) -> Iterator[tuple[str, bytes]]:
    """The readable files with code; an unreadable file is no error."""
    table = image.lines
    for file in sorted(set(table.files)):
        if file < len(table.paths):
            try:
                yield table.paths[file], read_input(folder / table.paths[file], LARGEST)
            except Unreadable:
                continue


def _file(path: str, folder: Path, data: bytes) -> _File:
    text = tokens(data.decode("utf-8", "replace"), path)
    name = os.path.normpath(folder / path)
    below = os.path.relpath(name)
    name = name if below.startswith("..") else below
    if text.assembly:
        return _File(path, name, text)
    try:
        return _File(path, name, text, *structure(text.tokens))
    except FactsError as fault:
        raise FactsError(fault.message, where=f"{name}, {fault.where}") from fault


def _changed(kernel: Path, files: Sequence[Path]) -> Iterator[str]:
    """A warning for each file written after the ELF, whose lines may have moved since."""
    built = kernel.stat().st_mtime
    for file in files:
        if file.stat().st_mtime > built:
            yield (
                f"{file} is newer than {kernel.name}: are its comments with facts still on the "
                "lines that were compiled?"
            )


@dataclass(slots=True)
class _Reader:
    """Reads the comments of one file after another."""

    image: Image
    files: Sequence[_File]
    facts: list[Fact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lines: dict[str, set[int]] = field(default_factory=dict)  # name of the file -> lines with facts

    def read(self, file: _File) -> None:
        """Add the facts in the comments of ``file``."""
        table = self.image.lines
        if file.text.assembly:
            lines: Sequence[int] = table.lines_with_code(file.path)
        else:
            lines = sorted({token.line for token in file.text.tokens})
        for comment in file.text.comments:
            comment_lines = comment.text.removesuffix("*/").split("\n")
            last = comment.line + len(comment_lines) - 1
            for number, line_text in enumerate(comment_lines, start=comment.line):
                if match := LEAD.match(line_text):
                    self.lines.setdefault(file.name, set()).add(number)
                    source = FactSource(file.name, number, " ".join(match["fact"].split()))
                    self._add(file, source, _line(lines, comment.line, last))

    def look_elsewhere(self, file: _File, text: bytes) -> None:
        """Warn of text that would be a fact at the start of a comment, so that none is lost."""
        for number, line in enumerate(text.decode("utf-8", "replace").split("\n"), start=1):
            if number in self.lines.get(file.name, ()):
                continue
            for match in MISPLACED.finditer(line):
                stated = " ".join(line[match.end() :].split())
                if any(re.match(form.opening, _whole(stated)) for form in FORMS):
                    self.warnings.append(
                        f"{file.name}:{number}: '{shortened(stated)}' is not read: 'wcet:' must "
                        "begin a comment outside directives"
                    )

    def _add(self, file: _File, source: FactSource, line: int | None) -> None:
        fact = _whole(source.text.partition("#")[0].strip())
        if re.search(r"\bhere\b", fact) is None:
            raise FactsError(
                f"'{source.text}' is no fact about the line at which it stands",
                where=str(source),
                hint=f"write {EXAMPLES}; a fact about anything else belongs into a facts file",
            )
        if line is None:
            self.warnings.append(f"{source}: no code follows the comment '{source.text}'")
            return
        place = f"{_shortest(file.path, self.image.lines.paths)}:{line}"
        written = replace(source, text=re.sub(r"\bhere\b", place, fact))
        found = read_fact(written)
        about_loop = isinstance(found, LoopFact | ListAtMostFact) or (
            isinstance(found, LoopParameter) and not found.total
        )
        if about_loop and place in found.places():
            statement = self._statement(file, source, line)
            if statement is None:
                self.warnings.append(f"{source}: no loop begins at line {line}: '{source.text}'")
                return
            found = read_fact(replace(written, statement=statement))
        elif not self.image.lines.addresses(file.path, line):
            self.warnings.append(f"{source}: line {line} has no code: '{source.text}'")
            return
        self.facts.append(found)

    def _statement(self, file: _File, source: FactSource, line: int) -> LoopStatement | None:
        """The loop that begins at a line; raises FactsError if several do."""
        if file.text.assembly:
            return LoopStatement(file.path, line, line, assembly=True)
        here = [loop for loop in file.loops if loop.first == line]
        if len(here) > 1:
            raise FactsError(
                f"{len(here)} loops begin at line {line}: '{source.text}' may be about any of them",
                where=str(source),
                hint="write each loop on lines of its own, or name one in a facts file by an "
                "address in it, as 'wcet loops' prints it",
            )
        if not here:
            return None
        (loop,) = here
        outer = [o for o in file.loops if o.first < loop.first and loop.last <= o.last]
        around = max(outer, key=lambda o: o.first, default=None)
        statement = self._written(file, loop)
        return (
            statement if around is None else replace(statement, around=self._written(file, around))
        )

    def _written(self, file: _File, loop: LoopText) -> LoopStatement:
        inner = [o for o in file.loops if loop.first < o.first and o.last <= loop.last]
        return LoopStatement(
            file.path,
            loop.first,
            loop.last,
            tuple((o.first, o.last) for o in inner),
            called=self._called(loop.words),
        )

    def _called(self, words: frozenset[str]) -> tuple[tuple[str, int, int], ...]:
        """The functions whose names are among ``words``, and the functions that they may call."""
        found: dict[tuple[str, int, int], None] = {}
        functions = [(file.path, f) for file in self.files for f in file.functions]
        called: set[str] = set()
        pending = set(words)
        while pending:
            called |= pending
            more: set[str] = set()
            for path, function in functions:
                if function.names & pending:
                    found[path, function.first, function.last] = None
                    more |= function.words
            pending = more - called
        return tuple(sorted(found))


def _whole(fact: str) -> str:
    """``fact`` with the omitted words."""
    for short, whole in SHORT:
        fact = short.sub(whole, fact)
    return fact


def _line(lines: Sequence[int], first: int, last: int) -> int | None:
    """The code line of a comment: its own line, else the next one."""
    at = bisect_left(lines, first)
    if at < len(lines) and lines[at] == first:
        return first
    at = bisect_left(lines, last)
    return lines[at] if at < len(lines) else None


def _shortest(path: str, paths: Sequence[str]) -> str:
    """The shortest suffix of ``path`` that no other recorded path has."""
    folders = path.split("/")
    for count in range(1, len(folders) + 1):
        end = "/".join(folders[-count:])
        if sum(p == end or p.endswith("/" + end) for p in paths) == 1:
            return end
    return path
