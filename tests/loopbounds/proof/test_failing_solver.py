"""Loops when the solver fails, is killed or is missing: the query's loop has no bound.

Stated bounds still count, and other loops have their bounds (rule 38).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from loopbounds.budgets.budget import Budget, ProcessLimits, SolverLimits
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.proof.bound import NUSMV, SMT, LoopBound
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.prove import ProofOutcome
from loopbounds.proof.workers import ParallelTasks, WorkerLimits, run_all
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict
from quoll.results.results_store import ResultsStore
from tests.testing.harness.cases import cases, in_turn, spread
from tests.testing.loopbounds.bounded import function, stated
from tests.testing.loopbounds.counting import load
from tests.testing.quoll.building import build

CHILD = nusmv.CHILD


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A NuSMV on PATH that executes ``body``."""
    solver = folder / "NuSMV"
    solver.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n{body}\n")
    solver.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.slow("waits for solvers that fail")
@pytest.mark.parametrize(
    ("body", "workers"),
    in_turn(
        [
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "print('is true')",
            "time.sleep(100)",
            "sys.stdout.buffer.write(os.urandom(1 << 16))",
        ],
        [1, 2],
    ),
)
def test_a_failing_solver_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, workers: int
) -> None:
    """Each loop is 'solver failed', except for one with a stated bound, which is marked.

    Before, a solver that died made a stated bound disappear.
    """
    fake(tmp_path, monkeypatch, body)
    budget = Budget(seconds=20, limits=SolverLimits(ProcessLimits(seconds=1)))
    store = ResultsStore(tmp_path / "cache")
    options = BoundOptions(budget, workers=workers, store=store, prove_stated=True, checker=NUSMV)
    code = function("main")
    given = only_stated(code.bounds(stated(3, 40), options))
    assert given.explained == "my.facts:7 (assumed, not proved; the solver failed)"
    assert (given.bound, given.method, given.final) == (40, "fact", False)
    kept = [store.load(path.stem, ProofOutcome) for path in tmp_path.glob("cache/*")]
    assert all(proof.endless for proof in kept)  # no query to the solver


def only_stated(bounds: Sequence[LoopBound]) -> LoopBound:
    """The one bound; the others failed, but for the one of which nothing is asked: it has none."""
    [given] = [b for b in bounds if b.bound is not None]
    [endless] = [b for b in bounds if b is not given and not b.failed]
    assert "prog.c:14: the loop has no bound" in str(endless.reason)
    return given


def crashing_once(folder: Path, dying: int) -> str:
    """NuSMV, but that it crashes at one of the times that it is started."""
    return f"""
with open({str(folder / "asked")!r}, "ab") as counter:
    counter.write(b".")
    asked = counter.tell()
if asked == {dying}:
    os.kill(os.getpid(), signal.SIGSEGV)
sys.path.insert(0, {str(CHILD.parent)!r})
import child
sys.exit(child.run_library({str(nusmv.LIBRARY)!r}, sys.argv[1:]))
"""


@pytest.mark.slow("waits for solvers that fail")
@pytest.mark.parametrize(("dying", "workers"), in_turn([1, 2], [1, 2]))
def test_a_solver_that_crashes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dying: int, workers: int
) -> None:
    """A crash takes away one loop's answer; all that were to be asked later failed with it."""
    code = function("main")
    wanted = [b.bound for b in code.bounds()]
    fake(tmp_path, monkeypatch, crashing_once(tmp_path, dying))
    found = code.bounds(options=BoundOptions(Budget(seconds=20), workers=workers, checker=NUSMV))
    [failed] = [b for b in found if b.failed]
    assert str(failed.reason) == "solver failed: killed by signal 11"
    for bound, number in zip(found, wanted, strict=True):
        assert bound is failed or bound.bound == number


@pytest.mark.slow("waits for solvers that fail")
@pytest.mark.parametrize("dying", [1, 2])
def test_a_crash_that_the_smt_solver_makes_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dying: int
) -> None:
    """Unless the user names NuSMV. Such a result is not cached as NuSMV's.

    Before, all loops of the graph were searched again, those that do not depend on it, too.
    """
    code = function("main")
    wanted = code.bounds()
    fake(tmp_path, monkeypatch, crashing_once(tmp_path, dying))
    searched: list[str] = []
    found = code.bounds(
        options=BoundOptions(Budget(seconds=20), workers=1),
        progress=lambda _done, _of, place: searched.append(place),
    )
    assert sum("<list+" in place for place in searched) == 1
    assert [b.bound for b in found] == [b.bound for b in wanted]
    [proved] = [b for b in found if not b.final]
    assert proved.method == SMT
    assert "NuSMV failed (killed by signal 11)" in proved.unanswered
    assert {b.method for b in found if b.bound is not None} == {NUSMV, SMT}


SAME_LATER = """
volatile unsigned sink;
int main(unsigned k, unsigned n) {
    for (unsigned i = 0; i < 7; i++) { sink = i; __asm__ volatile("" : "+r"(i)); }
    k = n = 0;
    do { k++; n++; __asm__ volatile("" : "+r"(k), "+r"(n)); } while (k < 5);
    for (unsigned i = k - n; i < 7; i++) { sink = i; __asm__ volatile("" : "+r"(i)); }
    return 0;
}
"""


@pytest.mark.slow("waits for solvers that fail")
def test_a_question_that_failed_is_asked_again_for_a_later_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last loop has the first one's model, once the loop between them has a bound."""
    code = load(build(SAME_LATER))
    assert [b.bound for b in code.bounds()] == [7, 5, 7]
    fake(tmp_path, monkeypatch, crashing_once(tmp_path, 1))
    first, between, last = code.bounds(options=BoundOptions(workers=1, checker=NUSMV))
    assert first.failed
    assert [between.bound, last.bound] == [5, 7]


LIMIT = WorkerLimits(seconds=2, memory=1 << 28)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_dies(workers: int) -> None:
    """Killed by the kernel when memory runs out, say: its question failed, the others did not.

    Also where there is one worker: this process would have died.
    """

    def question(index: int) -> ProofOutcome:
        if index == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return ProofOutcome(index, 1, 0, "", "", 0.0)

    found: dict[int, ProofOutcome] = {}
    questions = [partial(question, i) for i in range(8)]
    run_all(ParallelTasks(questions, ProofOutcome.lost, found.__setitem__), workers, LIMIT)
    assert [found[i].bound for i in range(8)] == [0, 1, 2, None, 4, 5, 6, 7]
    assert found[3].failed == "a worker process was killed by signal 9"


KILLER = """import os, random, signal, subprocess, sys
with open({counter!r}, "ab") as counter:
    counter.write(b".")
    asked = counter.tell()
chance = random.Random({seed} * 1000 + asked)
arguments = [str(os.getpid()), *sys.argv[2:]]
if chance.random() < 0.1:
    arguments[1] = str(1 << 24)
run = subprocess.run(
    [sys.executable, "-I", "-S", {child!r}, *arguments], capture_output=True, close_fds=False
)
if chance.random() < 0.1:
    sys.stdout.buffer.write(run.stdout[: chance.randrange(len(run.stdout) + 1)])
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdout.buffer.write(run.stdout)
sys.stderr.buffer.write(run.stderr)
sys.exit(run.returncode if run.returncode >= 0 else 1)
"""


@pytest.mark.slow("waits for solvers that fail")
def test_a_solver_killed_at_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after any part of its output, or out of memory: the same number, or 'failed'."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=0, checker=NUSMV)
    wanted = [b.bound for b in code.bounds(options=options)]
    survived = failed = 0
    for seed in range(cases(12)):
        killer = tmp_path / f"killer{seed}.py"
        counter = str(tmp_path / f"asked{seed}")
        killer.write_text(KILLER.format(seed=seed, child=str(CHILD), counter=counter))
        monkeypatch.setattr(nusmv, "CHILD", killer)
        for bound, number in zip(code.bounds(options=options), wanted, strict=True):
            lost = bound.failed
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


@pytest.mark.slow("waits for solvers that fail")
def test_a_solver_that_fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever query it is: each loop has the same bound and total as ever, or 'failed'.

    There is a total here, a loop that begins where another one ends, and one whose simple model
    says too little.
    """
    code = load(build(NESTED, optimise="-O1"))
    options = BoundOptions(Budget(seconds=20), workers=0, checker=NUSMV)
    asked, real = [0], nusmv.check_invariants
    fails_at = 0

    def failing(
        model: str, checks: Sequence[InvariantQuery], limits: ProcessLimits, solver: Path
    ) -> tuple[InvariantResult, ...]:
        asked[0] += 1
        if asked[0] == fails_at:
            return tuple(InvariantResult(InvariantVerdict.FAILED, reason="killed") for _ in checks)
        return real(model, checks, limits, solver)

    monkeypatch.setattr(nusmv, "check_invariants", failing)
    wanted = [(b.bound, b.total) for b in code.bounds(options=options)]
    assert {total is None for _, total in wanted} == {True, False}
    queries, failed, incomplete = asked[0], 0, 0
    for fails_at in spread(range(1, queries + 1), 8):
        asked[0] = 0
        found = code.bounds(options=options)
        for bound, numbers in zip(found, wanted, strict=True):
            if bound.final:
                assert bound.bound == numbers[0], fails_at
                lost = numbers[1] is not None and bound.total is None  # with the loop around it
                assert bound.total == numbers[1] or (lost and any(b.failed for b in found))
            elif bound.bound is not None:
                assert bound.bound >= (numbers[0] or 0), fails_at
        assert sum(b.failed for b in found) <= 2  # its own, and one that begins where it ends
        assert any(not b.final for b in found)
        failed += any(b.failed for b in found)
        incomplete += any(b.unanswered for b in found)
    assert failed
    assert incomplete


def test_without_a_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stated bound stays, and the rest says that NuSMV is missing."""
    code = function("main")
    options = BoundOptions(Budget(seconds=20), workers=0, checker=NUSMV)
    monkeypatch.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = [b for b in code.bounds(options=options) if "NuSMV is missing" in str(b.reason)]
    assert len(missing) == 2
    assert all(b.failed for b in missing)
    given = only_stated(code.bounds(stated(3, 40), options))
    assert (given.bound, given.method) == (40, "fact")
