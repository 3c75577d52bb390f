"""Supergraphs with shared contexts, taken apart: what a call of another part leaves behind.

    summaries(program)    per function what its callers can count on when it has returned
    pieces(graph)         every part as a graph of its own, with an edge past each call that
                          leaves it; ``passed`` of these edges gives the summary
    activation(graph)     one call of a function as a graph of its own, with all that it calls

A stage that cannot match calls with returns works on pieces: it loses what the callee does, and
what the callers of a part have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from quoll.arm.status import switches_mode
from quoll.cfg.cfg import EdgeKind, Program
from quoll.facts.applied import Replacement
from quoll.facts.contract import Contract
from quoll.graph.loops import find_loops
from quoll.inlining.supergraph import Context, Node, SuperEdge, Supergraph, SuperLoop, parts_of

__all__ = [
    "ContextPart",
    "PartStep",
    "activation",
    "loops_of_parts",
    "pieces",
    "steps_of_parts",
    "steps_over_parts",
    "summaries",
]


@dataclass(frozen=True, slots=True)
class PartStep:
    """From the node ``call``, which calls into another part, to ``after``, where that returns."""

    call: int
    after: int
    callee: int  # the context that heads the other part


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A part as a graph; ``nodes`` and ``loops`` are the indices in the whole."""

    graph: Supergraph
    nodes: tuple[int, ...]
    loops: tuple[int, ...]

    def asked(self, loops: Set[int]) -> frozenset[int]:
        """Those of ``loops``, indices in the whole, that are here, as indices here."""
        return frozenset(here for here, loop in enumerate(self.loops) if loop in loops)


def summaries(program: Program) -> Mapping[int, Replacement]:
    """What each function leaves: the registers that it is known to give back, and the mode.

    It is given back where nothing that the function may call has an instruction that changes it.
    """
    changes = {
        entry
        for entry, cfg in program.functions.items()
        if any(switches_mode(i) for b in cfg.blocks for i in b.insns)
    }
    while True:
        more = {
            entry
            for entry, cfg in program.functions.items()
            if entry not in changes and any(c in changes for b in cfg.blocks for c in b.calls)
        }
        if not more:
            break
        changes |= more
    nothing = Contract(frozenset())
    left = {entry: program.left.get(entry, nothing) for entry in program.functions}
    return {
        entry: Replacement(
            0, False, None, known.preserved, entry not in changes, stores=known.stores
        )
        for entry, known in left.items()
    }


def steps_over_parts(graph: Supergraph) -> list[PartStep]:
    """The calls that leave their part and come back, in the order of their return edges."""
    steps = {
        PartStep(edge.call, edge.dst, graph.part_of(edge.src)): None
        for edge in graph.edges
        if edge.call is not None
    }
    return list(steps)


def pieces(graph: Supergraph) -> list[ContextPart]:
    """The parts that are entered, by the contexts that head them."""
    steps: dict[int, list[PartStep]] = {}
    for step in steps_over_parts(graph):
        steps.setdefault(graph.part_of(step.call), []).append(step)
    starts = {graph.part_of(graph.entry): graph.entry}
    members: dict[int, list[int]] = {}
    for edge in graph.edges:
        if edge.kind is EdgeKind.CALL and graph.part_of(edge.src) != graph.part_of(edge.dst):
            starts[graph.part_of(edge.dst)] = edge.dst
    for node in range(len(graph.nodes)):
        members.setdefault(graph.part_of(node), []).append(node)
    contexts = tuple(replace(c, others=()) for c in graph.contexts)
    return [
        _piece(
            graph,
            contexts,
            tuple(graph.nodes[n] for n in members[part]),
            members[part],
            start,
            steps.get(part, []),
        )
        for part, start in sorted(starts.items())
    ]


def activation(graph: Supergraph, context: int, most: int) -> ContextPart | None:
    """The call of a context, of a graph without shared ones; None for the root.

    Also where it has more than ``most`` nodes, or is entered elsewhere than at its function.
    """
    if graph.contexts[context].parent is None:
        return None
    inside, pending, members = list[int](), [context], list[int]()
    while pending:
        inside.append(pending.pop())
        members += graph.nodes_in[inside[-1]]
        pending += graph.called_in[inside[-1]]
        if len(members) > most:
            return None
    number = {old: new for new, old in enumerate(inside)}
    starts = {
        graph.edges[e].dst
        for n in members
        for e in graph.predecessors[n]
        if graph.nodes[graph.edges[e].src].context not in number
    }
    if len(starts) != 1:
        return None
    called = (graph.contexts[c] for c in inside[1:])
    contexts = (
        replace(graph.contexts[context], parent=None, call_site=None),
        *(replace(c, parent=number[c.parent]) for c in called if c.parent is not None),
    )
    members.sort()
    nodes = tuple(replace(graph.nodes[n], context=number[graph.nodes[n].context]) for n in members)
    return _piece(graph, contexts, nodes, members, starts.pop(), [])


def _piece(
    graph: Supergraph,
    contexts: tuple[Context, ...],
    nodes: tuple[Node, ...],
    members: list[int],
    start: int,
    steps: list[PartStep],
) -> ContextPart:
    """Of nodes of the graph, which are ``nodes`` of ``contexts`` in the piece."""
    number = {node: i for i, node in enumerate(members)}
    kept = [
        (i, graph.edges[i])
        for node in members
        for i in graph.successors[node]
        if graph.edges[i].dst in number
    ]
    edges = [SuperEdge(number[e.src], number[e.dst], e.kind) for _, e in kept]
    crossings: dict[int, tuple[Replacement, ...]] = {
        len(kept) + i: (graph.summaries[graph.contexts[step.callee].function],)
        for i, step in enumerate(steps)
    }
    crossings |= {new: passed for new, (old, _) in enumerate(kept) if (passed := graph.passed(old))}
    edges += [SuperEdge(number[s.call], number[s.after], EdgeKind.ACROSS) for s in steps]
    successors: list[list[int]] = [[] for _ in members]
    predecessors: list[list[int]] = [[] for _ in members]
    for index, edge in enumerate(edges):
        successors[edge.src].append(index)
        predecessors[edge.dst].append(index)
    loops = loops_of_parts(contexts, nodes, edges, predecessors, number[start])
    return ContextPart(
        Supergraph(
            contexts,
            nodes,
            tuple(edges),
            tuple(map(tuple, successors)),
            tuple(map(tuple, predecessors)),
            number[start],
            tuple(number[n] for n in members if n in graph.exit_nodes),
            loops,
            crossings=crossings,
        ),
        tuple(members),
        tuple(graph.loop_at[members[loop.header]] for loop in loops),
    )


def steps_of_parts(
    contexts: tuple[Context, ...], nodes: Sequence[Node], edges: Sequence[SuperEdge], entry: int
) -> dict[int, tuple[int, dict[int, list[int]]]]:
    """Per part its entry node, and the steps inside it: node -> nodes, in the order of edges.

    Parts are known by the contexts that head them; those that are never entered are left out.
    """
    part = parts_of(contexts)
    of = [part[node.context] for node in nodes]
    parts: dict[int, tuple[int, dict[int, list[int]]]] = {of[entry]: (entry, {})}
    for edge in edges:
        if edge.kind is EdgeKind.CALL and of[edge.src] != of[edge.dst]:
            parts.setdefault(of[edge.dst], (edge.dst, {}))
    for node, owner in enumerate(of):
        if owner in parts:
            parts[owner][1][node] = []
    for edge in edges:
        src = edge.src if edge.call is None else edge.call
        if of[src] == of[edge.dst] and of[src] in parts:
            following = parts[of[src]][1][src]
            if edge.call is None or edge.dst not in following:
                following.append(edge.dst)
    return dict(sorted(parts.items()))


def loops_of_parts(
    contexts: tuple[Context, ...],
    nodes: Sequence[Node],
    edges: Sequence[SuperEdge],
    predecessors: Sequence[Sequence[int]],
    entry: int,
) -> tuple[SuperLoop, ...]:
    """All loops, part by part, outer ones before those inside them.

    The plain graph has cycles that no execution runs: into a shared context from one call, back to
    another, and from there to the first. A part has none of them, because a call that leaves it is
    one step from the caller to where it returns.
    """
    loops: list[SuperLoop] = []
    for start, steps in steps_of_parts(contexts, nodes, edges, entry).values():
        members = list(steps)
        number = {node: i for i, node in enumerate(members)}
        following = [[number[dst] for dst in steps[node]] for node in members]
        first = len(loops)
        for loop in find_loops(following, number[start]):
            inside = frozenset(members[i] for i in loop.nodes)
            header = members[loop.header]
            inward = predecessors[header]
            backs = tuple(e for e in inward if _origin(edges[e]) in inside)
            loops.append(
                SuperLoop(
                    len(loops),
                    header,
                    tuple(e for e in inward if e not in backs),
                    backs,
                    inside,
                    None if loop.parent is None else first + loop.parent,
                )
            )
    return tuple(loops)


def _origin(edge: SuperEdge) -> int:
    return edge.src if edge.call is None else edge.call
