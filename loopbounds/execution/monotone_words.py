"""Words that only grow, or only fall, while a nest of loops executes: totals of inner loops.

A run of equal bytes, the letters of a word, the two ends of a partition: an inner loop moves a
position, and the outer loop goes on where it has ended. Let a word change by at least ``back`` from
one execution of the inner header to the next one through a back edge, and by at least ``entry`` if
the loop is left and entered again, all in one direction. If the word is always in a range of some
width at the header, the back edges are taken at most ``width // back`` times in all.

Changes are sums of constants along paths: registers, and words of memory at known addresses, are
followed from the inner header through the outer loop, and back to the inner header. Where paths
meet, the least change and the greatest one count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from loopbounds.budgets import table
from loopbounds.execution.accessed_words import WORD_SIZE, WordAccess, accessed_words
from loopbounds.execution.memory import RecordedWord, keeps_stores
from loopbounds.slicing.code import KnownValues
from quoll.abstract_domain.terms import BIAS
from quoll.arm.insn import PC
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph, SuperLoop
from quoll.intervals.strided_interval import ValueSet
from quoll.semantics.ops import Op, OpCode, Space, Var, general

__all__ = ["MonotoneWord", "NodeAccesses", "monotone_words"]

SIGN = 1 << 31
MODULUS = 1 << 32
BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)
MEMORY = (OpCode.DISCARD, OpCode.RETRANSLATE)
Location = Var | RecordedWord
NodeAccesses = dict[int, tuple[tuple[WordAccess, ...], ...]]  # node -> ops of its instructions


class Change(NamedTuple):
    """The content that ``base`` had at the inner header, and a sum from ``low`` to ``high``.

    ``step``: no op has changed it by more.
    """

    base: Location
    low: float
    high: float
    step: int

    def moved(self, by: int) -> Change:
        """This, and a constant more."""
        return Change(self.base, self.low + by, self.high + by, max(self.step, abs(by)))


Changes = dict[Location, Change]  # without the words of which nothing is known


@dataclass(frozen=True, slots=True)
class MonotoneWord:
    """A word that grows in the loop ``outer``, from one execution of an inner header to the next.

    It grows by at least ``back`` (1 or more) through a back edge of the inner loop, and by at least
    ``entry`` (0 or more) if the loop is entered again; or it falls so. ``step``: no op changes it
    by more.
    """

    location: Location
    outer: int
    back: int
    entry: int
    step: int

    def total(self, width: int, entries: int, executed: int) -> int | None:
        """The most executions of the inner header per entry of ``outer``; None: not known.

        ``width``: from the least to the greatest word at the header. ``entries`` into the inner
        loop, and ``executed`` ops: the most per entry of ``outer``.
        """
        if width + executed * self.step >= MODULUS:
            return None  # the word may wrap
        if self.entry:
            return width // min(self.back, self.entry) + 1
        return width // self.back + entries


def monotone_words(
    graph: Supergraph, image: Image, values: KnownValues, loop: SuperLoop, cells: NodeAccesses
) -> list[MonotoneWord]:
    """The words that grow or fall in the parent of an inner loop, or in its outermost loop.

    ``cells`` collects the words that nodes access. Raises ControlFlowError for an instruction
    without semantics.
    """
    around = list(_around(graph, loop))
    found: list[MonotoneWord] = []
    for outer in around if len(around) < 2 else (around[0], around[-1]):
        if len(outer.nodes) <= table.MONOTONE_NODES:
            found += _Followed(graph, image, values, cells, loop, outer).words()
    return found


def _around(graph: Supergraph, loop: SuperLoop) -> Iterator[SuperLoop]:
    while loop.parent is not None:
        loop = graph.loops[loop.parent]
        yield loop


@dataclass(slots=True)
class _Followed:
    """The changes of words on all paths in a loop from an inner header to itself."""

    graph: Supergraph
    image: Image
    values: KnownValues
    cells: NodeAccesses
    inner: SuperLoop
    outer: SuperLoop
    _before: dict[int, Changes] = field(default_factory=dict)
    _visits: dict[int, int] = field(default_factory=dict)

    def words(self) -> list[MonotoneWord]:
        """The words that change in one direction only."""
        graph, header = self.graph, self.inner.header
        for node in self.outer.nodes:
            if graph.nodes[node].block.passes:
                return []
            if node not in self.cells:
                self.cells[node] = accessed_words(graph, self.values, node)
        self._before[header] = {word: Change(word, 0, 0, 0) for word in self._locations()}
        backs: Changes | None = None
        entries: Changes | None = None
        pending = [header]
        while pending:
            node = pending.pop()
            after = self._after(node)
            for edge in graph.successors[node]:
                to = graph.edges[edge].dst
                if to == header and edge in self.inner.backs:
                    backs = after if backs is None else _met(backs, after)
                elif to == header:
                    entries = after if entries is None else _met(entries, after)
                elif to in self.outer.nodes and self._arrive(to, after):
                    pending.append(to)
        return list(self._monotone(backs or {}, entries or {}))

    def _locations(self) -> Iterator[Location]:
        """The registers, and the words of memory that the loops access at known addresses."""
        yield from map(general, range(PC))
        for node in self.outer.nodes:
            for insn in self.cells[node]:
                yield from (cell for _, cell in insn if cell is not None and self._keeps(cell))

    def _keeps(self, cell: RecordedWord) -> bool:
        """Whether only stores of the path change a word: no device, and no interrupt handler."""
        return not cell.named or keeps_stores(self.image, cell.address)

    def _arrive(self, node: int, new: Changes) -> bool:
        """Let executions come to a node; whether they bring other changes."""
        if node not in self._before:
            self._before[node] = new
            return True
        old = self._before[node]
        met = _met(old, new)
        self._visits[node] = self._visits.get(node, 0) + 1
        if self._visits[node] > table.MONOTONE_VISITS:
            met = {word: _widened(old[word], change) for word, change in met.items()}
        self._before[node] = met
        return met != old

    def _monotone(self, backs: Changes, entries: Changes) -> Iterator[MonotoneWord]:
        for word, change in backs.items():
            again = entries.get(word)
            if change.base != word or again is None or again.base != word:
                continue
            for back, entry in ((change.low, again.low), (-change.high, -again.high)):
                if 1 <= back < SIGN and 0 <= entry < SIGN:
                    step = max(change.step, again.step)
                    yield MonotoneWord(word, self.outer.index, int(back), int(entry), step)

    def _after(self, node: int) -> Changes:
        """The changes behind a node."""
        changes = dict(self._before[node])
        for index, effect in enumerate(self.cells[node]):
            codes = [op.code for op, _ in effect]
            branches = [at for at, code in enumerate(codes) if code in BRANCHES]
            if not branches:
                self._execute(node, index, effect, changes, {})
                continue
            first = effect[branches[0]][0]
            skipping = len(branches) == 1 and first.code is OpCode.CBRANCH
            temporaries: Changes = {}
            self._execute(node, index, effect[: branches[0]], changes, temporaries)
            skipped = dict(changes)
            self._execute(node, index, effect[branches[0] + 1 :], changes, temporaries)
            changes = _met(skipped, changes)
            if not (skipping and first.ins[0].offset == len(effect)):
                for op, _ in effect:  # inner branches: any of the ops may be executed
                    if op.out is not None:
                        changes.pop(op.out, None)
                if OpCode.STORE in codes:
                    changes = {w: c for w, c in changes.items() if isinstance(w, Var)}
        return changes

    def _execute(
        self,
        node: int,
        insn: int,
        effect: Sequence[WordAccess],
        changes: Changes,
        temporaries: Changes,
    ) -> None:
        """Execute the ops of an instruction, or some of them."""
        for op, cell in effect:
            if op.code in MEMORY:
                for word in [w for w in changes if isinstance(w, RecordedWord)]:
                    del changes[word]
            elif op.code is OpCode.STORE:
                self._store(node, insn, op, cell, changes, temporaries)
            elif op.out is not None:
                result = None
                if op.code is OpCode.LOAD:
                    whole = op.out.size == WORD_SIZE and cell is not None
                    result = changes.get(cell) if whole and cell is not None else None
                elif op.out.size == WORD_SIZE:
                    result = self._sum(op, changes, temporaries)
                known = changes if op.out.space is Space.REG else temporaries
                known.pop(op.out, None)
                if result is not None:
                    known[op.out] = result

    @staticmethod
    def _sum(op: Op, changes: Changes, temporaries: Changes) -> Change | None:
        """The result of an op that adds a constant; None for another op."""
        values = [changes.get(var) or temporaries.get(var) for var in op.ins]
        if op.code is OpCode.COPY:
            return values[0]
        if op.code not in (OpCode.INT_ADD, OpCode.INT_SUB):
            return None
        sign = 1 if op.code is OpCode.INT_ADD else -1
        a, b = op.ins
        if a.space is Space.CONST and sign == 1:
            a, b, values = b, a, values[::-1]
        if b.space is not Space.CONST or values[0] is None:
            return None
        by = sign * ((b.offset + SIGN) % MODULUS - SIGN)
        return values[0].moved(by)

    def _store(
        self,
        node: int,
        insn: int,
        op: Op,
        cell: RecordedWord | None,
        changes: Changes,
        temporaries: Changes,
    ) -> None:
        """Forget the words that a store may hit, and know the word that it surely stores."""
        new = changes.get(op.ins[1]) or temporaries.get(op.ins[1])
        if cell is not None and op.ins[1].size == WORD_SIZE:
            hit = [cell]
        else:
            named, framed = self.values.access(node, insn), self.values.frame_access(node, insn)
            reach = WORD_SIZE * len(self.cells[node][insn])  # at most, of its other stores
            hit = [
                word
                for word in changes
                if isinstance(word, RecordedWord)
                and _may_hit(named if word.named else framed, word, reach)
            ]
        for word in hit:
            changes.pop(word, None)
        whole = cell is not None and op.ins[1].size == WORD_SIZE
        if whole and cell is not None and new is not None and self._keeps(cell):
            changes[cell] = new


def _may_hit(first: ValueSet | None, cell: RecordedWord, reach: int) -> bool:
    """Whether a store may hit a word, if its first address is one of these; addresses wrap."""
    if first is None:
        return True
    at = cell.address if cell.named else cell.address + BIAS
    above = (at + WORD_SIZE - (first.low - reach)) % MODULUS
    return above <= first.high - first.low + 2 * reach + WORD_SIZE


def _met(a: Mapping[Location, Change], b: Mapping[Location, Change]) -> Changes:
    """The changes on two ways."""
    return {
        word: Change(
            one.base,
            min(one.low, other.low),
            max(one.high, other.high),
            max(one.step, other.step),
        )
        for word, one in a.items()
        if (other := b.get(word)) is not None and other.base == one.base
    }


def _widened(old: Change, new: Change) -> Change:
    low = new.low if new.low == old.low else -inf
    return Change(new.base, low, new.high if new.high == old.high else inf, new.step)
