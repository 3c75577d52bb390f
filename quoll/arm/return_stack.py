"""The return stack of the ARM1136: the addresses that it may predict returns to.

The ARM1176JZF-S TRM (DDI 0301), 5.3, describes it: a circular buffer of three entries. ``BL`` and
``BLX`` push their return address from the Execute stage; an unconditional ``BX r14``, ``LDM sp!``
with the pc or ``LDR pc, [sp...]`` that is predicted goes to the top entry and pops it. An empty
stack predicts nothing.

The manual leaves open whether an entry that was popped remains behind the others, and whether
other forms of a return pop. Both are covered. It also leaves open whether each executed call has
pushed before the next return is predicted, and whether wrong paths change the stack: that is
assumed (``RETURN_STACK`` of ``quoll.assumptions``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quoll.arm.insn import LR, PC, SP, AccessKind, ControlFlow, Insn

__all__ = [
    "EMPTY",
    "ENTRIES",
    "UNKNOWN_RETURNS",
    "ReturnAddress",
    "ReturnStack",
    "is_call",
    "may_return",
    "surely_returns",
]

ENTRIES = 3
MOST = 8  # addresses of an entry; with more, it counts as unknown
CALLS = (ControlFlow.CALL, ControlFlow.INDIRECT_CALL)


class ReturnAddress(NamedTuple):
    """An address and the instruction set there."""

    addr: int
    thumb: bool


EMPTY = ReturnAddress(-1, thumb=False)  # in place of an address: the entry predicts nothing
Entry = frozenset[ReturnAddress] | None  # the addresses that it may hold; None: any, or none


def is_call(insn: Insn) -> bool:
    """Whether it pushes its return address, if it is executed."""
    return insn.flow in CALLS


def may_return(insn: Insn) -> bool:
    """Whether the top of the stack may predict ``insn``: any unconditional form of a return."""
    if insn.conditional or insn.flow is not ControlFlow.INDIRECT:
        return False
    if insn.memory is None:
        return insn.reads == {LR}
    loads = insn.memory.access is AccessKind.LOAD and PC in insn.transfers
    return loads and insn.memory.base == SP


def surely_returns(insn: Insn) -> bool:
    """Whether ``insn`` has a form that the manual names: ``mov pc, lr`` has not, nor has a list
    that leaves sp as it was.
    """
    if not may_return(insn):
        return False
    if insn.memory is None:
        return insn.mnemonic == "bx"
    return insn.memory.writeback


@dataclass(frozen=True, slots=True)
class ReturnStack:
    """The addresses that each entry may hold, the top one first."""

    entries: tuple[Entry, ...]

    @property
    def top(self) -> Entry:
        """The addresses that predict the next return."""
        return self.entries[0]

    def only(self) -> ReturnAddress | None:
        """The top entry if it surely is this address; None if it is not known."""
        if self.top is None or len(self.top) != 1:
            return None
        (address,) = self.top
        return None if address == EMPTY else address

    def pushed(self, insn: Insn) -> ReturnStack:
        """The stack behind a call that pushes."""
        address = frozenset((ReturnAddress(insn.next, insn.thumb),))
        return ReturnStack((address, *self.entries[:-1]))

    def popped(self) -> ReturnStack:
        """The stack behind a return that pops.

        The entry moves behind the others, or is gone. An empty stack may stay as it is.
        """
        top = self.top
        gone = None if top is None else top | {EMPTY}
        turned = ReturnStack((*self.entries[1:], gone))
        return turned.join(self) if top is None or EMPTY in top else turned

    def after(self, insn: Insn, *, taken: bool = True) -> ReturnStack:
        """The stack behind ``insn``; ``taken``: it transferred control."""
        if is_call(insn):
            return self.pushed(insn) if taken else self
        if may_return(insn):
            popped = self.popped()
            return popped if surely_returns(insn) else self.join(popped)
        return self

    def on_wrong_path(self, insn: Insn) -> ReturnStack:
        """As ``after``, if ``insn`` may not reach the Execute stage: a call need not push."""
        return self.join(self.after(insn)) if is_call(insn) else self.after(insn)

    def join(self, other: ReturnStack) -> ReturnStack:
        """The stacks of both."""
        if self == other:
            return self
        return ReturnStack(
            tuple(_either(a, b) for a, b in zip(self.entries, other.entries, strict=True))
        )

    def covered_by(self, other: ReturnStack) -> bool:
        """Whether every stack of this value is one of ``other``."""
        return all(
            b is None or (a is not None and a <= b)
            for a, b in zip(self.entries, other.entries, strict=True)
        )


def _either(a: Entry, b: Entry) -> Entry:
    if a is None or b is None or len(a | b) > MOST:
        return None
    return a | b


UNKNOWN_RETURNS = ReturnStack((None,) * ENTRIES)
