"""The words that only a veneer loads: the addresses to which it branches.

A linker makes a veneer where a branch cannot reach its target, or would have to change the
instruction set (ELF for the ARM Architecture, 5.6.1.4): ``ldr pc`` with a literal, or ``ldr ip``
with one and ``bx ip``, in Thumb code perhaps behind ``bx pc``. The symbol of a veneer extends over
its word; the word behind a function may be a literal of others.
"""

from __future__ import annotations

from quoll.arm.decode import decode
from quoll.arm.insn import PC, ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.errors import InputError
from quoll.image.image import Image

__all__ = ["veneer_literals"]

WIDEST = 4  # bytes of an instruction
IN_ARM_STATE = 4  # bytes behind ``bx pc``, and the padding behind it
LONGEST = 16  # bytes of a veneer with its word
SCRATCH = 12  # the register that veneers may change (AAPCS, 6.1.1)


def veneer_literals(image: Image) -> frozenset[int]:
    """The addresses of the words."""
    found: set[int] = set()
    for symbol in image.symbols.symbols:
        if symbol.kind == "func" and 0 < symbol.size <= LONGEST:
            literal = _literal(image, symbol.addr, thumb=symbol.thumb)
            if literal is not None and literal < symbol.addr + symbol.size:
                found.add(literal)
    return frozenset(found)


def _literal(image: Image, addr: int, *, thumb: bool) -> int | None:
    """The address of the word that the veneer at ``addr`` loads; None if there is no veneer."""
    first = _instruction(image, addr, thumb=thumb)
    if first is not None and thumb and first.flow is ControlFlow.INDIRECT and PC in first.reads:
        addr, thumb = addr + IN_ARM_STATE, False
        first = _instruction(image, addr, thumb=thumb)
    if first is None or first.memory is None or first.memory.base != PC:
        return None
    if first.operation is not Operation.LOAD_WORD or first.memory.index is not None:
        return None
    if first.flow is not ControlFlow.INDIRECT:
        second = _instruction(image, addr + first.size, thumb=thumb)
        by_scratch = second is not None and second.reads == frozenset((SCRATCH,))
        if first.writes != frozenset((SCRATCH,)) or second is None or not by_scratch:
            return None
        if second.flow is not ControlFlow.INDIRECT:
            return None
    return first.pc_operand + first.memory.displacement


def _instruction(image: Image, addr: int, *, thumb: bool) -> Insn | None:
    try:
        return decode(image.read(addr, WIDEST) or b"", addr, thumb=thumb)
    except InputError:
        return None
