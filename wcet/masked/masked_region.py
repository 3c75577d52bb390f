"""Masked regions of one start of paths: the worst region of each place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from quoll.arm.insn import ControlFlow
from quoll.assumptions import NOT_MASKED, STILL_MASKED, UNMASKED, Assumption
from quoll.errors import UsageError, WcetError
from quoll.image.image import Image
from quoll.preemption.mask_states import RegionStart
from quoll.preemption.segments import PendingSegment
from wcet.analysis.entry_stages import ValuedCode, bounded
from wcet.analysis.integer_programs import paths_result
from wcet.analysis.preparation import ValuedEntry
from wcet.analysis.result import EntryResult
from wcet.analysis.schedule import costing, identified

__all__ = [
    "PARAMETER",
    "Found",
    "MaskedRegion",
    "UnboundedRegion",
    "bounded_regions",
    "left_masked",
    "listed",
    "open_exits",
    "place_of",
    "without",
]

PARAMETER = "give the parameter a number: --set NAME=N"


@dataclass(frozen=True, slots=True)
class MaskedRegion:
    """The worst region that starts at ``place`` on paths of ``entry``.

    ``calls``: the chain of functions at the start, the entry's first; ``result``: its worst path.
    """

    entry: str
    place: str
    calls: tuple[str, ...]
    cycles: int
    contexts: int  # number of contexts in which the place starts a region
    result: EntryResult


@dataclass(frozen=True, slots=True)
class UnboundedRegion:
    """An entry or region without a bound, with the reasons and its exit status.

    ``late``: it was not analysed within the time limit.
    """

    entry: str
    place: str
    reasons: tuple[str, ...]
    status: int
    late: bool = False


def without(entry: str, place: str, error: WcetError) -> UnboundedRegion:
    return UnboundedRegion(entry, place, error.faults, error.exit_status)


Found = tuple[list[MaskedRegion], list[UnboundedRegion], tuple[Assumption, ...]]


def bounded_regions(
    valued: ValuedCode, cut_segments: Sequence[tuple[RegionStart, PendingSegment]]
) -> Found:
    """The worst region of each place."""
    code, segments = valued.code, [segment for _, segment in cut_segments]
    run, name = code.run, code.name
    with identified(valued) as identity, costing(valued, segments) as costs:
        with code.stage("loop bounds"):
            loops = bounded(valued, segments, identity.result)
        made = costs(loops)
    worst: dict[str, MaskedRegion] = {}
    missing: dict[UnboundedRegion, None] = {}
    assumed = dict.fromkeys(a for bound in loops.bounds for a in bound.assumed)
    for (start, segment), paths in zip(cut_segments, made, strict=True):
        place = place_of(run.image, valued, start)
        assumed |= dict.fromkeys(paths.costs.assumptions)
        try:
            whole = start.insn is None and _is_whole(valued, segment)
            result = paths_result(run, name, code.address, paths, whole=whole)
            if result.parametric is not None:
                raise UsageError("its bound depends on a parameter", hint=PARAMETER)
        except WcetError as error:
            missing[without(name, place, error)] = None
            continue
        assumed |= dict.fromkeys(result.assumptions)
        known = worst.get(place)
        contexts = 1 if known is None else known.contexts + 1
        if known is None or result.cycles > known.cycles:
            calls = tuple(_calls(run.image, valued, segment.nodes[segment.graph.entry]))
            known = MaskedRegion(name, place, calls, result.cycles, contexts, result)
        worst[place] = replace(known, contexts=contexts)
    return list(worst.values()), list(missing), tuple(assumed)


def _is_whole(valued: ValuedCode, segment: PendingSegment) -> bool:
    """Whether no execution continues before or after the paths of a segment."""
    exits = (segment.nodes[n] for n in segment.graph.exits)
    return segment.start is None and valued.graph.exit_nodes.issuperset(exits)


def place_of(image: Image, valued: ValuedCode, start: RegionStart) -> str:
    insn = start.insn
    return image.place(valued.graph.nodes[start.node].block.addr if insn is None else insn.addr)


def _calls(image: Image, valued: ValuedCode, node: int) -> Iterator[str]:
    """The functions that are active at ``node``, the entry first."""
    graph = valued.graph
    chain = []
    context: int | None = graph.nodes[node].context
    while context is not None:
        chain.append(graph.contexts[context].function)
        context = graph.contexts[context].parent
    for function in reversed(chain):
        symbol = image.symbol_at(function)
        yield symbol[0].name if symbol else f"{function:#x}"


def listed(entry: ValuedEntry) -> tuple[Assumption, ...]:
    """The assumptions of an entry, except that none is taken where interrupts are unmasked."""
    name, place = entry.code.name, entry.code.run.image.place
    followed = {UNMASKED.of(entry=name, place=place(addr)) for addr in entry.unmasking}
    followed.add(NOT_MASKED.of(entry=name))
    return tuple(assumption for assumption in entry.assumptions if assumption not in followed)


def left_masked(
    entry: ValuedEntry,
    cut_segments: Sequence[tuple[RegionStart, PendingSegment]],
    exits: frozenset[int],
) -> Iterator[Assumption]:
    """The assumption about the code after the ends of regions."""
    name, place = entry.code.name, entry.code.run.image.place
    left = sorted(_left_masked(cut_segments, exits, entry.graph.halts.keys()))
    if left:
        yield STILL_MASKED.of(entry=name, exits=", ".join(map(place, left)))


def open_exits(start: RegionStart, segment: PendingSegment, exits: frozenset[int]) -> list[int]:
    """Nodes in which paths end within the region.

    The first node is a copy that starts with the region: instructions before do not end it.
    """
    graph = segment.graph
    return [
        n
        for n in graph.exits
        if (start.goes_on if n == graph.entry else segment.nodes[n] not in exits)
    ]


def _left_masked(
    cut_segments: Sequence[tuple[RegionStart, PendingSegment]],
    exits: frozenset[int],
    halts: Set[int],
) -> set[int]:
    """Instructions after which the kernel itself continues, at regions that end with their path.

    They end paths without an exception return, or switch contexts: another context continues there,
    perhaps with masked interrupts.
    """
    found: set[int] = set()
    for start, segment in cut_segments:
        graph = segment.graph
        for exit_ in open_exits(start, segment, exits):
            last = graph.nodes[exit_].block.last
            if segment.nodes[exit_] not in halts and last.flow is not ControlFlow.EXCEPTION_RETURN:
                found.add(last.addr)
        for edge in range(len(graph.edges)):
            found |= {end.addr for replaced in graph.passed(edge) for end in replaced.exits}
    return found
