"""Target check of computed transfers in every calling context (rules 4 and 35).

Extraction decides the targets of returns and computed jumps function by function. Values enter the
callees and follow every store, also into the frames of callers. So each transfer is checked again:
a known target without an edge in the graph is an error, never a dead end. A return with an unknown
word, because a store into the stack may have hit it, is listed as an assumption; so are targets
that extraction found by the registers and frames that calls preserve, unless values confirm them
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from quoll.abstract_domain.abstract_state import AbstractState
from quoll.abstract_domain.condition import words
from quoll.abstract_domain.terms import describe, entry_symbol, exact_term
from quoll.abstract_domain.transfer import BlockExit
from quoll.abstract_domain.value_domain import ValueDomain
from quoll.arm.insn import LR, ControlFlow
from quoll.assumptions import RETURN_IN_CONTEXT, TARGETS_IN_CONTEXT, Assumption
from quoll.cfg.cfg import EdgeKind
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["checked_targets"]

INDIRECT = (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)
BACK = entry_symbol(LR) << 32  # the return address of the function
HINT = (
    "a store has changed its target word, or the stack was switched: state its targets "
    "(targets of PLACE are PLACE, ...), or end the path there"
)


def checked_targets(
    graph: Supergraph, image: Image, domain: ValueDomain, states: Sequence[AbstractState | None]
) -> Iterator[Assumption]:
    """The assumptions about transfers of ``graph`` whose edges values do not confirm.

    Raises ControlFlowError for a transfer that goes where no edge leads.
    """
    check = _TargetCheck(graph, image, domain)
    for node, state in enumerate(states):
        if state is None or graph.nodes[node].block.last.flow not in INDIRECT:
            continue
        leave = domain.outcome(node, state).leave
        if leave is not None and not check.is_stated(node):
            text = check.transfer(node, leave)
            if text is not None:
                yield text


@dataclass(frozen=True, slots=True)
class _TargetCheck:
    graph: Supergraph
    image: Image
    domain: ValueDomain

    def is_stated(self, node: int) -> bool:
        """Whether facts exclude every continuation from here, or end the path."""
        graph = self.graph
        block = graph.nodes[node].block
        if block.exits or any(
            r.source == block.last.addr and r.target is None for r in graph.guidance.removed
        ):
            return True
        context: int | None = graph.nodes[node].context
        never = graph.guidance.never
        while context is not None and never:
            if graph.contexts[context].function in never:
                return True
            context = graph.contexts[context].parent
        return False

    def transfer(self, node: int, leave: BlockExit) -> Assumption | None:
        """The assumption about the transfer that ends ``node``; None if values know its target."""
        block = self.graph.nodes[node].block
        if leave.target >> 32 in self.domain.environment.lost:
            raise ControlFlowError(
                f"the word by which {block.last.text} goes on is lost before: a store hits it "
                "wherever it goes",
                where=self.image.place(block.last.addr),
                hint=HINT,
            )
        fact = describe(leave.target, leave.state.facts)
        exits = node in self.graph.exits
        if block.returns and exits and exact_term(fact) == BACK:
            return None
        known = words(fact, self.domain.environment.stacks)
        targets = self._targets(node, leave.thumb)
        if not any(_is_member(target, known) for target in targets):
            if known != ANY or not (block.returns and exits):
                raise self._error(node, known, targets)
        elif _all_among(known, targets):
            return None
        last, place = block.last, self.image.place(block.last.addr)
        if block.returns:
            return RETURN_IN_CONTEXT.of(insn=last.text, place=place)
        return TARGETS_IN_CONTEXT.of(insn=last.text, place=place) if block.by_values else None

    def _targets(self, node: int, thumb: object) -> set[int]:
        """The targets that the graph allows for ``node``: its edges, and edges left out of it."""
        graph = self.graph
        block = graph.nodes[node].block
        found = {*block.passes, *graph.left_out.get(node, ())}
        for edge in (graph.edges[e] for e in graph.successors[node]):
            if edge.kind is EdgeKind.FALLTHROUGH:
                continue
            target = graph.nodes[edge.dst].block.insns[0]
            if not isinstance(thumb, bool) or target.thumb == thumb:
                found.add(target.addr)
        removed = graph.guidance.removed
        return found | {
            r.target
            for r in removed
            if r.target is not None and r.source in (None, block.last.addr)
        }

    def _error(self, node: int, known: ValueSet, targets: Iterable[int]) -> ControlFlowError:
        block = self.graph.nodes[node].block
        exact = known.exact
        if known == ANY:
            where = "where the entry was called from, or to an unknown place,"
        else:
            where = self.image.place(exact & ~1) if exact is not None else f"one of {known}"
        legal = ", ".join(self.image.place(t) for t in sorted(targets)) or "nowhere"
        return ControlFlowError(
            f"{block.last.text} goes to {where} but the graph only leads to: {legal}",
            where=self.image.place(block.last.addr),
            hint=HINT,
        )


def _is_member(address: int, known: ValueSet) -> bool:
    return address in known or address | 1 in known


def _all_among(known: ValueSet, targets: set[int]) -> bool:
    """Whether every word is a target; the lowest bit selects the instruction set."""
    return known.size <= 2 * len(targets) and all(word & ~1 in targets for word in known)
