"""The domain of values: abstract states propagated through compiled blocks along typed edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_state import AbstractState, covered_by, merge
from quoll.abstract_domain.steps import CompiledBlock
from quoll.abstract_domain.transfer import BlockOutcome, run
from quoll.cfg.cfg import EdgeKind
from quoll.graph.fixpoint import AbstractDomain
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder

__all__ = ["ValueDomain"]

CLIMBS = 6  # widenings of one head that stop at thresholds
SIGN_LIMITS = (0, (1 << 31) - 1, 1 << 31)


class ValueDomain(AbstractDomain[AbstractState]):
    """Transfer, join and widening of states on one graph.

    ``special`` computes the state along edges of kinds that need more than the block, from the edge
    and its source's outcome. ``noting``: outcomes record the addresses of accesses.
    """

    noting = False

    def __init__(
        self,
        graph: FlowGraph,
        order: WeakOrder,
        blocks: Sequence[CompiledBlock],
        kinds: Sequence[EdgeKind],
        environment: AnalysisEnvironment,
        special: Mapping[EdgeKind, Callable[[int, BlockOutcome], AbstractState | None]],
    ) -> None:
        self.graph, self.order, self.blocks, self.kinds = graph, order, blocks, kinds
        self.environment, self.special = environment, special
        self._outcomes: dict[int, tuple[AbstractState, BlockOutcome]] = {}
        self._climbs: dict[int, int] = {}

    def outcome(self, node: int, state: AbstractState) -> BlockOutcome:
        """The outcome of ``node`` from ``state``; the last one for each node is cached."""
        known = self._outcomes.get(node)
        if known is not None and known[0] is state:
            return known[1]
        position = self.order.position[node]
        outcome = run(self.blocks[node], state, self.environment, position, noting=self.noting)
        self._outcomes[node] = (state, outcome)
        return outcome

    def transfer(self, edge: int, state: AbstractState) -> AbstractState | None:
        """The state along ``edge``, from the exit of its source."""
        outcome = self.outcome(self.graph.sources[edge], state)
        kind = self.kinds[edge]
        special = self.special.get(kind)
        if special is not None:
            return special(edge, outcome)
        if kind is EdgeKind.FALLTHROUGH:
            return outcome.fall
        return None if outcome.leave is None else outcome.leave.state

    def join(self, node: int, a: AbstractState, b: AbstractState) -> AbstractState:
        """The join of both states; renames symbols of the component headed by ``node``."""
        return merge(a, b, self.environment.names, self._span(node), "head")

    def widen(self, node: int, old: AbstractState, new: AbstractState) -> AbstractState:
        """As ``join``, but growing facts jump to the next constant that the code compares with."""
        span = self._span(node)
        climbs = self._climbs[node] = self._climbs.get(node, 0) + 1
        limits = set(SIGN_LIMITS)
        if climbs <= CLIMBS:
            for position in range(*span):
                limits |= self.environment.limits.get(position, set())
        return merge(old, new, self.environment.names, span, "head", sorted(limits))

    def leq(self, a: AbstractState, b: AbstractState) -> bool:
        """Whether ``b`` covers ``a``."""
        return covered_by(a, b)

    def _span(self, node: int) -> tuple[int, int]:
        position = self.order.position[node]
        return position, max(self.order.end[node], position)
