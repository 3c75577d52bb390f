"""Places in the user's notation: an address, a symbol, an offset into one, or a source line.

    0xf0010010    schedule    schedule+0x10    sched.c:41    src/sched.c:41
    schedule+0x10~5ad1be0c    with a checksum of the function, which must be the same

A place that is missing from the binary is an error that offers similar ones, never a silent no-op
(rule 29): a rebuild must not disable a fact unnoticed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from quoll.errors import FactsError, InputError
from quoll.facts.fact import ANCHOR, FactSource
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.source.loop_statement import LoopStatement, SingleLoop
from quoll.spelling import did_you_mean

__all__ = ["ADDRESS", "FactPlace", "find_place"]

ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
LINE = re.compile(r"(?P<file>.+\.[A-Za-z]+):(?P<line>[0-9]{1,18})")
OFFSET = re.compile(r"(?P<symbol>.+)\+(?P<offset>0[xX][0-9a-fA-F]{1,8}|[0-9]{1,18})")
ANCHORED = re.compile(rf"(?P<place>.+\+.+)~(?P<anchor>{ANCHOR})")
OFFERED = 3  # alternatives named in an error
WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class FactPlace:
    """The code, or the byte of data, that a place denotes.

    ``addresses``: its starts, ascending; ``words``: the same with bit 0 set for Thumb code.
    ``exact``: one instruction. Else ``spans`` are the ranges of source lines, of which each holds
    several; of a loop as it is written these are all its lines, and only the first one starts it.
    """

    addresses: tuple[int, ...]
    words: tuple[int, ...]
    spans: tuple[Span, ...]
    exact: bool

    def covers(self, addr: int) -> bool:
        """Whether the instruction at ``addr`` is at this place, or belongs to its lines."""
        at = bisect_right(self.spans, (addr, WORD)) - 1
        return at >= 0 and addr <= self.spans[at][1]

    def meets(self, low: int, end: int) -> bool:
        """Whether a span has a byte from ``low`` to before ``end``."""
        at = bisect_left(self.spans, (end, 0)) - 1
        return at >= 0 and low <= self.spans[at][1]

    def among(self, addresses: Collection[int]) -> list[int]:
        """The members of ``addresses`` that it covers."""
        if self.exact:
            return [addr for addr in self.addresses if addr in addresses]
        return [addr for addr in addresses if self.covers(addr)]


def find_place(
    image: Image, text: str, source: FactSource | None = None, names: Iterable[str] = ()
) -> FactPlace:
    """The place that ``text`` denotes, or that the statement of ``source`` does.

    ``source`` is the fact that names the place. An odd address in the text is the Thumb instruction
    at the even one. Raises FactsError with near alternatives, of which ``names`` may be some.
    """
    text = text.strip()
    match = ANCHORED.fullmatch(text)
    if match is None:
        return _found(image, text, source, names)
    found = _found(image, match["place"], source, names)
    where = str(source) if source else None
    _check_anchor(image, found.addresses[0], match["place"], match["anchor"], where)
    return found


def _found(image: Image, text: str, source: FactSource | None, names: Iterable[str]) -> FactPlace:
    where = str(source) if source else None
    statement = source.statement if source else None
    if isinstance(statement, LoopStatement):
        path, first, last = statement.path, statement.first, statement.last
        of_first = image.lines.spans(path, first, first)
        return replace(_of_lines(image, of_first), spans=image.lines.spans(path, first, last))
    if isinstance(statement, SingleLoop):
        return _instruction(image, _symbol(image, statement.function, where))
    if ADDRESS.fullmatch(text):
        addr = int(text, 16)
        return _instruction(image, _loaded(image, addr, text, where), thumb=bool(addr & 1))
    if match := LINE.fullmatch(text):
        return _of_lines(image, _line(image, match["file"], int(match["line"]), where))
    if not image.symbols.named(text) and (match := OFFSET.fullmatch(text)):
        addr = _symbol(image, match["symbol"], where) + int(match["offset"], 0)
        return _instruction(image, _within(image, match["symbol"], addr, text, where))
    return _instruction(image, _symbol(image, text, where, names))


def _check_anchor(image: Image, addr: int, place: str, anchor: str, where: str | None) -> None:
    """Raise FactsError if the function around ``addr`` is not the one with the checksum."""
    from quoll.facts.anchors import anchor_at  # it loads the disassembler

    now = anchor_at(image, addr)
    if now != anchor:
        raise FactsError(
            f"the function around {place} has changed since {place}~{anchor} was written, so that "
            "other code may be there",
            where=where,
            hint=f"look at {image.place(addr)}; if it is still meant, write {place}~{now}; "
            "file.c:LINE names a line instead",
        )


def _instruction(image: Image, addr: int, *, thumb: bool = False) -> FactPlace:
    thumb = thumb or image.thumb_at(addr) is True
    return FactPlace((addr,), (addr | thumb,), ((addr, addr),), exact=True)


def _of_lines(image: Image, spans: tuple[Span, ...]) -> FactPlace:
    starts = tuple(low for low, _ in spans)
    words = tuple(addr | (image.thumb_at(addr) is True) for addr in starts)
    return FactPlace(starts, words, spans, exact=False)


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


def _line(image: Image, file: str, number: int, where: str | None) -> tuple[Span, ...]:
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
    spans = table.spans(paths[0], number, number)
    if not spans:
        raise FactsError(
            f"line {number} of {file} has no code",
            where=where,
            hint=_near_lines(image, file, number, table.lines_with_code(paths[0])),
        )
    return spans


def _near_lines(image: Image, file: str, number: int, lines: tuple[int, ...]) -> str:
    at = bisect_left(lines, number)
    near = lines[max(at - 1, 0) : at + 1]
    offers = (f"{n} at {image.place(image.addresses_of_line(file, n)[0])}" for n in near if n)
    return f"near lines with code: {'; '.join(offers)}"
