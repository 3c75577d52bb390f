"""What values say of the transfers of one function, as far as it is known.

Each claim that extraction makes from the form of the code is checked here: that a return loads
the return address, that a jump to a function leaves sp and lr as they were, and which registers
a function gives back.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from quoll.arm.insn import SP
from quoll.cfg import Cfg
from quoll.errors import WcetError
from quoll.image import Image
from quoll.indirect import Resolution, resolve
from quoll.localvalues import CALLEE_SAVED, BlockCode, LocalValues
from quoll.terms import entry_symbol
from quoll.transfers import Effect, callee_at

__all__ = ["Confirmed", "Confirmer", "Doubt"]

NEVER = ("the instruction is not reached", "the transfer is never made")


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a transfer is not understood."""

    reason: str
    dead: bool = False  # by what is known it is never made
    balanced: bool = False  # it leaves sp as it was at entry


class Confirmed:
    """The values in one function."""

    def __init__(self, values: LocalValues) -> None:
        self._values = values

    @property
    def assumptions(self) -> frozenset[str]:
        """The named assumptions that the values rest on (rule 1)."""
        return self._values.assumptions

    def preserved(self, assumed: Set[int]) -> frozenset[int]:
        """Callee-saved registers, sp among them, that every return gives back.

        The returns at ``assumed`` are assumed to give back everything.
        """
        kept = CALLEE_SAVED
        for block in self._values.cfg.blocks:
            if block.last.addr in assumed or not (block.returns or block.tail):
                continue
            kept &= {r for r in CALLEE_SAVED if self.holds(block.index, r)}
            if block.tail:
                for callee in block.calls:
                    kept &= self._values.callees(callee)
        return kept

    def effect(self, block: int) -> tuple[Effect, bool] | Doubt:
        """What the indirect transfer ending ``block`` does, and whether it is a call."""
        found = resolve(self._values, block)
        thumb = self._values.cfg.blocks[block].last.thumb
        if not isinstance(found, Resolution):
            dead = found.reason in NEVER
            return Doubt(found.reason, dead, not dead and self.holds(block, SP))
        targets = tuple(callee_at(target, thumb=thumb) for target in found.targets)
        effect = Effect(targets, found.kind == "return", found.table)
        return effect, found.kind == "call"

    def holds(self, block: int, register: int) -> bool:
        """Whether ``register`` is as it was at entry when ``block`` transfers control."""
        outcome = self._values.outcome(block)
        if outcome is None or outcome.leave is None:
            return True
        return outcome.leave.state.term(register) == entry_symbol(register) << 32


class Confirmer:
    """Computes values, function by function; what functions give back is shared.

    ``preserved`` starts with everything and only shrinks: the greatest fixed point, in which
    each function is right if the ones that it calls are.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._code = BlockCode()
        self._preserved: dict[int, frozenset[int]] = {}

    def __call__(self, cfg: Cfg) -> Confirmed | str:
        """The values of ``cfg``, or why there are none."""
        try:
            return Confirmed(LocalValues(cfg, self._image, self._code, self.preserved))
        except WcetError as fault:
            return str(fault)

    def preserved(self, entry: int) -> frozenset[int]:
        """What the function at ``entry`` gives back, as far as it is known."""
        return self._preserved.get(entry, CALLEE_SAVED)

    def note(self, entry: int, preserved: frozenset[int]) -> bool:
        """Whether the function gives back less than was believed."""
        before = self.preserved(entry)
        self._preserved[entry] = before & preserved
        return self._preserved[entry] != before
