"""Supergraphs reduced to the paths from the entry to an exit.

Control that reaches a place without a reachable exit has not left the paths: it stays there for
ever, or the path ends there although no statement says so. The first block of such a place stays in
the graph as one of its ``stops``, for facts and values to exclude it; a graph with a stop gets no
bound (rule 33). A place is no stop if a fact excludes the continuation, or if values do and nothing
iterates: an instruction all of whose successors are excluded is never executed.

A loop that does nothing and has no way out is one of the ``halts`` instead: it calls nothing,
changes registers only, and may wait for interrupts. A path ends where it enters such a loop, as
nothing of the program follows (rule 53); the report lists that. The code that leads there is on the
path, also if it does nothing: interrupts may be masked in it. A graph whose paths all end so has no
end of a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from quoll.cfg.cfg import EdgeKind
from quoll.errors import PATH_END, ControlFlowError, InfeasibleError, MissingKind, MissingStatement
from quoll.facts.applied import NO_GUIDANCE, AppliedGuidance
from quoll.graph.components import components
from quoll.image.image import Image
from quoll.inlining.super_loops import super_loops
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperNode

__all__ = [
    "SupergraphDraft",
    "nodes_to_cycles",
    "refuse_stops",
    "surviving_nodes",
    "trimmed",
    "without_edges",
]

NAMED = 8  # places named in an error
NO_END = "from here control gets to no end of a path"


@dataclass(slots=True)
class SupergraphDraft:
    """A supergraph while it grows."""

    contexts: list[Context] = field(default_factory=list)
    nodes: list[SuperNode] = field(default_factory=list)
    edges: list[SuperEdge] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    guidance: AppliedGuidance = NO_GUIDANCE
    cut: set[int] = field(default_factory=set)  # nodes that lost a successor to a fact
    stops: dict[int, frozenset[int]] = field(default_factory=dict)
    halts: dict[int, frozenset[int]] = field(default_factory=dict)
    left_out: Mapping[int, frozenset[int]] = field(default_factory=dict)


def without_edges(
    graph: Supergraph,
    dead: Iterable[int],
    image: Image | None = None,
    *,
    no_exits: Iterable[int] = (),
    guidance: AppliedGuidance | None = None,
) -> Supergraph:
    """``graph`` without the edges at the indices ``dead`` and the parts only they reach (rule 4).

    Contexts keep their numbers; nodes and edges are renumbered in the same order. ``image`` names
    places in errors; without it they are bare addresses. ``no_exits`` are exits no longer.
    ``guidance`` replaces the graph's if facts exclude the edges; without it values exclude them.
    Raises ControlFlowError when no exit is left.
    """
    removed = set(dead)
    remaining = [edge for i, edge in enumerate(graph.edges) if i not in removed]
    exits = [n for n in graph.exits if n not in set(no_exits)]
    draft = SupergraphDraft(
        list(graph.contexts),
        list(graph.nodes),
        remaining,
        exits,
        guidance or graph.guidance,
        stops=dict(graph.stops),
        halts=dict(graph.halts),
        left_out=_with_left_out(graph.left_out, graph.nodes, (graph.edges[i] for i in removed)),
    )
    if guidance is not None:
        draft.cut = {graph.edges[i].src for i in removed} | set(no_exits)
    return trimmed(draft, graph.entry, image, lambda lost: nodes_to_cycles(lost, _pairs(draft)))


def surviving_nodes(whole: Supergraph, trimmed_graph: Supergraph) -> tuple[int, ...] | None:
    """The number in ``whole`` of each node of ``trimmed_graph``, a trimmed ``whole``.

    None if it has other nodes.
    """
    number = {id(node): n for n, node in enumerate(whole.nodes)}
    found = [number.get(id(node)) for node in trimmed_graph.nodes]
    if len(number) < len(whole.nodes):
        return None
    surviving = tuple(n for n in found if n is not None)
    return surviving if len(surviving) == len(found) else None


def trimmed(
    draft: SupergraphDraft,
    entry: int,
    image: Image | None,
    stays: Callable[[set[int]], set[int]] | None = None,
) -> Supergraph:
    """Leave out all but the paths from the entry to an exit; renumber the rest; find loops.

    Of the nodes from which no exit is reachable, ``stays`` selects those where control may stay;
    None: all. Raises as ``without_edges`` does.
    """
    forward = _forward(draft, entry)
    exits = [n for n in dict.fromkeys(draft.exits) if forward[n] and n not in draft.halts]
    if not exits and draft.guidance.removed:
        facts = dict.fromkeys(removed.fact for removed in draft.guidance.removed)
        raise InfeasibleError(
            "no end of a path is reachable from here",
            where=_at(image, draft.nodes[entry].block.addr),
            hint=f"without these facts one may be: {'; '.join(map(str, facts))}",
        )
    if not exits:
        raise ControlFlowError(
            "no end of a path is reachable from here",
            where=_at(image, draft.nodes[entry].block.addr),
            hint="name the exits: instructions after which control is back in user mode",
        )
    before = {n: causes for n, causes in draft.stops.items() if forward[n]}
    idle = _idle(draft)
    halts = {n: causes for n, causes in draft.halts.items() if forward[n]}
    halts |= _entered(draft, forward, idle, entry)
    backward = _backward(draft, [*exits, *before, *halts])
    found = _stops(draft, forward, backward, idle, stays)
    stops = found | before
    left = [n for n in range(len(draft.nodes)) if forward[n] and (backward[n] or n in found)]
    surviving = [n for n in left if n not in idle or n in halts]
    number = {old: new for new, old in enumerate(surviving)}
    edges = tuple(
        SuperEdge(number[e.src], number[e.dst], e.kind)
        for e in draft.edges
        if e.src in number and e.dst in number and e.src not in found and e.src not in idle
    )
    contexts, nodes = tuple(draft.contexts), tuple(draft.nodes[n] for n in surviving)
    successors: list[list[int]] = [[] for _ in surviving]
    predecessors: list[list[int]] = [[] for _ in surviving]
    for index, edge in enumerate(edges):
        successors[edge.src].append(index)
        predecessors[edge.dst].append(index)
    return Supergraph(
        contexts,
        nodes,
        edges,
        tuple(map(tuple, successors)),
        tuple(map(tuple, predecessors)),
        number[entry],
        tuple(number[n] for n in (*exits, *sorted(halts))),
        super_loops(edges, successors, predecessors, number[entry]),
        {number[n]: causes for n, causes in sorted(stops.items())},
        draft.guidance,
        halts={number[n]: causes for n, causes in halts.items()},
        left_out={
            number[node]: addresses
            for node, addresses in _with_left_out(
                draft.left_out,
                draft.nodes,
                (e for e in draft.edges if e.dst not in number or e.src in idle or e.src in found),
            ).items()
            if node in number
        },
    )


def _with_left_out(
    known: Mapping[int, frozenset[int]], nodes: Sequence[SuperNode], edges: Iterable[SuperEdge]
) -> dict[int, frozenset[int]]:
    """``known``, extended by the targets of the omitted ``edges``."""
    found = dict(known)
    for edge in edges:
        if edge.kind is EdgeKind.FALLTHROUGH:
            continue
        found[edge.src] = found.get(edge.src, frozenset()) | {nodes[edge.dst].block.addr}
    return found


def _forward(draft: SupergraphDraft, entry: int) -> bytearray:
    """Whether each node is reachable from ``entry``."""
    following: list[list[int]] = [[] for _ in draft.nodes]
    for edge in draft.edges:
        following[edge.src].append(edge.dst)
    return _reached(following, [entry])


def _backward(draft: SupergraphDraft, exits: list[int]) -> bytearray:
    """Whether each node reaches one of ``exits``."""
    before: list[list[int]] = [[] for _ in draft.nodes]
    for edge in draft.edges:
        before[edge.dst].append(edge.src)
    return _reached(before, exits)


def _reached(following: Sequence[Sequence[int]], starts: Sequence[int]) -> bytearray:
    reached = bytearray(len(following))
    pending = list(starts)
    while pending:
        node = pending.pop()
        if not reached[node]:
            reached[node] = 1
            pending.extend(following[node])
    return reached


def _stops(
    draft: SupergraphDraft,
    forward: bytearray,
    backward: bytearray,
    idle: set[int],
    stays: Callable[[set[int]], set[int]] | None,
) -> dict[int, frozenset[int]]:
    """The nodes where control leaves the paths for good, except places that facts excuse.

    Idle nodes are no such places.

    With each, the addresses of the blocks where control then stays (rule 53).
    """
    lost = {n for n, there in enumerate(forward) if there and not backward[n]} - idle
    if not lost:
        return {}
    if draft.cut:
        excused = _backward(draft, sorted(draft.cut))
        lost = {n for n in lost if not excused[n]}
    there = lost if stays is None else stays(lost)
    stops = {e.dst for e in draft.edges if forward[e.src] and backward[e.src] and e.dst in there}
    return _last_blocks(draft, sorted(stops), there)


def _idle(draft: SupergraphDraft) -> set[int]:
    """The nodes of loops that do nothing and have no way out; no fact excludes one."""
    onward: dict[int, list[int]] = {}
    for src, dst in _pairs(draft):
        onward.setdefault(src, []).append(dst)
    quiet = {n for n in onward if draft.nodes[n].block.does_nothing and n not in draft.cut}
    found: set[int] = set()
    for members in components(quiet, lambda n: (m for m in onward[n] if m in quiet)):
        loop = set(members)
        if all(loop.issuperset(onward[n]) for n in loop):
            found |= loop
    return found | _first_iterations(draft, found, {n: onward[n] for n in quiet - found})


def _first_iterations(
    draft: SupergraphDraft, loops: set[int], onward: dict[int, list[int]]
) -> set[int]:
    """The nodes of ``onward`` that are unrolled first iterations of ``loops``."""
    blocks, found = {id(draft.nodes[n].block) for n in loops}, set[int]()
    peeled = {n for n in onward if id(draft.nodes[n].block) in blocks}
    while more := {n for n in peeled - found if (loops | found).issuperset(onward[n])}:
        found |= more
    return found


def _entered(
    draft: SupergraphDraft, forward: bytearray, idle: set[int], entry: int
) -> dict[int, frozenset[int]]:
    """The idle nodes where control enters them, each with its address."""
    found = {entry} & idle
    found |= {e.dst for e in draft.edges if forward[e.src] and e.src not in idle and e.dst in idle}
    return {n: frozenset({draft.nodes[n].block.addr}) for n in found}


def _last_blocks(
    draft: SupergraphDraft, stops: Sequence[int], there: set[int]
) -> dict[int, frozenset[int]]:
    """By stop, the addresses of the blocks in ``there`` where control enters its last component."""
    onward: dict[int, list[int]] = {n: [] for n in there}
    for src, dst in _pairs(draft):
        if src in onward and dst in onward:
            onward[src].append(dst)
    found: dict[int, frozenset[int]] = {}
    for members in components(stops, onward.__getitem__):
        inside = set(members)
        below = [found[n] for m in members for n in onward[m] if n not in inside]
        last = frozenset({draft.nodes[members[0]].block.addr})
        found |= dict.fromkeys(members, frozenset().union(*below) if below else last)
    return {n: found[n] for n in stops}


def _pairs(draft: SupergraphDraft) -> Iterator[tuple[int, int]]:
    return ((edge.src, edge.dst) for edge in draft.edges)


def nodes_to_cycles(nodes: set[int], edges: Iterable[tuple[int, int]]) -> set[int]:
    """The members of ``nodes`` from which ``edges`` between them lead into a cycle."""
    onward = dict.fromkeys(nodes, 0)
    before: dict[int, list[int]] = {n: [] for n in nodes}
    for src, dst in edges:
        if src in onward and dst in onward:
            onward[src] += 1
            before[dst].append(src)
    pending = [n for n, count in onward.items() if count == 0]
    while pending:
        node = pending.pop()
        del onward[node]
        for source in before[node]:
            onward[source] -= 1
            if onward[source] == 0:
                pending.append(source)
    return set(onward)


def refuse_stops(graph: Supergraph, image: Image) -> None:
    """Raise ControlFlowError where control may reach places from which no path ends.

    It names the places where control stays; the code that only leads there needs no fact.
    """
    if not graph.stops:
        return
    last = sorted(frozenset().union(*graph.stops.values()))
    first, *others = map(image.place, last)
    ways = {graph.nodes[n].block.addr for n in graph.stops} - set(last)
    also = "".join(f"; also {place}" for place in others[: NAMED - 1])
    more = f"; and {len(others) - NAMED + 1} more" if len(others) >= NAMED else ""
    entry = image.place(graph.nodes[graph.entry].block.addr)
    by = f" by way of {image.place(min(ways))}" if ways else ""
    by += f" and {len(ways) - 1} other{'s' if len(ways) > 2 else ''}" if len(ways) > 1 else ""
    raise ControlFlowError(
        f"control gets here from {entry}{by}, but from here to no end of a path{also}{more}",
        where=first,
        hint="if the path ends here, state it: path must end at PLACE, or --end PLACE; for all "
        "endless loops that only wait: path must end at every jump to itself; "
        "if control never gets here: ignore PLACE",
        missing=[
            MissingStatement(stop, MissingKind.ENDS, NO_END, PATH_END, PATH_END) for stop in last
        ],
    )


def _at(image: Image | None, addr: int) -> str:
    return image.place(addr) if image else f"0x{addr:08x}"
