"""The assumptions of an entry about the machine: its state, its interrupts, and its core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from cache.maintenance import invalidates_global
from quoll.arm.architecture import Extension, needed_extension
from quoll.arm.insn import ControlFlow
from quoll.assumptions import (
    ABORTS,
    CORE_HAS,
    EXITS,
    F1,
    FAST_INTERRUPTS,
    HALTS,
    MACHINE,
    MASKED_HALT,
    NOT_MASKED,
    RETURNS_UNMASKED,
    S6,
    TLB_REFILLED,
    UNMASKED,
    Assumption,
)
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.value_analysis.value_results import ValueResults
from wcet.analysis.refusals import instructions
from wcet.platforms.platform_model import Platform

__all__ = ["needed_of_core", "presupposed", "without_f1"]


def presupposed(
    values: ValueResults,
    image: Image,
    platform: Platform,
    name: str,
    exits: Set[int],
    unmasking: tuple[int, ...],
) -> Iterator[Assumption]:
    """The assumptions of the entry ``name`` about the state of the machine and its interrupts.

    ``unmasking``: the instructions that may unmask interrupts; paths end at ``exits``.
    """
    graph = values.graph
    yield MACHINE.of(platform=platform.name)
    yield ABORTS.of(platform=platform.name)
    yield FAST_INTERRUPTS.of(platform=platform.name)
    if name not in platform.entries and graph.nodes[graph.entry].block.addr not in unmasking:
        yield NOT_MASKED.of(entry=name)
    if platform.timing.tlb is None:
        for addr, insn in instructions(graph).items():
            if invalidates_global(insn):
                yield TLB_REFILLED.of(platform=platform.name, place=image.place(addr))
    for addr in unmasking:
        yield UNMASKED.of(entry=name, place=image.place(addr))
    last = {graph.nodes[n].block.last.addr: graph.nodes[n].block.last for n in graph.exits}
    for addr, insn in sorted(last.items()):
        if addr in exits:
            yield EXITS.of(place=image.place(addr))
        elif insn.flow is ControlFlow.EXCEPTION_RETURN:
            yield RETURNS_UNMASKED.of(entry=name, place=image.place(addr))
    halted = ((graph.nodes[n].block.addr, at) for n, at in graph.halts.items())
    for addr, loops in sorted((addr, tuple(sorted(at))) for addr, at in halted):
        yield HALTS.of(place=image.place(addr), loops=", ".join(map(image.place, loops)))
    masked = {graph.nodes[n].block.addr for n in graph.halts if values.masked(n) is not False}
    for addr in sorted(masked):
        yield MASKED_HALT.of(place=image.place(addr))


def needed_of_core(graph: Supergraph, image: Image, platform: Platform) -> Iterator[Assumption]:
    """The extensions that the code needs of the core (rule 47), each once.

    Only later revisions of a core have some of them; ``--force-core`` accepts others.
    """
    core = platform.processor
    seen: set[Extension] = set()
    for addr, insn in instructions(graph).items():
        needed = needed_extension(insn)
        if needed is None or needed in seen or needed in core.extensions:
            continue
        seen.add(needed)
        yield CORE_HAS.of(
            platform=platform.name,
            core=core.title,
            extension=needed.value,
            insn=insn.text,
            place=image.place(addr),
        )


def without_f1(assumptions: Sequence[Assumption], graph: Supergraph) -> tuple[Assumption, ...]:
    """``assumptions`` without F1 and S6, if value analysis enters every called function.

    It then follows each store, and lists the returns and targets that it does not confirm.
    """
    entered = not any(r.settled for r in graph.guidance.replaced.values())
    shown = (F1.of(), S6.of()) if entered else ()
    return tuple(assumption for assumption in assumptions if assumption not in shown)
