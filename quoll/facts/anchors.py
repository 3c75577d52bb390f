"""Anchors of places: a checksum of the function around ``symbol+offset``.

An edit may move other code to the same offset, and a fact would silently be about that. The
checksum covers the instructions of the whole function, with symbols instead of addresses, so that
it survives when the linker places the function, its callees and its data elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Set

from quoll.arm.decode import decode
from quoll.arm.immediates import immediate_operand
from quoll.arm.insn import Insn
from quoll.arm.operation import Operation
from quoll.arm.wide_constants import upper_half, wide_constants
from quoll.errors import InputError
from quoll.image.image import Image
from quoll.image.symbols import Symbol

__all__ = ["anchor_at", "anchored"]

DIGITS = 8
WORD = 4  # bytes


def anchor_at(image: Image, addr: int) -> str | None:
    """The checksum of the function of known size around ``addr``; None without one."""
    function = image.symbols.function_around(addr)
    if function is None:
        return None
    return hashlib.sha256("\n".join(_content(image, function)).encode()).hexdigest()[:DIGITS]


def anchored(image: Image, addr: int) -> str | None:
    """``symbol+offset~checksum`` for a place in a function of known size; None for another one."""
    function, anchor = image.symbols.function_around(addr), anchor_at(image, addr)
    if function is None or image.only_symbol(function.name) != function:
        return None
    return f"{function.name}+{addr - function.addr:#x}~{anchor}"


def _content(image: Image, function: Symbol) -> Iterator[str]:
    """Each instruction and each word of data."""
    at, end = function.addr, function.addr + function.size
    code = image.read(function.addr, function.size) or b""
    addresses = [word for word in wide_constants(code) if image.segment_at(word) is not None]
    halves = {half for word in addresses for half in (word & 0xFFFF, word >> 16)}
    thumb = image.thumb_at(at) is True
    while at < end:
        insn = None if image.is_marked_data(at) else _decoded(image, at, thumb=thumb)
        if insn is None:
            yield _named(image, int.from_bytes(image.read(at, WORD) or b"", "little"))
        else:
            yield _instruction(image, insn, function, halves)
        at += WORD if insn is None else insn.size
    yield from (_named(image, word) for word in addresses)


def _decoded(image: Image, addr: int, *, thumb: bool) -> Insn | None:
    try:
        return decode(image.read(addr, WORD) or image.read(addr, 2) or b"", addr, thumb=thumb)
    except InputError:
        return None


def _instruction(image: Image, insn: Insn, function: Symbol, halves: Set[int]) -> str:
    """Its bits, without ``halves`` of addresses, which the linker places."""
    if insn.target is not None:
        inside = function.addr <= insn.target < function.addr + function.size
        target = f"{insn.target - function.addr:#x}" if inside else _named(image, insn.target)
        return f"{insn.mnemonic} {insn.cond.name} {sorted(insn.reads)} {target}"
    moved = immediate_operand(insn) if insn.operation is Operation.MOVE else upper_half(insn)
    if moved in halves:
        return f"{insn.mnemonic} {insn.cond.name} {sorted(insn.writes)}"
    return insn.raw.hex()


def _named(image: Image, word: int) -> str:
    """A word as a symbol and an offset, if it is an address in the image."""
    found = image.symbol_at(word & ~1) if image.segment_at(word) is not None else None
    return f"{word:#x}" if found is None else f"{found[0].name}+{word - found[0].addr:#x}"
