"""Building supergraphs: every call site gets its own copy of the callee (VIVU).

Source: Martin, Alt, Wilhelm, Ferdinand, "Analysis of Loops" (1998), without unrolling. Contexts
are made depth first, so that a context's number is above its parent's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quoll.callgraph import refuse_recursion
from quoll.cfg import EdgeKind, Program
from quoll.errors import ControlFlowError, InfeasibleError
from quoll.guidance import NO_GUIDANCE, Guidance
from quoll.image import Image
from quoll.loops import find_loops
from quoll.shape import Shape, shape_of
from quoll.supergraph import Context, Node, SuperEdge, Supergraph, SuperLoop

__all__ = ["expand", "without_edges"]

NAMED = 8  # places named in an error


@dataclass(frozen=True, slots=True)
class _Open:
    """A context whose vertices exist from node ``base`` on; returns lead to ``returns``.

    ``returns`` is None at the root: a return there ends the path.
    """

    index: int
    shape: Shape
    base: int
    returns: tuple[int, ...] | None


@dataclass(slots=True)
class _Draft:
    """A supergraph while it grows."""

    contexts: list[Context] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    edges: list[SuperEdge] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    guidance: Guidance = NO_GUIDANCE


def expand(program: Program, entry: int, image: Image) -> Supergraph:
    """The expansion of ``program`` from the function at ``entry``.

    A path ends where a block exits, and where the entry function returns. Raises
    ControlFlowError when something reachable is unresolved or recursive, when a function cannot
    be made reducible, and when no exit is reachable.
    """
    reached = _reached(program, entry)
    _refuse_unresolved(program, reached)
    refuse_recursion(_part(program, reached), image)
    shapes = {e: shape_of(program.functions[e], image) for e in sorted(reached)}
    draft = _Draft(guidance=program.guidance)
    work = [_enter(draft, Context(None, None, entry), shapes[entry], None)]
    while work:
        here = work.pop()
        calls = _place(draft, here)
        for vertex, callee in reversed(calls):
            work.append(_call(draft, here, vertex, shapes[callee]))
    return _finish(draft, 0, image, ())


def _reached(program: Program, entry: int) -> set[int]:
    reached: set[int] = set()
    pending = [entry]
    while pending:
        function = pending.pop()
        if function not in reached:
            reached.add(function)
            pending.extend(c for b in program.functions[function].blocks for c in b.calls)
    return reached


def _part(program: Program, reached: set[int]) -> Program:
    functions = {e: f for e, f in program.functions.items() if e in reached}
    return Program(functions, program.entries)


def _refuse_unresolved(program: Program, reached: set[int]) -> None:
    addrs = {i.addr for e in reached for b in program.functions[e].blocks for i in b.insns}
    unresolved = [u for u in program.unresolved if u.addr in addrs]
    if not unresolved:
        return
    others = "".join(f"; also {u.where}: {u.reason}" for u in unresolved[1:NAMED])
    more = f"; and {len(unresolved) - NAMED} more" if len(unresolved) > NAMED else ""
    first = unresolved[0]
    raise ControlFlowError(f"{first.reason}{others}{more}", where=first.where, hint=first.hint)


def _enter(draft: _Draft, context: Context, shape: Shape, returns: tuple[int, ...] | None) -> _Open:
    opened = _Open(len(draft.contexts), shape, len(draft.nodes), returns)
    draft.contexts.append(context)
    blocks = shape.cfg.blocks
    draft.nodes.extend(Node(opened.index, blocks[b]) for b in shape.blocks)
    return opened


def _place(draft: _Draft, here: _Open) -> list[tuple[int, int]]:
    """Add the edges of one context; gives the calls to expand, as (vertex, callee)."""
    base, blocks = here.base, here.shape.cfg.blocks
    draft.edges.extend(SuperEdge(base + s, base + d, kind) for s, d, kind in here.shape.edges)
    for vertex, index in enumerate(here.shape.blocks):
        block = blocks[index]
        if block.exits or (block.returns and here.returns is None):
            draft.exits.append(base + vertex)
        if block.returns and here.returns is not None:
            draft.edges.extend(
                SuperEdge(base + vertex, after, EdgeKind.RETURN) for after in here.returns
            )
    return [(v, c) for v in here.shape.callers for c in blocks[here.shape.blocks[v]].calls]


def _call(draft: _Draft, here: _Open, vertex: int, callee: Shape) -> _Open:
    """Open the context of one call and lead into it."""
    block = here.shape.cfg.blocks[here.shape.blocks[vertex]]
    after = tuple(here.base + v for v in here.shape.across[vertex])
    context = Context(here.index, block.last.addr, callee.cfg.entry)
    opened = _enter(draft, context, callee, here.returns if block.tail else after)
    draft.edges.append(SuperEdge(here.base + vertex, opened.base, EdgeKind.CALL))
    return opened


def without_edges(
    graph: Supergraph,
    dead: Iterable[int],
    image: Image | None = None,
    *,
    no_exits: Iterable[int] = (),
    guidance: Guidance | None = None,
) -> Supergraph:
    """``graph`` without the edges at the indices ``dead`` and what only they lead to (rule 4).

    Contexts keep their numbers; nodes and edges are numbered anew, in the same order. ``image``
    names the places that now reach no exit; without it they are bare addresses. No path ends at
    ``no_exits`` any more; ``guidance`` takes the place of the graph's. Raises
    ControlFlowError when no exit is left.
    """
    removed = set(dead)
    kept = [edge for i, edge in enumerate(graph.edges) if i not in removed]
    exits = [n for n in graph.exits if n not in set(no_exits)]
    draft = _Draft(list(graph.contexts), list(graph.nodes), kept, exits, guidance or graph.guidance)
    return _finish(draft, graph.entry, image, graph.excluded)


def _finish(
    draft: _Draft, entry: int, image: Image | None, excluded_before: tuple[str, ...]
) -> Supergraph:
    """Leave out what is not on a path from the entry to an exit; number the rest; find loops."""
    forward = _closure(len(draft.nodes), [entry], ((e.src, e.dst) for e in draft.edges))
    exits = [n for n in draft.exits if forward[n]]
    if not exits and draft.guidance.removed:
        facts = dict.fromkeys(removed.fact for removed in draft.guidance.removed)
        raise InfeasibleError(
            "no end of a path is reachable from here",
            where=_at(image, draft.nodes[entry].block.addr),
            hint=f"without these facts one may be: {'; '.join(facts)}",
        )
    if not exits:
        raise ControlFlowError(
            "no end of a path is reachable from here",
            where=_at(image, draft.nodes[entry].block.addr),
            hint="name the exits: instructions after which control is back in user mode",
        )
    backward = _closure(len(draft.nodes), exits, ((e.dst, e.src) for e in draft.edges))
    keep = [n for n in range(len(draft.nodes)) if forward[n] and backward[n]]
    number = {old: new for new, old in enumerate(keep)}
    edges = tuple(
        SuperEdge(number[e.src], number[e.dst], e.kind)
        for e in draft.edges
        if e.src in number and e.dst in number
    )
    successors: list[list[int]] = [[] for _ in keep]
    predecessors: list[list[int]] = [[] for _ in keep]
    for index, edge in enumerate(edges):
        successors[edge.src].append(index)
        predecessors[edge.dst].append(index)
    return Supergraph(
        tuple(draft.contexts),
        tuple(draft.nodes[n] for n in keep),
        edges,
        tuple(map(tuple, successors)),
        tuple(map(tuple, predecessors)),
        number[entry],
        tuple(number[n] for n in exits),
        _loops(edges, successors, predecessors, number[entry]),
        _excluded(draft, forward, backward, image, excluded_before),
        draft.guidance,
    )


def _closure(size: int, start: list[int], pairs: Iterable[tuple[int, int]]) -> bytearray:
    """Which nodes are reached from ``start`` along ``pairs``."""
    following: list[list[int]] = [[] for _ in range(size)]
    for src, dst in pairs:
        following[src].append(dst)
    reached = bytearray(size)
    pending = list(start)
    while pending:
        node = pending.pop()
        if not reached[node]:
            reached[node] = 1
            pending.extend(following[node])
    return reached


def _loops(
    edges: tuple[SuperEdge, ...],
    successors: list[list[int]],
    predecessors: list[list[int]],
    entry: int,
) -> tuple[SuperLoop, ...]:
    following = [[edges[e].dst for e in out] for out in successors]
    loops = []
    for index, loop in enumerate(find_loops(following, entry)):
        inward = predecessors[loop.header]
        loops.append(
            SuperLoop(
                index,
                loop.header,
                tuple(e for e in inward if edges[e].src not in loop.nodes),
                tuple(e for e in inward if edges[e].src in loop.nodes),
                loop.nodes,
                loop.parent,
            )
        )
    return tuple(loops)


def _excluded(
    draft: _Draft,
    forward: bytearray,
    backward: bytearray,
    image: Image | None,
    before: tuple[str, ...],
) -> tuple[str, ...]:
    """Where control leaves the paths for good: one place per block at which it does."""
    lost = {
        draft.nodes[edge.dst].block.addr
        for edge in draft.edges
        if forward[edge.src] and backward[edge.src] and not backward[edge.dst]
    }
    texts = [
        f"{_at(image, addr)}: no end of a path is reachable from here" for addr in sorted(lost)
    ]
    return tuple(dict.fromkeys([*before, *texts]))


def _at(image: Image | None, addr: int) -> str:
    return image.place(addr) if image else f"0x{addr:08x}"
