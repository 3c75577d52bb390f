"""The masked regions of every function, where a kernel cannot be followed from its entries.

Each function with code that masks is a place where paths start, with unknown values. Of what it
calls only that is inlined which runs in one of its regions; the rest is passed over as code that
gives back what the ABI says, forgets memory, and leaves interrupts as it found them. A function of
which that is not so, a lock, is inlined in all that call it, and these are starts, too.

    inlined := locks
    repeat: extract the function with what is inlined; values; masks, from masked and from unmasked
            inlined += what regions call
    until no region calls what is passed over, or more is inlined than the budget allows

A region that comes to a call whose target is not known, or to more code than that, is named, and so
is a function that is not looked at before the time is over.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from quoll.assumptions import OTHER_CALLS, Assumption
from quoll.cfg.call_graph import call_graph
from quoll.cfg.unresolved import STATE_TARGETS
from quoll.errors import ControlFlowError, MissingKind, WcetError
from quoll.extraction.extract import extract
from quoll.facts import Facts, NeverReturns, Source
from quoll.facts.guidance import ELSEWHERE, OnlyFollowed
from quoll.facts.places import resolve
from quoll.image.image import Image
from quoll.inlining.sharing import exceeds
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.mask_states import (
    MASKED,
    UNMASKED,
    RegionStart,
    left_at_exits,
    mask_states,
    regions,
)
from quoll.preemption.masking_code import MaskingCode, function_of, masking_code
from quoll.preemption.segments import Segment, masked_region
from wcet.analysis.entry_stages import ENTRY, AnalysisTarget, Arrival, PathOrigin
from wcet.analysis.options import Options
from wcet.analysis.preparation import ValuedEntry, valued
from wcet.analysis.run import Run
from wcet.masked.masked_region import (
    Found,
    MaskedRegion,
    NotBounded,
    bounded_regions,
    disturbing,
    open_exits,
    place_of,
    without,
)

__all__ = ["Extent", "everywhere"]

OURS = "--everywhere"  # the source of what is passed over
ROUNDS = 12  # of one function
SHARE = 100  # a loop, and an integer program, has at most this part of the whole time


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is tried."""

    instructions: int  # of one function and what runs in its regions
    seconds: float  # on the clock, of all functions

    def late(self) -> str:
        """Why a function has no bound that was not looked at."""
        return f"{NOT_LOOKED_AT} of {self.seconds:g} s (more: --within SECONDS)"

    def shared_out(self, options: Options) -> Options:
        """``options`` with no proof that takes the time of all the others."""
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
class OfFunction:
    """What was found of one function; ``lock``: it may leave masks changed."""

    regions: tuple[MaskedRegion, ...] = ()
    missing: tuple[NotBounded, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    lock: bool = False


def everywhere(run: Run, extent: Extent) -> Found:
    """The regions of all functions of the image, within ``extent``.

    Raises WcetError only for wrong inputs.
    """
    deadline = time.monotonic() + extent.seconds
    image = run.image
    with run.stages.stage("code that masks"):
        code = masking_code(image)
    exceptions = run.platform.entries
    entries = {addr & ~1: name for name, addr in run.entries.items() if name in exceptions}
    # what jumps into the middle of a function does not bring the values of its start
    locks = {t for t in code.sources if (f := function_of(image, t)) != t and f in code.masking}
    named = (addr & ~1 for addr in run.entries.values())
    waiting = {*named, *code.masking, *(f for t in locks for f in code.sources[t])}
    found: dict[int, OfFunction] = {}
    while waiting and time.monotonic() < deadline:
        function = _innermost(waiting, code)
        waiting.discard(function)
        one = _Function(
            run, code, function, entries.get(function), frozenset(locks), extent.instructions
        )
        with run.stages.stage("regions", image.place(function)):
            found[function] = one.found()
        if found[function].lock and function not in locks and function not in entries:
            locks.add(function)
            waiting |= code.sources.get(function, frozenset())
    for function in waiting:  # also those that were looked at before one of their calls was a lock
        name = entries.get(function) or name_of(image, function)
        status = ControlFlowError.exit_status
        late = NotBounded(name, image.place(function), extent.late(), status, late=True)
        found[function] = OfFunction(missing=(late,))
    parts = [found[function] for function in sorted(found)]
    handed = (
        NotBounded(name_of(image, f), image.place(f), HANDED_ON, ControlFlowError.exit_status)
        for f in sorted(locks & found.keys())
    )
    worst: dict[str, MaskedRegion] = {}
    for region in (region for part in parts for region in part.regions):
        known = worst.get(region.place)
        if known is None or region.cycles > known.cycles:
            worst[region.place] = region
    return (
        list(worst.values()),
        [*(one for part in parts for one in part.missing), *handed],
        tuple(dict.fromkeys(a for part in parts for a in part.assumptions)),
    )


def _innermost(waiting: set[int], code: MaskingCode) -> int:
    """The function that calls the fewest of the others: a lock is known before it is used."""
    calls = {f: len(code.targets.get(f, frozenset()) & waiting - {f}) for f in waiting}
    return min(waiting, key=lambda function: (calls[function], function))


NOT_LOOKED_AT = "it is not looked at within the time"
HANDED_ON = (
    "it leaves masks changed for its callers: those that the code names are looked at, not those "
    "that call through a pointer or are not in this file"
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A region, where it starts, where regions end, and what it calls that is passed over."""

    start: RegionStart
    segment: Segment
    ends: frozenset[int]
    calls: frozenset[int]


class _Function:
    """One function as a start of paths; ``entry`` is its name if it is one of the platform."""

    def __init__(
        self,
        run: Run,
        code: MaskingCode,
        function: int,
        entry: str | None,
        locks: frozenset[int],
        budget: int,
    ) -> None:
        self.run, self.code, self.function, self.budget = run, code, function, budget
        self.locks, self.entry = locks, entry
        self.name = entry or name_of(run.image, function)
        self.thumb = run.image.thumb_at(function) is True
        self.never = frozenset(_place_of(run.image, f.function) for f in run.facts.of(NeverReturns))

    def found(self) -> OfFunction:
        """Its regions, as far as they are bounded."""
        inlined = self.locks - {self.function}
        known: tuple[ValuedEntry, list[_Part], list[NotBounded], bool] | None = None
        late: WcetError | None = None
        for _ in range(ROUNDS):
            try:
                entry = self._valued(inlined)
                known = (entry, *self._parts(entry))
            except WcetError as error:
                late = error
                break
            wanted = {c for part in known[1] for c in part.calls} - {ELSEWHERE}
            if not wanted:
                break
            inlined |= wanted
        if known is None:
            assert late is not None
            return OfFunction(missing=(without(self.name, self._place(), late),))
        return self._bounded(*known, late)

    def _place(self) -> str:
        return self.run.image.place(self.function)

    def _valued(self, inlined: frozenset[int]) -> ValuedEntry:
        """Values of the function with ``inlined``. Raises WcetError beyond the budget, too."""
        followed = self._followed(inlined)
        if sum(self.code.sizes.get(f, 0) for f in followed - {self.function}) > self.budget:
            raise ControlFlowError(
                f"functions of more than {self.budget:,} instructions are called in its regions",
                where=self._place(),
                hint="a larger --budget, or a bound: function FUNCTION takes at most N cycles",
            )
        kept = inlined | self.never | self.run.ends | {self.function}
        only = OnlyFollowed(_source(self.function), kept, frozenset())
        address = self.function | self.thumb
        facts = Facts((*self.run.facts.facts, only))
        program = extract(self.run.image, [address], facts, self.run.ends)
        graph = call_graph(program)
        if exceeds(graph, self.function, program.guidance.depths, self.budget):
            raise ControlFlowError(
                f"its regions have more than {self.budget:,} calls in their contexts, or recursion",
                where=self._place(),
                hint="a larger --budget, or a bound: function FUNCTION takes at most N cycles",
            )
        asked = (u for u in program.unresolved if u.asks is MissingKind.TARGETS)
        open_calls = frozenset(u.addr for u in asked)
        facts = Facts((*self.run.facts.facts, replace(only, sites=open_calls)))
        run = replace(self.run, facts=facts)
        origin = PathOrigin(Arrival.START) if self.entry is None else ENTRY
        return valued(AnalysisTarget(run, self.name, address, origin))

    def _followed(self, inlined: frozenset[int]) -> set[int]:
        """The function and what it may call of ``inlined``, directly or in the end."""
        pending, seen = [self.function], {self.function}
        while pending:
            for target in self.code.targets.get(pending.pop(), ()):
                function = function_of(self.run.image, target)
                if target in inlined | self.never and function not in seen:
                    seen.add(function)
                    pending.append(function)
        return seen

    def _parts(self, entry: ValuedEntry) -> tuple[list[_Part], list[NotBounded], bool]:
        """The regions that end here, those that do not end, and whether masks are left changed."""
        parts: list[_Part] = []
        missing: dict[NotBounded, None] = {}
        lock = False
        graph = entry.graph
        for held in (MASKED,) if self.entry else (UNMASKED, MASKED):
            states = mask_states(entry.values, held)
            left = left_at_exits(entry.values, states)
            lock = lock or bool(left & ~held)
            at_entry = MASKED if self.entry else UNMASKED
            starts, ends = regions(entry.values, states, at_entry)
            for start in starts:
                try:
                    segment = masked_region(graph, start, ends, self.run.image)
                except ControlFlowError as error:
                    place = place_of(self.run.image, entry, start)
                    missing[without(self.name, place, error)] = None
                    continue
                if self.entry is None and _returning(start, segment, ends):
                    lock = True
                else:
                    parts.append(_Part(start, segment, ends, _called(start, segment, ends)))
        return parts, list(missing), lock

    def _bounded(
        self,
        entry: ValuedEntry,
        parts: list[_Part],
        missing: list[NotBounded],
        lock: bool,
        late: WcetError | None,
    ) -> OfFunction:
        image = self.run.image
        whole = [part for part in parts if not part.calls]
        for part in parts:
            if part.calls:
                place = place_of(image, entry, part.start)
                missing.append(self._not_whole(place, part, late))
        assumed: dict[Assumption, None] = {}
        found: dict[str, MaskedRegion] = {}
        if whole:
            assumed = dict.fromkeys((*entry.assumptions, OTHER_CALLS.of()))
            for part in whole:
                pair = [(part.start, part.segment)]
                assumed |= dict.fromkeys(disturbing(entry, pair, part.ends))
            pairs = [(part.start, part.segment) for part in whole]
            try:
                worst, unbounded, rests = bounded_regions(entry, pairs)
            except WcetError as error:
                place = self._place()
                return OfFunction((), (*missing, without(self.name, place, error)), (), lock)
            found = {region.place: region for region in worst}
            missing += unbounded
            assumed |= dict.fromkeys(rests)
        return OfFunction(
            tuple(found.values()), tuple(dict.fromkeys(missing)), tuple(assumed), lock
        )

    def _not_whole(self, place: str, part: _Part, late: WcetError | None) -> NotBounded:
        """Why a region is not bounded that calls what is passed over."""
        if ELSEWHERE in part.calls:
            sites = _sites(part.segment.graph, ELSEWHERE)
            where = ", ".join(self.run.image.place(site) for site in sites[:NAMED])
            error = ControlFlowError(
                f"it calls what is not known at {where}"
                + (f" and {len(sites) - NAMED} more" if len(sites) > NAMED else ""),
                hint=f"state it: {STATE_TARGETS}",
            )
            return without(self.name, place, error)
        if late is None:
            late = ControlFlowError(f"after {ROUNDS} rounds it still calls what is passed over")
        return without(self.name, place, late)


NAMED = 4  # calls of a region


def _returning(start: RegionStart, segment: Segment, ends: frozenset[int]) -> list[int]:
    """Nodes in which the function returns and the region has not ended."""
    blocks = segment.graph.nodes
    return [n for n in open_exits(start, segment, ends) if blocks[n].block.returns]


def _called(start: RegionStart, segment: Segment, ends: frozenset[int]) -> frozenset[int]:
    """What a region calls that something stands for."""
    graph = segment.graph
    calling = {edge.src for edge in graph.edges} | set(_returning(start, segment, ends))
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


def _source(addr: int) -> Source:
    return Source(OURS, 1, f"{addr:#x}")


def _place_of(image: Image, text: str) -> int:
    return resolve(image, text)[0] & ~1
