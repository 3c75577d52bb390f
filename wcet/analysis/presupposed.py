"""What a bound presupposes of the machine: proved from the code, refused, or listed (rule 37)."""

from __future__ import annotations

from collections.abc import Iterator, Set

from cache.maintenance import invalidates_global, refused
from quoll.arm.insn import Flow
from quoll.assumptions import (
    ABORTS,
    ENDS,
    FAST_INTERRUPTS,
    MACHINE,
    NOT_MASKED,
    RETURNS_UNMASKED,
    TLB_REFILLED,
    UNMASKED,
    Assumption,
)
from quoll.errors import TimingError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from wcet.platforms.platform import Platform

__all__ = ["presupposed", "refuse_control_writes"]


def presupposed(
    graph: Supergraph,
    image: Image,
    platform: Platform,
    name: str,
    ends: Set[int],
    unmasking: tuple[int, ...],
) -> Iterator[Assumption]:
    """The assumptions of the entry ``name`` about the state of the machine and its interrupts.

    ``unmasking`` are the instructions of ``graph`` that may unmask them; paths end at ``ends``.
    """
    yield MACHINE.text(platform=platform.name)
    yield ABORTS.text(platform=platform.name)
    yield FAST_INTERRUPTS.text(platform=platform.name)
    if name not in platform.entries:
        yield NOT_MASKED.text(entry=name)
    blocks = {id(node.block): node.block for node in graph.nodes}
    if platform.timing.tlb is None:
        found = {i.addr for b in blocks.values() for i in b.insns if invalidates_global(i)}
        for addr in sorted(found):
            yield TLB_REFILLED.text(platform=platform.name, place=image.place(addr))
    for addr in unmasking:
        yield UNMASKED.text(entry=name, place=image.place(addr))
    last = {graph.nodes[n].block.last.addr: graph.nodes[n].block.last for n in graph.exits}
    for addr, insn in sorted(last.items()):
        if addr in ends:
            yield ENDS.text(place=image.place(addr))
        elif insn.flow is Flow.EXCEPTION_RETURN:
            yield RETURNS_UNMASKED.text(entry=name, place=image.place(addr))


def refuse_control_writes(graph: Supergraph, image: Image) -> None:
    """Raise TimingError for an instruction that may change what the caches or the MMU do."""
    blocks = {id(node.block): node.block for node in graph.nodes}
    for block in blocks.values():
        for insn in block.insns:
            what = refused(insn)
            if what is not None:
                raise TimingError(
                    f"{insn.text} writes {what}: what follows is not modelled",
                    where=image.place(insn.addr),
                    hint="if the path ends before it: path must end at PLACE; if control never "
                    "gets here: ignore PLACE; or state what the function around it takes, which "
                    "must leave caches and translation as they were: function NAME takes at most N "
                    "cycles",
                )
