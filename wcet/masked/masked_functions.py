"""The masked regions of every function, for kernels that cannot be followed from their entries.

Paths start at each function with code that masks, with unknown values. Only callees that run in one
of its regions are inlined; the others are replaced: they preserve the registers of the ABI and
interrupt masks, and make memory unknown. A function that changes masks, a lock, is inlined in all
its callers, where paths start, too.

    inlined := locks
    repeat: extract the function with its inlined callees; values; masks, from masked and from
    unmasked
            inlined += callees of regions
    until no region calls a replaced function, or the budget is exceeded

A region with an unresolved call, or with too much code, is listed without a bound, and so is a
function that is not analysed within the time limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from quoll.assumptions import OTHER_CALLS, Assumption
from quoll.cfg.call_graph import call_graph
from quoll.cfg.unresolved import STATE_TARGETS
from quoll.errors import ControlFlowError, MissingKind, WcetError
from quoll.extraction.extract import extract
from quoll.facts.control_flow_facts import NeverReturnsFact
from quoll.facts.fact import FactSource
from quoll.facts.guidance import ELSEWHERE, RestrictedInlining
from quoll.graph.closure import closure
from quoll.image.image import Image
from quoll.inlining.sharing import exceeds
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.mask_states import (
    MASKED,
    UNMASKED,
    RegionStart,
    left_at_exits,
    possible_exits,
    regions,
)
from quoll.preemption.masking_code import MaskingCode, function_of, masking_code
from quoll.preemption.segments import PendingSegment, masked_region
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import ENTRY, AnalysisTarget, Arrival, PathOrigin
from wcet.analysis.preparation import ValuedEntry
from wcet.analysis.run import AnalysisRun
from wcet.masked.handler_stores import InterruptHandler
from wcet.masked.masked_region import (
    Found,
    MaskedRegion,
    UnboundedRegion,
    bounded_regions,
    left_masked,
    listed,
    open_exits,
    place_of,
    without,
)

__all__ = ["SearchExtent", "everywhere"]

OURS = "--everywhere"  # the source of the replacements
ITERATIONS = 12  # of one function
SHARE = 100  # divisor of the whole time for one loop or integer program


@dataclass(frozen=True, slots=True)
class SearchExtent:
    """The limits of the search."""

    instructions: int  # in one function and its regions
    seconds: float  # by the clock, for all functions

    def late(self) -> str:
        """The reason why a function was not analysed."""
        return f"{NOT_LOOKED_AT} of {self.seconds:g} s (more: --within SECONDS)"

    def distributed(self, options: AnalysisOptions) -> AnalysisOptions:
        """``options`` with time limits so that no proof uses the time of all others."""
        most = max(1, round(self.seconds / SHARE))
        budget = options.bounds.budget
        limits = budget.limits.within(most)
        budget = replace(budget, seconds=min(budget.seconds, most), limits=limits)
        return replace(
            options,
            bounds=replace(options.bounds, budget=budget),
            time_limit=min(options.time_limit or most, most),
        )


@dataclass(frozen=True, slots=True)
class MaskedFunction:
    """The regions of one function; ``lock``: it may change masks for its callers."""

    regions: tuple[MaskedRegion, ...] = ()
    missing: tuple[UnboundedRegion, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    lock: bool = False


def everywhere(run: AnalysisRun, extent: SearchExtent) -> Found:
    """The regions of all functions of the image, within ``extent``.

    Raises WcetError only for wrong inputs.
    """
    deadline = time.monotonic() + extent.seconds
    image = run.image
    with run.stages.stage("code that masks"):
        code = masking_code(image)
    handler = InterruptHandler(run, partial(_refuse_large, image, code, extent.instructions))
    exceptions = run.platform.entries
    entries = {addr & ~1: name for name, addr in run.entries.items() if name in exceptions}
    # a jump into the middle of a function does not have the values at its start
    locks = {t for t in code.sources if (f := function_of(image, t)) != t and f in code.masking}
    named = (addr & ~1 for addr in run.entries.values())
    waiting = {*named, *code.masking, *(f for t in locks for f in code.sources[t])}
    found: dict[int, MaskedFunction] = {}
    while waiting and time.monotonic() < deadline:
        function = _innermost(waiting, code)
        waiting.discard(function)
        one = _Function(
            handler, code, function, entries.get(function), frozenset(locks), extent.instructions
        )
        with run.stages.stage("regions", image.place(function)):
            found[function] = one.found()
        if found[function].lock and function not in locks and function not in entries:
            locks.add(function)
            waiting |= code.sources.get(function, frozenset())
    for function in waiting:  # also functions that were examined before a callee became a lock
        name = entries.get(function) or name_of(image, function)
        status = ControlFlowError.exit_status
        late = UnboundedRegion(name, image.place(function), (extent.late(),), status, late=True)
        found[function] = MaskedFunction(missing=(late,))
    found_regions = [found[function] for function in sorted(found)]
    handed = (
        UnboundedRegion(
            name_of(image, f), image.place(f), (HANDED_ON,), ControlFlowError.exit_status
        )
        for f in sorted(locks & found.keys())
    )
    return (
        worst_of(region for found_region in found_regions for region in found_region.regions),
        [*(one for found_region in found_regions for one in found_region.missing), *handed],
        tuple(dict.fromkeys(a for found_region in found_regions for a in found_region.assumptions)),
    )


def _refuse_large(image: Image, code: MaskingCode, budget: int, address: int) -> None:
    """Raise ControlFlowError if direct calls from ``address`` lead to too much code."""
    first = function_of(image, address & ~1)
    followed = closure(
        [first], lambda f: {function_of(image, t) for t in code.targets.get(f, frozenset())}
    )
    if sum(code.sizes.get(function, 0) for function in followed) > budget:
        raise ControlFlowError(
            f"it calls functions of more than {budget:,} instructions",
            where=image.place(first),
            hint="a larger --budget",
        )


def _innermost(waiting: set[int], code: MaskingCode) -> int:
    """The function that calls the fewest others, so that locks are known before their callers."""
    calls = {f: len(code.targets.get(f, frozenset()) & waiting - {f}) for f in waiting}
    return min(waiting, key=lambda function: (calls[function], function))


NOT_LOOKED_AT = "it was not analysed within the time limit"
HANDED_ON = (
    "it changes masks for its callers: direct callers are analysed, callers through pointers or "
    "in other files are not"
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A region with its start, the ends of regions, and the replaced functions that it calls."""

    start: RegionStart
    segment: PendingSegment
    exits: frozenset[int]
    calls: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Case:
    """The regions of a function that is entered with certain masks.

    ``missing``: the regions without an end; ``lock``: the function may change masks. ``calls``: the
    replaced functions that are called in its regions, also in those that end in a caller.
    """

    entry: ValuedEntry
    regions: tuple[_Part, ...]
    calls: frozenset[int]
    missing: tuple[UnboundedRegion, ...]
    lock: bool


class _Function:
    """One function as a start of paths; ``entry``: its name, if it is a platform's entry."""

    def __init__(
        self,
        handler: InterruptHandler,
        code: MaskingCode,
        function: int,
        entry: str | None,
        locks: frozenset[int],
        budget: int,
    ) -> None:
        self.handler, self.run = handler, handler.run
        self.code, self.function, self.budget = code, function, budget
        self.locks, self.entry = locks, entry
        self.name = entry or name_of(self.run.image, function)
        self.thumb = self.run.image.thumb_at(function) is True
        self.never = frozenset(dict(self.run.facts.addressed(NeverReturnsFact)))
        self.held = (MASKED,) if entry else (UNMASKED, MASKED)
        if function in self.run.facts.regions.unmasked:
            self.held = (UNMASKED,)

    def found(self) -> MaskedFunction:
        """The regions of the function, with or without a bound."""
        inlined = self.locks - {self.function}
        known: list[_Case] = []
        late: WcetError | None = None
        for _ in range(ITERATIONS):
            try:
                known = [self._regions(held, self._valued(inlined, held)) for held in self.held]
            except WcetError as error:
                late = error
                break
            wanted = frozenset().union(*(case.calls for case in known))
            if wanted <= {ELSEWHERE}:
                break
            inlined |= wanted - {ELSEWHERE}
        if not known:
            assert late is not None
            return MaskedFunction(missing=(without(self.name, self._place(), late),))
        return _joined([self._bounded(case, late) for case in known])

    def _place(self) -> str:
        return self.run.image.place(self.function)

    def _valued(self, inlined: frozenset[int], held: int) -> ValuedEntry:
        """The values with ``inlined`` callees, entered with the masks ``held``.

        Raises WcetError, also beyond the budget.
        """
        followed = self._followed(inlined)
        if sum(self.code.sizes.get(f, 0) for f in followed - {self.function}) > self.budget:
            raise ControlFlowError(
                f"functions of more than {self.budget:,} instructions are called in its regions",
                where=self._place(),
                hint="a larger --budget, or a bound: function FUNCTION takes at most N cycles",
            )
        included = inlined | self.never | self.run.exits | {self.function}
        only = RestrictedInlining(_source(self.function), included, frozenset())
        address = self.function | self.thumb
        facts = self.run.facts.stating((*self.run.facts.facts, only))
        program = extract(self.run.image, [address], facts, self.run.exits)
        graph = call_graph(program)
        if exceeds(graph, self.function, program.guidance.depths, self.budget):
            raise ControlFlowError(
                f"its regions have more than {self.budget:,} calls in their contexts, or recursion",
                where=self._place(),
                hint="a larger --budget, or a bound: function FUNCTION takes at most N cycles",
            )
        asked = (u for u in program.unresolved if u.asks is MissingKind.TARGETS)
        open_calls = frozenset(u.addr for u in asked)
        only = replace(only, sites=open_calls)
        run = replace(self.run, facts=facts.stating((*self.run.facts.facts, only)))
        called = PathOrigin(Arrival.START, masked=held == MASKED)
        origin = called if self.entry is None else ENTRY
        return self.handler.valued(AnalysisTarget(run, self.name, address, origin))

    def _followed(self, inlined: frozenset[int]) -> set[int]:
        """The function and its direct or indirect callees in ``inlined``."""
        pending, visited = [self.function], {self.function}
        while pending:
            for target in self.code.targets.get(pending.pop(), ()):
                function = function_of(self.run.image, target)
                if target in inlined | self.never and function not in visited:
                    visited.add(function)
                    pending.append(function)
        return visited

    def _regions(self, held: int, entry: ValuedEntry) -> _Case:
        """The regions when the function is entered with the masks ``held``."""
        found: list[_Part] = []
        calls: set[int] = set()
        missing: dict[UnboundedRegion, None] = {}
        lock = bool(left_at_exits(entry.values) & ~held)
        starts, exits = regions(entry.values, at_entry=self.entry is not None)
        graph = replace(entry.graph, exits=possible_exits(entry.values))
        for start in starts:
            try:
                segment = masked_region(graph, start, exits, self.run.image)
            except ControlFlowError as error:
                place = place_of(self.run.image, entry, start)
                missing[without(self.name, place, error)] = None
                continue
            called = _called(start, segment, exits)
            calls |= called
            if self.entry is None and _returning(start, segment, exits):
                lock = True
            else:
                found.append(_Part(start, segment, exits, called))
        return _Case(entry, tuple(found), frozenset(calls), tuple(missing), lock)

    def _bounded(self, case: _Case, late: WcetError | None) -> MaskedFunction:
        image, entry = self.run.image, case.entry
        whole = [region for region in case.regions if not region.calls]
        missing = list(case.missing)
        for region in case.regions:
            if region.calls:
                place = place_of(image, entry, region.start)
                missing.append(self._not_whole(place, region, late))
        assumed: dict[Assumption, None] = {}
        found: dict[str, MaskedRegion] = {}
        if whole:
            assumed = dict.fromkeys(
                (*listed(entry), OTHER_CALLS.of(), *self.handler.disturbing(entry))
            )
            for region in whole:
                pair = [(region.start, region.segment)]
                assumed |= dict.fromkeys(left_masked(entry, pair, region.exits))
            pairs = [(region.start, region.segment) for region in whole]
            try:
                worst, unbounded, assumptions = bounded_regions(entry, pairs)
            except WcetError as error:
                place = self._place()
                missing.append(without(self.name, place, error))
                return MaskedFunction((), tuple(missing), (), case.lock)
            found = {region.place: region for region in worst}
            missing += unbounded
            assumed |= dict.fromkeys(assumptions)
        return MaskedFunction(
            tuple(found.values()), tuple(dict.fromkeys(missing)), tuple(assumed), case.lock
        )

    def _not_whole(self, place: str, region: _Part, late: WcetError | None) -> UnboundedRegion:
        """The region without a bound, with the reason: it calls replaced functions."""
        if ELSEWHERE in region.calls:
            sites = _sites(region.segment.graph, ELSEWHERE)
            where = ", ".join(self.run.image.place(site) for site in sites[:NAMED])
            error = ControlFlowError(
                f"it makes an unresolved call at {where}"
                + (f" and {len(sites) - NAMED} more" if len(sites) > NAMED else ""),
                hint=f"state it: {STATE_TARGETS}",
            )
            return without(self.name, place, error)
        if late is None:
            late = ControlFlowError(f"after {ITERATIONS} rounds it still calls replaced functions")
        return without(self.name, place, late)


NAMED = 4  # calls of a region


def _joined(cases: Sequence[MaskedFunction]) -> MaskedFunction:
    """The regions of a function in all cases, the worst of each place."""
    regions_ = [region for case in cases for region in case.regions]
    return MaskedFunction(
        tuple(worst_of(regions_)),
        tuple(dict.fromkeys(one for case in cases for one in case.missing)),
        tuple(dict.fromkeys(assumption for case in cases for assumption in case.assumptions)),
        any(case.lock for case in cases),
    )


def worst_of(regions_: Iterable[MaskedRegion]) -> list[MaskedRegion]:
    """The worst region of each place."""
    worst: dict[str, MaskedRegion] = {}
    for region in regions_:
        known = worst.get(region.place)
        if known is None or region.cycles > known.cycles:
            worst[region.place] = region
    return list(worst.values())


def _returning(start: RegionStart, segment: PendingSegment, exits: frozenset[int]) -> list[int]:
    """Nodes in which the function returns within the region."""
    blocks = segment.graph.nodes
    return [n for n in open_exits(start, segment, exits) if blocks[n].block.returns]


def _called(start: RegionStart, segment: PendingSegment, exits: frozenset[int]) -> frozenset[int]:
    """The replaced callees of a region."""
    graph = segment.graph
    calling = {edge.src for edge in graph.edges} | set(_returning(start, segment, exits))
    return frozenset(
        callee
        for n in calling
        for callee in graph.nodes[n].block.passes
        if graph.guidance.replaced[callee].cycles == 0
    )


def _sites(graph: Supergraph, callee: int) -> list[int]:
    blocks = (node.block for node in graph.nodes)
    return sorted({block.last.addr for block in blocks if callee in block.passes})


def name_of(image: Image, function: int) -> str:
    """The symbol of a function, or its address."""
    symbol = image.symbol_at(function)
    return symbol[0].name if symbol else f"{function:#x}"


def _source(addr: int) -> FactSource:
    return FactSource(OURS, 1, f"{addr:#x}")
