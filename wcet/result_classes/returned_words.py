"""The classes of a function's result, and the edges that no execution with such a result takes.

The word in r0 at a return is followed backwards, through registers and stack frames, to the code
that defines it: to a constant, to a call, or to any other place. Each execution that returns has a
last definition. It is in the class of this definition; constants that are equal are one class.

An execution of a class ends behind one of its definitions, and passes none of another class from
there on. So it takes an edge only if the edge leads to such a definition, is one, or is on a way
from it to the return. All other edges are excluded in this class. A call on such a way defines the
result of other executions only: there it may have any result, while the word is in another place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from quoll.abstract_domain.abstract_state import FLAG, AbstractState
from quoll.abstract_domain.condition import words
from quoll.abstract_domain.terms import MASK, Term, describe, plus
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Block
from quoll.facts.applied import FunctionReplacement
from quoll.graph.closure import closure
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet, join, meet
from quoll.value_analysis.value_results import ValueResults
from wcet.result_classes.result_class import CalledResult, ResultClass

__all__ = ["result_classes", "returned_words"]

RESULT = 0  # the register of a result
PLACES = 128  # places of the word that are followed back; results of more definitions have no class
CLASSES = 4  # of constants; each class costs one more solution of the function


@dataclass(frozen=True, slots=True)
class _Definition:
    """A last definition of the result: along ``edge``, or in ``node`` (None), perhaps by a call."""

    node: int
    edge: int | None
    words: ValueSet
    called: CalledResult | None = None


def returned_words(values: ValueResults) -> ValueSet | None:
    """The words that the graph's entry may return in r0; None if any word, or if it never does."""
    graph = values.graph
    returning = (n for n in graph.exits if graph.nodes[n].block.returns)
    found = [word for node in returning for word in _returned(values, node)]
    known = reduce(join, found, found[0]) if found else ANY
    return None if known == ANY else known


def _returned(values: ValueResults, node: int) -> Iterator[ValueSet]:
    """The words that are returned at the end of a node, by itself and by the functions it calls."""
    block, state = values.graph.nodes[node].block, values.at_return(node)
    if state is not None:
        for function in _tail_calls(block):
            yield values.graph.guidance.replaced[function].result or ANY
        if _returns_itself(block):
            yield words(state.fact(RESULT), values.environment.stacks)


def _tail_calls(block: Block) -> tuple[int, ...]:
    """The functions with a bound that return to the caller of the block's function."""
    return block.passes if block.tail else ()


def _returns_itself(block: Block) -> bool:
    """Whether the last instruction may return."""
    return not _tail_calls(block) or block.last.flow is not ControlFlow.JUMP


def result_classes(values: ValueResults) -> tuple[ResultClass, ...]:
    """The classes of the result in r0 of the graph's entry; none if there are not several."""
    search = _Search(values)
    if not search.complete():
        return ()
    classes = _classes(search.definitions)
    if len(classes) < 2:
        return ()
    return tuple(_excluding(values.graph, search, chosen) for chosen in classes)


def _classes(definitions: Iterable[_Definition]) -> list[list[_Definition]]:
    """The definitions by class: each constant, and all that are not constant.

    Of many constants, zero and the others.
    """
    exact: dict[int, list[_Definition]] = {}
    others: list[_Definition] = []
    for one in definitions:
        known = one.words.exact
        (others if known is None else exact.setdefault(known, [])).append(one)
    if len(exact) > CLASSES:
        positive = [one for known, of in exact.items() if known for one in of]
        exact = {0: exact.get(0, []), 1: positive}
    return [found for found in (*exact.values(), others) if found]


def _excluding(graph: Supergraph, search: _Search, chosen: Sequence[_Definition]) -> ResultClass:
    """The class of the definitions ``chosen``."""
    edges, last = graph.edges, {one.edge for one in chosen}
    before = closure((one.node for one in chosen), partial(_before, graph))

    def walked(node: int) -> Iterator[int]:
        return (edges[e].dst for e in graph.successors[node] if e in search.walked)

    starts = [edges[e].dst for e in last if e is not None]
    if any(one.node == graph.entry and one.edge is None for one in chosen):
        starts.append(graph.entry)  # an argument is defined before its first node
    behind = closure(starts, walked)
    on_the_way = {e for e in search.walked if edges[e].src in behind}
    excluded = frozenset(
        e
        for e, edge in enumerate(edges)
        if edge.dst not in before and e not in last and e not in on_the_way
    )
    same = {one.called for one in chosen}
    by_itself = {(one.node, one.edge) for one in chosen if one.called is None}
    others = (one for one in search.definitions if one.called not in same)
    results = frozenset(
        one.called
        for one in others
        if one.called
        and (one.node, one.edge) not in by_itself
        and (one.node not in behind if one.edge is None else one.edge not in on_the_way)
        and _ends(graph, one, before)
    )
    ways = (one.words for one in chosen)
    return ResultClass(reduce(join, ways), excluded, results)


def _ends(graph: Supergraph, one: _Definition, before: Set[int]) -> bool:
    """Whether no definition of a class comes behind one that is not in it.

    ``before``: the nodes that lead to a definition of the class.
    """
    if one.edge is None:
        return not graph.successors[one.node]
    return graph.edges[one.edge].dst not in before


def _before(graph: Supergraph, node: int) -> Iterator[int]:
    """The nodes before a node."""
    return (graph.edges[e].src for e in graph.predecessors[node])


@dataclass(frozen=True, slots=True)
class _Place:
    """The word that ``cell`` holds at the start of ``node``, plus ``offset``, is the result.

    A cell is a register, r0 to lr, or the address of a word in a frame, as a term. ``words``: the
    results that the way from there to the return allows.
    """

    node: int
    cell: int
    offset: int
    words: ValueSet


@dataclass(frozen=True, slots=True)
class _Way:
    """From a node along an edge, or to the return at its end (None), to the return; see _Place."""

    node: int
    edge: int | None
    words: ValueSet


@dataclass(slots=True)
class _Search:
    """The definitions of the result; ``walked``: the edges between them and the returns."""

    values: ValueResults
    definitions: dict[_Definition, None] = field(default_factory=dict)
    walked: set[int] = field(default_factory=set)
    _places: dict[_Place, None] = field(default_factory=dict)
    _pending: list[_Place] = field(default_factory=list)

    def complete(self) -> bool:
        """Find all definitions; False if there are too many places."""
        graph = self.values.graph
        for node in graph.exits:
            if graph.nodes[node].block.returns:
                self._return(node)
        while self._pending and len(self._places) <= PLACES:
            self._arrive(self._pending.pop())
        return not self._pending

    def _return(self, node: int) -> None:
        """Begin at a return."""
        block = self.values.graph.nodes[node].block
        state, way = self.values.at_return(node), _Way(node, None, ANY)
        if state is not None:
            self._called(way, _tail_calls(block), 0)
            if _returns_itself(block):
                self._leave(way, state, state.term(RESULT))

    def _arrive(self, place: _Place) -> None:
        """Follow a place along all edges to its node."""
        graph = self.values.graph
        if place.node == graph.entry:
            self._define(_Way(place.node, None, place.words), ANY)
        for edge in graph.predecessors[place.node]:
            state = self.values.along(edge)
            if state is None:
                continue
            way, term = _Way(graph.edges[edge].src, edge, place.words), _term_in(state, place.cell)
            if term is None:
                self._define(way, ANY)
            else:
                self._leave(way, state, plus(term, place.offset))

    def _leave(self, way: _Way, state: AbstractState, term: Term) -> None:
        """Follow the word ``term`` in ``state`` behind a node to its start."""
        known = words(describe(term, state.facts), self.values.environment.stacks)
        both, before = meet(known, way.words), self.values.state(way.node)
        if both is None or before is None:
            return
        way, cell = replace(way, words=both), _cell_of(before, term)
        if known.exact is None and cell is not None:
            self._follow(way, cell, (term - _held(before, cell)) & MASK)
        elif known.exact is None and self._is_result(way.edge, state, term):
            functions = self.values.graph.nodes[way.node].block.passes
            self._called(way, functions, (term - state.term(RESULT)) & MASK)
        else:
            self._define(way, known)

    def _follow(self, way: _Way, cell: int, offset: int) -> None:
        if way.edge is not None:
            self.walked.add(way.edge)
        place = _Place(way.node, cell, offset, way.words)
        if place not in self._places:
            self._places[place] = None
            self._pending.append(place)

    def _is_result(self, edge: int | None, state: AbstractState, term: Term) -> bool:
        """Whether ``term`` is the result of a call past ``edge``, plus a constant."""
        called = edge is not None and bool(self.values.graph.passed(edge))
        return called and term >> 32 == state.term(RESULT) >> 32

    def _called(self, way: _Way, functions: Iterable[int], offset: int) -> None:
        """The results of calls, plus a constant, as definitions."""
        replaced = self.values.graph.guidance.replaced
        for function in functions:
            for level, known in _results(replaced[function]):
                called = CalledResult(way.node, way.edge, function, level)
                self._define(way, _shifted(known, offset), called)

    def _define(self, way: _Way, known: ValueSet, called: CalledResult | None = None) -> None:
        both = meet(known, way.words)
        if both is not None:
            self.definitions[_Definition(way.node, way.edge, both, called)] = None


def _results(replaced: FunctionReplacement) -> Iterator[tuple[int | None, ValueSet]]:
    """The levels of a function with a bound, each with the words that it returns."""
    for level, one in enumerate(replaced.limited):
        yield level, one.result or ANY
    if not replaced.limited:
        yield None, replaced.result or ANY


def _shifted(known: ValueSet, offset: int) -> ValueSet:
    """``known`` plus a constant; any word unless it is one word."""
    if not offset:
        return known
    return ANY if known.exact is None else ValueSet.of(known.exact + offset)


def _held(state: AbstractState, cell: int) -> Term:
    term = _term_in(state, cell)
    assert term is not None, "of a cell that holds one"
    return term


def _term_in(state: AbstractState, cell: int) -> Term | None:
    """The word that a cell holds; None if it is not known."""
    if cell < FLAG:
        return state.term(cell)
    found = state.frames.get(cell)
    return found if type(found) is int else None


def _cell_of(state: AbstractState, term: Term) -> int | None:
    """A register or a word of a frame with the symbol of ``term``; None if there is none."""
    symbol = term >> 32
    if not symbol:
        return None
    for register, held in enumerate(state.words):
        if held >> 32 == symbol:
            return register
    frames = (at for at, held in state.frames.items() if type(held) is int)
    return next((at for at in frames if _held(state, at) >> 32 == symbol), None)
