"""The outputs of NuSMV that count as results, and outputs that must not."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from loopbounds.budgets.budget import ProcessLimits
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.nusmv.nusmv_run import check_invariants, find_solver
from loopbounds.transition.query import InvariantQuery, InvariantVerdict
from quoll.errors import SolverError
from quoll.processes import children

pytestmark = [pytest.mark.slow("starts model checkers"), pytest.mark.xdist_group("nusmv")]

COUNTER = """
MODULE main
VAR x : unsigned word[8];
INIT x = 0ud8_0;
TRANS next(x) = (x < 0ud8_10 ? x + 0ud8_1 : x);
DEFINE low := x <= 0ud8_10; tight := x <= 0ud8_9; never := FALSE;
INVARSPEC NAME spec_low := low; INVARSPEC NAME spec_tight := tight;
INVARSPEC NAME spec_never := never;
"""
FACTORING = """
MODULE main
VAR a : unsigned word[64]; b : unsigned word[64];
INIT a > 0ud64_1 & b > 0ud64_1 & a < 0ud64_4294967296 & b < 0ud64_4294967296;
TRANS next(a) = a & next(b) = b;
DEFINE prime := a * b != 0ud64_9633832748884915969;
INVARSPEC NAME spec_prime := prime;
"""


def script(tmp_path: Path, body: str) -> Path:
    """A fake solver on disk."""
    path = tmp_path / "NuSMV"
    path.write_text(f"#!{sys.executable}\nimport os, signal, sys\n{body}\n")
    path.chmod(0o755)
    return path


def test_verdicts_and_traces() -> None:
    """True, and false with a trace from an initial state, each for its own property."""
    checks = [InvariantQuery("low"), InvariantQuery("tight", depth=12)]
    true, false = check_invariants(COUNTER, checks, ProcessLimits(), find_solver())
    assert true.verdict is InvariantVerdict.TRUE
    assert false.verdict is InvariantVerdict.FALSE
    assert [state["x"] for state in false.trace] == list(range(11))


def test_induction_that_is_too_shallow_proves_nothing() -> None:
    """The bound 10 is reached after ten steps only: five decide nothing."""
    [answer] = check_invariants(
        COUNTER, [InvariantQuery("tight", depth=5)], ProcessLimits(), find_solver()
    )
    assert answer.verdict is InvariantVerdict.UNKNOWN


@pytest.mark.slow("waits for a solver that hangs")
def test_out_of_time() -> None:
    """A query that takes its whole processor time is out of time, not answered."""
    [answer] = check_invariants(
        FACTORING, [InvariantQuery("prime")], ProcessLimits(seconds=1), find_solver()
    )
    assert answer.verdict is InvariantVerdict.EXPIRED


@pytest.mark.slow("waits for a solver that hangs")
@pytest.mark.parametrize(
    "body",
    [
        "import time\ntime.sleep(60)",
        "os.system('sleep 60')",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGSTOP)",
    ],
)
def test_stuck(tmp_path: Path, body: str) -> None:
    """A solver that does nothing is ended at its limit, and failed.

    It was ended after 60 times its limit, or never where a process of its own held its output.
    """
    start = time.monotonic()
    [answer] = check_invariants(
        COUNTER, [InvariantQuery("low")], ProcessLimits(seconds=1), script(tmp_path, body)
    )
    assert answer.verdict is InvariantVerdict.FAILED
    assert time.monotonic() - start < 50  # it would sleep for 60


def test_a_flood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that prints without end is ended when it has printed enough."""
    monkeypatch.setattr(children, "OUTPUT", 1 << 20)
    body = "while True:\n    sys.stdout.write('is true ' * 1000)"
    [answer] = check_invariants(
        COUNTER, [InvariantQuery("low")], ProcessLimits(), script(tmp_path, body)
    )
    assert answer.verdict is InvariantVerdict.FAILED


@pytest.mark.parametrize("megabytes", [1, 10, 20, 30])
def test_out_of_memory(megabytes: int) -> None:
    """A solver that gets too little memory failed, wherever it notices."""
    [answer] = check_invariants(
        COUNTER, [InvariantQuery("low")], ProcessLimits(memory=megabytes << 20), find_solver()
    )
    assert answer.verdict is InvariantVerdict.FAILED


@pytest.mark.parametrize(
    "body",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "sys.exit(3)",
        "print('-- invariant low  is true')",
        "print('quoll-begin 0 \\n-- invariant low  is true')",
        "print('quoll-begin 0 \\n-- invariant other  is true\\nquoll-end 0 ')",
        "print('quoll-begin 0 \\n-- invariant low  is true\\n-- invariant low  is false\\n"
        "quoll-end 0 ')",
        "sys.stdout.buffer.write(os.urandom(4096))",
        "print('is true ' * 100)",
    ],
)
def test_a_solver_that_misbehaves(tmp_path: Path, body: str) -> None:
    """Killed, crashed, silent, or saying anything but one verdict in its frame: failed."""
    [answer] = check_invariants(
        COUNTER, [InvariantQuery("low")], ProcessLimits(), script(tmp_path, body)
    )
    assert answer.verdict is InvariantVerdict.FAILED


def test_what_was_answered_before_a_crash_counts(tmp_path: Path) -> None:
    """A complete frame keeps its verdict; the rest failed."""
    body = (
        "print('quoll-begin 0 \\n-- invariant low  is true\\nquoll-end 0 \\nquoll-begin 1 ',"
        " flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    checks = [InvariantQuery("low"), InvariantQuery("tight")]
    first, second = check_invariants(COUNTER, checks, ProcessLimits(), script(tmp_path, body))
    assert (first.verdict, second.verdict) == (InvariantVerdict.TRUE, InvariantVerdict.FAILED)


def test_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the library and with nothing on PATH there is one clear error."""
    monkeypatch.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SolverError, match="wcet setup"):
        find_solver()
    solver = script(tmp_path, "")
    assert find_solver() == solver
