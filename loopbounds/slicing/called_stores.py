"""Calls and loops that spare a word of a stack: a walk back passes each call in one step.

A return restores the registers that its function saved, and so do the returns of its callees. To
find each of these words, a walk back would go through all instructions of all nested calls. But
their stores spare most words of the callers for the same few reasons. So the stores of a call, or
of a loop, are divided once for all words at a constant distance from one base (a symbol, or 0):

- stores at such a distance, too: each distance is compared once;
- stores that spare live frames by S1, S4 or F1: they spare each word that is in a live frame;
- other stores, which are compared with each word.

The value behind a call whose stores all spare the word is the value in front of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from loopbounds.slicing.cell import SP, MemoryCell
from loopbounds.slicing.code import PassedCall
from loopbounds.slicing.effects import StoreEffect
from loopbounds.slicing.memo import MemoTable
from loopbounds.slicing.scope import ScopeValues
from loopbounds.slicing.stacks import FRAMES
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, sub
from quoll.assumptions import Assumption

__all__ = ["CalledStores", "StoreChecks"]

WORDS = 1 << 32
PlacedStore = tuple[int, StoreEffect]  # its node


class StoreChecks(Protocol):
    """The effect of single stores on words, as ``LoadedWords`` finds it.

    ``spared``: the assumption by which alone a store spares a word; None if there is none.
    """

    def offset(self, node: int, store: StoreEffect, cell: MemoryCell, /) -> int | None: ...
    def target(self, node: int, store: StoreEffect, /) -> Term: ...
    def spared(self, node: int, store: StoreEffect, cell: MemoryCell, /) -> Assumption | None: ...
    def far_apart(self, cell: MemoryCell, above: int, stored: int, /) -> bool: ...
    def passed(self, edge: int, cell: MemoryCell, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class StoreKind:
    """``distance``: of the store from the base. ``pointer``: of sp, if ``assumed`` spares frames.

    All are None for any other store.
    """

    distance: int | None = None
    pointer: int | None = None
    assumed: Assumption | None = None


@dataclass(frozen=True, slots=True)
class DividedStores:
    """``placed``: by distance from the base, and size. ``pointers``: least and greatest sp."""

    placed: dict[tuple[int, int], list[PlacedStore]]
    pointers: tuple[int, int] | None
    others: tuple[PlacedStore, ...]
    assumed: frozenset[Assumption]


class CalledStores:
    """The stores of the calls and loops in one scope."""

    def __init__(self, scope: ScopeValues, checks: StoreChecks) -> None:
        self._scope, self._checks = scope, checks
        self._kinds = MemoTable[tuple[int, int, Term | None, bool], StoreKind](scope.unbounded)
        self._stores = MemoTable[tuple[int, Term | None, bool], DividedStores](scope.unbounded)
        self._apart: dict[tuple[Term | None, int, int, tuple[int, int]], bool] = {}

    def renewed(self, scope: ScopeValues, checks: StoreChecks) -> CalledStores:
        """The stores for a scope without the values that depend on unbounded loops."""
        stores = CalledStores(scope, checks)
        stores._kinds, stores._stores = self._kinds.for_good(), self._stores.for_good()
        stores._apart = self._apart
        return stores

    def spared(self, node: int, cell: MemoryCell) -> int | None:
        """The edge that enters the call in front of ``node``, if its stores spare ``cell``."""
        call = self._scope.code.call_before(node)
        if call is None or not self._is_passed(call) or self._is_hit(call.edge, call.storing, cell):
            return None
        for edge in call.replaced:
            if self._checks.passed(edge, cell):
                return None
        return call.edge

    def spared_by_loop(self, loop: int, cell: MemoryCell) -> bool:
        """Whether the stores of all iterations of a loop spare ``cell``."""
        return not self._is_hit(-1 - loop, self._scope.code.storing_in(loop), cell)

    def _is_hit(self, part: int, storing: tuple[int, ...], cell: MemoryCell) -> bool:
        """Whether stores of the nodes ``storing`` may hit ``cell``; ``part`` is their key."""
        base = _base_of(cell.address)
        place = _distance(cell.address, base)
        if place is None:
            return True
        stores = self._stores_of(part, storing, base, cell)
        if not self._in_all_frames(stores, base, place):
            return True
        for node, store in self._uncertain(stores, base, place, cell):
            if self._checks.offset(node, store, cell) is not None:
                return True
        self._scope.used |= stores.assumed
        return False

    def _is_passed(self, call: PassedCall) -> bool:
        """Whether the pass of the scope goes through all of a call."""
        scope = self._scope
        if not scope.contains(scope.code.graph.edges[call.edge].src):
            return False
        return scope.start not in call.nodes

    def _in_all_frames(self, stores: DividedStores, base: Term | None, place: int) -> bool:
        if stores.pointers is None:
            return True
        if base is None:
            return all(self._scope.code.stacks.hold(sp, place) for sp in stores.pointers)
        return all((place - sp) % WORDS < FRAMES for sp in stores.pointers)

    def _uncertain(
        self, stores: DividedStores, base: Term | None, place: int, cell: MemoryCell
    ) -> list[PlacedStore]:
        """The stores that neither a distance nor ``DividedStores.assumed`` separates from it."""
        near = [
            one
            for stored, some in stores.placed.items()
            if not self._is_far(base, (place, cell), stored)
            for one in some
        ]
        return near + list(stores.others)

    def _is_far(
        self, base: Term | None, word: tuple[int, MemoryCell], stored: tuple[int, int]
    ) -> bool:
        """Whether a word is apart from stored bytes, both at known distances from the base."""
        (place, cell), (distance, size) = word, stored
        key = base, place, cell.size, stored
        known = self._apart.get(key)
        if known is None:
            above = (place - distance) % WORDS
            known = self._apart[key] = self._checks.far_apart(cell, above, size)
        return known

    def _stores_of(
        self, part: int, storing: tuple[int, ...], base: Term | None, cell: MemoryCell
    ) -> DividedStores:
        key = part, base, cell.saved
        known = self._stores.get(key)
        if known is None:
            since = self._scope.unbounded.met
            known = self._stores.keep(key, self._divided(storing, base, cell), since)
        return known

    def _divided(
        self, storing: tuple[int, ...], base: Term | None, cell: MemoryCell
    ) -> DividedStores:
        placed: dict[tuple[int, int], list[PlacedStore]] = {}
        pointers: list[int] = []
        others: list[PlacedStore] = []
        assumed: set[Assumption] = set()
        for node in storing:
            for store in self._scope.code.effect(node).stores:
                kind = self._kind(node, store, base, cell)
                if kind.distance is not None:
                    placed.setdefault((kind.distance, store.size), []).append((node, store))
                elif kind.pointer is not None and kind.assumed is not None:
                    pointers.append(kind.pointer)
                    assumed.add(kind.assumed)
                else:
                    others.append((node, store))
        ends = (min(pointers), max(pointers)) if pointers else None
        return DividedStores(placed, ends, tuple(others), frozenset(assumed))

    def _kind(
        self, node: int, store: StoreEffect, base: Term | None, cell: MemoryCell
    ) -> StoreKind:
        key = node, store.position, base, cell.saved
        known = self._kinds.get(key)
        if known is None:
            since = self._scope.unbounded.met
            known = self._kinds.keep(key, self._find_kind(node, store, base, cell), since)
        return known

    def _find_kind(
        self, node: int, store: StoreEffect, base: Term | None, cell: MemoryCell
    ) -> StoreKind:
        distance = _distance(self._checks.target(node, store), base)
        if distance is not None:
            return StoreKind(distance=distance)
        assumed = self._checks.spared(node, store, cell)
        if assumed is None:
            return StoreKind()
        return StoreKind(pointer=_distance(self._scope.at(node, SP), base), assumed=assumed)


def _base_of(address: Term) -> Term | None:
    """The symbol of an address; None for a constant, and for an address of several symbols."""
    symbols = rewrite.symbols([address])
    return next(iter(symbols)) if len(symbols) == 1 else None


def _distance(address: Term, base: Term | None) -> int | None:
    """The distance of an address from its base, which is 0 if None; None if it is not constant."""
    return address.constant if base is None else sub(address, base).constant
