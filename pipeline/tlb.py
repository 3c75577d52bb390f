"""Translation look-aside buffers: cycles of table walks, charged where a walk is possible.

The state is the page translated last on each side, instructions and data: under any replacement
policy its translation is in the buffer. Any access to another page is charged in full: the refill
of the micro-TLB and, unless the page is locked in the main one, a walk of the page tables, whose
reads go to memory one after the other. Writes to translation registers (CP15 c2, c3, c8, c10, c13)
invalidate both sides, and so may prefetches that reach another page.

Source: ARM1136JF-S TRM (DDI 0211), chapter 6; Cortex-A8 TRM (DDI 0344), chapter 6.
"""

from __future__ import annotations

from cache.data_cache import DataAddresses
from cache.events import FlowOrder
from cache.geometry import CacheHierarchy
from pipeline.tlb_model import TlbModel
from quoll.arm.coprocessor import CoprocessorAction, coprocessor_operation
from quoll.arm.insn import AccessKind, Insn
from quoll.graph.fixpoint import solve
from quoll.inlining.supergraph import Supergraph

__all__ = ["changes_translation", "translations"]

# Page translated last: on the instruction side, on the data side. None: not known.
State = tuple[int | None, int | None]
UNKNOWN: State = (None, None)
TRANSLATION_REGISTERS = frozenset([2, 3, 8, 10, 13])


def translations(
    graph: Supergraph,
    flow: FlowOrder,
    addresses: DataAddresses,
    hierarchy: CacheHierarchy,
    model: TlbModel,
    access: int,
) -> tuple[int, ...]:
    """Most cycles per node to translate its addresses. ``access``: cycles of a memory access."""
    domain = _Domain(graph, addresses, hierarchy, model, access)
    fixed = solve(flow.graph, flow.order, domain, UNKNOWN)
    return tuple(
        0 if state is None else domain.run(node, state)[0]
        for node, state in enumerate(fixed.states)
    )


def changes_translation(insn: Insn) -> bool:
    """Whether ``insn`` may invalidate translations."""
    found = coprocessor_operation(insn)
    if found is None:
        return False
    if found.written is not None:
        return found.written.crn in TRANSLATION_REGISTERS
    return found.action is CoprocessorAction.WRITE_PAIR


class _Domain:
    """Instance of ``quoll.graph.fixpoint.AbstractDomain`` over ``State``."""

    def __init__(
        self,
        graph: Supergraph,
        addresses: DataAddresses,
        hierarchy: CacheHierarchy,
        model: TlbModel,
        access: int,
    ) -> None:
        self.graph, self.addresses, self.hierarchy = graph, addresses, hierarchy
        self.model, self.access = model, access

    def transfer(self, edge: int, state: State) -> State:
        if self.graph.passed(edge):  # a function that is not examined
            return UNKNOWN
        return self.run(self.graph.edges[edge].src, state)[1]

    def join(self, node: int, a: State, b: State) -> State:
        code, data = (x if x == y else None for x, y in zip(a, b, strict=True))
        return code, data

    def widen(self, node: int, old: State, new: State) -> State:
        return self.join(node, old, new)

    def leq(self, a: State, b: State) -> bool:
        return all(y is None or x == y for x, y in zip(a, b, strict=True))

    def run(self, node: int, state: State) -> tuple[int, State]:
        """Cycles of a node, and the state after it."""
        block, model, cycles = self.graph.nodes[node].block, self.model, 0
        code, data = state
        for index, insn in enumerate(block.insns):
            for addr in (insn.addr, insn.next - 1):
                page = model.page(addr)
                if page != code:
                    cycles += model.miss(page, self.access)
                    code = page
            if insn.memory is not None:
                due, data = self._data(node, index, insn, data)
                cycles += due
            if changes_translation(insn):
                code = data = None
            if model.page(insn.next - 1 + self.hierarchy.fetch_ahead) != model.page(insn.next - 1):
                cycles += model.walk(self.access)  # a prefetch into the next page
                code = None
        return cycles, (code, data)

    def _data(self, node: int, index: int, insn: Insn, known: int | None) -> tuple[int, int | None]:
        """Cycles of one access, and the page translated last after it."""
        memory, model = insn.memory, self.model
        assert memory is not None
        values = self.addresses.access(node, index)
        size = memory.size * memory.count
        page = None
        if values is not None:
            low, high = model.page(values.low), model.page(values.high + size - 1)
            page = low if low == high else None
        if page is not None and page == known:
            return 0, known
        certain = not (insn.conditional or memory.exclusive or memory.access is AccessKind.PRELOAD)
        after = page if certain else None
        if page is not None:
            return model.miss(page, self.access), after
        crosses = memory.count > 1 or not self.hierarchy.aligned
        return model.walk(self.access) * (2 if crosses else 1), after
