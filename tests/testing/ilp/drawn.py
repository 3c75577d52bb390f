"""Small supergraphs drawn by hand: nodes by number, loops found from their headers."""

from __future__ import annotations

from collections.abc import Sequence

from ilp.constraints.constraint import Constraint
from loopbounds.proof.bound import LoopBound
from pipeline.costs import CostCause, Costs
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Block, EdgeKind
from quoll.facts.count_facts import AtMostFact, ConflictFact, ConsistentFact
from quoll.facts.fact import FactSource
from quoll.graph.natural_loops import find_loops
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperLoop, SuperNode
from tests.testing.ilp.programs import insn, loop_bounds

__all__ = ["bounded", "conflict", "consistent", "costs", "draw", "most"]

T, C, R = EdgeKind.TAKEN, EdgeKind.CALL, EdgeKind.RETURN


def draw(
    edges: Sequence[tuple[int, int] | tuple[int, int, EdgeKind]],
    exits: Sequence[int],
    contexts: Sequence[int] = (),
    functions: Sequence[tuple[int | None, int]] = ((None, 0x1000),),
    returns: Sequence[int] = (),
) -> Supergraph:
    """A graph with entry 0, from node numbers, edges and contexts.

    ``contexts[n]`` is the context of node n (0 beyond the list), and ``functions`` gives (parent,
    function) per context. Block n is at function + 0x10 * n, except that the first block of each
    context is at its function.
    """
    size = 1 + max(max(e[0], e[1]) for e in edges)
    of = [contexts[n] if n < len(contexts) else 0 for n in range(size)]
    nodes = []
    for n in range(size):
        function = functions[of[n]][1]
        addr = function if of.index(of[n]) == n else function + 0x10 * n
        flow = ControlFlow.EXCEPTION_RETURN if n in exits else ControlFlow.NEXT
        nodes.append(
            SuperNode(of[n], Block(n, (insn(addr, flow),), returns=n in returns, exits=n in exits))
        )
    made = tuple(SuperEdge(e[0], e[1], e[2] if len(e) == 3 else T) for e in edges)
    successors = [[i for i, e in enumerate(made) if e.src == n] for n in range(size)]
    predecessors = [[i for i, e in enumerate(made) if e.dst == n] for n in range(size)]
    loops = []
    for index, loop in enumerate(find_loops([[made[e].dst for e in s] for s in successors], 0)):
        into = predecessors[loop.header]
        loops.append(
            SuperLoop(
                index,
                loop.header,
                tuple(e for e in into if made[e].src not in loop.nodes),
                tuple(e for e in into if made[e].src in loop.nodes),
                loop.nodes,
                loop.parent,
            )
        )
    return Supergraph(
        tuple(Context(p, None if p is None else 0x10, f) for p, f in functions),
        tuple(nodes),
        made,
        tuple(map(tuple, successors)),
        tuple(map(tuple, predecessors)),
        0,
        tuple(exits),
        tuple(loops),
    )


def costs(graph: Supergraph, cycles: dict[int, int]) -> Costs:
    """Cycles of nodes by number, all issue; edges cost nothing."""
    none = (0,) * len(CostCause)
    nodes = tuple((cycles.get(n, 0), *none[1:]) for n in range(len(graph.nodes)))
    return Costs(nodes, (none,) * len(graph.edges))


def bounded(graph: Supergraph, *bounds: int) -> tuple[LoopBound, ...]:
    """One bound per loop, outer ones first."""
    assert len(bounds) == len(graph.loops)
    return loop_bounds(bounds)


def conflict(a: int, b: int, function: int, line: int = 1) -> Constraint:
    """Nodes that conflict in a function."""
    fact = ConflictFact(FactSource("my.facts", line, ""), f"n{a}", f"n{b}", hex(function))
    return Constraint(fact, frozenset({a}), frozenset({b}), function, None)


def consistent(a: int, b: int, function: int, line: int = 1) -> Constraint:
    """Nodes that execute equally often in a function."""
    fact = ConsistentFact(FactSource("my.facts", line, ""), f"n{a}", f"n{b}", hex(function))
    return Constraint(fact, frozenset({a}), frozenset({b}), function, None)


def most(a: int, count: int, function: int | None = None, line: int = 1) -> Constraint:
    """A node that executes at most ``count`` times."""
    where = None if function is None else hex(function)
    fact = AtMostFact(FactSource("my.facts", line, ""), f"n{a}", count, where)
    return Constraint(fact, frozenset({a}), frozenset(), function, None)
