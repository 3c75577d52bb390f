"""Words that count the work between tests for interrupts, which is tested every N-th time.

    counted  edges along which the word c becomes c + 1, and c + 1 < N: no test is made
    reset    edges along which c may become any word: it is set to 0, and the test follows; without
             those that no path takes between two counted edges

Let a path take counted edges k times without a reset in between. The words behind these edges are
successive and all less than N, so k <= N for every word before, also if it wraps around
zero: the word behind the first of these edges is then 0. So a path satisfies

    sum(x_e : e counted) <= N * (1 + sum(x_e : e reset))

and so does each section of it, such as its part in one layer (``quoll.preemption.layered_tests``).
A loop whose every iteration takes a counted edge, and in which no edge resets, has at most N
complete iterations, and one that leaves it. It does not matter whether an interrupt is pending:
then the test behind the reset leaves the loop, and otherwise the reset is in the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from quoll.abstract_domain.abstract_memory import S3, S4
from quoll.abstract_domain.terms import MASK
from quoll.arm.insn import AccessKind
from quoll.assumptions import COUNTER_APART, Assumption
from quoll.cfg.cfg import EdgeKind
from quoll.graph.closure import closure
from quoll.image.memory_map import Span
from quoll.inlining.supergraph import CountedEdges, SuperEdge, Supergraph, SuperLoop
from quoll.value_analysis.known_stores import KnownStore, stores
from quoll.value_analysis.value_results import ValueResults, WordStep

__all__ = ["TestCounter", "counted_in", "iterations_of", "test_counters", "written_by"]

WORD = 4  # bytes
CHECKED = 4  # edges between an increment and the comparison of the word
LIMITS = 4  # different numbers that a word is compared with


@dataclass(frozen=True, slots=True)
class TestCounter:
    """A word at ``address`` with the edges of a graph that count up to ``most``, and that reset it.

    ``due``: nodes that reset it because it has reached that number. ``assumed``: the assumptions
    that other stores miss it.
    """

    address: int
    most: int
    counted: frozenset[int]
    reset: frozenset[int]
    due: frozenset[int]
    assumed: tuple[Assumption, ...]


def test_counters(values: ValueResults) -> tuple[TestCounter, ...]:
    """The counters of ``values.graph``, for each number of which an edge is known to stay below."""
    known = list(stores(values))
    by_word: dict[int, set[int]] = {}
    for store in known:
        address = _word(values, store)
        if address is not None:
            by_word.setdefault(address, set()).add(store.node)
    return tuple(
        counter
        for at, nodes in sorted(by_word.items())
        for counter in _counters(values, known, at, nodes)
    )


def written_by(values: ValueResults) -> frozenset[Span] | None:
    """The bytes of all stores with one address, callees included; None if any may be."""
    found = {store.span for store in stores(values) if store.span is not None and store.exact}
    for edge in range(len(values.graph.edges)):
        for replaced in values.graph.passed(edge):
            if replaced.written is None:
                return None
            found |= replaced.written
    return frozenset(found)


def _word(values: ValueResults, store: KnownStore) -> int | None:
    """The address of a stored word of ordinary memory."""
    insn = values.graph.nodes[store.node].block.insns[store.insn]
    if store.span is None or insn.memory is None or insn.memory.access is not AccessKind.STORE:
        return None
    address, last = store.span
    single = last - address == WORD - 1 and not address % WORD
    names = values.environment.map.names(address, WORD)
    ordinary = [name for name in names if values.environment.ordinary(name)]
    return address if single and ordinary[:1] == [address] else None


def _counters(
    values: ValueResults, known: Sequence[KnownStore], address: int, nodes: Iterable[int]
) -> Iterator[TestCounter]:
    graph = values.graph
    counted: dict[int, int] = {}
    for node in nodes:
        for edge in graph.successors[node]:
            step = values.word_step(edge, address)
            if step is not None and step.change == 1:
                counted |= _bounded(values, edge, address, step)
    limits = sorted(set(counted.values()))
    if not limits or len(limits) > LIMITS:
        return
    spans = values.environment.map.physical_aliases(address, address + WORD - 1)
    hit = {store.node for store in known if _surely_known(store, spans)}
    elsewhere = {e for e in range(len(graph.edges)) if _may_change(values, e, address, spans)}
    assumed = tuple(sorted(_assumed(values, (address, address + WORD - 1), known)))
    for limit in limits:
        below = {edge: most for edge, most in counted.items() if most <= limit}
        reset = elsewhere.union(_resets(values, address, hit, below))
        due = frozenset(n for n in hit if _is_due(values, n, address, limit))
        yield TestCounter(
            address, limit + 1, frozenset(below) - reset, frozenset(reset), due, assumed
        )


def _assumed(values: ValueResults, word: Span, known: Iterable[KnownStore]) -> set[Assumption]:
    """The assumptions that stores miss the word, where their addresses do not tell."""
    found, memory = set[Assumption](), values.environment.map
    apart = COUNTER_APART.of(address=f"{word[0]:#010x}")
    for store in known:
        if store.span is None:
            found.add(S4 if store.on_stack else apart)
        elif not store.exact and _meet(store.span, memory.physical_aliases(*word)):
            found.add(apart)
        elif memory.assumes_apart(store.span, word):
            found.add(S3)
    if any(values.graph.passed(edge) for edge in range(len(values.graph.edges))):
        found |= {S3, S4, apart}
    return found


def _is_due(values: ValueResults, node: int, address: int, limit: int) -> bool:
    """Whether a node changes the word only where the next count is above ``limit``."""
    steps = [values.word_step(edge, address) for edge in values.graph.successors[node]]
    taken = [step for step in steps if step is not None]
    return bool(taken) and all(step.change is None and step.least >= limit for step in taken)


def _may_change(values: ValueResults, edge: int, address: int, spans: Iterable[Span]) -> bool:
    """Whether code that is not in the graph may run along ``edge`` and store to the word.

    Or whether its translation may change.
    """
    graph = values.graph
    if values.forgets(graph.edges[edge].src, address):
        return True
    return any(
        not one.preserves
        and (one.written is None or any(_meet(span, spans) for span in one.written))
        for one in graph.passed(edge)
    )


def _resets(
    values: ValueResults, address: int, hit: Iterable[int], counted: Iterable[int]
) -> Iterable[int]:
    """The edges out of nodes that store to the word, but for those that count or preserve it.

    An increment that is compared behind its block counts there.
    """
    compared = set(counted)
    for node in hit:
        for edge in values.graph.successors[node]:
            step = values.word_step(edge, address)
            if step is None or step.change == 0 or edge in compared:
                continue
            later = _bounded(values, edge, address, step) if step.change == 1 else {}
            if not later or not later.keys() <= compared:
                yield edge


def _bounded(values: ValueResults, edge: int, address: int, step: WordStep) -> dict[int, int]:
    """The edges behind an increment, on all paths, at which the word has a limit: edge -> limit.

    Paths that store to the word again count as checked: such an edge resets it. None are found if
    a block in between is entered elsewhere, or if a path is too long.
    """
    graph, found = values.graph, dict[int, int]()
    waiting = [(edge, step, 0)]
    while waiting:
        at, now, length = waiting.pop()
        if now.most < MASK:
            found[at] = now.most
            continue
        node = graph.edges[at].dst
        if length == CHECKED or len(graph.predecessors[node]) != 1 or node in graph.exits:
            return {}
        for following in graph.successors[node]:
            after = values.word_step(following, address, (now.state, now.word))
            if after is not None and after.change == 0:
                waiting.append((following, after, length + 1))
    return found


def _surely_known(store: KnownStore, spans: Iterable[Span]) -> bool:
    """Whether a store has one address, or only addresses of a word, and may hit it."""
    if store.span is None:
        return False
    first, last = store.span
    within = any(low <= first and last <= high for low, high in spans)
    return within or (store.exact and _meet(store.span, spans))


def _meet(span: Span, others: Iterable[Span]) -> bool:
    return any(span[0] <= last and first <= span[1] for first, last in others)


def counted_in(
    counters: Sequence[TestCounter],
    whole: Supergraph,
    edges: Sequence[SuperEdge],
    nodes: Sequence[int],
    layers: Sequence[int],
) -> tuple[CountedEdges, ...]:
    """The counters of each layer of a segment: no reset that leaves it is in between.

    ``nodes``: their numbers in the whole graph.
    """
    found = []
    for counter in counters:
        counted, reset = (_places(whole, one) for one in (counter.counted, counter.reset))
        for layer in sorted(set(layers)):
            inside = [(number, e) for number, e in enumerate(edges) if layers[e.src] == layer]
            at = {number: (nodes[e.src], nodes[e.dst], e.kind) for number, e in inside}
            stays = {number for number, e in inside if layers[e.dst] == layer}
            resets = frozenset(n for n, place in at.items() if place in reset)
            counts = frozenset(n for n, place in at.items() if place in counted) - resets
            if counts:
                between = _between(edges, counts, stays, resets & stays)
                found.append(CountedEdges(counter.address, counter.most, counts, between))
    return tuple(found)


def _between(
    edges: Sequence[SuperEdge], counts: frozenset[int], inside: Set[int], resets: frozenset[int]
) -> frozenset[int]:
    """The ``resets`` that paths along edges ``inside`` may take between two of ``counts``."""
    pairs = [(edges[e].src, edges[e].dst) for e in inside]
    behind = _reached([edges[e].dst for e in counts], pairs)
    before = _reached([edges[e].src for e in counts], [(dst, src) for src, dst in pairs])
    return frozenset(e for e in resets if edges[e].src in behind and edges[e].dst in before)


def _places(whole: Supergraph, edges: Iterable[int]) -> frozenset[tuple[int, int, EdgeKind]]:
    return frozenset((e.src, e.dst, e.kind) for e in (whole.edges[edge] for edge in edges))


def iterations_of(graph: Supergraph, loop: SuperLoop) -> tuple[int, CountedEdges] | None:
    """The most executions of a loop's header per entry, and the counter that limits them."""
    inside = [
        graph.edges[e] for n in loop.nodes for e in graph.successors[n] if _stays(graph, e, loop)
    ]
    cycle = _reached([loop.header], [(e.src, e.dst) for e in inside])
    cycle &= _reached([loop.header], [(e.dst, e.src) for e in inside])
    around = [
        e
        for n in cycle
        for e in graph.successors[n]
        if graph.edges[e].dst in cycle and _stays(graph, e, loop)
    ]
    limits = [
        (one.most + 1, one)
        for one in graph.counted
        if one.reset.isdisjoint(around)
        and not _returns(graph, loop.header, [e for e in around if e not in one.counted])
    ]
    return min(limits, key=lambda limit: limit[0], default=None)


def _stays(graph: Supergraph, edge: int, loop: SuperLoop) -> bool:
    return graph.edges[edge].dst in loop.nodes


def _reached(starts: Iterable[int], pairs: Iterable[tuple[int, int]]) -> set[int]:
    following: dict[int, list[int]] = {}
    for source, target in pairs:
        following.setdefault(source, []).append(target)
    return closure(starts, lambda node: following.get(node, ()))


def _returns(graph: Supergraph, header: int, edges: Sequence[int]) -> bool:
    """Whether a cycle of ``edges`` passes the header."""
    reached = _reached([header], [(graph.edges[e].src, graph.edges[e].dst) for e in edges])
    return any(graph.edges[e].dst == header and graph.edges[e].src in reached for e in edges)
