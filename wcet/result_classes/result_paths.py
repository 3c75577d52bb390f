"""The edges that no execution takes behind a call with a certain result, in the same pass.

The values behind the call are computed again for each class of its result: path partitioning. They
are followed along all paths of the pass, as far as they know more than the values behind the call
with any result. An edge is excluded if executions with any result may take it, and those with this
result get to its source, but do not take it there or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.abstract_domain.abstract_state import AbstractState
from quoll.abstract_domain.terms import MASK, RIGID, TAINTED, describe, plain, shift_fact
from quoll.errors import WcetError
from quoll.graph.closure import closure
from quoll.intervals.strided_interval import ANY, ValueSet, meet
from quoll.value_analysis.context_domain import ContextDomain
from quoll.value_analysis.value_results import ValueResults

__all__ = ["ResultPaths"]

RESULT = 0  # the register of a result
LONGEST = 96  # nodes that are followed behind a call: a later branch on its result is not found
JOINS_BEFORE_WIDENING = 2

Cases = list[AbstractState | None]  # with any result, then with each result; None: not reached


@dataclass(frozen=True, slots=True)
class ResultPaths:
    """The paths behind calls in one graph."""

    values: ValueResults
    acyclic: AcyclicGraph

    @staticmethod
    def of(values: ValueResults) -> ResultPaths:
        """The paths in the graph of ``values``."""
        return ResultPaths(values, AcyclicGraph.of(values.graph))

    def excluded(self, call: int, results: Sequence[ValueSet]) -> tuple[frozenset[int], ...]:
        """For each of ``results`` the edges that a pass does not take behind the edge ``call``.

        Only edges that a pass takes at most once, and in which the difference shows first.
        """
        graph = self.values.graph
        taken, start = graph.edges[call], self.values.along(call)
        loop = self.acyclic.innermost[taken.src]
        nothing = tuple(frozenset[int]() for _ in results)
        if start is None or not self._inside(loop, taken.dst):
            return nothing
        cases = [start, *(with_result(start, result) for result in results)]
        search = _Search(self, loop, self.values.apart(), len(cases))
        search.run(taken.dst, cases)
        return tuple(search.not_taken(case) for case in range(1, len(cases)))

    def passes(self, call: int, edge: int) -> tuple[int, int]:
        """The loop of whose iterations the exclusion tells, -1 for the whole path, and a node.

        Each iteration that takes both edges executes the node, once.
        """
        edges = self.values.graph.edges
        loop = self.acyclic.innermost[edges[call].src]
        node = self.acyclic.common_dominator([edges[call].src, edges[edge].src])
        while self.acyclic.innermost[node] != loop:
            node = self.acyclic.dominator[node]
        return loop, node

    def once(self, loop: int, edge: int) -> bool:
        """Whether a pass takes ``edge`` at most once: it leaves all loops around it inside."""
        taken = self.values.graph.edges[edge]
        inner = self._around(loop, taken.src)
        return all(taken.dst not in self.values.graph.loops[one].nodes for one in inner)

    def last(self, loop: int, node: int) -> int:
        """The last position of a node, or of the loops around it inside a pass."""
        order, loops = self.acyclic.order, self.values.graph.loops
        around = (n for one in self._around(loop, node) for n in loops[one].nodes)
        return max((order[n] for n in around), default=order[node])

    def behind(self, loop: int, node: int) -> Iterator[int]:
        """The edges out of a node that do not end the pass."""
        graph = self.values.graph
        return (e for e in graph.successors[node] if self._inside(loop, graph.edges[e].dst))

    def _around(self, loop: int, node: int) -> Iterator[int]:
        """The loops around a node inside ``loop``."""
        for one in self.acyclic.around(node):
            if one == loop:
                return
            yield one

    def _inside(self, loop: int, node: int) -> bool:
        """Whether a pass goes on at ``node``."""
        inside = loop < 0 or node in self.values.graph.loops[loop].nodes
        return inside and (loop < 0 or self.acyclic.headers.get(node) != loop)


def with_result(state: AbstractState, result: ValueSet) -> AbstractState | None:
    """``state`` where r0 is one of ``result``; None if it cannot be."""
    term = state.term(RESULT)
    symbol, known = term >> 32, state.facts.get(term >> 32, ANY)
    if symbol < RIGID:
        word = describe(term, state.facts)
        return state if plain(word) == ANY or meet(plain(word), result) else None
    if result == ANY or (known == TAINTED and result.exact is None):
        return state  # it may be a stack address, whose mark must stay
    words = shift_fact(result, -term & MASK)
    if isinstance(known, ValueSet) and isinstance(words, ValueSet):
        both = meet(known, words)
        if both is None:
            return None
        words = both
    return state._replace(facts={**state.facts, symbol: words})


@dataclass(slots=True)
class _Search:
    """The states behind one call; a node is *open* where its states are not followed further.

    ``stopped``: by node, for each case the edges that only other cases take.
    """

    paths: ResultPaths
    loop: int
    domain: ContextDomain
    count: int  # of cases
    states: dict[int, Cases] = field(default_factory=dict)
    stopped: dict[int, list[frozenset[int]]] = field(default_factory=dict)
    _joins: dict[tuple[int, int], int] = field(default_factory=dict)
    _queue: list[tuple[int, int]] = field(default_factory=list)

    def run(self, start: int, cases: Cases) -> None:
        """Follow all cases from a node."""
        self.states[start] = cases
        self._queue = [(self.paths.acyclic.order[start], start)]
        followed = 0
        while self._queue and followed < LONGEST:
            _, node = heappop(self._queue)
            if self._is_open(node):
                self.stopped.pop(node, None)
            else:
                followed += 1
                self._follow(node)
        for _, node in self._queue:
            self.stopped.pop(node, None)
        self._check()

    def not_taken(self, case: int) -> frozenset[int]:
        """The edges that executions of a case do not take in the pass, but others do."""
        sources = {
            e: node
            for node, of in self.stopped.items()
            for e in of[case]
            if self.paths.once(self.loop, e)
        }
        if not sources:
            return frozenset()
        reached = self._reached(case, sources.values())
        return frozenset(e for e, node in sources.items() if node not in reached)

    def _reached(self, case: int, wanted: Iterable[int]) -> set[int]:
        """The nodes that a case may get to from open nodes, up to the last one of ``wanted``."""
        open_nodes = [n for n, of in self.states.items() if n not in self.stopped and of[case]]
        last = max(self.paths.last(self.loop, n) for n in (*wanted, *open_nodes))
        edges, order = self.paths.values.graph.edges, self.paths.acyclic.order

        def following(node: int) -> Iterator[int]:
            targets = (edges[e].dst for e in self.paths.behind(self.loop, node))
            return (n for n in targets if order[n] <= last)

        return closure(open_nodes, following)

    def _is_open(self, node: int) -> bool:
        """Whether no case knows more at a node than the one with any result."""
        general, *cases = self.states[node]
        if general is None:  # after a widening only
            return True
        known = (one for one in cases if one is not None and one is not general)
        return all(self.domain.leq(general, one) for one in known)

    def _follow(self, node: int) -> None:
        """The states behind a node."""
        graph, cases = self.paths.values.graph, self.states[node]
        inside = frozenset(self.paths.behind(self.loop, node))
        taken: list[frozenset[int]] = []
        for case, state in enumerate(cases):
            behind = {} if state is None else self._transferred(node, state)
            taken.append(frozenset(behind))
            for edge in behind.keys() & inside:
                self._arrive(node, graph.edges[edge].dst, case, behind[edge])
        self.stopped[node] = [
            frozenset() if state is None else taken[0] - of_case
            for state, of_case in zip(cases, taken, strict=True)
        ]

    def _transferred(self, node: int, state: AbstractState) -> dict[int, AbstractState]:
        """The states along the edges out of a node."""
        edges = self.paths.values.graph.successors[node]
        found = ((e, self.domain.transfer(e, state)) for e in edges)
        return {e: behind for e, behind in found if behind is not None}

    def _arrive(self, source: int, node: int, case: int, state: AbstractState) -> None:
        """Join a state into the one of a case at a node."""
        order = self.paths.acyclic.order
        backwards = order[node] <= order[source]
        cases = self.states.setdefault(node, [None] * self.count)
        old, joins = cases[case], self._joins.get((node, case), 0)
        if old is None:
            cases[case] = self.domain.join(node, state, state) if backwards else state
        elif self.domain.leq(state, old):
            return
        elif joins >= JOINS_BEFORE_WIDENING:
            cases[case] = self.domain.widen(node, old, state)
        else:
            cases[case] = self.domain.join(node, old, state)
        if backwards:
            self._joins[node, case] = joins + 1
        if (order[node], node) not in self._queue:
            heappush(self._queue, (order[node], node))

    def _check(self) -> None:
        """Check the states along all edges, where there was a loop (rule 5)."""
        if not self._joins:
            return
        edges = self.paths.values.graph.edges
        for node in self.stopped:
            inside = frozenset(self.paths.behind(self.loop, node))
            for case, state in enumerate(self.states[node]):
                behind = {} if state is None else self._transferred(node, state)
                for edge in behind.keys() & inside:
                    known = self.states[edges[edge].dst][case]
                    if known is None or not self.domain.leq(behind[edge], known):
                        raise WcetError(
                            f"the values behind a call do not hold along the edge {edge}",
                            hint="this is an error of the analysis, please report it",
                        )
