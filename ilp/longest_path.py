"""The longest path over the loop nest, in exact integers: a proposal for IPET's program.

Without user constraints the program is solved loop by loop, inner ones first. Let W be the most
cycles from a loop's header back to it, where each entry of an inner loop adds (b - 1) times that
loop's W. The result is the longest path from the entry without back edges, with these costs on the
entries of loops; each loop adds b - 1 iterations per entry. W is the dual value of the loop's row,
and the most cycles from a node to the end of the path is the dual value of its flow row. Counts and
dual values are only proposals: ``ilp.solvers.solve`` checks the counts against every row, and
computes the bound from the dual values (``ilp.solvers.certificate``). So the proposal also decides
programs whose user constraints do not bind, with figures of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ilp.constraints.nest import LoopNest
from ilp.ipet import Ipet
from ilp.solvers.integer_program import LinearRow
from ilp.solvers.solve import BoundProof, maximise
from ilp.solvers.solver_result import Proposal, SimplexBasis, Solver
from loopbounds.execution.counts import ExecutionCounts
from quoll.inlining.supergraph import SuperLoop

__all__ = ["longest_path", "proved_maximum"]

END = -1  # in place of the next edge: the path ends


def proved_maximum(
    ipet: Ipet, solver: Solver, seconds: float | None = None, cuts: Sequence[LinearRow] = ()
) -> BoundProof:
    """The most cycles of a path, proved, with ``cuts`` as further rows (``ilp.solvers.solve``)."""
    model = ipet.model.with_rows(cuts)
    proposal = None
    if not solver.preferred or model.inexact():
        only = ipet.execution if ipet.execution and ipet.execution.only else None
        proposal = longest_path(ipet) if only is None else executed(ipet, only)
    return maximise(model, solver, seconds, proposal)


def executed(ipet: Ipet, execution: ExecutionCounts) -> Proposal:
    """The counts of the concrete execution as a proposal: they are the variables' maxima."""
    values = list(execution.edges) + [int(n in execution.ends) for n in ipet.graph.exits]
    values += [0] * (len(ipet.model.names) - len(values))
    duals = (0,) * (len(ipet.graph.nodes) + len(ipet.graph.loops))
    if ipet.excess is not None and ipet.excess.needed(values) > 0:
        duals += (ipet.excess.cycles,)
    return Proposal(ipet.completed(values), duals, "concrete execution")


def longest_path(ipet: Ipet) -> Proposal | None:
    """Counts and dual values of the longest path.

    It is first searched with every charged write-back, then, if some of these would find no
    dirty line, with a charge for each dirty line instead. None if the bound of some loop is 0, or
    if no path ends.
    """
    if any(bound < 1 for bound in ipet.nest.bounds):
        return None
    found = longest_at(ipet, ipet.model.objective, ())
    if found is None or ipet.excess is None or ipet.excess.needed(found.values) <= 0:
        return found
    prices = ipet.excess.prices(len(ipet.graph.edges))
    gain = [cycles - price for cycles, price in zip(ipet.model.objective, prices, strict=False)]
    return longest_at(ipet, gain, (ipet.excess.cycles,))


def longest_at(ipet: Ipet, gain: Sequence[int], price: tuple[int, ...]) -> Proposal | None:
    """The longest path if edges cost ``gain``; ``price``: dual value of the row of write-backs."""
    search = LoopIterations(ipet.nest, gain)
    if not search.exits():
        return None
    values = ipet.completed(search.counts(len(ipet.model.names)))
    duals = (*search.left, *search.iteration_cost, *price)
    return Proposal(values, duals, "longest path", search.basis())


@dataclass(slots=True)
class LoopIterations:
    """``gain``: cycles of each edge with its destination; ``iteration_cost``: W of each loop, >= 0.

    ``left``: the most cycles from a node to the end, where leaving an iteration of a loop costs its
    W.
    """

    nest: LoopNest
    gain: Sequence[int]
    left: list[int] = field(init=False)
    iteration_cost: list[int] = field(init=False)
    _back: dict[int, int] = field(init=False)  # back edge -> its loop
    _into: dict[int, int] = field(init=False)  # entry edge -> its loop
    _body: list[list[int]] = field(init=False)  # nodes of each loop, successors first
    _around: list[dict[int, int]] = field(init=False)  # loop: node -> next edge for W
    _next: list[int] = field(init=False)  # node -> next edge to the end
    _tight: dict[int, int] = field(init=False)  # node -> the variable that determines its ``left``
    _never: int = field(init=False)  # a value below every path that ends

    def __post_init__(self) -> None:
        graph = self.nest.graph
        loops = graph.loops
        self._back = {e: loop.index for loop in loops for e in loop.backs}
        self._into = {e: loop.index for loop in loops for e in loop.entries}
        backwards = self.nest.order[::-1]
        self._body = [[] for _ in loops]
        for node in backwards:
            for loop in self.nest.chain(node):
                self._body[loop].append(node)
        self.iteration_cost, self._around = [0] * len(loops), [{} for _ in loops]
        for one in reversed(loops):
            self._measure(one)
        self._never = -2 * sum(map(abs, map(self._cost, range(len(graph.edges))))) - 1
        exits = frozenset(graph.exits)
        self.left = [0 if n in exits else self._never for n in range(len(graph.nodes))]
        self._next = [END] * len(graph.nodes)
        self._tight = {n: len(graph.edges) + i for i, n in enumerate(graph.exits)}
        for node in backwards:
            self._extend(node, {}, follow=True)
        for one in loops:  # outer loops first: they determine ``left`` of a header
            worth = {i: self.left[loops[i].header] for i in self.nest.chain(one.header)}
            follow = graph.entry in one.nodes
            for node in self._body[one.index]:
                if node != one.header:
                    self._extend(node, worth, follow=follow)

    def exits(self) -> bool:
        """Whether some path ends."""
        return self.left[self.nest.graph.entry] > self._never // 2

    def counts(self, columns: int) -> tuple[int, ...]:
        """Traversals of each edge on a longest path, then its exit; 0 for all other variables."""
        graph = self.nest.graph
        found, iterations = [0] * columns, [0] * len(graph.loops)
        node = graph.entry
        for loop in graph.loops:
            if loop.header == node:
                iterations[loop.index] += self.nest.bounds[loop.index] - 1
        while (edge := self._next[node]) != END:
            found[edge] += 1
            for loops in (
                self._into,
                self._back,
            ):  # the iteration in which the path began is incomplete
                if edge in loops:
                    iterations[loops[edge]] += self.nest.bounds[loops[edge]] - 1
            node = graph.edges[edge].dst
        found[len(graph.edges) + graph.exits.index(node)] = 1
        for loop in graph.loops:
            times = iterations[loop.index] if self.iteration_cost[loop.index] else 0
            for edge in self._iteration(loop) if times else ():
                found[edge] += times
                if edge in self._into:
                    iterations[self._into[edge]] += times * (self.nest.bounds[self._into[edge]] - 1)
        return tuple(found)

    def basis(self) -> SimplexBasis:
        """The rows with these dual values, and the variables that the rows determine.

        A node's row determines its next edge to the end, a loop's row the first edge of its
        iteration that is no such next edge.
        """
        variables, rows = set(self._tight.values()), set(self._tight)
        for loop in self.nest.graph.loops:
            for edge in self._iteration(loop) if self.iteration_cost[loop.index] else ():
                if edge not in variables:
                    variables.add(edge)
                    rows.add(len(self.left) + loop.index)
                    break
        return SimplexBasis(frozenset(variables), frozenset(rows))

    def _iteration(self, loop: SuperLoop) -> Iterator[int]:
        """The edges of the iteration that costs W."""
        node = loop.header
        while True:
            edge = self._around[loop.index][node]
            yield edge
            node = self.nest.graph.edges[edge].dst
            if node == loop.header:
                return

    def _cost(self, edge: int) -> int:
        """The gain of an edge, with the iterations of the loop that it enters."""
        loop = self._into.get(edge)
        more = 0 if loop is None else (self.nest.bounds[loop] - 1) * self.iteration_cost[loop]
        return self.gain[edge] + more

    def _measure(self, loop: SuperLoop) -> None:
        """Compute W of ``loop`` and the iteration that costs W; W of inner loops is known."""
        graph, best = self.nest.graph, dict[int, int]()
        for node in self._body[loop.index]:
            for edge in graph.successors[node]:
                of = self._back.get(edge)
                if of is not None:
                    known = self.gain[edge] if of == loop.index else None
                else:
                    after = best.get(graph.edges[edge].dst)
                    known = None if after is None else self._cost(edge) + after
                if known is not None and (node not in best or known > best[node]):
                    best[node] = known
                    self._around[loop.index][node] = edge
        self.iteration_cost[loop.index] = max(0, best[loop.header])

    def _extend(self, node: int, worth: dict[int, int], *, follow: bool) -> None:
        """Raise the distance of ``node`` by its successors.

        ``worth``: the distance of headers, by loop whose back edges may be taken.
        """
        graph = self.nest.graph
        for edge in graph.successors[node]:
            loop = self._back.get(edge)
            if loop is None:
                known = self._cost(edge) + self.left[graph.edges[edge].dst]
            elif loop in worth:
                known = self.gain[edge] + worth[loop] - self.iteration_cost[loop]
            else:
                continue
            if known > self.left[node]:
                self.left[node], self._tight[node] = known, edge
                if follow:
                    self._next[node] = edge
