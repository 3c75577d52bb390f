"""Data addresses computed once more, with loop bounds.

A loop whose header executes at most n times per entry goes back to it at most n - 1 times. So a
word that each iteration advances by a number from [a, b] is, at the header,

    the word on entry + a number from [min(0, a (n - 1)), max(0, b (n - 1))]

(induction variables: Aho, Lam, Sethi, Ullman, "Compilers", section 9.6; the widened value of the
first analysis need not know an end). ``ValueResults.aliases`` gives the difference of two symbols
along an edge. The advance in one iteration is computed with the loops inside first. Sums have no
width, so an address that would wrap around is not claimed.

Only loops with one way in, in which no path starts except at their header, are followed; a node
that control may reach in another order has no known words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import gcd
from typing import NamedTuple, Protocol, TypeAlias

from quoll.abstract_domain.terms import MASK, SIGN
from quoll.graph.dominators import reverse_postorder
from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.intervals.strided_interval import ANY, ValueSet, join
from quoll.value_analysis.narrowed_addresses import AddressValues, NarrowedAddresses

__all__ = ["BoundedAddresses", "SymbolValues"]

CONSTANT = 0  # the symbol of no symbol
SPLIT = 2  # words of a node whose negative values are taken apart
WIDE = 4095  # bytes: a range of fewer is one of lines that may all be persistent
DEEPEST = 50  # loops inside each other; a deeper nest is not followed


class SymbolValues(AddressValues, Protocol):
    """The results of the value analysis about symbols and addresses."""

    def arriving_word(self, edge: int, symbol: int) -> ValueSet: ...

    def accesses_with(self, node: int, words: Mapping[int, ValueSet]) -> Mapping[int, ValueSet]: ...


class _Sum(NamedTuple):
    """The word of ``base``, plus a member of {low, low + stride, ..., high} without a width."""

    base: int
    low: int
    high: int
    stride: int

    def plus(self, low: int, high: int, stride: int) -> _Sum:
        """The sum with a member of another such set."""
        return _Sum(self.base, self.low + low, self.high + high, gcd(self.stride, stride))

    def join(self, other: _Sum | None) -> _Sum | None:
        """A set that covers both; None if the bases differ."""
        if self == other or other is None or other.base != self.base:
            return self if self == other else None
        low = min(self.low, other.low)
        stride = gcd(self.stride, other.stride, self.low - other.low)
        return _Sum(self.base, low, max(self.high, other.high), stride)

    def repeated(self, bound: int) -> tuple[int, int, int]:
        """The sum of fewer than ``bound`` members."""
        most = max(0, bound - 1)
        return min(0, self.low * most), max(0, self.high * most), gcd(self.low, self.stride)

    def words(self) -> tuple[ValueSet, ...]:
        """The members as words, negative ones apart; empty if they are not all words."""
        if self.base != CONSTANT or self.low < -SIGN or self.high > MASK:
            return ()
        parts = [(self.low, self.high)]
        if self.low < 0:
            step = self.stride or 1
            last = -1 - (-1 - self.low) % step  # the greatest negative member
            parts = [(self.low, min(last, self.high)), (last + step, self.high)]
        return tuple(
            ValueSet(low & MASK, high & MASK, self.stride if low < high else 0)
            for low, high in parts
            if low <= high
        )


_Known: TypeAlias = dict[int, _Sum]  # by symbol


class BoundedAddresses(NarrowedAddresses):
    """The addresses of ``values``, narrower where ``iterations`` of loops give an end.

    ``iterations``: the most executions of loop headers per entry.
    """

    def __init__(
        self, graph: Supergraph, values: SymbolValues, iterations: Mapping[int, int]
    ) -> None:
        found: dict[tuple[int, int], ValueSet] = {}
        super().__init__(values, found)
        self._found = found
        self._graph, self._symbols, self._iterations = graph, values, iterations
        order = reverse_postorder(
            [[graph.edges[e].dst for e in out] for out in graph.successors], graph.entry
        )
        self._position = {node: at for at, node in enumerate(order)}
        self._header = {loop.header: loop for loop in graph.loops if self._regular(loop)}
        # by header: the change of each word in one iteration, if it is known
        self._advances: dict[int, dict[int, _Sum | None]] = {}
        for nest in self._nests():
            if self._levels(nest) <= DEEPEST:
                self._follow(nest)

    @property
    def gain(self) -> bool:
        """Whether any address is narrower."""
        return bool(self._found)

    def _regular(self, loop: SuperLoop) -> bool:
        """Whether the loop is entered at its header alone, over an edge."""
        graph = self._graph
        into = {
            e
            for n in loop.nodes
            for e in graph.predecessors[n]
            if graph.edges[e].src not in loop.nodes
        }
        return graph.entry not in loop.nodes and into == set(loop.entries)

    def _nests(self) -> Iterator[SuperLoop]:
        """The outermost bounded loops with an access of almost unknown address."""
        bounded = [one for one in self._header.values() if one.index in self._iterations]
        unknown = {
            n
            for n in {n for loop in bounded for n in loop.nodes}
            if any(self._wide(n, i) for i in self._accesses(n))
        }
        inside: set[int] = set()
        for loop in sorted(bounded, key=lambda loop: -len(loop.nodes)):
            if loop.header not in inside and not unknown.isdisjoint(loop.nodes):
                inside |= loop.nodes
                yield loop

    def _levels(self, nest: SuperLoop) -> int:
        """How many loops of a nest are inside each other, at most."""
        levels, inside = 0, {nest.index}
        while inside:
            inside = {loop.index for loop in self._graph.loops if loop.parent in inside}
            levels += 1
        return levels

    def _accesses(self, node: int) -> Iterator[int]:
        insns = self._graph.nodes[node].block.insns
        return (i for i, insn in enumerate(insns) if insn.memory is not None)

    def _wide(self, node: int, insn: int) -> bool:
        known = self._symbols.access(node, insn)
        return known is not None and known.high - known.low > WIDE

    def _follow(self, nest: SuperLoop) -> None:
        """Narrow the addresses of a nest."""
        bound = self._iterations[nest.index]
        on_entry = self._words_on_entry(nest, {})
        advances = self._advances_of(nest, on_entry)
        start = {s: on_entry[s].plus(*step.repeated(bound)) for s, step in advances.items()}
        for node, known in self._through(nest, start, absolute=True).items():
            words = {s: w for s, sums in known.items() if (w := sums.words())}
            wide = [i for i in self._accesses(node) if self._wide(node, i)]
            if not words or not wide:
                continue
            found = self._with_words(node, words)
            for insn in wide:
                now, before = found.get(insn), self._symbols.access(node, insn)
                if now and before and now.high - now.low < before.high - before.low:
                    self._found[node, insn] = now

    def _with_words(
        self, node: int, words: Mapping[int, tuple[ValueSet, ...]]
    ) -> dict[int, ValueSet]:
        """The addresses of a node by instruction, whichever parts its words are in."""
        apart = [symbol for symbol, parts in words.items() if len(parts) > 1]
        known = {s: parts for s, parts in words.items() if s not in apart[SPLIT:]}
        found: dict[int, ValueSet] = {}
        for number, chosen in enumerate(product(*known.values())):
            here = self._symbols.accesses_with(node, dict(zip(known, chosen, strict=True)))
            if number:
                found = {i: join(found[i], here[i]) for i in found.keys() & here.keys()}
            else:
                found = dict(here)
        return found

    def _on_entry(self, loop: SuperLoop, symbol: int) -> _Sum | None:
        """The words of ``symbol`` of the header on entry; None if they are unknown."""
        found: _Sum | None = None
        for edge in loop.entries:
            known = self._symbols.arriving_word(edge, symbol)
            if known == ANY:
                return None
            here = _Sum(CONSTANT, known.low, known.high, known.stride)
            found = here if found is None else found.join(here)
        return found

    def _words_on_entry(self, loop: SuperLoop, known: _Known) -> _Known:
        """The known words on entry that iterations may advance, without the ``known`` ones."""
        found = ((s, self._on_entry(loop, s)) for s in self._advancing(loop) if s not in known)
        return {symbol: first for symbol, first in found if first is not None}

    def _advancing(self, loop: SuperLoop) -> Iterable[int]:
        """The symbols of the header that iterations may advance."""
        return {s: None for e in loop.backs for s in self._symbols.aliases(e)}

    def _advances_of(self, loop: SuperLoop, wanted: _Known) -> _Known:
        """The known changes in one iteration of those symbols of the header that are ``wanted``.

        The change of one word does not depend on other words, so only new ones are followed.
        """
        known = self._advances.setdefault(loop.header, {})
        symbols = [s for s in self._advancing(loop) if s in wanted]
        new = {s: _Sum(s, 0, 0, 0) for s in symbols if s not in known}
        if new:
            states = self._through(loop, new, absolute=False)
            back = [self._along(e, states.get(self._graph.edges[e].src, {})) for e in loop.backs]
            found = _common(back)
            for s in new:
                sums = found.get(s)
                known[s] = sums if sums is not None and sums.base == s else None
        return {s: sums for s in symbols if (sums := known[s]) is not None}

    def _through(self, loop: SuperLoop, start: _Known, *, absolute: bool) -> dict[int, _Known]:
        """The known words at the start of each node of one iteration, from the header on."""
        states: dict[int, _Known] = {loop.header: start}
        for node in sorted(loop.nodes, key=self._position.__getitem__):
            if node != loop.header:
                states[node] = self._at(node, states, absolute=absolute)
        return states

    def _at(self, node: int, states: Mapping[int, _Known], *, absolute: bool) -> _Known:
        """The known words at the start of ``node``; none if a predecessor is not known yet."""
        inner = self._header.get(node)
        edges = self._graph.predecessors[node] if inner is None else inner.entries
        sources = [self._graph.edges[e].src for e in edges]
        if any(source not in states for source in sources):
            return {}
        known = _common([self._along(e, states[s]) for e, s in zip(edges, sources, strict=True)])
        if inner is None:
            return known
        bound, found = self._iterations.get(inner.index), _Known()
        first = {**self._words_on_entry(inner, known), **known} if absolute else known
        for symbol, step in self._advances_of(inner, first).items():
            if bound is not None:
                found[symbol] = first[symbol].plus(*step.repeated(bound))
            elif step.low == step.high == 0:
                found[symbol] = first[symbol]
        return found

    def _along(self, edge: int, known: _Known) -> _Known:
        """The known words behind ``edge``, along which symbols change."""
        found: _Known = {}
        for symbol, term in self._symbols.aliases(edge).items():
            base, offset = term >> 32, term & MASK
            if base == CONSTANT:
                found[symbol] = _Sum(CONSTANT, offset, offset, 0)
            elif base in known:
                change = (offset + SIGN & MASK) - SIGN
                found[symbol] = known[base].plus(change, change, 0)
        return found


def _common(states: Sequence[_Known]) -> _Known:
    """The words known in all ``states``."""
    first, *others = states or [{}]
    found: _Known = {}
    for symbol, sums in first.items():
        joined: _Sum | None = sums
        for other in others:
            joined = joined and joined.join(other.get(symbol))
        if joined is not None:
            found[symbol] = joined
    return found
