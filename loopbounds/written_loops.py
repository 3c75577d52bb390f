"""The loops of a binary that implement a loop written in source.

The compiler copies a loop (inlining, unrolling of the enclosing loop), and it removes loops, so
that lines of a loop may appear in another one. A fact about a written loop must reach all of its
copies, and no other loop. So a loop of the binary counts only if each of its instructions with a
line belongs to the statement or to a function called in it, and if its own lines do not all belong
to one written inner loop (``LoopStatement.is_own``). Where the enclosing written loop has no loop
in the binary, or where two nested loops consist of its lines, one may be the rest of another, and
the fact is refused.

Files of other analysers name a loop by its position in a function; that function must have one.

In assembly a line names the loop whose first instruction stands on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quoll.errors import FactsError
from quoll.facts.count_facts import LoopFact, LoopParameter
from quoll.facts.fact import FactSource
from quoll.facts.invariants import ListAtMostFact
from quoll.facts.read import Facts
from quoll.image.dwarf_lines import SourceLine
from quoll.image.image import Image
from quoll.inlining.supergraph import NestedBlock, Supergraph
from quoll.source.loop_statement import LoopStatement, SingleLoop

__all__ = ["headers_of", "loops_not_found"]

Chain = tuple[int, ...]  # a loop, as addresses of headers, outermost first


@dataclass(frozen=True, slots=True)
class _Body:
    """The lines of a loop in the statement's file; ``foreign``: the first line of any other code.

    Functions called in the statement are not foreign.
    """

    lines: frozenset[int]
    foreign: SourceLine | None


def headers_of(nest: Sequence[NestedBlock], image: Image, source: FactSource) -> set[int]:
    """Addresses of the headers of the loops that implement ``source.statement``.

    Raises FactsError where this is ambiguous.
    """
    statement = source.statement
    if isinstance(statement, SingleLoop):
        return _only(nest, image, source)
    assert statement is not None
    bodies = _bodies(nest, image, statement)
    if statement.assembly:
        first = SourceLine(statement.path, statement.first)
        return {chain[-1] for chain in bodies if image.line(chain[-1]) == first}
    found = [c for c, b in bodies.items() if b.foreign is None and statement.is_own(b.lines)]
    for chain in found:
        outer = next((c for c in found if len(c) < len(chain) and chain[: len(c)] == c), None)
        if outer is not None:
            raise _ambiguous(source, image, (outer, chain), "one inside of the other")
        around = statement.around
        if around is not None and not _is_inside(chain, nest, image, around):
            lines = f"lines {around.first} to {around.last}"
            why = f"but no loop of the binary is around it, as the one at {lines} is"
            raise _ambiguous(source, image, (chain,), why)
    return {chain[-1] for chain in found}


def _only(nest: Sequence[NestedBlock], image: Image, source: FactSource) -> set[int]:
    """The header of the only loop of a function. Raises FactsError if there are several."""
    found = sorted({header for _, headers in nest for header in headers})
    if len(found) > 1:
        places = ", ".join(map(image.place, found))
        raise FactsError(
            f"'{source.text}' names one of {len(found)} loops by its position: {places}",
            where=str(source),
            hint="name it by an address in it",
        )
    return set(found)


def loops_not_found(graphs: Sequence[Supergraph], image: Image, facts: Facts) -> tuple[str, ...]:
    """A warning for each fact at a written loop that has code in the graphs, but no loop."""
    warnings = []
    for fact in facts.facts:
        statement = fact.source.statement
        if not isinstance(statement, LoopStatement) or not isinstance(
            fact, LoopFact | LoopParameter | ListAtMostFact
        ):
            continue
        nests = {id(c.nest): c.nest for graph in graphs for c in graph.contexts}
        about = [nest for nest in nests.values() if _has_code(nest, image, statement)]
        if about and not any(headers_of(nest, image, fact.source) for nest in about):
            near = "; ".join(sorted({text for n in about for text in _near(n, image, statement)}))
            reason = f" ({near})" if near else ""
            warnings.append(
                f"{fact.source}: no loop begins at line {statement.first} in the analysed code"
                f"{reason}: '{fact.source.text}' has no effect"
            )
    return tuple(warnings)


def _bodies(
    nest: Sequence[NestedBlock], image: Image, statement: LoopStatement
) -> Mapping[Chain, _Body]:
    """The lines of all loops of a function."""
    lines: dict[Chain, set[SourceLine]] = {}
    for block, headers in nest:
        here = {line for insn in block.insns if (line := image.line(insn.addr)) is not None}
        for depth in range(1, len(headers) + 1):
            lines.setdefault(headers[:depth], set()).update(here)
    return {chain: _body(found, statement) for chain, found in lines.items()}


def _body(lines: set[SourceLine], statement: LoopStatement) -> _Body:
    own: set[int] = set()
    foreign: list[SourceLine] = []
    for line in lines:
        if line.path == statement.path and statement.first <= line.line <= statement.last:
            own.add(line.line)
        elif not statement.is_called(line.path, line.line):
            foreign.append(line)
    first = min(foreign, key=lambda line: (line.path, line.line), default=None)
    return _Body(frozenset(own), first)


def _is_inside(
    chain: Chain, nest: Sequence[NestedBlock], image: Image, around: LoopStatement
) -> bool:
    """Whether a loop around ``chain`` consists of the lines of ``around``."""
    bodies = _bodies(nest, image, around)
    return any(bodies[chain[:depth]].foreign is None for depth in range(1, len(chain)))


def _has_code(nest: Sequence[NestedBlock], image: Image, statement: LoopStatement) -> bool:
    return any(_near_line(image.line(i.addr), statement) for block, _ in nest for i in block.insns)


def _near_line(line: SourceLine | None, statement: LoopStatement) -> bool:
    if line is None or line.path != statement.path:
        return False
    return statement.first <= line.line <= statement.last


def _near(nest: Sequence[NestedBlock], image: Image, statement: LoopStatement) -> list[str]:
    """The reasons why loops with code of the statement do not implement it."""
    return [
        f"the loop at {image.place(chain[-1])} has code of {body.foreign}, too"
        for chain, body in _bodies(nest, image, statement).items()
        if body.lines and body.foreign is not None
    ]


def _ambiguous(source: FactSource, image: Image, chains: Sequence[Chain], why: str) -> FactsError:
    places = " and ".join(image.place(chain[-1]) for chain in chains)
    return FactsError(
        f"'{source.text}' may be about {places}, {why}",
        where=str(source),
        hint="state the bound of each loop by an address in it, in a facts file",
    )
