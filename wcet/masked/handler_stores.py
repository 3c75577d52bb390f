"""The stores of the interrupt handler of the same binary, on paths that interrupts may enter.

Where interrupts are unmasked, the handler may run between two instructions of a path. Words that it
stores to at addresses that values know are therefore unknown throughout such a path
(``Image.disturbed``): that it preserves them would contradict the binary (rule 49). That its other
stores miss the words of the path is a listed assumption, which names these stores.

The handler's path begins at the interrupt entry and ends where its paths end. Threads that run
behind such an end are no part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from quoll.arm.insn import SP
from quoll.assumptions import HANDLER_STORES, UNDISTURBED, Assumption
from quoll.errors import WcetError
from quoll.image.memory_map import Span
from quoll.preemption.mask_states import UNMASKED, mask_at
from quoll.value_analysis.known_stores import KnownStore, stores
from quoll.value_analysis.value_results import ValueResults
from wcet.analysis.entries import platform_entry
from wcet.analysis.entry_stages import AnalysisTarget
from wcet.analysis.preparation import ValuedEntry, valued
from wcet.analysis.run import AnalysisRun
from wcet.platforms.platform_model import INTERRUPT

__all__ = ["InterruptHandler", "is_interrupted"]

NAMED = 4  # stores that an assumption names


@dataclass(frozen=True, slots=True)
class HandlerStores:
    """``spans``: bytes that the handler may store to; ``unknown``: the other stores, in words."""

    spans: frozenset[Span] = frozenset()
    unknown: str = ""


@dataclass(frozen=True)
class InterruptHandler:
    """The handler of the binary of ``run``; ``refuse`` raises WcetError if it is not followed."""

    run: AnalysisRun
    refuse: Callable[[int], None] = field(default=lambda address: None)

    @cached_property
    def stores(self) -> HandlerStores:
        """Its stores; none if the binary has no interrupt entry."""
        image, point = self.run.image, self.run.platform.entries.get(INTERRUPT)
        address = None if point is None else platform_entry(image, point)
        if address is None:
            return HandlerStores()
        try:
            self.refuse(address)
            values = valued(AnalysisTarget(self.run, INTERRUPT, address)).values
        except WcetError as error:
            return HandlerStores(unknown=f"which is not analysed ({error})")
        spans = frozenset(store.span for store in stores(values) if store.span is not None)
        places = list(dict.fromkeys(map(image.place, sorted(_unknown(values)))))
        more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
        where = f"at {', '.join(places[:NAMED])}{more}" if places else ""
        return HandlerStores(spans.union(*_of_replaced(values)), where)

    def valued(self, code: AnalysisTarget) -> ValuedEntry:
        """The values of ``code``, with the stores of the handler if interrupts enter its paths."""
        entry = valued(code)
        return self.interrupting(entry) if is_interrupted(entry) else entry

    def interrupting(self, entry: ValuedEntry) -> ValuedEntry:
        """``entry`` with values that the handler leaves between any two instructions."""
        if not self.stores.spans:
            return entry
        code = entry.code
        image = code.run.image.disturbed(self.stores.spans)
        return valued(replace(code, run=replace(code.run, image=image)))

    def disturbing(self, entry: ValuedEntry) -> Iterator[Assumption]:
        """The assumptions about code that runs between the instructions of ``entry``."""
        if is_interrupted(entry):
            yield from self.left_out(entry)

    def left_out(self, entry: ValuedEntry) -> Iterator[Assumption]:
        """The assumptions about such code that ``interrupting`` does not consider."""
        yield UNDISTURBED.of(entry=entry.code.name)
        if self.stores.unknown:
            yield HANDLER_STORES.of(entry=entry.code.name, stores=self.stores.unknown)


def is_interrupted(entry: ValuedEntry) -> bool:
    """Whether interrupts may be taken on the paths of ``entry``."""
    return bool(entry.unmasking or mask_at(entry.values, entry.graph.entry) & UNMASKED)


def _unknown(values: ValueResults) -> Iterator[int]:
    """The instructions that store at unknown addresses, or call code that does.

    Those through sp are stores into the handler's own stack.
    """
    graph = values.graph
    for store in stores(values):
        insn = graph.nodes[store.node].block.insns[store.insn]
        if store.span is None and not store.on_stack and not _is_pushed(values, store):
            yield insn.addr
    for edge in range(len(graph.edges)):
        if any(one.written is None and not one.preserves for one in graph.passed(edge)):
            yield graph.nodes[graph.edges[edge].src].block.last.addr


def _is_pushed(values: ValueResults, store: KnownStore) -> bool:
    memory = values.graph.nodes[store.node].block.insns[store.insn].memory
    return memory is not None and memory.base == SP and memory.index is None


def _of_replaced(values: ValueResults) -> Iterator[frozenset[Span]]:
    """The bytes that functions outside of the graph write, where they are known."""
    for edge in range(len(values.graph.edges)):
        yield from (one.written for one in values.graph.passed(edge) if one.written is not None)
