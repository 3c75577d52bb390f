"""The loops that the user's facts name."""

from __future__ import annotations

from collections.abc import Sequence

from loopbounds.written_loops import headers_of
from quoll.cfg.cfg import Block
from quoll.errors import FactsError
from quoll.facts import Facts, FactSource, ListAtMostFact, LoopFact
from quoll.facts.fact_places import FactPlace, find_place
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph

__all__ = ["facts_of_loops", "lists_of_loops"]


def facts_of_loops(
    graph: Supergraph, image: Image, facts: Facts, *, in_part: bool = False
) -> list[tuple[LoopFact, ...]]:
    """The facts of each loop, by loop index, the tightest first.

    A place denotes, in each context of its function, the innermost loop with code at the place; for
    a line with code in several nested loops the deepest one (a ``for`` line also holds code before
    the loop). This is decided before infeasible edges are removed: where the deepest loop never
    repeats, the fact has no effect, and does not count the enclosing loop. Raises FactsError when
    the place is reached but in no loop, unless paths are only sections of executions (``in_part``);
    and when two lines of one file denote one loop, because the compiler has merged two loops, and
    neither number bounds the merged one. A fact in a comment counts the loop written there
    (``loopbounds.written_loops``), if the binary has it.
    """
    found: list[list[LoopFact]] = [[] for _ in graph.loops]
    for fact in facts.of(LoopFact):
        place = find_place(image, fact.place, fact.source)
        headers = _headers_at(graph, image, place, fact.source)
        told = in_part or fact.source.statement is not None
        if headers and not any(headers.values()) and not told:
            raise FactsError(
                f"'{fact.place}' is in no loop of its function",
                where=str(fact.source),
                hint="name a line or address inside the loop, such as the line of its condition",
            )
        for loop in graph.loops:
            header = graph.nodes[loop.header]
            if header.block.addr in headers.get(header.context, ()):
                found[loop.index].append(fact)
    for stated in found:
        _refuse_merged(stated)
    return [tuple(sorted(fs, key=lambda f: f.bound)) for fs in found]


def lists_of_loops(graph: Supergraph, image: Image, facts: Facts) -> dict[int, ListAtMostFact]:
    """The tightest fact about the list that each loop walks, by loop index."""
    about = facts.of(ListAtMostFact)
    places = Facts(tuple(LoopFact(fact.source, fact.place, fact.most) for fact in about))
    stated = facts_of_loops(graph, image, places) if about else []
    by_source = {fact.source: fact for fact in about}
    return {loop: by_source[found[0].source] for loop, found in enumerate(stated) if found}


def _refuse_merged(stated: Sequence[LoopFact]) -> None:
    """Raise FactsError if facts about one loop name different lines of one file."""
    lines: dict[str, LoopFact] = {}
    for fact in stated:
        if fact.source.statement is not None:
            continue
        file, _, line = fact.place.rpartition(":")
        known = lines.setdefault(file, fact) if line.isdecimal() and file else fact
        if known.place != fact.place:
            raise FactsError(
                f"'{known.place}' and '{fact.place}' denote one loop of the program: "
                "the compiler has merged two loops",
                where=str(fact.source),
                hint="state how often the merged loop's header executes, in one fact",
            )


def _headers_at(
    graph: Supergraph, image: Image, place: FactPlace, source: FactSource
) -> dict[int, set[int]]:
    """The headers of the loops that a place denotes, by context that reaches its code."""
    covered: dict[tuple[int, int], bool] = {}  # by first and end address of a block

    def covers(block: Block) -> bool:
        here = covered.get((block.addr, block.end))
        if here is None:
            here = any(place.covers(image, insn.addr) for insn in block.insns)
            covered[block.addr, block.end] = here
        return here

    of_nest: dict[int, set[int]] = {}  # by identity
    found: dict[int, set[int]] = {}
    for node in graph.nodes:
        if node.context not in found and covers(node.block):
            nest = graph.contexts[node.context].nest
            if id(nest) not in of_nest and place.statement is not None:
                of_nest[id(nest)] = headers_of(nest, image, source)
            elif id(nest) not in of_nest:
                around = [headers for block, headers in nest if covers(block)]
                depth = max(map(len, around), default=0)
                of_nest[id(nest)] = {h[-1] for h in around if depth and len(h) == depth}
            found[node.context] = of_nest[id(nest)]
    return found
