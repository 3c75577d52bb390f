"""Places in the user's notation: an address, a symbol, an offset into one, or a source line.

    0xf0010010    schedule    schedule+0x10    sched.c:41    src/sched.c:41

A place that is missing from the binary is an error that offers similar ones, never a silent no-op
(rule 29): a rebuild must not disable a fact unnoticed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from quoll.errors import FactsError, InputError
from quoll.facts import FactSource
from quoll.image.dwarf_lines import SourceLine
from quoll.image.image import Image
from quoll.source.loop_statement import LoopStatement, SingleLoop
from quoll.spelling import did_you_mean

__all__ = ["AtPlaces", "FactPlace", "find_place", "resolve", "resolve_code"]

ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
LINE = re.compile(r"(?P<file>.+\.[A-Za-z]+):(?P<line>[0-9]{1,18})")
OFFSET = re.compile(r"(?P<symbol>.+)\+(?P<offset>0[xX][0-9a-fA-F]{1,8}|[0-9]{1,18})")
OFFERED = 3  # alternatives named in an error
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FactPlace:
    """``addresses``: start addresses of the place, ascending; ``line`` is set for a source line.

    A line usually has several ranges of code, and each range holds several instructions.
    ``statement`` is set for a loop statement: all of its lines are the place.
    """

    addresses: tuple[int, ...]
    line: SourceLine | None
    statement: LoopStatement | SingleLoop | None = None

    def covers(self, image: Image, addr: int) -> bool:
        """Whether the instruction at ``addr`` is at this place, or belongs to its line."""
        if isinstance(self.statement, SingleLoop):
            symbol = image.symbol_at(addr)
            return symbol is not None and symbol[0].addr in self.addresses
        if self.statement is not None:
            line = image.line(addr)
            at = self.statement
            return line is not None and line.path == at.path and at.first <= line.line <= at.last
        if self.line is not None:
            return image.line(addr) == self.line
        return addr in self.addresses

    @property
    def exact(self) -> bool:
        """Whether the place is single instructions, at ``addresses``."""
        return self.line is None and self.statement is None

    def among(self, image: Image, addresses: Collection[int]) -> list[int]:
        """The members of ``addresses`` that it covers."""
        if self.exact:
            return [addr for addr in self.addresses if addr in addresses]
        return [addr for addr in addresses if self.covers(image, addr)]


class AtPlaces(Generic[T]):
    """Facts about places, by instruction address; facts about single instructions take priority."""

    def __init__(self, image: Image, stated: Iterable[tuple[FactPlace, T]]) -> None:
        self._image = image
        self._exact: dict[int, T] = {}
        self._others: list[tuple[FactPlace, T]] = []
        for place, what in stated:
            if not place.exact:
                self._others.append((place, what))
            for addr in place.addresses if place.exact else ():
                self._exact.setdefault(addr, what)

    def at(self, addr: int) -> T | None:
        """The fact about the instruction at ``addr``, or None."""
        if addr in self._exact:
            return self._exact[addr]
        others = (what for place, what in self._others if place.covers(self._image, addr))
        return next(others, None)


def resolve(
    image: Image, text: str, source: FactSource | None = None, names: Iterable[str] = ()
) -> tuple[int, ...]:
    """The addresses that ``text`` denotes: one, or the start of each range of a line.

    ``source`` is the fact that names the place. Raises FactsError with similar names, some of them
    from ``names``.
    """
    return find_place(image, text, source, names).addresses


def resolve_code(
    image: Image, text: str, source: FactSource | None = None, names: Iterable[str] = ()
) -> tuple[int, ...]:
    """As ``resolve``, with bit 0 set for Thumb code: for an odd address, or by symbols."""
    odd = ADDRESS.fullmatch(text.strip()) is not None and int(text, 16) & 1 == 1
    found = resolve(image, text, source, names)
    return tuple(addr | (odd or image.thumb_at(addr) is True) for addr in found)


def find_place(
    image: Image, text: str, source: FactSource | None = None, names: Iterable[str] = ()
) -> FactPlace:
    """As ``resolve``, but a ``FactPlace``, which distinguishes a line from an address.

    An odd address in the text means the Thumb instruction at the even address.
    """
    where = str(source) if source else None
    text = text.strip()
    if source is not None and isinstance(source.statement, LoopStatement):
        return _statement(image, source.statement)
    if source is not None and isinstance(source.statement, SingleLoop):
        return FactPlace(
            (_symbol(image, source.statement.function, where),), None, source.statement
        )
    if ADDRESS.fullmatch(text):
        return FactPlace((_loaded(image, int(text, 16), text, where),), None)
    if match := LINE.fullmatch(text):
        return _line(image, match["file"], int(match["line"]), where)
    if image.symbols.named(text):
        return FactPlace((_symbol(image, text, where),), None)
    if match := OFFSET.fullmatch(text):
        addr = _symbol(image, match["symbol"], where) + int(match["offset"], 0)
        return FactPlace((_within(image, match["symbol"], addr, text, where),), None)
    return FactPlace((_symbol(image, text, where, names),), None)


def _statement(image: Image, statement: LoopStatement) -> FactPlace:
    """All code of the lines of a loop; possibly none after compilation."""
    lines = image.lines.lines_with_code(statement.path)
    own = (line for line in lines if statement.first <= line <= statement.last)
    starts = (a for line in own for a in image.lines.addresses(statement.path, line))
    return FactPlace(tuple(sorted(starts)), None, statement)


def _loaded(image: Image, addr: int, text: str, where: str | None) -> int:
    if image.segment_at(addr) is None:
        spans = ", ".join(f"0x{s.addr:08x}-0x{s.addr + s.size:08x}" for s in image.segments[:8])
        raise FactsError(f"there is nothing at {text}", where=where, hint=f"loaded: {spans}")
    wrong = image.contradiction(addr & ~1, thumb=True) if addr & 1 else None
    if wrong:
        raise FactsError(
            f"the odd address {addr:#x} stands for Thumb code, but {wrong}",
            where=where,
            hint=f"give the even address, {addr & ~1:#x}",
        )
    return addr & ~1 if image.is_executable(addr & ~1) else addr


def _within(image: Image, name: str, addr: int, text: str, where: str | None) -> int:
    """``addr`` if it is inside the symbol; raises FactsError for an offset beyond it."""
    symbol = image.symbol(name)
    if symbol and symbol.size and addr >= symbol.addr + symbol.size:
        raise FactsError(
            f"{text} is outside {name}", where=where, hint=f"{name} has 0x{symbol.size:x} bytes"
        )
    return _loaded(image, addr, text, where)


def _symbol(image: Image, name: str, where: str | None, names: Iterable[str] = ()) -> int:
    try:
        symbol = image.symbol(name)
    except InputError as fault:
        raise FactsError(fault.message, where=where, hint=fault.hint) from fault
    if symbol is None:
        known = dict.fromkeys((*names, *image.symbols.names()))
        raise FactsError(
            f"there is no symbol {name}",
            where=where,
            hint=did_you_mean(name, known, OFFERED) or "write 0xADDRESS or file.c:LINE",
        )
    return symbol.addr


def _line(image: Image, file: str, number: int, where: str | None) -> FactPlace:
    table = image.lines
    if table.problem:
        raise FactsError(f"the line table is damaged: {table.problem}", where=where)
    paths = [p for p in table.paths_named(file) if table.lines_with_code(p)]
    if len(paths) > 1:
        raise FactsError(
            f"{file} is the name of {len(paths)} files",
            where=where,
            hint=f"write one of {', '.join(sorted(paths))}",
        )
    if not paths:
        names = sorted({p.rpartition("/")[2] for p in table.paths})
        near = did_you_mean(file.rpartition("/")[2], names, OFFERED)
        hint = near or "was the kernel compiled with -g?"
        raise FactsError(f"there is no code from {file}", where=where, hint=hint)
    addresses = table.addresses(paths[0], number)
    if not addresses:
        raise FactsError(
            f"line {number} of {file} has no code",
            where=where,
            hint=_near_lines(image, file, number, table.lines_with_code(paths[0])),
        )
    return FactPlace(addresses, SourceLine(paths[0], number))


def _near_lines(image: Image, file: str, number: int, lines: tuple[int, ...]) -> str:
    at = bisect_left(lines, number)
    near = lines[max(at - 1, 0) : at + 1]
    offers = (f"{n} at {image.place(image.addresses_of_line(file, n)[0])}" for n in near if n)
    return f"near lines with code: {'; '.join(offers)}"
