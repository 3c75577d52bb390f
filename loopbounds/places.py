"""Which loops the facts of a user speak of."""

from __future__ import annotations

from collections.abc import Sequence

from quoll.errors import FactsError
from quoll.facts import Facts, ListAtMost, LoopFact
from quoll.image import Image
from quoll.places import Place, find_place
from quoll.supergraph import Supergraph

__all__ = ["facts_of_loops", "lists_of_loops"]

_Nest = tuple[list[int], list[int | None]]


def facts_of_loops(
    graph: Supergraph, image: Image, facts: Facts, *, in_part: bool = False
) -> list[tuple[LoopFact, ...]]:
    """The facts of each loop, by loop index, the tightest first.

    A place denotes, in each context of its function, the innermost loop there that has code at
    the place; of a line with code in several nested loops the deepest (a ``for`` line also holds
    code before the loop). Raises FactsError when the place is reached but in no loop, unless
    paths are only parts of executions (``in_part``), which may leave a loop at once; and when two
    lines of one file denote one loop: then the compiler has made it of two, and neither number is
    its bound.
    """
    found: list[list[LoopFact]] = [[] for _ in graph.loops]
    nest = _nest(graph)
    for fact in facts.of(LoopFact):
        place = find_place(image, fact.place, fact.source)
        reached, loops = _loops_at(graph, nest, image, place)
        if reached and not loops and not in_part:
            raise FactsError(
                f"'{fact.place}' is in no loop of its function",
                where=str(fact.source),
                hint="name a line or address inside the loop, such as that of its condition",
            )
        for loop in loops:
            found[loop].append(fact)
    for stated in found:
        _refuse_merged(stated)
    return [tuple(sorted(fs, key=lambda f: f.bound)) for fs in found]


def lists_of_loops(graph: Supergraph, image: Image, facts: Facts) -> dict[int, ListAtMost]:
    """The facts about the lists that loops walk, by loop index; the tightest of each."""
    about = facts.of(ListAtMost)
    places = Facts(tuple(LoopFact(fact.source, fact.place, fact.most) for fact in about))
    stated = facts_of_loops(graph, image, places) if about else []
    by_source = {fact.source: fact for fact in about}
    return {loop: by_source[found[0].source] for loop, found in enumerate(stated) if found}


def _refuse_merged(stated: Sequence[LoopFact]) -> None:
    """Raise FactsError if facts about one loop name different lines of one file."""
    lines: dict[str, LoopFact] = {}
    for fact in stated:
        file, _, line = fact.place.rpartition(":")
        known = lines.setdefault(file, fact) if line.isdecimal() and file else fact
        if known.place != fact.place:
            raise FactsError(
                f"'{known.place}' and '{fact.place}' denote one loop of the program: "
                "the compiler has merged two loops",
                where=str(fact.source),
                hint="state how often the merged loop's header executes, in one fact",
            )


def _loops_at(graph: Supergraph, nest: _Nest, image: Image, place: Place) -> tuple[bool, set[int]]:
    """Whether any code at the place is reached, and the loops it denotes."""
    depth, innermost = nest
    reached = False
    deepest: dict[int, set[int]] = {}  # context -> loops
    covered: dict[tuple[int, int], bool] = {}  # by first address and end of a block
    for number, node in enumerate(graph.nodes):
        block = node.block
        here = covered.get((block.addr, block.end))
        if here is None:
            here = any(place.covers(image, insn.addr) for insn in block.insns)
            covered[block.addr, block.end] = here
        if not here:
            continue
        reached = True
        loop = innermost[number]
        if loop is None or graph.nodes[graph.loops[loop].header].context != node.context:
            continue
        known = deepest.setdefault(node.context, set())
        if known and depth[loop] > max(depth[k] for k in known):
            known.clear()
        if not known or depth[loop] == max(depth[k] for k in known):
            known.add(loop)
    return reached, {loop for loops in deepest.values() for loop in loops}


def _nest(graph: Supergraph) -> _Nest:
    """Depth of each loop, and the innermost loop around each node."""
    depth = [0] * len(graph.loops)
    innermost: list[int | None] = [None] * len(graph.nodes)
    for loop in graph.loops:  # outer loops come first
        depth[loop.index] = 0 if loop.parent is None else depth[loop.parent] + 1
        for node in loop.nodes:
            innermost[node] = loop.index
    return depth, innermost
