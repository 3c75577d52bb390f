"""The strategies in their order: which one proves the bound of a loop."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

import loopbounds
from loopbounds.proof.prove import STRATEGIES
from loopbounds.strategies.explicit_states import ExplicitStates
from loopbounds.strategies.session import OutOfTime
from loopbounds.strategies.strategy import ProofTask
from loopbounds.terms import bit_vectors as terms
from loopbounds.transition.model import LoopModel, StateVariable
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.models import BUDGET, PROVED, UP, M, N, X, bits, counted, word

DOCUMENT = Path(loopbounds.__file__).parents[1] / "docs" / "loopbounds.md"
BY_32 = terms.add(X, word(32))
BY_EIGHT = terms.add(X, word(8))
MODELS = {
    "closed form of a linear loop": (PROVED["a million"][0], 1 << 20),
    "Houdini at the longest run": (PROVED["up to a limit"][0], 121),
    "acceleration in linear phases": (
        LoopModel((), (StateVariable(X, word(0), BY_EIGHT),), (), (), terms.ult(X, word(1 << 15))),
        4097,
    ),
    "Houdini on equations": (
        counted(bits(N, 0xFFF8), BY_EIGHT, terms.ult(X, word(1 << 16))),
        8193,
    ),
    "bounded model checking": (counted(word(0), UP, terms.ult(X, bits(N, 1))), 2),
    "ranking by distance": (
        counted(
            N,
            UP,
            terms.ult(X, M),
            terms.both(terms.ule(N, M), terms.ule(terms.sub(M, N), word(70_000))),
        ),
        70_001,
    ),
    "k-induction": (
        counted(M, BY_32, terms.ult(terms.sub(X, M), word((32 << 20) - 32))),
        1 << 20,
    ),
}


@pytest.mark.slow("proves loops by each strategy")
@pytest.mark.parametrize("name", MODELS)
def test_who_proves(name: str) -> None:
    """Each strategy has a loop of its own, which the earlier strategies cannot settle."""
    model, bound = MODELS[name]
    task = ProofTask(model, BUDGET, find_checker())
    proving = ""
    for strategy in STRATEGIES:
        before = task.best
        if strategy.applies(task):
            with suppress(OutOfTime):
                task.take(strategy.attempt(task))
        if task.best is not before:
            proving = strategy.name
        if task.is_settled:
            break
    assert task.best is not None
    assert (proving, task.best.bound) == (name, bound)


def test_the_document_lists_them_in_order() -> None:
    _, _, section = DOCUMENT.read_text().partition("\n### Strategies\n")
    _, _, rows = section.partition("|---|")
    listed = re.findall(r"^\| ([^|]+) \|", rows.partition("\n\n")[0], re.M)
    names = [strategy.name for strategy in (*STRATEGIES, ExplicitStates())]
    assert list(dict.fromkeys(listed)) == list(dict.fromkeys(names))
