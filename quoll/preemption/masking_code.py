"""The places of an image's code that write interrupt masks, and the jumps between functions.

All executable code is decoded from its first word to its last, reachable or not: a literal pool may
look like code, so some found places are not real, but none is missing. A place belongs to the
function whose symbol covers it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.arm.status import StatusField, state_change, status_written
from quoll.errors import InputError
from quoll.image.image import Image

__all__ = ["MaskingCode", "masking_code"]


@dataclass(frozen=True, slots=True)
class MaskingCode:
    """Functions by the start address of their symbol.

    ``masking``: functions with an instruction that may mask. ``targets``: functions that branches
    and calls lead to; ``sources`` is the inverse. ``sizes``: numbers of instructions.
    """

    masking: tuple[int, ...]
    targets: Mapping[int, frozenset[int]]
    sources: Mapping[int, frozenset[int]]
    sizes: Mapping[int, int]


def masking_code(image: Image) -> MaskingCode:
    """Read all code of ``image``."""
    masking: set[int] = set()
    targets: dict[int, set[int]] = {}
    sources: dict[int, set[int]] = {}
    sizes: Counter[int] = Counter()
    for addr, insn in _code(image):
        function = function_of(image, addr)
        sizes[function] += 1
        if may_mask(insn):
            masking.add(function)
        if insn.target is None:
            continue
        if function_of(image, insn.target) != function or insn.target == function:
            targets.setdefault(function, set()).add(insn.target)
            sources.setdefault(insn.target, set()).add(function)
    return MaskingCode(
        tuple(sorted(masking)),
        {f: frozenset(t) for f, t in targets.items()},
        {t: frozenset(f) for t, f in sources.items()},
        sizes,
    )


def function_of(image: Image, addr: int) -> int:
    """The start of the symbol that covers ``addr``; ``addr`` itself if there is none."""
    function = image.symbols.function_around(addr)
    if function is not None:
        return function.addr
    covering = image.symbol_at(addr)
    return addr if covering is None else covering[0].addr


def may_mask(insn: Insn) -> bool:
    """Whether ``insn`` may set bit I of the status word and continues."""
    change = state_change(insn)
    if change is not None:
        return change.interrupts and change.enables is False
    return StatusField.CONTROL in status_written(insn)


def _code(image: Image) -> Iterator[tuple[int, Insn]]:
    """Every executable word, decoded in the instruction set of its place."""
    for start, code in _code_ranges(image):
        at = 0
        while at < len(code):
            addr = start + at
            thumb = _thumb(image, addr)
            if image.is_marked_data(addr):
                at += 2 if thumb else 4
                continue
            try:
                insn = decode(code[at : at + 4], addr, thumb)
            except InputError:  # the code ends inside the instruction
                return
            yield addr, insn
            at += insn.size


def _thumb(image: Image, addr: int) -> bool:
    known = image.thumb_at(addr)
    function = image.symbols.function_around(addr) if known is None else None
    return function.thumb if function is not None else known is True


def _code_ranges(image: Image) -> Iterator[tuple[int, bytes]]:
    """The executable sections, or else segments, with their bytes in the file."""
    for segment in image.segments:
        addr, end = segment.addr, segment.addr + len(segment.data)
        while addr < end:
            section = image.section_at(addr)
            above = [s.addr for s in image.sections if s.addr > addr]
            stop = section.addr + section.size if section else min([end, *above])
            stop = min(stop, end)
            if image.is_executable(addr):
                yield addr, segment.data[addr - segment.addr : stop - segment.addr]
            addr = stop
