"""From a program to values in every calling context, in one place.

Program -> expand -> guide -> values -> mark remainders -> values -> prune -> values

The values of the whole graph decide which edges are infeasible in their context (rule 4). Without
these edges fewer states meet, so the values of the remaining graph are more precise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from quoll.arm.insn import PC, Insn
from quoll.cfg.cfg import Block, Program
from quoll.errors import ControlFlowError
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.image.memory_map import Span
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand, without_edges
from quoll.inlining.supergraph import Supergraph
from quoll.inlining.vivu import FULL, VivuSettings
from quoll.intervals.strided_interval import ValueSet
from quoll.semantics.remainders import multiplies_long, with_remainders
from quoll.value_analysis.stated_words import refuse_contradicted
from quoll.value_analysis.value_results import EntryRegisters, ValueResults, analyse

__all__ = ["InlinedValues", "inlined"]


@dataclass(frozen=True, slots=True)
class InlinedValues:
    """The graph of an entry before and after its infeasible edges are removed, with values."""

    plain: Supergraph
    first: ValueResults  # of ``plain``
    graph: Supergraph
    values: ValueResults

    @property
    def changed(self) -> frozenset[Span]:
        """Memory treated as constant that stores hit: the image must be read again without it."""
        return self.first.changed | self.values.changed

    def read_again(self, image: Image) -> Image:
        """``image`` with the memory that this program changes: a new one if it is less constant."""
        if self.first.retranslates:
            image = image.retranslated()
        return image.changing(self.changed) if self.changed else image


def inlined(
    program: Program,
    address: int,
    image: Image,
    facts: LocatedFacts,
    *,
    vivu: VivuSettings = FULL,
    accept: Callable[[Supergraph], None] = lambda graph: None,
    stage: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
    starts: bool = False,
    masked: bool | None = None,
    mode: int | None = None,
    words: Mapping[tuple[int, int], ValueSet] | None = None,
) -> InlinedValues:
    """The values of ``program`` from the entry at ``address``, guided by ``facts``.

    ``starts``: paths start there, with memory as loaded. ``masked``: whether interrupts are masked
    there; ``mode``: the processor mode; None if it is not known. ``words``: possible values of
    words of memory there, by address and size.

    ``accept`` raises an error for a graph that cannot be analysed; it gets the pruned one.
    ``stage`` times the stages ``expand`` and ``values``. Raises ControlFlowError and
    InfeasibleError if no path is left.
    """
    regions = facts.regions
    with stage("expand"):
        plain = guided_in_contexts(expand(program, address, image, vivu), image, facts)
    with stage("values"):
        if masked is None and address & ~1 in regions.unmasked:
            masked = False
        mode = program.modes.get(address & ~1, mode)
        entry = EntryRegisters(mode, masked=masked, words=words or {})
        first = analyse(plain, image, entry, regions, starts=starts)
        marked = _with_remainders(first, image)
        if marked is not plain:
            plain, first = marked, analyse(marked, image, entry, regions, starts=starts)
        if (first.changed and image.as_loaded) or (
            first.retranslates and image.retranslated() is not image
        ):
            return InlinedValues(plain, first, plain, first)
        graph = without_edges(plain, first.dead_edges, image) if first.dead_edges else plain
        accept(graph)
        values = first
        if graph is not plain:
            values = first.within(graph) or analyse(graph, image, entry, regions, starts=starts)
        refuse_contradicted(values, image, regions)
        _refuse_other_modes(values, image, program.modes)
        return InlinedValues(plain, first, graph, values)


def _with_remainders(values: ValueResults, image: Image) -> Supergraph:
    """The graph of ``values``, with instructions marked that leave a remainder."""
    graph, marked = values.graph, dict[tuple[int, tuple[Insn, ...]], Block]()
    nodes = list(graph.nodes)
    for index, node in enumerate(graph.nodes):
        block = node.block
        if multiplies_long(block.insns):
            each = ((r, values.register(index, r).exact) for r in range(PC))
            known = {register: word for register, word in each if word is not None}
            insns = with_remainders(block.insns, known, image.constant)
            if insns != block.insns:
                new = marked.setdefault((id(block), insns), replace(block, insns=insns))
                nodes[index] = replace(node, block=new)
    return replace(graph, nodes=tuple(nodes)) if marked else graph


def _refuse_other_modes(values: ValueResults, image: Image, modes: Mapping[int, int]) -> None:
    """Raise ControlFlowError for a call in another mode than its function is assumed to have."""
    for index, node in enumerate(values.graph.nodes):
        assumed = modes.get(node.block.addr)
        mode = values.mode(index)
        if assumed is not None and mode is not None and mode != assumed:
            raise ControlFlowError(
                f"control gets here in mode {mode:#x}, though the function returns in mode "
                f"{assumed:#x}: its return uses another sp and lr than its call",
                where=image.place(node.block.addr),
                hint="state where its returns go: targets of PLACE are PLACE; or that the path "
                "ends there: path must end at PLACE",
            )
