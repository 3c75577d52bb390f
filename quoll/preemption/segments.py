"""Preemption segments: paths with a pending interrupt, one graph per start (rule 21).

The first segment starts at the entry. Every read of a pending register starts another one: the
interrupt arrives just after the read, so the test it belongs to is negative, and all later ones are
positive. The nodes from the read to the negative edge are therefore copied: the copy has only
negative edges, the rest has none.

    read (copy) -> ... -> negative edge -> rest of the graph, where tests are positive

A segment may start inside a loop. Loops keep their headers, so that a bound of the loop in the
whole graph (header executions per entry from outside) also bounds the loop in the segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from quoll.errors import ControlFlowError
from quoll.facts.guidance import PathStartFact
from quoll.facts.located import LocatedFacts
from quoll.graph.closure import closure
from quoll.image.image import Image
from quoll.inlining.supergraph import SuperEdge, Supergraph, SuperLoop
from quoll.inlining.trim import nodes_to_cycles
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.preemption.counters import TestCounter, counted_in
from quoll.preemption.decision import PendingDecision, refuse_cycle, refuse_unread
from quoll.preemption.mask_states import RegionStart
from quoll.preemption.pending import PendingTests
from quoll.value_analysis.layered_graph import LayeredGraph
from quoll.value_analysis.strides import address_stride
from quoll.value_analysis.value_results import SymbolicAddress, ValueResults

__all__ = [
    "PendingSegment",
    "SegmentValues",
    "from_calls",
    "from_place",
    "masked_region",
    "segments",
    "undivided",
]


@dataclass(frozen=True, slots=True)
class PendingSegment:
    """A segment; ``nodes`` and ``loops`` give numbers in the whole graph.

    ``layers``: of nodes, -1 for copies; a path goes from one to the next.
    """

    start: int | None  # address of the block that reads the device; None: the entry
    graph: Supergraph
    nodes: tuple[int, ...]
    loops: tuple[int, ...]
    layers: tuple[int, ...] = ()
    counters: tuple[TestCounter, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentValues:
    """The values of a segment, taken from the whole graph."""

    values: ValueResults
    segment: PendingSegment

    @property
    def graph(self) -> Supergraph:
        """The graph of the segment."""
        return self.segment.graph

    def word(self, node: int, insn: int, register: int) -> int | None:
        """The term of r0 to lr just before an instruction of ``node``."""
        return self.values.word(self.segment.nodes[node], insn, register)

    def register(self, node: int, register: int) -> ValueSet:
        """The possible words of r0 to lr at the start of ``node``."""
        return self.values.register(self.segment.nodes[node], register)

    def access(self, node: int, insn: int) -> ValueSet | None:
        """First addresses of the data access of an instruction; None without an access."""
        return self.values.access(self.segment.nodes[node], insn)

    def origin(self, node: int, insn: int) -> SymbolicAddress | None:
        """The same address relative to a symbol."""
        return self.values.origin(self.segment.nodes[node], insn)

    def aliases(self, edge: int) -> Mapping[int, int]:
        """The renaming of symbols along an edge; empty where the whole graph has two edges."""
        same = self._whole(edge)
        return {} if same is None else self.values.aliases(same)

    def stride(self, node: int, insn: int, inside: Set[int]) -> int | None:
        """As ``ValueResults.stride``."""
        return address_stride(self, node, insn, inside)

    def arriving_word(self, edge: int, symbol: int) -> ValueSet:
        """The possible words along ``edge`` of a symbol of its target."""
        same = self._whole(edge)
        return ANY if same is None else self.values.arriving_word(same, symbol)

    def accesses_with(self, node: int, words: Mapping[int, ValueSet]) -> Mapping[int, ValueSet]:
        """Addresses in ``node`` when symbols at its start are among ``words``."""
        return self.values.accesses_with(self.segment.nodes[node], words)

    def _whole(self, edge: int) -> int | None:
        """The edge in the whole graph; None if there are several."""
        taken, whole = self.segment.graph.edges[edge], self.values.graph
        source, target = self.segment.nodes[taken.src], self.segment.nodes[taken.dst]
        same = [
            e
            for e in whole.successors[source]
            if whole.edges[e].dst == target and whole.edges[e].kind is taken.kind
        ]
        return same[0] if len(same) == 1 else None


def undivided(graph: Supergraph) -> PendingSegment:
    """All of ``graph``, without assuming an interrupt."""
    nodes, loops = range(len(graph.nodes)), range(len(graph.loops))
    return PendingSegment(None, graph, tuple(nodes), tuple(loops))


def from_place(graph: Supergraph, facts: LocatedFacts, image: Image) -> tuple[PendingSegment, ...]:
    """The suffixes of the paths from each place where facts start them, in every context."""
    places = [facts.at(fact, fact.place) for fact in facts.of(PathStartFact)]
    found = []
    for number, node in enumerate(graph.nodes):
        if any(place.covers(i.addr) for place in places for i in node.block.insns):
            builder = _SegmentBuilder(LayeredGraph.single(graph), graph.successors)
            found.append(builder.finish(builder.place(number), node.block.addr, image))
    return tuple(found)


def from_calls(graph: Supergraph, image: Image) -> Iterator[PendingSegment]:
    """The paths on which tests are in functions with a summary, by the arrival of the interrupt.

    The first segment is the whole graph, with an interrupt that is pending before such a call, or
    arrives in the caller. The others start at the blocks that call one, with an interrupt that
    arrives behind a test in it: the bound of the function is the one of its own rest.
    """
    yield undivided(_arriving(graph, behind=False))
    behind = _arriving(graph, behind=True)
    replaced = behind.guidance.replaced
    ending = closure(
        graph.exits, lambda node: (graph.edges[e].src for e in graph.predecessors[node])
    )
    for number, node in enumerate(graph.nodes):
        if number in ending and any(replaced[callee].behind for callee in node.block.passes):
            builder = _SegmentBuilder(LayeredGraph.single(behind), behind.successors)
            yield builder.finish(builder.place(number), node.block.addr, image)


def _arriving(graph: Supergraph, *, behind: bool) -> Supergraph:
    """``graph`` with the cycles of functions with tests for one kind of arrival."""
    replaced = {at: one.arriving(behind=behind) for at, one in graph.guidance.replaced.items()}
    return replace(graph, guidance=replace(graph.guidance, replaced=replaced))


def masked_region(
    graph: Supergraph, start: RegionStart, exits: frozenset[int], image: Image
) -> PendingSegment:
    """The paths from ``start`` to a node of ``exits``, or to the end of a path.

    The start is copied, because it may execute again: the region then ends in it, or continues. The
    cycles of the start, and of the nodes in which the region ends, count in full. Raises
    ControlFlowError if it never ends.
    """
    rest = [() if n in exits else edges for n, edges in enumerate(graph.successors)]
    builder = _SegmentBuilder(LayeredGraph.single(graph), rest)
    first = builder.begin(start.node, goes_on=start.goes_on)
    exits_at_start = not start.goes_on or start.node in graph.exits
    also = {(n, False) for n in exits} | ({(start.node, True)} if exits_at_start else set())
    address = None if start.insn is None else graph.nodes[start.node].block.addr
    return builder.finish(first, address, image, frozenset(also))


def segments(values: ValueResults, tests: PendingTests, image: Image) -> Iterator[PendingSegment]:
    """The segment of the entry, then the segments of the reads.

    A read without a following negative edge starts none: all its dependent branches end the path.
    Raises ControlFlowError when a test runs in a loop of its own, and where code that is reached
    while an interrupt is pending does not end.
    """
    layered = tests.layered
    rest = [[e for e in edges if e not in tests.dead] for edges in layered.successors]
    refuse_unread(tests.unread, image)
    entry = _SegmentBuilder(layered, rest)
    first = entry.finish(entry.place(layered.graph.entry), None, image)
    yield _counting(first, layered.graph, tests.counters)
    for read, test in tests.decisions.items():
        if not test.nodes:
            continue
        refuse_cycle(layered, test, image)
        builder = _SegmentBuilder(layered, rest)
        start = layered.graph.nodes[layered.node(read)].block.addr
        segment = builder.finish(builder.copy(test, read), start, image)
        yield _counting(segment, layered.graph, tests.counters)


def _counting(
    segment: PendingSegment, whole: Supergraph, counters: Sequence[TestCounter]
) -> PendingSegment:
    """``segment`` with the words that count on its paths."""
    counted = counted_in(counters, whole, segment.graph.edges, segment.nodes, segment.layers)
    used = {one.counter for one in counted}
    return replace(
        segment,
        graph=replace(segment.graph, counted=counted),
        counters=tuple(one for one in counters if one.address in used),
    )


class _SegmentBuilder:
    """A segment while it grows: nodes are (number in the layers, whether copied)."""

    def __init__(self, layered: LayeredGraph, rest: Sequence[Sequence[int]]) -> None:
        self.layered, self.graph = layered, layered.graph
        self.rest = rest  # node -> edges out of it, where copies are left
        self.numbers: dict[tuple[int, bool], int] = {}
        self.edges: list[SuperEdge] = []

    def place(self, root: int) -> int:
        """Add ``root`` and all nodes reachable from it in the rest; returns its number."""
        pending = [root]
        while pending:
            node = pending.pop()
            if (node, False) in self.numbers:
                continue
            self._number(node, False)
            pending += [self.layered.edges[e].dst for e in self.rest[node]]
        return self.numbers[root, False]

    def begin(self, node: int, *, goes_on: bool) -> int:
        """Add a copy of ``node``, and all its reachable nodes; returns its number."""
        self._number(node, True)
        for e in self.layered.successors[node] if goes_on else ():
            edge = self.layered.edges[e]
            self.place(edge.dst)
            self._edge(node, True, edge, False)
        return self.numbers[node, True]

    def copy(self, test: PendingDecision, read: int) -> int:
        """Add a copy of ``test``, and the nodes after its negative edges; returns ``read``'s
        number.

        A negative edge leads to the first layer: no test has seen the interrupt.
        """
        for node in sorted(test.nodes):
            self._number(node, True)
        for e in sorted(test.inside):
            edge = self.layered.edges[e]
            self._edge(edge.src, True, edge, True)
        for e in sorted(test.negative):
            edge = self.layered.edges[e]
            edge = replace(edge, dst=self.layered.node(edge.dst))
            self.place(edge.dst)
            self._edge(edge.src, True, edge, False)
        return self.numbers[read, True]

    def _number(self, node: int, copy: bool) -> int:
        return self.numbers.setdefault((node, copy), len(self.numbers))

    def _edge(self, node: int, copy: bool, edge: SuperEdge, into_copy: bool) -> None:
        source, target = self.numbers[node, copy], self.numbers[edge.dst, into_copy]
        self.edges.append(SuperEdge(source, target, edge.kind))

    def finish(
        self,
        entry: int,
        start: int | None,
        image: Image,
        also: frozenset[tuple[int, bool]] = frozenset(),
    ) -> PendingSegment:
        """The segment from ``entry``: all reachable nodes, and the remaining loops.

        Its paths may also end in the nodes ``also``.
        """
        for node, copy in list(self.numbers):
            if not copy:
                for e in self.rest[node]:
                    self._edge(node, False, self.layered.edges[e], False)
        origin = [self.layered.node(node) for node, _ in self.numbers]
        exit_nodes = set(self.graph.exits)
        exits = [
            n
            for (node, copy), n in self.numbers.items()
            if (self.layered.node(node) in exit_nodes and not copy) or (node, copy) in also
        ]
        surviving = self._reached(entry, exits, image)
        number = {old: new for new, old in enumerate(surviving)}
        edges = tuple(
            SuperEdge(number[e.src], number[e.dst], e.kind)
            for e in self.edges
            if e.src in number and e.dst in number
        )
        successors: list[list[int]] = [[] for _ in surviving]
        predecessors: list[list[int]] = [[] for _ in surviving]
        for index, edge in enumerate(edges):
            successors[edge.src].append(index)
            predecessors[edge.dst].append(index)
        nodes = tuple(origin[old] for old in surviving)
        places = list(self.numbers)
        layers = [self._layer(places[old]) for old in surviving]
        headers = {
            node: number[old]
            for (node, copy), old in self.numbers.items()
            if not copy and old in number
        }
        loops = _loops(self.layered, nodes, edges, predecessors, layers, headers)
        graph = Supergraph(
            self.graph.contexts,
            tuple(self.graph.nodes[n] for n in nodes),
            edges,
            tuple(map(tuple, successors)),
            tuple(map(tuple, predecessors)),
            number[entry],
            tuple(number[n] for n in exits if n in number),
            tuple(loop for _, loop in loops),
            {},
            self.graph.guidance,
        )
        at = tuple(
            -1 if places[old][1] else layer for old, layer in zip(surviving, layers, strict=True)
        )
        return PendingSegment(start, graph, nodes, tuple(index for index, _ in loops), at)

    def _reached(self, entry: int, exits: Iterable[int], image: Image) -> list[int]:
        """The nodes between ``entry`` and an end; no other node may iterate for ever (rule 33).

        A node that leads to no end and to no cycle is on no path: all its continuations are dead
        while an interrupt is pending.
        """
        pairs = [(e.src, e.dst) for e in self.edges]
        forward = _closed([entry], pairs)
        both_ways = forward & _closed(exits, [(dst, src) for src, dst in pairs])
        stays = nodes_to_cycles(forward - both_ways, pairs)
        if stays or entry not in both_ways:
            origin = [
                self.graph.nodes[self.layered.node(node)].block.addr for node, _ in self.numbers
            ]
            raise ControlFlowError(
                "no end of a path is reachable while an interrupt is pending (rule 33)",
                where=image.place(min(origin[n] for n in stays or {entry})),
                hint="a loop that waits there until no interrupt is pending never ends, as "
                "interrupts are masked; if the path ends there, state it with 'path must end at' "
                "or --end",
            )
        return sorted(both_ways)

    def _layer(self, place: tuple[int, bool]) -> int:
        """The layer of a node; copies lead to the first one."""
        node, copy = place
        return 0 if copy else self.layered.layer(node)


def _closed(start: Iterable[int], pairs: Iterable[tuple[int, int]]) -> set[int]:
    following: dict[int, list[int]] = {}
    for src, dst in pairs:
        following.setdefault(src, []).append(dst)
    return closure(start, lambda node: following.get(node, ()))


def _loops(
    whole: LayeredGraph,
    nodes: tuple[int, ...],
    edges: tuple[SuperEdge, ...],
    predecessors: list[list[int]],
    layers: Sequence[int],
    headers: Mapping[int, int],
) -> list[tuple[int, SuperLoop]]:
    """The loops of the layers that still iterate, with their old numbers.

    ``layers``: of each node; ``headers``: the nodes of the layers that are no copies. Copies of a
    loop's nodes belong to the loop: they are part of its first iteration.
    """
    inside_loops: list[tuple[int, SuperLoop]] = []
    copies: dict[tuple[int, int], list[int]] = {}
    for n, old in enumerate(nodes):
        copies.setdefault((old, layers[n]), []).append(n)
    for layer in range(whole.layers):
        new: dict[int, int | None] = {}  # old number -> innermost loop from there outwards
        for loop in whole.graph.loops:  # outer loops come first
            parent = None if loop.parent is None else new[loop.parent]
            new[loop.index] = parent
            header = headers.get(loop.header + layer * len(whole.graph.nodes))
            if header is None:
                continue
            inside = frozenset(n for old in loop.nodes for n in copies.get((old, layer), ()))
            backs = tuple(e for e in predecessors[header] if edges[e].src in inside)
            body = [(edges[e].src, edges[e].dst) for n in inside for e in predecessors[n]]
            goes_round = _closed([header], body)
            if not any(edges[e].src in goes_round for e in backs):
                continue
            entries = tuple(e for e in predecessors[header] if edges[e].src not in inside)
            new[loop.index] = len(inside_loops)
            made = SuperLoop(len(inside_loops), header, entries, backs, inside, parent)
            inside_loops.append((loop.index, made))
    return inside_loops
