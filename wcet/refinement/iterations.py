"""Terms of an iteration as terms over an earlier iteration of the same loop.

The words at a header's next execution are terms over the words at this one, joined over all paths
of the iteration between (``SsaScope.next_visit``). Other unknown words of each iteration are new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loopbounds.slicing.gated_ssa import SsaScope
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, sym

__all__ = ["LaterIterations"]


@dataclass(frozen=True, slots=True)
class LaterIterations:
    """``scope``: of the iteration; ``decided``: simplifies its terms."""

    scope: SsaScope
    decided: Callable[[Term], Term]

    def after(self, terms: Sequence[Term], iterations: int) -> list[Term]:
        """``terms`` of an iteration, if the loop continues, over the words ``iterations`` before.

        From the last iteration back, the cells that each one needs; then from the first one on,
        their values.
        """
        steps: list[dict[Term, Term]] = []
        wanted = list(terms)
        for _ in range(iterations):
            cells = self.scope.symbols.leaves
            leaves = rewrite.symbols(wanted) & cells.keys()
            ordered = sorted(leaves, key=lambda leaf: leaf.serial)
            following = {leaf: self.decided(self.scope.next_visit(cells[leaf])) for leaf in ordered}
            steps.append(following)
            wanted = list(following.values())
        values: dict[Term, Term] = {}
        for number, following in enumerate(reversed(steps)):
            values = {leaf: self._at(term, values, number) for leaf, term in following.items()}
        return [self._at(term, values, iterations) for term in terms]

    def _at(self, term: Term, values: Mapping[Term, Term], number: int) -> Term:
        """``term`` in iteration ``number``, at whose header the cells have ``values``."""
        if number == 0:
            return term
        others = rewrite.symbols([term]) - self.scope.symbols.leaves.keys()
        renamed = {s: sym(f"{s.name}@{number}", s.width) for s in others}
        return rewrite.substitute(term, {**renamed, **values})
