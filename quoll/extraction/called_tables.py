"""The callees of calls through tables, from facts: vtables of classes, tables of functions.

For a vtable, the code before the call determines the slot; any slot is possible if it is unknown.
The code is searched again whenever its function has grown: certainty only falls, so targets are
only added.
"""

from __future__ import annotations

from quoll.cfg.cfg import Block, Cfg, Edge
from quoll.cfg.growing_function import CalleeEntry
from quoll.errors import FactsError
from quoll.facts.control_flow_facts import CallsThroughFact
from quoll.facts.located import LocatedFacts
from quoll.image.function_tables import functions_in
from quoll.image.image import Image
from quoll.image.vtables import Vtables
from quoll.indirect.address_taken import ANY_TAKEN, AddressTaken
from quoll.indirect.load_origins import LoadOrigin, LoadRoot, origins, slot_read
from quoll.indirect.trait_objects import method_slot
from quoll.spelling import did_you_mean

__all__ = ["CalledTables"]

ANY, OF_CLASS = "any vtable", "vtables of "


class CalledTables:
    """The targets stated by one fact.

    Raises FactsError for a class or a table that is absent, or that holds no function.
    """

    def __init__(
        self,
        image: Image,
        vtables: Vtables,
        taken: AddressTaken,
        facts: LocatedFacts,
        fact: CallsThroughFact,
    ) -> None:
        self._vtables, self._fact = vtables, fact
        self._kinds: set[int] | None = set()
        words: dict[int, None] = {}
        for name in fact.tables:
            where = str(fact.source)
            if name == ANY or name.startswith(OF_CLASS):
                self._add_class(name, where)
                continue
            (addr,) = facts.at(fact, name).addresses
            symbol = image.symbol_at(addr)
            end = max(symbol[0].addr + symbol[0].size, addr + 4) if symbol else addr + 4
            found = functions_in(image, addr, end)
            if not found:
                raise FactsError(f"{name} holds no address of a function", where=where)
            words |= dict.fromkeys(found)
        for text in fact.targets:
            if text == ANY_TAKEN:
                words |= dict.fromkeys(taken.functions)
                continue
            words |= dict.fromkeys(facts.at(fact, text).words)
        self._others = tuple(words)
        self._by_slot: dict[int | None, tuple[CalleeEntry, ...]] = {}

    def _add_class(self, name: str, where: str) -> None:
        if name == ANY:
            self._kinds = None
            found = self._vtables.functions(None, None)
        else:
            written = name.removeprefix(OF_CLASS)
            kinds = self._vtables.named(written)
            if not kinds:
                near = did_you_mean(written, self._vtables.classes(), 3)
                raise FactsError(
                    f"there is no type information of a class {written}",
                    where=where,
                    hint=near or f"code with -fno-rtti has none: write '{ANY}'",
                )
            if self._kinds is not None:
                self._kinds |= kinds
            found = self._vtables.functions(kinds, None)
        if not found:
            raise FactsError(f"there is no function in {name}", where=where)

    @property
    def functions(self) -> frozenset[int]:
        """The targets of any call, for any slot."""
        virtual = self._kinds is None or self._kinds
        words = self._vtables.functions(self._kinds, None) if virtual else ()
        return frozenset(word & ~1 for word in (*words, *self._others))

    def targets(
        self, cfg: Cfg, into: dict[int, list[Edge]], block: Block, image: Image
    ) -> tuple[CalleeEntry, ...]:
        """The callees of the transfer that ends ``block``; ``into`` are the edges into blocks."""
        virtual = self._kinds is None or self._kinds
        slot = self._slot(cfg, into, block, image) if virtual else None
        if slot not in self._by_slot:
            words = dict.fromkeys(self._others)
            if virtual:
                words |= dict.fromkeys(self._vtables.functions(self._kinds, slot))
            self._by_slot[slot] = tuple(CalleeEntry(word & ~1, bool(word & 1)) for word in words)
        return self._by_slot[slot]

    def _slot(
        self, cfg: Cfg, into: dict[int, list[Edge]], block: Block, image: Image
    ) -> int | None:
        """The only offset in a vtable at which the target is loaded; None if it is not unique."""
        slot = slot_read(cfg, into, block, image)
        if slot is not None or self._vtables:
            return slot
        found = origins(cfg, into, block, image, across=True) or ()
        slots = {
            method_slot(image, self._vtables, cfg, origin)
            for origin in found
            if not _is_index(image, origin)
        }
        return slots.pop() if len(slots) == 1 else None


def _is_index(image: Image, origin: LoadOrigin) -> bool:
    """Whether it is a number that is added to an address, which is another origin."""
    added = origin.root is LoadRoot.CONSTANT and origin.offsets[-1] is None
    return added and image.segment_at(origin.constant) is None
