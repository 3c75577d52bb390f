"""The worst interrupt latency: from the arrival of an interrupt to the end of its path.

An interrupt that arrives in user mode is taken at once: its latency is the interrupt path. One that
arrives on a masked path waits for the rest of it. If that is the path of another interrupt, or of
an earlier one of the same line, the rest is a part of the interrupt path. docs/preemption.md says
what each case means.
"""

from __future__ import annotations

from collections.abc import Mapping

from quoll.arm.insn import Flow
from quoll.assumptions import HANDED_OVER, OTHERS_FIRST, TAKEN_AT_ONCE
from quoll.image.image import Image
from wcet.analysis.result import EntryResult, InterruptLatency
from wcet.platforms.platform import INTERRUPT, Platform

__all__ = ["interrupt_latency"]


def interrupt_latency(
    image: Image, platform: Platform, results: Mapping[str, EntryResult], together: int = 1
) -> InterruptLatency | None:
    """Rules 21, 32: any masked path may be under way when the interrupt arrives, its own included.

    ``together``: how many interrupts may be pending at once; the last one waits for the others.
    None unless all entries of the platform have a number, the interrupt among them, and are masked
    up to the ends of their paths (rule 33).
    """
    if INTERRUPT not in platform.entries or not platform.entries.keys() <= results.keys():
        return None
    if any(result.parametric or result.unmasking for result in results.values()):
        return None
    longest = max(results, key=lambda name: results[name].cycles)
    handed = sorted({exit for result in results.values() for exit in _handing_over(result)})
    assumptions = (
        OTHERS_FIRST.text(others=together - 1),
        TAKEN_AT_ONCE.text(),
        *((HANDED_OVER.text(exits=", ".join(map(image.place, handed))),) if handed else ()),
    )
    return InterruptLatency(
        longest=longest,
        longest_cycles=results[longest].cycles,
        interrupt=INTERRUPT,
        interrupt_cycles=results[INTERRUPT].cycles,
        together=together,
        assumptions=assumptions,
    )


def _handing_over(result: EntryResult) -> set[int]:
    """Where paths end without a return from the exception: the kernel itself goes on there."""
    ends = (p.graph.nodes[n].block.last for p in result.paths for n in p.graph.exits)
    return {last.addr for last in ends if last.flow is not Flow.EXCEPTION_RETURN}
