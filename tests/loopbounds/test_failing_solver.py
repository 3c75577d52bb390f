"""What is said of loops when the solver fails, is killed or is missing: nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from loopbounds import nusmv
from loopbounds.bounds import BoundOptions
from loopbounds.nusmv import Answer, Check, Limits, Verdict
from loopbounds.prove import Budget
from quoll.store import Store
from tests.loopbounds.bounded import function, stated
from tests.loopbounds.counting import load
from tests.quoll.building import build

CHILD = nusmv.CHILD


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("body", ["os.kill(os.getpid(), signal.SIGKILL)", "print('is true')"])
def test_a_failing_solver_bounds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, workers: int
) -> None:
    """Each loop is 'solver failed', also with a fact: no other number than before."""
    solver = tmp_path / "NuSMV"
    solver.write_text(f"#!{sys.executable}\nimport os, signal\n{body}\n")
    solver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    options = BoundOptions(Budget(seconds=20), workers=workers, store=Store(tmp_path / "cache"))
    for bound in function("main").bounds(stated(3, 40), options):
        assert bound.bound is None
        assert bound.failed
    assert not list(tmp_path.glob("cache/*"))


KILLER = """import os, random, signal, subprocess, sys
with open({counter!r}, "ab") as counter:
    counter.write(b".")
    asked = counter.tell()
chance = random.Random({seed} * 1000 + asked)
arguments = sys.argv[1:]
if chance.random() < 0.1:
    arguments[0] = str(1 << 24)
run = subprocess.run([sys.executable, "-I", "-S", {child!r}, *arguments], capture_output=True)
if chance.random() < 0.1:
    sys.stdout.buffer.write(run.stdout[: chance.randrange(len(run.stdout) + 1)])
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdout.buffer.write(run.stdout)
sys.stderr.buffer.write(run.stderr)
sys.exit(run.returncode if run.returncode >= 0 else 1)
"""


def test_a_solver_killed_at_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after any part of its output, or out of memory: the same number, or 'failed'."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=1)
    wanted = [b.bound for b in code.bounds(options=options)]
    survived = failed = 0
    for seed in range(6):
        killer = tmp_path / f"killer{seed}.py"
        counter = str(tmp_path / f"asked{seed}")
        killer.write_text(KILLER.format(seed=seed, child=str(CHILD), counter=counter))
        monkeypatch.setattr(nusmv, "CHILD", killer)
        for bound, number in zip(code.bounds(options=options), wanted, strict=True):
            lost = bound.bound is None and bound.reason.startswith("solver failed")
            assert lost or bound.bound == number
            failed += lost
            survived += bound.bound is not None
    assert failed > 1
    assert survived > 1


NESTED = """volatile unsigned sink;
int main(unsigned a, volatile unsigned *p) {
    unsigned i, j;
    for (i = 0; i < 20; i++)
        for (j = 0; j <= i; j++)
            sink = j;
    for (i = 0; i < (a & 31); i++)
        sink = i;
    for (; i < 40; i += 3)
        sink = i;
    for (i = 0; i < ((*p << (*p & 3)) & 7); i++)
        sink = i;
    return 0;
}
"""


def test_a_solver_that_fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever query it is: each loop has the same bound and total as ever, or 'failed'.

    There is a total here, a loop that begins where another one ends, and one whose simple model
    says too little.
    """
    code = load(build(NESTED, optimise="-O1"))
    options = BoundOptions(Budget(seconds=20), workers=1)
    asked, real = [0], nusmv.ask
    fails_at = 0

    def failing(
        model: str, checks: Sequence[Check], limits: Limits, solver: Path
    ) -> tuple[Answer, ...]:
        asked[0] += 1
        if asked[0] == fails_at:
            return tuple(Answer(Verdict.FAILED, reason="killed") for _ in checks)
        return real(model, checks, limits, solver)

    monkeypatch.setattr(nusmv, "ask", failing)
    wanted = [(b.bound, b.total) for b in code.bounds(options=options)]
    assert {total is None for _, total in wanted} == {True, False}
    queries, failed = asked[0], 0
    for fails_at in range(1, queries + 1):
        asked[0] = 0
        for bound, numbers in zip(code.bounds(options=options), wanted, strict=True):
            assert bound.failed or (bound.bound, bound.total) == numbers, fails_at
            failed += bound.failed
    assert failed >= queries


def test_without_a_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored keeps its number; the rest says that NuSMV is missing."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=1)
    monkeypatch.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    for bound in code.bounds(options=options):
        assert bound.bound is None
        assert "NuSMV is missing" in bound.reason
