"""Exception returns that stay in the kernel: they end no path (rule 49).

An exception return ends a path because it leaves the kernel, or unmasks interrupts. Where its
target is known to be code of the image, that is looked at: the status word that it restores must
be known to be of User mode, or, where the platform says that paths end, to unmask interrupts.
Nothing is known of most targets, as they are what was interrupted: that these leave the kernel is
listed.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from quoll.arm.insn import Flow
from quoll.arm.status import INTERRUPT_MASK, MODE_BITS
from quoll.errors import ControlFlowError
from quoll.facts import Facts, PathEnd, ReturnsEnd
from quoll.facts.places import resolve
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.values.values import Values
from quoll.words.strided_interval import ValueSet

__all__ = ["refuse_returns_to_code"]

USER = 0x10
TARGETS = 64  # words, beyond which nothing counts as known of a target
STATUSES = 256


def refuse_returns_to_code(
    graph: Supergraph, image: Image, values: Values, facts: Facts, exits: Set[int]
) -> None:
    """Raise ControlFlowError for an exception return to known code that may run in the kernel.

    Not where a fact says that the path ends. At ``exits`` the platform says so, or a fact about
    all of them: there it is an error only if the status is known, and may mask interrupts.
    """
    everywhere = any(facts.of(ReturnsEnd))
    stated = {a for f in facts.of(PathEnd) for a in resolve(image, f.place, f.source)}
    for node in graph.exits:
        last = graph.nodes[node].block.last
        if last.flow is not Flow.EXCEPTION_RETURN or last.addr in stated:
            continue
        found = values.restored(node)
        if found is None:
            continue
        target, status = found
        if _are(status, _leaves) or (
            (everywhere or last.addr in exits)
            and (status.size > STATUSES or _are(status, _unmasks))
        ):
            continue
        code = [w for w in _few(target) if image.is_executable(w & ~1)]
        if code:
            exact = status.exact
            known = "an unknown status word" if exact is None else f"the status word {exact:#x}"
            raise ControlFlowError(
                f"{last.text} goes on at {image.place(code[0] & ~1)}, which is code of this "
                f"program, with {known}, which may not leave the kernel: the path goes on there",
                where=image.place(last.addr),
                hint="write the jump as a branch, or, if what follows there is another path, "
                f"state that this one ends: path must end at {last.addr:#x}",
            )


def _few(target: ValueSet) -> tuple[int, ...]:
    return tuple(target) if target.size <= TARGETS else ()


def _are(status: ValueSet, what: Callable[[int], bool]) -> bool:
    """Whether all words that a status may be are so."""
    return status.size <= STATUSES and all(map(what, status))


def _leaves(status: int) -> bool:
    return status & MODE_BITS == USER


def _unmasks(status: int) -> bool:
    return _leaves(status) or not status & INTERRUPT_MASK
