"""The paths on which an interrupt may be assumed to be pending.

An interrupt that arrives while interrupts are masked waits for the end of the current path. On the
paths of every other entry it is pending from its arrival on, and tests see it (rule 21). On the
interrupt path it is being handled: after its acknowledgement the registers may read 0, so nothing
is assumed there and that path is bounded as a whole (rule 32).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from loopbounds.proof.bound import LoopBound
from quoll.errors import ControlFlowError
from quoll.facts.fact import Fact, FactStage
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.entries import platform_entry
from wcet.platforms.platform_model import INTERRUPT, Platform

__all__ = ["LATER", "InterruptCode", "not_by_tests", "serves_interrupts"]

LATER = (FactStage.LOOP_BOUNDS, FactStage.INTEGER_PROGRAM)  # these facts extract no other code


@dataclass(slots=True)
class InterruptCode:
    """The addresses of the instructions that the interrupt entry reaches, extracted once.

    They are extracted again for another image, other exits, and other facts about control flow.
    """

    _inputs: tuple[Image, int, tuple[Fact, ...], frozenset[int]] | None = None
    _found: frozenset[int] | None = None

    def addresses(
        self, image: Image, handler: int, facts: LocatedFacts, exits: frozenset[int]
    ) -> frozenset[int] | None:
        """These addresses; None if they are not known."""
        read = tuple(fact for fact in facts.facts if fact.stage not in LATER)
        known = self._inputs
        if known is None or known[0] is not image or known[1:] != (handler, read, exits):
            self._found = _reached(image, handler, facts, exits)
            self._inputs = image, handler, read, exits
        return self._found


def _reached(
    image: Image, handler: int, facts: LocatedFacts, exits: frozenset[int]
) -> frozenset[int] | None:
    from quoll.extraction.extract import extract  # cached entries need no disassembler

    try:
        program = extract(image, [handler], facts, exits)
    except ControlFlowError:
        return None
    blocks = (block for function in program.functions.values() for block in function.blocks)
    return frozenset(insn.addr for block in blocks for insn in block.insns)


def serves_interrupts(
    image: Image,
    platform: Platform,
    facts: LocatedFacts,
    exits: frozenset[int],
    address: int,
    code: InterruptCode,
) -> bool:
    """Whether the code at ``address``, without bit 0, may run on the interrupt path.

    True for the interrupt entry and all code that it reaches, and where that is unknown. Other
    entries of the platform have paths of their own. ``code`` remembers the code of the interrupt
    entry between calls.
    """
    entries = {name: platform_entry(image, point) for name, point in platform.entries.items()}
    handler, first = entries.pop(INTERRUPT, None), address & ~1
    if handler is None or handler & ~1 == first:
        return handler is not None
    if any(other is not None and other & ~1 == first for other in entries.values()):
        return False
    reached = code.addresses(image, handler, facts, exits)
    return reached is None or first in reached


def not_by_tests(
    graph: Supergraph, reads: Collection[int], bounds: Sequence[LoopBound]
) -> tuple[LoopBound, ...]:
    """``bounds`` of the interrupt path; reasons of unbounded loops say that tests bound none."""
    return tuple(
        replace(b, reason=replace(b.reason, tests=True))
        if b.reason is not None and not graph.loops[b.loop].nodes.isdisjoint(reads)
        else b
        for b in bounds
    )
