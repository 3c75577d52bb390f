"""How long interrupts are masked: every region of every entry, and the latency that follows.

A region starts where an exception is taken, or at an instruction that may mask interrupts where
they may be unmasked; it ends where they are surely unmasked, or with the path. Each is bounded as
the paths from its start (rule 21): caches and pipeline are unknown there, values and loop bounds
are those of the paths from the entry. An interrupt that arrives in a region waits for the rest of
it, and then for the interrupt path: from taking the exception to the end of the path, or to a
handler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quoll.arm.insn import Flow
from quoll.assumptions import (
    OTHERS_FIRST,
    STILL_MASKED,
    TAKEN_AT_ONCE,
    UNDISTURBED,
    UNMASKED,
    Assumption,
)
from quoll.errors import ControlFlowError, UsageError, WcetError
from quoll.image.image import Image
from quoll.inlining.sharing import Sharing
from quoll.preemption.mask_states import EITHER, MASKED, RegionStart, mask_states, regions
from quoll.preemption.segments import Segment, masked_region
from wcet.analysis.options import Options
from wcet.analysis.preparation import Preparation, Valued
from wcet.analysis.result import EntryResult
from wcet.analysis.run import Run
from wcet.analysis.stages import Stages
from wcet.platforms.platform import INTERRUPT, Platform

__all__ = ["MaskedAnswer", "MaskedRegion", "NotBounded", "masked"]

NEVER_SHARED = Sharing(contexts=1 << 62)  # a shared function hides where it masks


@dataclass(frozen=True, slots=True)
class MaskedRegion:
    """The worst of the regions that start at ``place`` on paths of ``entry``.

    ``calls`` is the chain of functions at the start, the entry's first; ``result`` has its worst
    path.
    """

    entry: str
    place: str
    calls: tuple[str, ...]
    cycles: int
    contexts: int  # in how many the place starts a region
    result: EntryResult


@dataclass(frozen=True, slots=True)
class NotBounded:
    """An entry, or a region of it, without a bound, why, and the exit status that says so."""

    entry: str
    place: str
    reason: str
    status: int


@dataclass(frozen=True, slots=True)
class MaskedAnswer:
    """``regions``, the longest first; ``interrupt`` is None where it has no bound or is not asked.

    ``handler``: where that path ends, if not where paths do.
    """

    image: Image
    platform: Platform
    regions: tuple[MaskedRegion, ...]
    missing: tuple[NotBounded, ...]
    interrupt: int | None
    handler: str | None
    assumptions: tuple[Assumption, ...]

    @property
    def status(self) -> int:
        """That of the first thing without a bound; 0 if there is none."""
        return next((one.status for one in self.missing), 0)

    @property
    def partial(self) -> bool:
        """Whether something is left out."""
        return bool(self.missing) or self.interrupt is None

    @property
    def latency(self) -> int | None:
        """The longest region that is bounded, and the interrupt path."""
        if self.interrupt is None or not self.regions:
            return None
        return self.regions[0].cycles + self.interrupt


def masked(kernel: Path, options: Options, stages: Stages, handler: str | None) -> MaskedAnswer:
    """Bound every region of the entries that ``options`` asks for.

    What has no bound is named; only wrong inputs raise WcetError.
    """
    run = Run.begin(kernel, replace(options, sharing=NEVER_SHARED), stages)
    found: list[MaskedRegion] = []
    missing: list[NotBounded] = []
    assumptions: dict[Assumption, None] = {}
    for name, address in run.entries.items():
        try:
            bounded, without, texts = _of_entry(run, name, address)
        except WcetError as error:
            missing.append(_without(name, run.image.place(address), error))
            continue
        found += bounded
        missing += without
        assumptions |= dict.fromkeys(texts)
    interrupt = None
    try:
        interrupt, texts = _interrupt_path(kernel, options, stages, handler)
        latency = (OTHERS_FIRST.text(others=0), TAKEN_AT_ONCE.text())
        assumptions |= dict.fromkeys((*texts, *latency))
    except WcetError as error:
        missing.append(_without(INTERRUPT, "the interrupt path", error))
    stages.done()
    return MaskedAnswer(
        run.image,
        run.platform,
        tuple(sorted(found, key=lambda region: (-region.cycles, region.place))),
        tuple(missing),
        interrupt,
        handler,
        tuple(assumptions),
    )


def _without(entry: str, place: str, error: WcetError) -> NotBounded:
    return NotBounded(entry, place, str(error), error.exit_status)


def _interrupt_path(
    kernel: Path, options: Options, stages: Stages, handler: str | None
) -> tuple[int, tuple[Assumption, ...]]:
    """Cycles from taking the interrupt to the handler's first instruction, or to the path's end."""
    ends = (*options.ends, *([handler] if handler else []))
    run = Run.begin(kernel, replace(options, entries=(INTERRUPT,), ends=ends), stages)
    (address,) = run.entries.values()
    prepared = Preparation(run).prepare(INTERRUPT, address)
    result = run.entry(INTERRUPT, address, prepared, [])
    if result.parametric is not None:
        raise UsageError("the bound of the interrupt path depends on a parameter", hint=PARAMETER)
    return result.cycles, result.assumptions


PARAMETER = "give the parameter a number: --set NAME=N"
Found = tuple[list[MaskedRegion], list[NotBounded], tuple[Assumption, ...]]


def _of_entry(run: Run, name: str, address: int) -> Found:
    """The regions of one entry. Raises WcetError where its graph or values are not known."""
    preparation = Preparation(run)
    valued = preparation.valued(name, address)
    if valued.image is not run.image:
        preparation = Preparation(replace(run, image=valued.image))
    at_entry = MASKED if name in run.platform.entries else EITHER
    with run.stages.stage("values", name):
        states = mask_states(valued.values, at_entry)
        starts, ends = regions(valued.values, states, at_entry)
    parts: list[tuple[RegionStart, Segment]] = []
    missing: list[NotBounded] = []
    for start in starts:
        try:
            parts.append((start, masked_region(valued.graph, start, ends, run.image)))
        except ControlFlowError as error:
            missing.append(_without(name, _place(run.image, valued, start), error))
    worst, without, texts = _bounded(preparation, name, address, valued, parts)
    listed = tuple(text for text in valued.assumptions if not UNMASKED.matches(text))
    disturbing = (UNDISTURBED.text(entry=name),) if valued.unmasking else ()
    left = sorted(_left_masked([part for _, part in parts], ends))
    where = ", ".join(map(run.image.place, left))
    handed = (STILL_MASKED.text(entry=name, exits=where),) if left else ()
    return worst, [*missing, *without], (*listed, *disturbing, *handed, *texts)


def _left_masked(parts: Sequence[Segment], ends: frozenset[int]) -> set[int]:
    """Instructions behind which the kernel itself goes on where a region ends with its path.

    They are ends of paths that are no exception returns, and those of functions that switch
    contexts: another one goes on there, perhaps with interrupts masked.
    """
    found: set[int] = set()
    for part in parts:
        graph = part.graph
        for exit_ in graph.exits:
            last = graph.nodes[exit_].block.last
            if part.nodes[exit_] not in ends and last.flow is not Flow.EXCEPTION_RETURN:
                found.add(last.addr)
        for edge in range(len(graph.edges)):
            found |= {end.addr for replaced in graph.passed(edge) for end in replaced.ends}
    return found


def _bounded(
    preparation: Preparation,
    name: str,
    address: int,
    valued: Valued,
    parts: Sequence[tuple[RegionStart, Segment]],
) -> Found:
    """The worst region of each place."""
    run, values = preparation.run, valued.values
    turning = frozenset(loop for _, part in parts for loop in part.loops)
    with run.stages.stage("loop bounds", name):
        bounds = preparation.loop_bounds(valued.graph, values, turning)
    made = preparation.paths(name, [part for _, part in parts], values, bounds)
    worst: dict[str, MaskedRegion] = {}
    missing: dict[NotBounded, None] = {}
    texts: dict[Assumption, None] = dict.fromkeys(t for bound in bounds for t in bound.rests)
    for (start, part), (paths, more) in zip(parts, made, strict=True):
        place = _place(run.image, valued, start)
        texts |= dict.fromkeys(more)
        try:
            result = run.solve(name, address, paths, [], whole=start.insn is None)
            if result.parametric is not None:
                raise UsageError("its bound depends on a parameter", hint=PARAMETER)
        except WcetError as error:
            missing[_without(name, place, error)] = None
            continue
        texts |= dict.fromkeys(result.assumptions)
        known = worst.get(place)
        contexts = 1 if known is None else known.contexts + 1
        if known is None or result.cycles > known.cycles:
            calls = tuple(_calls(run.image, valued, part.nodes[part.graph.entry]))
            known = MaskedRegion(name, place, calls, result.cycles, contexts, result)
        worst[place] = replace(known, contexts=contexts)
    return list(worst.values()), list(missing), tuple(texts)


def _place(image: Image, valued: Valued, start: RegionStart) -> str:
    insn = start.insn
    return image.place(valued.graph.nodes[start.node].block.addr if insn is None else insn.addr)


def _calls(image: Image, valued: Valued, node: int) -> Iterator[str]:
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
