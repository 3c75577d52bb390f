"""Words of memory behind pointers, within a scope (rules 1, 20, 34).

Such a word has a term as its address: the word is the content of memory at the value that the term
has in the execution. So it may be followed back beyond the code that computes the pointer, and two
loads of one address read one word: ``if (cap->bits > 12) return; ... clear(cap)``. Where value
analysis gives the addresses of a load, they must be cached or on the chip, at a translation that
does not change: a device may give another word at each load. Where it does not, assumption S7 says
that they are such memory.

A store is apart from the word

- by the distance of their addresses, if it is a constant or has a range;
- by their places in value analysis: disjoint ranges, or different remainders of a divisor of the
  size of a page (objects that are aligned to their size have their fields at such places);
- by assumption S7, if it goes into a stack: its base is sp, or value analysis gives such a place.

Any other store makes the word unknown. In an inner loop, all iterations count, and the terms of a
scope are about the last one: a distance counts only if both addresses stay the same in the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from loopbounds.slicing.cell import SP, MemoryCell, cell_name
from loopbounds.slicing.effects import LoadEffect, StoreEffect
from loopbounds.slicing.scope import ScopeValues
from loopbounds.slicing.stacks import FRAMES
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, sub
from loopbounds.terms.interval import interval
from quoll.abstract_domain.abstract_memory import S3
from quoll.assumptions import S7
from quoll.image.memory_map import GRANULE, Cacheability, same_in_page
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["PointedWords", "differ_by_remainder"]

WORDS = 1 << 32
PAGE = 4096  # bytes: more than one instruction accesses


class PointedWords:
    """The words behind pointers of one scope."""

    def __init__(self, scope: ScopeValues) -> None:
        self._scope, self._code = scope, scope.code
        self.read: dict[Term, tuple[int, LoadEffect]] = {}  # unknown word -> a load of it
        self._intervals: dict[Term, tuple[int, int]] = {}  # of terms over any words

    def cell(self, node: int, load: LoadEffect, address: Term) -> MemoryCell | None:
        """The word that a load reads; None if it may change by itself, or be in a frame."""
        if not self._code.pointed or address.constant is not None:
            return None
        known = self.places(node, load, load.size)
        places = ANY if known is None else known
        if self._changes_by_itself(places, load.size) or self._scope.tainted(address):
            return None
        self._scope.used.add(S7.of())
        return MemoryCell(address, load.size, places=places)

    def _changes_by_itself(self, places: ValueSet, size: int) -> bool:
        """Whether known addresses are of a device, or of memory that other code changes."""
        image, high = self._code.image, places.high + size - 1
        if places != ANY and image.is_disturbed((places.low, high)):
            return True
        use = image.memory.cacheability(places.low, min(high, WORDS - 1))
        if use is Cacheability.MAYBE:
            return False
        return use is Cacheability.NEVER or not image.is_constant_range(
            places.low, high - places.low + 1
        )

    def unknown(self, node: int, name: str, cell: MemoryCell) -> Term:
        """Any word in place of a cell at ``node``, as an unknown load would read it."""
        frame = self._scope.tainted(cell.address)
        given = not (frame or self._code.image.as_loaded or self._code.stored_before(node))
        name, width = f"{name}_{cell_name(cell)}", 8 * cell.size
        return self._scope.symbols.input(node, name, width, frame=frame, given=given)

    def offset(self, node: int, store: StoreEffect, target: Term, cell: MemoryCell) -> int | None:
        """The offset of the cell in the bytes stored at ``target``; None: disjoint; -1: unknown."""
        distance = sub(cell.address, target)
        if distance.constant is not None and distance.value < store.size:
            return distance.value
        ways = list(self._ways_apart(node, store, cell))
        if all(ways):  # a distance may need no assumption; large terms make it slow
            ways += self._distant(distance, store.size, cell.size)
        return None if self._holds(ways) else -1

    def changed(self, loop: int, cell: MemoryCell) -> bool:
        """Whether a store in any iteration of a loop may hit a cell.

        Values are computed by a deep recursion, in which a generator needs room on the stack of C.
        """
        effect, changed = self._code.effect, False
        for node in self._code.graph.loops[loop].nodes:
            for store in effect(node).stores:
                changed = changed or not self._apart_in(loop, node, store, cell)
        return changed

    def _apart_in(self, loop: int, node: int, store: StoreEffect, cell: MemoryCell) -> bool:
        target = self._scope.instance(node, store.address)
        distance = sub(cell.address, target)
        ways = list(self._ways_apart(node, store, cell))
        if distance.constant is not None and self._stays((cell.address, target), loop):
            ways += self._distant(distance, store.size, cell.size)
        return self._holds(ways)

    def _stays(self, terms: tuple[Term, ...], loop: int) -> bool:
        """Whether the terms are equal in all iterations: no word in them comes from the loop."""
        nodes, symbols = self._code.graph.loops[loop].nodes, self._scope.symbols
        return all(symbols.source(one)[0] not in nodes for one in rewrite.symbols(terms))

    def _holds(self, ways: list[bool]) -> bool:
        """Whether there is a way; S3 is used if each of them assumes it."""
        if ways and all(ways):
            self._scope.used.add(S3)
        return bool(ways)

    def _distant(self, distance: Term, stored: int, size: int) -> Iterator[bool]:
        """The proof by the distance of the cell above the store: whether it assumes S3."""
        memory = self._code.image.memory
        low, high = interval(distance, None, self._intervals)
        if low < stored or high > WORDS - size or memory.meets_at((low, high), size, stored):
            return
        yield same_in_page((0, stored - 1), (low, high + size - 1))

    def _ways_apart(self, node: int, store: StoreEffect, cell: MemoryCell) -> Iterator[bool]:
        """The proofs that hold in all iterations of loops, each as whether it assumes S3."""
        if self._in_a_stack(node, store):
            yield False
        ours, theirs = cell.places, self.places(node, store, store.size)
        assert ours is not None
        if theirs is None or ours.high + cell.size > WORDS:
            return
        if differ_by_remainder(ours, cell.size, theirs, store.size):
            yield False
        memory = self._code.image.memory
        a, b = (ours.low, ours.high + cell.size - 1), (theirs.low, theirs.high + store.size - 1)
        if b[1] < WORDS and not memory.meets(a, b):
            yield memory.assumes_apart(a, b)

    def _in_a_stack(self, node: int, store: StoreEffect) -> bool:
        """Whether the place of a store is in a stack, by its base or by value analysis."""
        memory = self._code.graph.nodes[node].block.insns[store.insn].memory
        if memory is not None and memory.base == SP and memory.index is None:
            return True
        values, spans = self._code.values, self._code.stacks.spans
        frame = values.frame_access(node, store.insn)
        if frame is not None:
            return frame.high - frame.low < FRAMES
        known = self.places(node, store, store.size)
        return known is not None and any(
            low <= known.low and known.high + store.size <= top for low, top in spans
        )

    def places(self, node: int, access: LoadEffect | StoreEffect, size: int) -> ValueSet | None:
        """The addresses of one access of an instruction, by value analysis; None: unknown."""
        first = self._code.values.access(node, access.insn)
        memory = self._code.graph.nodes[node].block.insns[access.insn].memory
        if first is None or memory is None:
            return None
        if memory.count == 1 and memory.size == size:
            return first
        effect = self._code.effect(node)
        accesses: list[LoadEffect | StoreEffect] = [*effect.loads.values(), *effect.stores]
        addresses = [one.address for one in accesses if one.insn == access.insn]
        above = [sub(access.address, one).constant for one in addresses]
        offset = max((one for one in above if one is not None and one < PAGE), default=0)
        if len(above) != memory.count or None in above or first.high + offset >= WORDS:
            return None
        return ValueSet(first.low + offset, first.high + offset, first.stride)


def differ_by_remainder(a: ValueSet, a_size: int, b: ValueSet, b_size: int) -> bool:
    """Whether bytes at two sets of places have different offsets in every page."""
    step = gcd(a.stride, b.stride, GRANULE)
    above = (a.low - b.low) % step
    return above >= b_size and step - above >= a_size
