"""Effects of status writes besides flags and masks: mode, byte order, instruction set.

Rules 45 and 46. In User mode ``cps`` and the control field of ``msr`` have no effect (B9.3.2,
B9.3.11), so code that enters User mode and continues is refused. Bit E makes data big-endian
(A3.3.1): it is refused wherever it is set. From ARMv7 on, ``msr`` does not write the execution
state (B9.3.11); before ARMv7, a word with bit T of the other instruction set is UNPREDICTABLE, and
refused.

    word = constants, a word of mrs as it was read, or one with bits set and cleared by constants

Any other word is unknown: its fields are an assumption, listed with its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quoll.arm.immediates import immediate_operand
from quoll.arm.insn import PC, Insn
from quoll.arm.operation import Operation
from quoll.arm.status import (
    MODE_BITS,
    StatusField,
    fields_written,
    reads_current_status,
    state_change,
    writes_saved_status,
)
from quoll.assumptions import LITTLE_ENDIAN, PRIVILEGED, Assumption
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.value_analysis.value_results import ValueResults

__all__ = ["check_status_words"]

USER = 0x10
BIG_ENDIAN, THUMB = 1 << 9, 1 << 5
ALL = (1 << 32) - 1
FEW = 64  # most words of a set that are analysed one by one
CHAIN = 16  # most instructions in a row that change one word
PRESERVING = (StatusField.CONTROL, StatusField.EXTENSION)


@dataclass(frozen=True, slots=True)
class StatusBits:
    """A word whose ``known`` bits equal ``value``; its other bits are unchanged since mrs."""

    known: int
    value: int

    def with_and(self, mask: int) -> StatusBits:
        """The word with its bits outside of ``mask`` cleared."""
        return StatusBits(self.known | ~mask & ALL, self.value & mask)

    def with_or(self, mask: int) -> StatusBits:
        """The word with the bits of ``mask`` set."""
        return StatusBits(self.known | mask, self.value | mask)


def check_status_words(values: ValueResults, image: Image) -> Iterator[Assumption]:
    """The assumptions about the status words that a graph writes.

    Raises ControlFlowError for one that enters User mode, makes data big-endian, or has bit T of
    the other instruction set.
    """
    read = frozenset(_words_read(values))
    for node, insn, index in _status_writes(values):
        change = state_change(insn)
        if change is not None:
            if change.mode == USER:
                raise _enters_user_mode(insn, image)
            continue
        fields = fields_written(insn)
        bits = list(_possible(values, node, index, insn, read))
        for word in bits:
            _refuse(insn, word, fields, image)
        if not bits:
            saved = writes_saved_status(insn)
            if StatusField.CONTROL in fields and not saved:
                yield PRIVILEGED.of(insn=insn.text, place=image.place(insn.addr))
            if StatusField.EXTENSION in fields and not saved:
                yield LITTLE_ENDIAN.of(insn=insn.text, place=image.place(insn.addr))


def _status_writes(values: ValueResults) -> Iterator[tuple[int, Insn, int]]:
    for number, node in enumerate(values.graph.nodes):
        for index, insn in enumerate(node.block.insns):
            if state_change(insn) is not None or any(f in fields_written(insn) for f in PRESERVING):
                yield number, insn, index


def _words_read(values: ValueResults) -> Iterator[int]:
    """The symbols of the CPSR words that ``mrs`` reads."""
    for number, node in enumerate(values.graph.nodes):
        for index, insn in enumerate(node.block.insns):
            if insn.operation is Operation.READ_STATUS and reads_current_status(insn):
                for register in insn.writes:
                    term = values.word(number, index + 1, register)
                    if term is not None and term >> 32 and not term & ALL:
                        yield term >> 32


def _possible(
    values: ValueResults, node: int, index: int, insn: Insn, read: frozenset[int]
) -> Iterator[StatusBits]:
    """The words that ``insn`` may write; none if any word is possible."""
    if not insn.sources:
        value = immediate_operand(insn)
        if value is not None:
            yield StatusBits(ALL, value)
        return
    register = insn.sources[0]
    made = _made(values, node, index, register, read, CHAIN)
    if made is not None:
        yield made
        return
    known = values.operand(node, index, register)
    if known.size <= FEW:
        yield from (StatusBits(ALL, word) for word in known)


def _made(
    values: ValueResults, node: int, index: int, register: int, read: frozenset[int], depth: int
) -> StatusBits | None:
    """The word of a register as changed bits of a word from mrs; None if it is no such word.

    Bits E and T of a word from mrs are known, as no write changes them.
    """
    term = values.word(node, index, register)
    insns = values.graph.nodes[node].block.insns
    if term is not None and term >> 32 in read and not term & ALL:
        return StatusBits(BIG_ENDIAN | THUMB, THUMB if insns[0].thumb else 0)
    if not depth:
        return None
    for before in range(index - 1, -1, -1):
        insn = insns[before]
        if register not in insn.writes:
            continue
        if insn.conditional or not insn.sources or insn.memory is not None or PC in insn.reads:
            return None
        source = _made(values, node, before, insn.sources[0], read, depth - 1)
        return None if source is None else _changed(values, node, before, insn, source)
    return None


def _changed(
    values: ValueResults, node: int, index: int, insn: Insn, source: StatusBits
) -> StatusBits | None:
    """``source`` after ``insn``, if that sets or clears bits by a constant."""
    if insn.operation is Operation.MOVE and len(insn.sources) == 1:
        return source if insn.shift.value == "none" else None
    value = immediate_operand(insn)
    if value is None and len(insn.sources) == 2 and insn.shift.value == "none":
        value = values.operand(node, index, insn.sources[1]).exact
    if value is None:
        return None
    match insn.operation:
        case Operation.OR:
            return source.with_or(value)
        case Operation.AND:
            return source.with_and(value)
        case Operation.BIT_CLEAR:
            return source.with_and(~value & ALL)
        case Operation.EXCLUSIVE_OR if not value & (BIG_ENDIAN | THUMB | MODE_BITS) & ~source.known:
            return StatusBits(source.known, source.value ^ value & source.known)
        case Operation.ADD if not value & ~(source.known & ~source.value):
            return source.with_or(value)
        case Operation.SUBTRACT if not value & ~(source.known & source.value):
            return source.with_and(~value & ALL)
    return None


def _refuse(insn: Insn, word: StatusBits, fields: StatusField, image: Image) -> None:
    """Raise for the effect of ``word`` on the mode, the byte order or the instruction set."""
    saved = writes_saved_status(insn)
    if StatusField.EXTENSION in fields and word.value & BIG_ENDIAN:
        raise ControlFlowError(
            f"{insn.text} makes data big-endian (bit E), which is not supported",
            where=image.place(insn.addr),
            hint="the analysed code must stay little-endian",
        )
    if StatusField.CONTROL not in fields or saved:
        return
    if word.known & MODE_BITS == MODE_BITS and word.value & MODE_BITS == USER:
        raise _enters_user_mode(insn, image)
    if image.version < 7 and word.known & THUMB and bool(word.value & THUMB) != insn.thumb:
        raise ControlFlowError(
            f"{insn.text} writes bit T of the other instruction set, which is UNPREDICTABLE",
            where=image.place(insn.addr),
            hint="change the instruction set by bx or an exception return",
        )


def _enters_user_mode(insn: Insn, image: Image) -> ControlFlowError:
    return ControlFlowError(
        f"{insn.text} enters User mode, where later changes of mode and masks have no effect",
        where=image.place(insn.addr),
        hint="if the path ends here, state it: path must end at PLACE; enter User mode by an "
        "exception return",
    )
