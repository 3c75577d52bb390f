"""Registers that are constants, or at a constant distance from sp, at a loop's header."""

from __future__ import annotations

from dataclasses import dataclass

from loopbounds.slicing.cell import SP
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.scope import ScopeSymbols
from loopbounds.terms.bit_vectors import Term, add, const
from quoll.intervals.strided_interval import ValueSet

__all__ = ["CellAddress", "Places", "register_places"]

FRAME_POINTERS = range(4, 12)
WORDS = 1 << 32


@dataclass(frozen=True, slots=True)
class CellAddress:
    """A constant, or a constant distance from sp."""

    from_sp: bool
    amount: int

    def term(self, symbols: ScopeSymbols) -> Term:
        """The address, as a term at the start of a scope."""
        amount = const(self.amount, 32)
        return add(symbols.leaf(SP), amount) if self.from_sp else amount


Places = tuple[tuple[int, CellAddress], ...]  # registers with their values


def register_places(code: GraphCode, header: int) -> Places:
    """The registers whose values value analysis proves for all visits of ``header``.

    A search along the paths to the loop would take most of the time of a slice, and find little
    more.
    """
    values = code.values
    sp, at = _single(values.frame_register(header, SP)), _single(values.register(header, SP))
    found = []
    for register in (*FRAME_POINTERS, SP):
        amount = _single(values.register(header, register))
        above = _single(values.frame_register(header, register))
        if at is not None and amount is not None and code.stacks.are_apart(at, amount):
            found.append((register, CellAddress(from_sp=True, amount=(amount - at) % WORDS)))
        elif amount is not None:
            found.append((register, CellAddress(from_sp=False, amount=amount)))
        elif register == SP:
            found.append((register, CellAddress(from_sp=True, amount=0)))
        elif sp is not None and above is not None:
            found.append((register, CellAddress(from_sp=True, amount=(above - sp) % WORDS)))
    return tuple(found)


def _single(values: ValueSet | None) -> int | None:
    """The only one of ``values``; None if there are several."""
    return values.low if values is not None and values.low == values.high else None
