"""What the user states about control flow: targets, and functions that never return.

Every statement that is used is an assumption of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quoll.arm.insn import Flow, Insn
from quoll.discover import Callee
from quoll.errors import FactsError
from quoll.facts import Facts, NeverReturns, Targets
from quoll.image import Image
from quoll.places import find_place, resolve
from quoll.transfers import Effect

__all__ = ["Statements"]

INDIRECT = (Flow.INDIRECT, Flow.INDIRECT_CALL)


class Statements:
    """The facts that extraction uses, with their places found.

    Raises FactsError when a place does not exist.
    """

    def __init__(self, image: Image, facts: Facts) -> None:
        self._image = image
        self.never: Mapping[int, NeverReturns] = {
            addr: fact
            for fact in facts.of(NeverReturns)
            for addr in resolve(image, fact.function, fact.source)
        }
        self._targets = [
            (find_place(image, fact.place, fact.source), fact, self._callees(fact))
            for fact in facts.of(Targets)
        ]
        self.used: dict[str, None] = {}

    def _callees(self, fact: Targets) -> tuple[Callee, ...]:
        addrs = [a for text in fact.targets for a in resolve(self._image, text, fact.source)]
        return tuple(Callee(a & ~1, bool(a & 1) or self._image.thumb_at(a) is True) for a in addrs)

    def effect(self, insn: Insn) -> Effect | None:
        """What is stated about the indirect transfer ``insn``."""
        for place, fact, callees in self._targets:
            if place.covers(self._image, insn.addr):
                self.used.setdefault(f"{fact.source.text} ({fact.source})")
                return Effect(callees)
        return None

    def assumptions(self, functions: Iterable[int]) -> list[str]:
        """The statements used for a program of ``functions``."""
        never = [self.never[f] for f in sorted(functions) if f in self.never]
        return [*self.used, *(f"{fact.function} never returns ({fact.source})" for fact in never)]

    def check(self, insns: Mapping[int, Insn]) -> None:
        """A statement about targets that meets reached code meets an indirect transfer there."""
        for place, fact, _ in self._targets:
            covered = [insn for addr, insn in insns.items() if place.covers(self._image, addr)]
            if covered and not any(insn.flow in INDIRECT for insn in covered):
                first = covered[0]
                raise FactsError(
                    f"{fact.place} is no indirect jump or call",
                    where=str(fact.source),
                    hint=f"there is {first.text} at {self._image.place(first.addr)}",
                )
