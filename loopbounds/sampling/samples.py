"""A model with its known runs, and the candidate invariants that hold in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from loopbounds.budgets import table
from loopbounds.reduction.simplify import influential
from loopbounds.sampling.candidates import candidate_invariants
from loopbounds.sampling.runs import ModelRun, explore, longest
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term
from loopbounds.transition.model import LoopModel

__all__ = ["Samples", "with_one_condition"]


@dataclass(frozen=True)
class Samples:
    """Runs of ``model``. ``furthest``: known upper limits of terms in initial states."""

    model: LoopModel
    runs: Sequence[ModelRun]
    furthest: dict[Term, int] = field(default_factory=dict)

    @cached_property
    def candidates(self) -> list[Term]:
        """The candidate invariants that hold in all runs."""
        return candidate_invariants(self.model, self.runs)

    @property
    def reached(self) -> int:
        """The most executions of a run."""
        return longest(self.runs)

    @property
    def is_endless(self) -> bool:
        """Whether a run returns to an earlier state, so that there is no bound."""
        return any(run.endless for run in self.runs)

    @property
    def is_large(self) -> bool:
        """Whether runs are long, or start from values of many terms."""
        starts = (v.initial for v in self.model.state)
        return self.reached >= table.FAR_RUN or rewrite.size(*starts) >= table.FAR_START


def with_one_condition(samples: Samples) -> Iterator[Samples]:
    """The model with only one of its conditions to repeat, for each one whose runs are no longer.

    Such a model has all runs of the full model, and fewer relations. Conditions that read inputs
    are left out: the few runs found with them show little.
    """
    model = samples.model
    conditions = terms.conjuncts(model.again)
    for c in sorted(conditions, key=rewrite.size) if len(conditions) > 1 else ():
        simpler = influential(replace(model, again=c))
        if simpler.deterministic and 0 < len(simpler.state) < len(model.state):
            found = explore(simpler, [], samples.reached + 1)
            if found and longest(found) == samples.reached:
                yield Samples(simpler, found)
                return
