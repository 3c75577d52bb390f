"""Loop models in words of 8 and of 4 bits against brute force: no bound is below an execution.

    make campaign-loop_models ARGS='--rounds 2 --seed 1'
    make campaign-loop_models ARGS='--elf build/bilby/kzm-after/kernel.elf --function sys_send'

The models are slices of the random suite's programs, or of functions of an ELF, after the bounds of
inner and earlier loops are proved; each is narrowed, and every initial state and input is tried.
Stops at the first model with an execution above its bound, with an exact bound that no execution
reaches, or about which the two checkers disagree. Counts of models: narrowed, bounded, endless,
exact, equal to the longest execution.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from campaigns.both_checkers import BothCheckers
from campaigns.loop_programs import LEVELS
from loopbounds.budgets.budget import Budget
from loopbounds.proof.abstractions import prove
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.rounds import ProofRounds
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.stacks import StackSpans
from loopbounds.transition.model import LoopModel
from tests.testing.loopbounds.brute_force import NotNarrow, free_bits, most_executions, narrowed
from tests.testing.loopbounds.counting import Program, load
from tests.testing.loopbounds.programs import KINDS, random_program
from tests.testing.quoll.building import build

__all__ = ["Result", "against_brute_force", "models_of"]

NARROWER = (4, 8)  # words of 8 bits; of 4
MOST_BITS = 16  # of parameters and inputs, whose values are all tried


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one model; all false: too many bits after narrowing, or no initial state."""

    narrowed: bool = False
    bounded: bool = False
    endless: bool = False
    exact: bool = False
    equal: bool = False


def models_of(code: Program, budget: Budget) -> list[LoopModel]:
    """The models of all loops of a function, as sliced when all are proved."""
    stacks = StackSpans.of((n.block for n in code.graph.nodes), code.image)
    whole = GraphCode(code.graph, AcyclicGraph.of(code.graph), code.image, code.values, stacks)
    rounds = ProofRounds(whole, BoundOptions(budget, workers=0), BothCheckers.found(), None)
    rounds.run(range(len(code.graph.loops)))
    return [rounds.slices[loop.index].model for loop in code.graph.loops]


def against_brute_force(model: LoopModel, budget: Budget) -> Result:
    """Prove a narrowed model and enumerate it. Raises AssertionError where they disagree."""
    small = _small(model)
    if small is None:
        return Result()
    longest = most_executions(small)
    if longest == 0:
        return Result()
    outcome = prove(small, budget, BothCheckers.found())
    assert not outcome.failed, (outcome, small)
    if longest is None:
        assert outcome.bound is None, (outcome, small)
        return Result(narrowed=True, endless=True)
    assert not outcome.endless, (longest, small)
    exact = outcome.tight and not small.inputs
    if outcome.bound is not None:
        assert longest <= outcome.bound, (longest, outcome, small)
        assert not exact or longest == outcome.bound, (longest, outcome, small)
    return Result(True, outcome.bound is not None, False, exact, outcome.bound == longest)


def _small(model: LoopModel) -> LoopModel | None:
    """The widest narrowed model that is small enough."""
    for by in NARROWER:
        try:
            small = narrowed(model, by)
        except NotNarrow:
            return None
        if free_bits(small) <= MOST_BITS:
            return small
    return None


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--elf", type=Path)
    parser.add_argument("--function", action="append", default=[])
    options = parser.parse_args()
    budget, total = Budget(seconds=10), Counter[str]()

    def take(name: str, code: Program) -> None:
        found = Counter[str]()
        for model in models_of(code, budget):
            result = against_brute_force(model, budget)
            found["models"] += 1
            for column in Result.__dataclass_fields__:
                found[column] += getattr(result, column)
        total.update(found)
        print(name, dict(found), flush=True)

    for function in options.function:
        take(function, load(options.elf, function))
    for number in range(0 if options.elf else options.rounds):
        for kind in KINDS:
            for level in LEVELS:
                source = random_program(random.Random(f"{options.seed} {number} {kind}"), kind)
                take(f"{kind} {level}", load(build(source, optimise=level)))
    print("all", dict(total))


if __name__ == "__main__":
    main()
