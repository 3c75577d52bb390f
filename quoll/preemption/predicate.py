"""The predicate of an interrupt controller: the words of loads while an interrupt is pending.

A platform describes its controller by fields. Each field is a disjunction of cases: in a case some
words of the controller have known bits. An interrupt has one line, so that one case of each field
holds for all loads of a path on which it is pending; which one is not known.

    one word not 0      {NIPNDH: 1..}  or  {NIPNDL: 1..}
    a number            {HPPIR: bits 9:0 in 0..1019}
    a raw bit           {ISPENDR1: bit 4 is 1, ISENABLER1: bit 4 is 1}  or  ...
    a number, its bit   {SIR: 36, PENDING1: bit 4 is 1}  or  ...

Source: docs/preemption.md, with the manuals of the controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from quoll.intervals.masked_words import Words, covers, masked
from quoll.intervals.strided_interval import ValueSet, progression

__all__ = [
    "ALL_BITS",
    "MOST_CASES",
    "WORD_BITS",
    "PendingCase",
    "PendingField",
    "PendingPredicate",
    "field_of",
    "line_number",
    "non_zero",
    "raw_lines",
]

WORD_BITS = 32
ALL_BITS = (1 << WORD_BITS) - 1
MOST_CASES = 256  # of several fields, each an analysis of values
PendingCase = Mapping[int, Words]  # address of a word -> the words that a load gives


@dataclass(frozen=True, slots=True)
class PendingField:
    """One of ``cases`` holds from the arrival of an interrupt on; ``text`` says so to people.

    ``key``: of the platform file, where the field stands.
    """

    cases: tuple[PendingCase, ...]
    text: str
    key: str = ""

    @property
    def registers(self) -> frozenset[int]:
        """The addresses of its words."""
        return frozenset(word for case in self.cases for word in case)


@dataclass(frozen=True, slots=True)
class PendingPredicate:
    """All ``fields`` hold while an interrupt is pending.

    ``stores``: registers to which a store may acknowledge, mask or disable it, beside the words of
    fields. ``disables``: registers to which a store only withdraws a line, until it is enabled
    again. ``loads``: registers of which a load acknowledges. No field: no load is a test for
    interrupts.
    """

    fields: tuple[PendingField, ...] = ()
    stores: frozenset[int] = frozenset()
    loads: frozenset[int] = frozenset()
    disables: frozenset[int] = frozenset()

    @property
    def registers(self) -> tuple[int, ...]:
        """The addresses of all words that a test may load, ascending."""
        return tuple(sorted({word for one in self.fields for word in one.registers}))

    @property
    def text(self) -> str:
        """The predicate for people."""
        return ", and ".join(one.text for one in self.fields)

    @staticmethod
    def cases(fields: Iterable[PendingField]) -> tuple[PendingCase, ...]:
        """A case for each combination of cases of ``fields``; without those that make too many."""
        chosen: list[PendingField] = []
        for one in sorted(fields, key=lambda field: len(field.cases)):
            if not chosen or prod(len(f.cases) for f in (*chosen, one)) <= MOST_CASES:
                chosen.append(one)
        return tuple(map(_all_hold, product(*(one.cases for one in chosen))))


def _all_hold(cases: Iterable[PendingCase]) -> PendingCase:
    """The case in which all ``cases`` hold; of a word in two of them, the smaller set."""
    found: dict[int, Words] = {}
    for case in cases:
        for word, words in case.items():
            known = found.get(word)
            found[word] = words if known is None or covers(known, words) else known
    return found


def non_zero(registers: Sequence[int]) -> PendingField:
    """One of the words at ``registers`` is not 0."""
    return PendingField(
        tuple({register: ValueSet(1, ALL_BITS, 1)} for register in registers),
        f"one of the words at {_shown(registers)} is not 0",
    )


def field_of(registers: Sequence[int], mask: int, values: tuple[int, int]) -> PendingField:
    """In one of ``registers`` the bits of ``mask`` are one of ``values``, first to last.

    Values are of the field alone, as if its lowest bit were bit 0.
    """
    if mask == ALL_BITS and values == (1, ALL_BITS):
        return non_zero(registers)
    step = mask & -mask
    members = progression(values[0] * step, values[1] * step, step)
    of = "the word" if len(registers) == 1 else "one of the words"
    return PendingField(
        tuple({register: masked(mask, members)} for register in registers),
        f"bits {mask:#x} of {of} at {_shown(registers)} are {values[0]} to {values[1]}",
    )


def raw_lines(
    registers: Sequence[int], enabled_by: Sequence[int] = (), disabled_by: Sequence[int] = ()
) -> PendingField:
    """A line has its bit set in one of ``registers``.

    In the word of the same place it has its bit set in ``enabled_by``, and clear in
    ``disabled_by``, where these are given.
    """
    cases = []
    for place, register in enumerate(registers):
        for bit in (1 << number for number in range(WORD_BITS)):
            one = masked(bit, ValueSet.of(bit))
            case = {register: one}
            case |= {words[place]: one for words in (enabled_by,) if words}
            case |= {words[place]: masked(bit, ValueSet.of(0)) for words in (disabled_by,) if words}
            cases.append(case)
    text = f"a line has its bit set in one of the words at {_shown(registers)}"
    if enabled_by:
        text += f" and in the word beside it at {_shown(enabled_by)}"
    if disabled_by:
        text += f", and clear in the word beside it at {_shown(disabled_by)}"
    return PendingField(tuple(cases), text)


def line_number(
    registers: Sequence[int], mask: int, values: tuple[int, int], selects: Sequence[int]
) -> PendingField:
    """In one of ``registers`` the bits of ``mask`` are the number of one line, first to last.

    Its bit is set in the words at ``selects``, which have 32 lines each.
    """
    cases = []
    for number in range(values[0], values[1] + 1):
        place, bit = divmod(number, WORD_BITS)
        known = masked(mask, ValueSet.of(number * (mask & -mask)))
        line = {selects[place]: masked(1 << bit, ValueSet.of(1 << bit))}
        cases += [{**line, register: known} for register in registers]
    of = "the word" if len(registers) == 1 else "one of the words"
    return PendingField(
        tuple(cases),
        f"bits {mask:#x} of {of} at {_shown(registers)} are the number of the same line in all "
        f"reads, {values[0]} to {values[1]}, whose bit is set in the words at {_shown(selects)}",
    )


def _shown(registers: Sequence[int]) -> str:
    return ", ".join(f"{register:#010x}" for register in registers)
