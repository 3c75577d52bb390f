"""Evidence of loop bounds, and why there is none, are records that are stored between runs."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from loopbounds.proof.bound import (
    ConcreteExecution,
    Evidence,
    LoopBound,
    NamedCount,
    NoBound,
    NoBoundKind,
    NotWhilePending,
    ProvedInvariant,
    StatedCount,
)
from quoll.assumptions import F1, LOOP_FACT, S1
from quoll.results.serialization import from_text, to_text

EVIDENCE: dict[str, Evidence] = {
    "count <= 7 is an invariant (k-induction with 1 relation); not known to be tight; assumes F1, "
    "S1; counted after the first iteration": ProvedInvariant(7, 1, apart=True),
    "counted in the concrete execution of its entry, 1,234 instructions": ConcreteExecution(1234),
    "the most in any execution of its entry; all were followed together in 1,234 instructions": (
        ConcreteExecution(1234, only=False)
    ),
    "a.facts:7 (assumed, no proof was tried)": StatedCount("a.facts:7", tried=False),
    "a.facts:7 (assumed, not proved; the proved bound is 9; the solver failed; if it is "
    "entered, it may be executed 8 times)": StatedCount(
        "a.facts:7", True, 9, solver_failed=True, executed=8
    ),
    "a.facts:7: at most n + 1": NamedCount("a.facts:7", "n + 1"),
    "a.facts:7: n + 1, and n = 3": NamedCount("a.facts:7", "n + 1", "n = 3"),
    "does not iterate while an interrupt is pending, which is tested at 0x8000": NotWhilePending(
        ("0x8000",)
    ),
}
REASONS = {
    "solver failed: killed by signal 11": NoBound(NoBoundKind.SOLVER_FAILED, "killed by signal 11"),
    "not asked for": NoBound(NoBoundKind.NOT_TRIED),
    "0x8000: the loop has no bound: nothing bounds r0; add 'loop a.c:3 at most N', or 'list at "
    "a.c:3 has at most N elements'": NoBound(
        NoBoundKind.NOT_PROVED, "nothing bounds r0", "0x8000", "a.c:3", walks=True
    ),
}


def bound(evidence: Evidence | None, reason: NoBound | None = None) -> LoopBound:
    """Of a loop whose proof rests on two assumptions."""
    return LoopBound(0, 7, None, "", evidence, reason, 0.5, assumed=(S1.of(), F1.of()))


@pytest.mark.parametrize("text", EVIDENCE)
def test_evidence_is_printed_in_one_line(text: str) -> None:
    found = bound(EVIDENCE[text])
    assert found.explained == text
    total = replace(found, total=30, around=0x8000)
    assert total.explained == f"{text}; 30 per entry of the loop around it"


@pytest.mark.parametrize("text", REASONS)
def test_reasons_are_printed_in_one_line(text: str) -> None:
    assert str(REASONS[text]) == text
    assert str(replace(REASONS[text], tests=True)).startswith(f"{text}; that it tests for")


BOUNDS = [*map(bound, EVIDENCE.values()), *(bound(None, reason) for reason in REASONS.values())]


@pytest.mark.parametrize("found", BOUNDS)
def test_bounds_are_the_same_when_they_are_read_again(found: LoopBound) -> None:
    for again in (pickle.loads(pickle.dumps(found)), from_text(to_text(found))):
        assert again == found
        assert (again.explained, again.failed) == (found.explained, found.failed)
        assert again.assumptions == found.assumptions


def test_a_stated_bound_follows_its_fact() -> None:
    found = bound(EVIDENCE["a.facts:7 (assumed, no proof was tried)"])
    assert found.fact == LOOP_FACT.of("a.facts:7", evidence=" (assumed, no proof was tried)")
    moved = found.moved({"a.facts:7": "b.facts:70"})
    assert moved.explained == "b.facts:70 (assumed, no proof was tried)"
    assert found.moved({"a.facts": "b.facts:70"}) == found
