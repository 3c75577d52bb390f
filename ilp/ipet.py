"""IPET: the longest path through a supergraph as an integer program.

Li and Malik, "Performance analysis of embedded software using implicit path enumeration" (DAC
1995), over the virtually inlined graph. The variables are x_e, the traversals of each edge, and
end_n, whether the path ends after exit n; the count of a node is the sum of its incoming edges,
plus 1 for the entry. The IPET objective folds costs of nodes into the edges that lead to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ilp.constraints.constraint import Constraint
from ilp.constraints.exclusion import ProvedRow
from ilp.constraints.flowfacts import FlowCounts, constraint_rows
from ilp.constraints.instance import CallStructure
from ilp.constraints.limited_calls import OptionVariables
from ilp.constraints.nest import LoopNest
from ilp.constraints.parameters import VisitLimit
from ilp.constraints.write_backs import ExcessWriteBacks
from ilp.solvers.integer_program import IntegerProgram, LinearRow
from loopbounds.execution.counts import ExecutionCounts
from pipeline.costs import Costs
from quoll.inlining.supergraph import CountedEdges, Supergraph, SuperLoop

__all__ = ["Ipet", "build_ipet", "total_row"]


@dataclass(frozen=True, slots=True)
class Ipet:
    """An integer program and the meaning of its variables.

    Variable e is the edge e; after the edges come the exits, in the order of ``graph.exits``, then
    ``excess``, if any, the variables of ``options``, and the auxiliary ones of user constraints.
    The rows of nodes come first, then the rows of loops, then the row of ``excess``.
    """

    nest: LoopNest
    calls: CallStructure
    model: IntegerProgram
    options: OptionVariables
    execution: ExecutionCounts | None = None  # the concrete execution
    excess: ExcessWriteBacks | None = None

    @property
    def graph(self) -> Supergraph:
        """The graph whose paths are counted."""
        return self.nest.graph

    def edge_counts(self, values: Sequence[int]) -> tuple[int, ...]:
        """Traversals per edge."""
        return tuple(values[: len(self.graph.edges)])

    def node_counts(self, values: Sequence[int]) -> tuple[int, ...]:
        """Executions per node."""
        counts = [0] * len(self.graph.nodes)
        counts[self.graph.entry] = 1
        for edge, count in zip(self.graph.edges, values, strict=False):
            counts[edge.dst] += count
        return tuple(counts)

    def completed(self, values: Sequence[int]) -> tuple[int, ...]:
        """Counts with the least ``excess``; other variables are left as they are."""
        if self.excess is None:
            return tuple(values)
        at = self.excess.variable
        return (*values[:at], max(0, self.excess.needed(values)), *values[at + 1 :])

    def last_node(self, values: Sequence[int]) -> int:
        """The exit at the end of the path."""
        exits = values[len(self.graph.edges) :]
        return next(n for n, end in zip(self.graph.exits, exits, strict=False) if end)


def build_ipet(
    graph: Supergraph,
    costs: Costs,
    bounds: Sequence[int],
    constraints: Iterable[Constraint] = (),
    totals: Mapping[int, int] = MappingProxyType({}),
    limits: Sequence[VisitLimit] = (),
    execution: ExecutionCounts | None = None,
    exclusions: Sequence[ProvedRow] = (),
) -> Ipet:
    """The program for ``graph``; ``bounds`` has one number per loop (rule 18).

    ``totals``: by loop, header executions per entry of its enclosing loop; ``limits``: executions
    of nodes on the whole path; ``execution``: the concrete execution, if known; ``exclusions``:
    edges that no execution takes together.

    Raises ControlFlowError if the loops do not cover the cycles of the graph.
    """
    nest = LoopNest.build(graph, bounds)
    calls = CallStructure(nest)
    counts = FlowCounts(graph)
    exits = {n: len(graph.edges) + position for position, n in enumerate(graph.exits)}
    rows = [flow_row(graph, node, exits.get(node)) for node in range(len(graph.nodes))]
    rows += [loop_row(graph, loop, bounds[loop.index]) for loop in graph.loops]
    excess = ExcessWriteBacks.of(nest, costs.pool, len(graph.edges) + len(graph.exits))
    rows += [] if excess is None else [excess.row]
    rows += [total_row(graph, graph.loops[loop], total) for loop, total in totals.items()]
    rows += [visits_row(graph, limit) for limit in limits]
    rows += [counter_row(number, one) for number, one in enumerate(graph.counted)]
    rows += [row for number, one in enumerate(exclusions) for row in one.rows(number, bounds)]
    names = edge_names(graph) + [f"end.{node_name(graph, n)}" for n in graph.exits]
    upper = nest.most_edges() + [1] * len(graph.exits)
    if execution is not None:
        most = (*execution.edges, *(int(n in execution.ends) for n in graph.exits))
        upper = list(map(min, upper, most))
    if excess is not None:
        names.append("excess.write-backs")
        upper.append(excess.most)
    options = OptionVariables(nest, costs.limited, len(names))
    names += options.names
    upper += options.upper
    rows += options.rows()
    for number, constraint in enumerate(constraints):
        fact_rows = constraint_rows(calls, counts, constraint, number, len(names), options.counted)
        rows += fact_rows.rows
        names += fact_rows.names
        upper += [1] * len(fact_rows.names)
    node_cycles = [sum(causes) for causes in costs.nodes]
    objective = [
        sum(causes) + node_cycles[edge.dst]
        for edge, causes in zip(graph.edges, costs.edges, strict=True)
    ]
    objective += [0] * (len(names) - len(objective))
    if excess is not None:
        objective[excess.variable] = -excess.cycles
    objective[options.first : options.first + len(options.objective)] = options.objective
    constant = sum(costs.start) + node_cycles[graph.entry]
    model = IntegerProgram(tuple(names), tuple(upper), tuple(objective), constant, tuple(rows))
    return Ipet(nest, calls, model, options, execution, excess)


def flow_row(graph: Supergraph, node: int, end: int | None) -> LinearRow:
    """The flow into a node leaves it, or ends the path there (variable ``end``, for an exit).

        sum(x_e : e out of n) + end_n - sum(x_e : e into n) = [n is the entry]

    The sum over all nodes states that the path ends exactly once.
    """
    terms: dict[int, int] = {}
    for e in graph.successors[node]:
        terms[e] = terms.get(e, 0) + 1
    for e in graph.predecessors[node]:
        terms[e] = terms.get(e, 0) - 1
    if end is not None:
        terms[end] = 1
    return LinearRow(
        f"flow.{node_name(graph, node)}",
        "flow",
        nonzero(terms),
        equal=True,
        rhs=int(node == graph.entry),
    )


def loop_row(graph: Supergraph, loop: SuperLoop, b: int) -> LinearRow:
    """Header executions per entry (rule 18); a start inside the loop is an entry.

    sum(x_e : e back edge) <= (b - 1) * sum(x_e : e entry edge)
                              + b * [the path starts in the loop] - [it starts at the header]
    """
    terms = dict.fromkeys(loop.backs, 1)
    terms |= dict.fromkeys(loop.entries, 1 - b)
    rhs = b * (graph.entry in loop.nodes) - (graph.entry == loop.header)
    return LinearRow(
        f"loop{loop.index}.{node_name(graph, loop.header)}",
        f"loop bound {b} at {graph.nodes[loop.header].block.addr:#x}",
        nonzero(terms),
        equal=False,
        rhs=rhs,
    )


def total_row(graph: Supergraph, loop: SuperLoop, t: int) -> LinearRow:
    """Header executions per entry of the enclosing loop (triangular nests).

    sum(x_e : e into the header) <= t * sum(x_e : e entry edge of the enclosing loop)
                                    + t * [the path starts in that loop] - [at this header]
    """
    assert loop.parent is not None
    outer = graph.loops[loop.parent]
    terms = dict.fromkeys((*loop.entries, *loop.backs), 1)
    for e in outer.entries:
        terms[e] = terms.get(e, 0) - t
    rhs = t * (graph.entry in outer.nodes) - (graph.entry == loop.header)
    return LinearRow(
        f"total{loop.index}.{node_name(graph, loop.header)}",
        f"total {t} per entry of the loop at {graph.nodes[outer.header].block.addr:#x}",
        nonzero(terms),
        equal=False,
        rhs=rhs,
    )


def visits_row(graph: Supergraph, limit: VisitLimit) -> LinearRow:
    """Executions on the path: sum(x_e : e into a node) <= most - [the path starts at a node]."""
    first = min(limit.nodes)
    terms: dict[int, int] = {}
    for n in limit.nodes:
        for e in graph.predecessors[n]:
            terms[e] = terms.get(e, 0) + 1
    return LinearRow(
        f"visits.{node_name(graph, first)}",
        f"at most {limit.most} executions at {graph.nodes[first].block.addr:#x}",
        nonzero(terms),
        equal=False,
        rhs=limit.most - (graph.entry in limit.nodes),
    )


def counter_row(number: int, one: CountedEdges) -> LinearRow:
    """Traversals between tests: sum(x_e : e counted) <= N * (1 + sum(x_e : e reset))."""
    terms = dict.fromkeys(sorted(one.counted), 1) | dict.fromkeys(sorted(one.reset), -one.most)
    return LinearRow(
        f"counter{number}.{one.counter:x}",
        f"at most {one.most} counts in the word at {one.counter:#x} before a test for interrupts",
        nonzero(terms),
        equal=False,
        rhs=one.most,
    )


def nonzero(terms: dict[int, int]) -> tuple[tuple[int, int], ...]:
    """The terms of a row, without zero coefficients."""
    return tuple((j, a) for j, a in terms.items() if a)


def node_name(graph: Supergraph, node: int) -> str:
    """``n9.c4.8010``: node 9, the block at 0x8010 in context 4."""
    at = graph.nodes[node]
    return f"n{node}.c{at.context}.{at.block.addr:x}"


def edge_names(graph: Supergraph) -> list[str]:
    """``x17.c4.8010.8024``: edge 17, in context 4, between the blocks at 0x8010 and 0x8024."""
    nodes = [(node.context, f"{node.block.addr:x}") for node in graph.nodes]
    return [
        f"x{i}.c{nodes[e.src][0]}.{nodes[e.src][1]}.{nodes[e.dst][1]}"
        for i, e in enumerate(graph.edges)
    ]
