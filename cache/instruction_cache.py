"""Instruction fetches: the lines a block may fetch, and their classification in L1.

Instructions are fetched in address order from the target of the last transfer, so a block makes one
reference per line it enters. If the block ends in a transfer of control, up to ``fetch_ahead``
bytes behind it may have been requested before the transfer took effect (rule 8). With branch
prediction, fetch goes behind it and at its target (``cache.wrong_paths``), whether it is taken or
not.

A line fetched past a transfer may be in the cache or not. Its miss is charged at the transfer,
whether it happens or not: the line is *credited* (``cache.must`` has the argument). A later fetch
of it is neither charged nor counted as a hit.

An operation that drops at most one line, any line, is charged one miss: the potential of the
dropped line. It preserves credited lines and first misses. In a loop of invalidations by address,
the charge is that of the lines that the whole loop may drop (``cache.dropped_lines``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cache.dropped_lines import LineDrops
from cache.events import UNSEEN, CacheEvent, CacheEvents, FlowOrder
from cache.geometry import CacheHierarchy
from cache.lines import AccessedLines
from cache.maintenance import cache_operation
from cache.may import presence
from cache.must import MustAnalysis, MustVerdict
from cache.persistence import LoopScopes, persistent_lines, scope_of
from cache.reference import AT_HOME, UNCACHED, HitClass, Reference, ReferenceKind
from cache.unlocked import unlocked_nodes, unlocks_code
from cache.wrong_paths import UNKNOWN_CODE, InsnAt, WrongLines, WrongPaths
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import ControlFlow
from quoll.arm.return_stack import UNKNOWN_RETURNS, ReturnStack
from quoll.cfg.cfg import Block, EdgeKind
from quoll.image.memory_map import Cacheability
from quoll.inlining.return_stacks import return_stacks, returns_as_predicted
from quoll.inlining.supergraph import Supergraph

__all__ = ["AddressStrides", "FetchClasses", "FetchClassifier"]

NOT_CACHED, LOCKED = (
    MustVerdict(resident=False, credited=False),
    MustVerdict(resident=True, credited=False),
)


class AddressStrides(Protocol):
    """The results of the value analysis about addresses of cache operations."""

    def stride(self, node: int, insn: int, inside: Set[int]) -> int | None:
        """Bytes, modulo 2**32, from the address of an operation to the next one in a loop.

        None if it is not one number. ``inside``: the nodes of the loop.
        """


class LineFetch(NamedTuple):
    """A line entered at instruction ``insn`` of a block, or fetched past its end.

    ``certain``: afterwards it is the line used last in its set. A fetch is not certain if it may
    not happen, if the memory may be uncached, or if a copy fetched before a maintenance operation
    took effect may serve instead. ``dropped``: a fetch whose line the operation drops. ``forget``:
    an operation without a line, which leaves nothing known; if it also ``empties`` the cache, no
    line is present. ``drop``: an operation without a line, after which at most one line, any line,
    may be gone. ``held``: the line is locked, so that the fetch hits and changes nothing.
    """

    insn: int
    line: int
    words: int  # instructions executed from the line (uncached code is fetched one by one)
    memory: Cacheability
    fixed: bool  # cached memory whose translation never changes
    certain: bool
    dropped: bool = False
    forget: bool = False
    drop: bool = False
    empties: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class _BlockFetches:
    """Fetches of a block in program order, and others that the transfer at its end may cause.

    ``past``: if control is transferred; ``at_target``: if it is not, but predicted to be.
    """

    inside: tuple[LineFetch, ...]
    past: tuple[LineFetch, ...]
    at_target: tuple[LineFetch, ...]

    @property
    def every(self) -> tuple[LineFetch, ...]:
        """All of them."""
        return self.inside + self.past + self.at_target


class _BlockEnd(NamedTuple):
    """The return stack at a block; ``right``: it predicts the block's own return, surely right."""

    returns: ReturnStack
    right: bool


UNKNOWN_END = _BlockEnd(UNKNOWN_RETURNS, right=False)


def _block_ends(
    graph: Supergraph, flow: FlowOrder, prediction: BranchPrediction
) -> list[_BlockEnd]:
    """Of each node."""
    if prediction is not BranchPrediction.RETURNS:
        return [UNKNOWN_END] * len(graph.nodes)
    return [
        UNKNOWN_END if stack is None else _BlockEnd(stack, returns_as_predicted(graph, node, stack))
        for node, stack in enumerate(return_stacks(graph, flow.graph, flow.order))
    ]


def _redirects(graph: Supergraph, edge: int) -> bool:
    """Whether traversing ``edge`` discards the instructions fetched behind the source block."""
    taken = graph.edges[edge]
    last = graph.nodes[taken.src].block.last
    return taken.kind is not EdgeKind.FALLTHROUGH and last.flow is not ControlFlow.NEXT


class _FetchModel:
    """Fetches per block, computed once for all its contexts."""

    def __init__(
        self,
        graph: Supergraph,
        hierarchy: CacheHierarchy,
        code: InsnAt,
        ends: Sequence[_BlockEnd],
    ) -> None:
        self._hierarchy = hierarchy
        self._geometry = hierarchy.l1i
        ahead, prediction = hierarchy.fetch_ahead, hierarchy.prediction
        self._wrong = WrongPaths(hierarchy.l1i, ahead, prediction, code)
        at_ends = zip(graph.nodes, ends, strict=True)
        self._stale = self._lines_fetched_early((node.block, end) for node, end in at_ends)
        self._blocks: dict[tuple[int, _BlockEnd], _BlockFetches] = {}

    def _lines_fetched_early(self, blocks: Iterable[tuple[Block, _BlockEnd]]) -> frozenset[int]:
        """Lines whose copy may be fetched before an invalidation and dropped by it.

        With ``UNKNOWN_CODE`` among them: any line.
        """
        fetched: set[tuple[int, _BlockEnd]] = set()
        lines: set[int] = set()
        for block, end in blocks:
            if (id(block), end) in fetched:
                continue
            fetched.add((id(block), end))
            for insn in block.insns:
                operation = cache_operation(insn)
                if operation.forget_i or operation.drop_i:
                    # the next one is always here
                    behind = self._wrong.behind(insn, 1, end.returns)
                    lines.update(behind.lines)
        return frozenset(lines)

    def _is_stale(self, line: int) -> bool:
        return line in self._stale or UNKNOWN_CODE in self._stale

    def lines(self) -> set[int]:
        """Every line that the graph may fetch."""
        return {
            fetch.line
            for fetches in self._blocks.values()
            for fetch in fetches.every
            if not fetch.forget and not fetch.drop
        }

    def of(self, block: Block, end: _BlockEnd) -> _BlockFetches:
        """The fetches of ``block``."""
        fetches = self._blocks.get((id(block), end))
        if fetches is None:
            fetches = self._blocks[id(block), end] = self._fetches(block, end)
        return fetches

    def _fetches(self, block: Block, end: _BlockEnd) -> _BlockFetches:
        inside: list[LineFetch] = []
        current: int | None = None
        for index, insn in enumerate(block.insns):
            for line in self._geometry.lines(insn.addr, insn.size):
                if line != current:
                    inside.append(self._fetch(index, line, certain=not self._is_stale(line)))
                    current = line
                else:
                    inside[-1] = inside[-1]._replace(words=inside[-1].words + 1)
            operation = cache_operation(insn)
            if operation.drop_i:
                inside.append(
                    LineFetch(
                        index, 0, 1, Cacheability.ALWAYS, fixed=False, certain=False, drop=True
                    )
                )
                current = None
            if operation.forget_i:
                inside.append(
                    LineFetch(
                        index,
                        0,
                        0,
                        Cacheability.NEVER,
                        fixed=False,
                        certain=False,
                        forget=True,
                        empties=operation.empties,
                    )
                )
                inside.extend(
                    fetch._replace(dropped=True)
                    for fetch in self._requested(index, self._wrong.behind(insn, 0, end.returns))
                )
                current = None
            if operation.refetch:
                if not operation.forget_i:  # prefetched lines stay in the cache
                    inside.extend(self._requested(index, self._wrong.past(insn, end.returns)))
                current = None
        last = len(block.insns) - 1
        past, at_target = (
            tuple(self._requested(last, wrong))
            for wrong in (
                self._wrong.past(block.last, end.returns, right=end.right),
                self._wrong.at_target(block.last, end.returns),
            )
        )
        return _BlockFetches(tuple(inside), past, at_target)

    def _requested(self, insn: int, wrong: WrongLines) -> Iterator[LineFetch]:
        """Fetches that may happen past an instruction.

        Code that is not known may fetch as many lines as the longest path, and nothing is known
        afterwards. One path is followed, so that these lines are charged once, wherever it gets to
        such code.
        """
        unknown = wrong.most
        for line in wrong.lines:
            if line != UNKNOWN_CODE:
                yield self._fetch(insn, line, certain=False)
                continue
            dropping = LineFetch(
                insn, 0, 1, Cacheability.ALWAYS, fixed=False, certain=False, drop=True
            )
            yield from [dropping] * unknown
            unknown = 0
            yield LineFetch(insn, 0, 0, Cacheability.NEVER, fixed=False, certain=False, forget=True)

    def _fetch(self, insn: int, line: int, *, certain: bool) -> LineFetch:
        size = self._geometry.line_bytes
        memory = self._hierarchy.memory.cacheability(line * size, line * size + size - 1)
        fixed = memory is Cacheability.ALWAYS and self._hierarchy.memory.fixed(line * size)
        return LineFetch(insn, line, 1, memory, fixed=fixed, certain=certain and fixed)


@dataclass(frozen=True, slots=True)
class FetchClasses:
    """References per node (inside) and per edge (past a transfer), and first misses per loop.

    ``leaving`` are the references past each exit node.
    """

    nodes: tuple[tuple[Reference, ...], ...]
    edges: tuple[tuple[Reference, ...], ...]
    loops: dict[int, tuple[Reference, ...]]
    leaving: dict[int, tuple[Reference, ...]]


class _FetchStep(NamedTuple):
    """A fetch, the loop in which it misses at most once, and its event."""

    fetch: LineFetch
    scope: int | None
    event: CacheEvent | None
    held: bool = False  # locked: it hits, and changes nothing


def _events(steps: Sequence[_FetchStep]) -> list[CacheEvent]:
    return [step.event for step in steps if step.event is not None]


class FetchClassifier:
    """Classify every instruction fetch of ``graph``."""

    def __init__(
        self,
        graph: Supergraph,
        flow: FlowOrder,
        scopes: LoopScopes,
        hierarchy: CacheHierarchy,
        strides: AddressStrides,
        code: InsnAt,
    ) -> None:
        self.graph, self.flow, self.scopes, self.hierarchy = graph, flow, scopes, hierarchy
        self.strides = strides
        self.policy = hierarchy.policy
        self.ends = _block_ends(graph, flow, hierarchy.prediction)
        self.model = _FetchModel(graph, hierarchy, code, self.ends)
        locked = self.hierarchy.locked_i
        self.unlocked = unlocked_nodes(graph, unlocks_code) if locked else frozenset[int]()
        # of blocks with locked lines
        self.fetches: dict[tuple[int, _BlockEnd], _BlockFetches] = {}
        self.redirecting = [_redirects(graph, e) for e in range(len(graph.edges))]
        # by the identity of a fetch: the model makes the fetches of a block once
        self.steps: dict[tuple[int, int | None], _FetchStep] = {}
        self.interned: dict[tuple[int, ReferenceKind, HitClass, bool, int | None], Reference] = {}
        # loop -> line -> first miss; loop -> operation -> the charge of the lines that it drops
        self.missing: dict[int, dict[object, Reference]] = {}

    def run(self) -> FetchClasses:
        persistent = self._persistent()
        inside, past, at_target = [], [], []
        for index in range(len(self.graph.nodes)):
            fetches, loops = self._fetches(index), self.scopes.around[index]
            inside.append([self._step(f, loops, persistent) for f in fetches.inside])
            past.append([self._step(f, loops, persistent) for f in fetches.past])
            at_target.append([self._step(f, loops, persistent) for f in fetches.at_target])
        within = [_events(steps) for steps in inside]
        along = [
            (UNSEEN,)
            if self.graph.passed(index)
            else _events((past if self.redirecting[index] else at_target)[edge.src])
            for index, edge in enumerate(self.graph.edges)
        ]
        events = CacheEvents(within, along)
        geometry, initial = self.hierarchy.l1i, self.hierarchy.initial_i
        residency = MustAnalysis(
            self.flow, geometry, self.policy, events, lambda edge: {}, initial.held.lines()
        )
        missing = presence(self.flow, self.hierarchy, geometry, initial, events)
        nodes: list[tuple[Reference, ...]] = []
        edges: list[tuple[Reference, ...]] = [()] * len(self.graph.edges)
        leaving: dict[int, tuple[Reference, ...]] = {}
        exits = frozenset(self.graph.exits)
        for index in range(len(self.graph.nodes)):
            here = within[index]
            found, absent = residency.inside(index, here), missing.inside(index, here)
            classes = self._classify(inside[index], found, absent, ReferenceKind.FETCH)
            nodes.append(self._with_drops(index, classes))
            after = {
                redirecting: self._classify(
                    steps,
                    residency.past(index, _events(steps)),
                    missing.past(index, _events(steps)),
                    ReferenceKind.PREFETCH,
                )
                for redirecting, steps in ((True, past[index]), (False, at_target[index]))
            }
            if index in exits:
                leaving[index] = after[True] + after[False]
            for edge in self.graph.successors[index]:
                edges[edge] = after[self.redirecting[edge]]
        loops_out = {loop: tuple(lines.values()) for loop, lines in self.missing.items()}
        return FetchClasses(tuple(nodes), tuple(edges), loops_out, leaving)

    def _fetches(self, index: int) -> _BlockFetches:
        """The fetches of a node; nodes of a block share them if they have the same locked lines."""
        block, locked = self.graph.nodes[index].block, self.hierarchy.locked_i
        end = self.ends[index]
        if not locked or index in self.unlocked:
            return self.model.of(block, end)
        found = self.fetches.get((id(block), end))
        if found is None:
            of_block = self.model.of(block, end)
            found = self.fetches[id(block), end] = _BlockFetches(
                *(
                    tuple(f._replace(held=f.fixed and locked.holds_line(f.line)) for f in those)
                    for those in (of_block.inside, of_block.past, of_block.at_target)
                )
            )
        return found

    def _step(
        self, fetch: LineFetch, loops: tuple[int, ...], persistent: Sequence[frozenset[int]]
    ) -> _FetchStep:
        scope = scope_of(fetch.line, loops, persistent) if fetch.fixed and loops else None
        key = id(fetch), scope
        step = self.steps.get(key)
        if step is None:
            step = self.steps[key] = self._made(fetch, scope)
        return step

    def _made(self, fetch: LineFetch, scope: int | None) -> _FetchStep:
        if fetch.forget or fetch.drop:
            operation = CacheEvent(
                None, forget=fetch.forget, empties=fetch.empties, drop=fetch.drop
            )
            return _FetchStep(fetch, None, operation)
        if fetch.held:
            return _FetchStep(fetch, None, None, held=True)
        if fetch.memory in UNCACHED:
            return _FetchStep(fetch, scope, None)
        event = CacheEvent(
            AccessedLines((fetch.line,)),
            certain=fetch.certain,
            pays=fetch.fixed and not fetch.dropped,
            first=scope is not None,
        )
        return _FetchStep(fetch, scope, event)

    def _persistent(self) -> list[frozenset[int]]:
        """Lines that miss at most once, per loop."""
        geometry = self.hierarchy.l1i
        ways = self.policy.persistent(geometry.free_ways)
        touched: dict[int, frozenset[int] | None] = {}
        of_node = [self._fetches(index) for index in range(len(self.graph.nodes))]
        for fetches in of_node:
            if id(fetches) not in touched:
                touched[id(fetches)] = self._touched(fetches)
        found = []
        for loop in self.scopes.loops:
            inside = {id(of_node[n]) for n in self.scopes.executed[loop.index]}
            usable = loop.index in self.scopes.eligible
            lines = persistent_lines((touched[f] for f in inside), geometry.sets, ways)
            found.append(lines if usable else frozenset[int]())
        return found

    def _touched(self, fetches: _BlockFetches) -> frozenset[int] | None:
        if any(f.forget for f in fetches.every):
            return None
        return frozenset(
            f.line for f in fetches.every if f.memory not in UNCACHED and not f.drop and not f.held
        )

    def _classify(
        self,
        steps: Sequence[_FetchStep],
        verdicts: Sequence[MustVerdict] | None,
        absences: Sequence[bool] | None,
        kind: ReferenceKind,
    ) -> tuple[Reference, ...]:
        """The references inside a node or past it, from the verdicts on their events."""
        if verdicts is None or absences is None:
            return ()
        found: list[Reference] = []
        told = zip(verdicts, absences, strict=True)
        for step in steps:
            verdict, absent = LOCKED if step.held else NOT_CACHED, False
            if step.event is not None:
                verdict, absent = next(told)
            if step.fetch.drop:
                found.append(self._dropped(step.fetch))
            elif not step.fetch.forget:
                found.append(self._reference(step, kind, verdict, absent=absent))
        return tuple(found)

    def _dropped(self, fetch: LineFetch) -> Reference:
        """The single miss that an operation on one line may cause later."""
        l2 = self.hierarchy.beyond_l1(None, None)
        if l2 is not None and all(self._l2(line) is HitClass.AH for line in self.model.lines()):
            l2 = HitClass.AH
        return Reference(
            fetch.insn, ReferenceKind.PREFETCH, None, None, 1, cacheable=True, l1=HitClass.NC, l2=l2
        )

    def _with_drops(self, node: int, classes: tuple[Reference, ...]) -> tuple[Reference, ...]:
        """The references of a node, with the drops of its operations in loops."""
        if not self.scopes.around[node] or all(r.kind is ReferenceKind.FETCH for r in classes):
            return classes
        insns = self.graph.nodes[node].block.insns
        found: list[Reference] = []
        for r in classes:
            by_address = r.low is None and cache_operation(insns[r.insn]).by_address
            drops = self._drops(node, r.insn) if by_address else None
            found.append(r if drops is None else r._replace(drops=drops))
            if drops is not None:
                self.missing.setdefault(drops.loop, {})[node, r.insn] = found[-1]
        return tuple(found)

    def _drops(self, node: int, insn: int) -> LineDrops | None:
        """The drops of an operation in the innermost loop around it, where it executes at most
        once an iteration.
        """
        around = [loop for loop in self.graph.loops if node in loop.nodes]
        innermost = min(around, key=lambda loop: len(loop.nodes), default=None)
        if innermost is None or innermost.index not in self.scopes.eligible:
            return None
        loop, inside = innermost.index, innermost.nodes
        stride = self.strides.stride(node, insn, inside)
        touched = [self._touched(self._fetches(n)) for n in inside]
        if stride is None or None in touched:
            return None
        geometry = self.hierarchy.l1i
        fetched = {line for lines in touched if lines for line in lines}
        return LineDrops.of(
            loop,
            stride,
            geometry.line_bytes,
            fetched=len(fetched),
            present=min(geometry.sets * geometry.ways, len(self.model.lines())),
        )

    def _l2(self, line: int) -> HitClass | None:
        size = self.hierarchy.l1i.line_bytes
        return self.hierarchy.beyond_l1(line * size, line * size + size - 1)

    def _reference(
        self, step: _FetchStep, kind: ReferenceKind, verdict: MustVerdict, *, absent: bool
    ) -> Reference:
        fetch, scope, l1 = step.fetch, step.scope, HitClass.NC
        if fetch.memory in UNCACHED:
            l1 = UNCACHED[fetch.memory]
        elif verdict.resident:
            l1 = HitClass.AH
        elif scope is not None:
            l1 = HitClass.FM
        credited = verdict.credited and l1 is HitClass.NC
        if absent and l1 is HitClass.NC and not credited:
            l1 = HitClass.AM
        key = (id(fetch), kind, l1, credited, scope)
        reference = self.interned.get(key)
        if reference is None:
            address = fetch.line * self.hierarchy.l1i.line_bytes
            reference = self.interned[key] = Reference(
                insn=fetch.insn,
                kind=kind,
                low=address,
                high=address,
                words=fetch.words,
                cacheable=fetch.memory not in UNCACHED,
                l1=l1,
                l2=self._l2(fetch.line),
                uncached=fetch.memory not in AT_HOME,
                scope=scope if l1 is HitClass.FM else None,
                credited=credited,
            )
        if reference.scope is not None:
            self.missing.setdefault(reference.scope, {}).setdefault(fetch.line, reference)
        return reference
