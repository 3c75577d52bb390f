"""The loops that the user's facts name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from loopbounds.written_loops import headers_of
from quoll.cfg.cfg import Block, Program
from quoll.errors import ControlFlowError, FactsError
from quoll.facts.count_facts import LoopFact
from quoll.facts.fact import PlacedFact
from quoll.facts.invariants import ListAtMostFact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.function_shape import shape_of
from quoll.inlining.supergraph import NestedBlock, Supergraph, SuperNode
from quoll.source.loop_statement import SingleLoop

__all__ = ["facts_of_loops", "lists_of_loops", "loops_meant", "refuse_bare_offsets"]

F = TypeVar("F", bound=PlacedFact)


def facts_of_loops(
    graph: Supergraph, image: Image, facts: LocatedFacts, *, in_part: bool = False
) -> list[list[LoopFact]]:
    """The facts of each loop, by loop index, the tightest first; as ``loops_meant``."""
    found = loops_meant(graph, image, facts, facts.of(LoopFact), in_part=in_part)
    return [sorted(stated, key=lambda fact: fact.bound) for stated in found]


def lists_of_loops(
    graph: Supergraph, image: Image, facts: LocatedFacts
) -> dict[int, ListAtMostFact]:
    """The tightest fact about the list that each loop walks, by loop index."""
    found = loops_meant(graph, image, facts, facts.of(ListAtMostFact))
    return {
        loop: min(stated, key=lambda fact: fact.most) for loop, stated in enumerate(found) if stated
    }


def loops_meant(
    graph: Supergraph,
    image: Image,
    facts: LocatedFacts,
    about: Iterable[F],
    *,
    in_part: bool = False,
) -> list[list[F]]:
    """Those ``about`` each loop, by loop index: ``facts`` has their places.

    A place denotes, in each context of its function, the innermost loop with code at the place; for
    a line with code in several nested loops the deepest one (a ``for`` line also holds code before
    the loop). This is decided before infeasible edges are removed: where the deepest loop never
    repeats, the fact has no effect, and does not count the enclosing loop. Raises FactsError when
    the place is reached but in no loop, unless paths are only sections of executions (``in_part``);
    when an offset without a checksum is in a function with several loops, as an edit may move
    another one there; and when two lines of one file denote one loop, because the compiler has
    merged two loops, and neither number bounds the merged one. A fact in a comment counts the loop
    written there (``loopbounds.written_loops``), if the binary has it.
    """
    found: list[list[F]] = [[] for _ in graph.loops]
    for fact in about:
        headers = _headers_at(graph, image, facts, fact)
        nests = {id(c.nest): c.nest for c in graph.contexts}.values()
        _refuse_bare_offset(nests, image, facts, fact)
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
    return found


def refuse_bare_offsets(program: Program, image: Image, facts: LocatedFacts) -> None:
    """Refuse offsets as ``loops_meant`` does, before the minutes that values and proofs may take.

    A function whose loops are too tangled is left to that.
    """
    for fact in (*facts.of(LoopFact), *facts.of(ListAtMostFact)):
        places = facts.at(fact, fact.place).addresses if fact.is_bare_offset else ()
        for cfg in program.functions.values():
            if any(block.addr <= at < block.end for at in places for block in cfg.blocks):
                with suppress(ControlFlowError):
                    _refuse_bare_offset([shape_of(cfg, image).nest], image, facts, fact)


def _refuse_bare_offset(
    nests: Iterable[tuple[NestedBlock, ...]], image: Image, facts: LocatedFacts, fact: PlacedFact
) -> None:
    """Raise FactsError if the place of ``fact`` may be another loop after an edit, unnoticed."""
    if not fact.is_bare_offset or fact.source.imported:
        return
    (at,) = facts.at(fact, fact.place).addresses
    here = [nest for nest in nests if any(b.addr <= at < b.end for b, _ in nest)]
    if max((len({h for _, around in nest for h in around}) for nest in here), default=0) < 2:
        return
    from quoll.facts.anchors import anchored  # it loads the disassembler

    checked = anchored(image, at)
    meant = f"{image.place(at)} is there now; if it is meant, write {checked}"
    raise FactsError(
        f"{fact.place} is one of several loops of its function, and says nothing of which: after "
        "an edit another one may be there",
        where=str(fact.source),
        hint=meant if checked else "name the loop by its line: file.c:LINE",
    )


def _refuse_merged(stated: Sequence[PlacedFact]) -> None:
    """Raise FactsError if facts about one loop name different lines of one file."""
    lines: dict[str, PlacedFact] = {}
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
    graph: Supergraph, image: Image, facts: LocatedFacts, fact: PlacedFact
) -> dict[int, set[int]]:
    """The headers of the loops that a place denotes, by context that reaches its code."""
    place, source = facts.at(fact, fact.place), fact.source
    covered: dict[tuple[int, int], bool] = {}  # by first address and end of a block

    def covers(block: Block) -> bool:
        here = covered.get((block.addr, block.end))
        if here is None:
            here = any(place.covers(insn.addr) for insn in block.insns)
            covered[block.addr, block.end] = here
        return here

    def reaches(node: SuperNode) -> bool:
        if isinstance(source.statement, SingleLoop):
            return graph.contexts[node.context].function in place.addresses
        return covers(node.block)

    of_nest: dict[int, set[int]] = {}  # by identity
    found: dict[int, set[int]] = {}
    for node in graph.nodes:
        if node.context not in found and reaches(node):
            nest = graph.contexts[node.context].nest
            if id(nest) not in of_nest and source.statement is not None:
                of_nest[id(nest)] = headers_of(nest, image, source)
            elif id(nest) not in of_nest:
                around = [headers for block, headers in nest if covers(block)]
                depth = max(map(len, around), default=0)
                of_nest[id(nest)] = {h[-1] for h in around if depth and len(h) == depth}
            found[node.context] = of_nest[id(nest)]
    return found
