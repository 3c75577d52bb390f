"""Only loops that executions leave without a bound are proved, and no execution exceeds a bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.execution.together import executed_together
from loopbounds.followed_bounds import followed_bounds
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.facts.located import NO_FACTS, locate
from tests.testing.loopbounds.counting import Program, load
from tests.testing.quoll.building import build

FLAGS = ("-fno-tree-loop-distribute-patterns", "-fno-unroll-loops")
DATA = "#define data ((volatile unsigned char *)0x60000000)\n"
EARLY = "for (int i = 0; i < 20 && data[i]; i++) s++;"
BITS = "for (unsigned x = *(volatile unsigned *)data; x; x &= x - 1) s += 3;"
AFTER = "for (int i = 0; i < (data[9] & 15); i++) s += data[i];"
DEVICE = "while (data[9]) s ^= 7;"


class Prover:
    """Proves loops of a program, and remembers which."""

    def __init__(self, code: Program) -> None:
        self.code = code
        self.proved: list[frozenset[int] | None] = []
        self._options = BoundOptions(Budget(seconds=60), workers=1)

    def __call__(
        self, only: frozenset[int] | None, *, lower: bool = False
    ) -> tuple[LoopBound, ...]:
        code = self.code
        self.proved.append(only)
        facts = locate(NO_FACTS, code.image)
        return bound_loops(code.graph, code.image, code.values, facts, self._options, None, only)


def content(word: int) -> Callable[[int], int]:
    """Memory that repeats 256 bytes."""
    repeated = word.to_bytes(256, "little")
    return lambda at: repeated[at & 255]


def bounded(
    *loops: str, facts_limit: bool = False
) -> tuple[Prover, tuple[LoopBound, ...], ExecutionCounts | None]:
    body = " ".join(loops)
    source = f"{DATA}int main(void) {{ int s = 0; {body} return s; }}"
    code = load(build(source, *FLAGS, optimise="-O1"))
    prover = Prover(code)
    follow = partial(executed_together, code.graph, code.image, code.values)
    bounds, execution = followed_bounds(code.graph, follow, prover, None, facts_limit=facts_limit)
    for word in (0, 1, 0x5A5A5A5A, (1 << 2048) - 1):
        counts = code.counts((), content(word))
        for bound in bounds:
            header = code.graph.nodes[code.graph.loops[bound.loop].header].block.addr
            assert bound.bound is None or counts[header] <= bound.bound
    return prover, bounds, execution


@pytest.mark.parametrize(
    ("loops", "expected", "proofs"),
    [
        ((EARLY, AFTER), [15, 20], 0),
        ((EARLY, BITS, AFTER), [15, 20, 32], 1),
        ((BITS, EARLY), [20, 32], 1),
    ],
)
def test_only_the_loop_that_needs_a_proof_is_proved(
    loops: tuple[str, ...], expected: list[int], proofs: int
) -> None:
    prover, bounds, execution = bounded(*loops)
    assert execution is not None
    tried = set[int]().union(*(only for only in prover.proved if only is not None))
    assert (len(tried), None in prover.proved) == (proofs, False)
    found = sorted(b.bound or 0 for b in bounds)
    assert all(abs(n - bound) <= 1 for n, bound in zip(expected, found, strict=True))


def test_all_loops_are_proved_if_one_has_no_bound() -> None:
    prover, bounds, execution = bounded(EARLY, DEVICE)
    assert execution is None
    assert prover.proved[-1] is None
    assert sorted(b.bound is None for b in bounds) == [False, True]


def test_facts_may_limit_a_loop_further() -> None:
    prover, _, execution = bounded(EARLY, AFTER, facts_limit=True)
    assert execution is not None
    [only] = prover.proved
    assert only == execution.open
    assert only
