"""Walks of linked lists whose length a fact states.

A loop walks a list if each iteration replaces a pointer p by the word at a fixed distance from it:
p becomes *(p + k), or stays, or becomes 0. With at most N elements from the start of the walk, each
p has a *rank*, the number of elements from it to the end of the list: at most N at first, one less
after each link, and 0 only for p = 0. The model with ranks adds a parameter n <= N and a variable
r, and the link of an element of rank 1 is 0:

    r = n, p = (n = 0 ? 0 : p0)         p' = (r < 2 ? 0 : *(p + k)), r' = r - 1

An execution that satisfies the fact is a run of this model, with n as the number of elements in
that execution. The fact covers links that the walk itself changes, as it is about loaded words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopbounds.terms.bit_vectors import Term, const, either, eq, ite, sub, sym, ule, ult
from loopbounds.terms.rewrite import substitute
from loopbounds.transition.model import LoopModel, StateVariable

__all__ = ["ELEMENTS", "RANK", "ranked"]

ELEMENTS = sym("elements", 32)
RANK = sym("rank", 32)
NULL = const(0, 32)


def ranked(model: LoopModel, links: Mapping[Term, Term], most: int) -> LoopModel | None:
    """``model`` with ranks, for a walk of at most ``most`` elements; None unless it walks one list.

    ``links``: the addresses of the inputs that are loaded words.
    """
    walks = [walk for v in model.state if (walk := _Walk.of(v, links)) is not None]
    if len(walks) != 1:
        return None
    [walk] = walks
    null_behind_last = {
        word: ite(ult(rank, const(2, 32)), NULL, word) for word, rank in walk.bases.items()
    }

    def told(term: Term) -> Term:
        return substitute(term, null_behind_last)

    state = [StateVariable(v.symbol, v.initial, told(v.next)) for v in model.state]
    at = model.state.index(walk.variable)
    begins = ite(eq(ELEMENTS, NULL), NULL, walk.variable.initial)
    state[at] = replace(state[at], initial=begins)
    state.append(StateVariable(RANK, ELEMENTS, told(walk.following)))
    some = either(eq(walk.variable.symbol, NULL), ule(const(1, 32), RANK))
    return LoopModel(
        (*model.parameters, ELEMENTS),
        tuple(state),
        model.inputs,
        (*model.constraints, ule(ELEMENTS, const(most, 32))),
        told(model.again),
        (*model.hints, some),
        tuple(map(told, model.exits)),
    )


class _Walk:
    """A variable that follows links, with the ranks of its elements."""

    def __init__(self, variable: StateVariable, links: Mapping[Term, Term]) -> None:
        self.variable, self._links = variable, links
        self.bases: dict[Term, Term] = {}  # loaded word -> rank of the element that holds it
        self._distances: set[int] = set()
        self.following = NULL

    @staticmethod
    def of(variable: StateVariable, links: Mapping[Term, Term]) -> _Walk | None:
        """The walk of a variable; None if the variable walks no list."""
        if variable.symbol.width != 32:
            return None
        walk = _Walk(variable, links)
        following = walk._rank(variable.next)
        if following is None or len(walk._distances) != 1:
            return None
        walk.following = following
        return walk

    def _rank(self, term: Term) -> Term | None:
        """The rank of a next value of the variable, over its present rank; None if unknown."""
        if term is self.variable.symbol:
            return RANK
        if term is NULL:
            return NULL
        if term.op == "ite":
            condition, *ways = term.args
            ranks = [rank for way in ways if (rank := self._rank(way)) is not None]
            return ite(condition, *ranks) if len(ranks) == len(ways) else None
        address = self._links.get(term)
        return None if address is None else self._behind(term, address)

    def _behind(self, word: Term, address: Term) -> Term | None:
        """The rank of ``word``, loaded from ``address``; None if no known element holds it."""
        for element in (self.variable.symbol, *self._links):
            distance = sub(address, element).constant
            if distance is not None and element is not word:
                rank = self._rank(element)
                if rank is None:
                    return None
                self.bases[word] = rank
                self._distances.add(distance)
                return ite(eq(rank, NULL), NULL, sub(rank, const(1, 32)))
        return None
