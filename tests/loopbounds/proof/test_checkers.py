"""Results of the search count only if a checker proves them; and two checkers agree."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from loopbounds.budgets.budget import Budget, ProcessLimits, SolverLimits, StepLimits
from loopbounds.nusmv import nusmv_checker as nusmv_checker
from loopbounds.nusmv import nusmv_run as nusmv
from loopbounds.nusmv.nusmv_checker import NusmvChecker
from loopbounds.proof.abstractions import prove
from loopbounds.proof.bound import CHECKERS, NUSMV, SMT
from loopbounds.proof.keys import model_key
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.prove import ProofOutcome
from loopbounds.proof.workers import ParallelTasks, WorkerLimits, run_all
from loopbounds.smt import smt_checker as smt_checker
from loopbounds.smt.smt_checker import SmtChecker
from loopbounds.smt.solver import SmtOutcome, SmtResult, SmtSolver
from loopbounds.strategies.session import OutOfTime, SolverFailed, SolverSession
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term
from loopbounds.transition.model import LoopModel, at_most
from loopbounds.transition.query import InvariantQuery, InvariantResult, InvariantVerdict
from quoll.processes import children
from quoll.results.versions import package_version
from tests.testing.harness.cases import spread
from tests.testing.loopbounds.bounded import function
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.models import BUDGET, PROVED, N, X, bits, counted, word

THREES = counted(word(0), terms.add(X, word(3)), terms.ult(X, bits(N, 0xFF)))


def answering(
    monkeypatch: pytest.MonkeyPatch, some: InvariantVerdict, proof: InvariantVerdict
) -> None:
    """A NuSMV that says this of initial states and of bounds."""

    def ask(
        model: str, checks: Sequence[InvariantQuery], limits: ProcessLimits, solver: Path
    ) -> tuple[InvariantResult, ...]:
        assert [check.name for check in checks] == ["never", "bounded"]
        return InvariantResult(some, reason="said so"), InvariantResult(proof, ({}, {}), "said so")

    monkeypatch.setattr(nusmv, "check_invariants", ask)


RIGHT = (InvariantVerdict.FALSE, InvariantVerdict.TRUE)
PAIRS = list(product(InvariantVerdict, InvariantVerdict))
ALMOST = [pair for pair in PAIRS if (pair[0] is RIGHT[0]) != (pair[1] is RIGHT[1])]
OTHERS = [pair for pair in PAIRS if pair[0] is not RIGHT[0] and pair[1] is not RIGHT[1]]


@pytest.mark.slow("starts a worker for each pair")
@pytest.mark.parametrize(("some", "proof"), [RIGHT, *ALMOST, *spread(OTHERS, 3)])
def test_only_one_pair_of_answers_is_a_proof(
    monkeypatch: pytest.MonkeyPatch, some: InvariantVerdict, proof: InvariantVerdict
) -> None:
    """An initial state, and "is true". A contradiction is a failure, and said."""
    answering(monkeypatch, some, proof)
    outcome = prove(THREES, BUDGET, find_checker())
    proved = (some, proof) == RIGHT
    late = InvariantVerdict.EXPIRED in (some, proof) and InvariantVerdict.FAILED not in (
        some,
        proof,
    )
    assert (outcome.bound is not None) == proved
    assert bool(outcome.failed) == (not proved and not late)
    assert bool(outcome.model) == proved


def wrong_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that takes every induction step for proved."""
    real = SmtSolver.check

    def check(self: SmtSolver, formulas: Sequence[object], effort: StepLimits) -> SmtOutcome:
        found = real(self, formulas, effort)
        constrained = len(formulas) > 1
        return replace(found, result=SmtResult.UNSAT) if constrained else found

    monkeypatch.setattr(SmtSolver, "check", check)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", spread(PROVED, 7))
def test_a_search_that_errs_proves_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No bound is below the loop's: at worst the solver has failed, or there is no bound."""
    model, expected = PROVED[name]
    wrong_steps(monkeypatch)
    outcome = prove(model, BUDGET, find_checker())
    assert outcome.bound is None or outcome.bound >= expected


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", spread(PROVED, 9))
def test_checkers_agree(name: str) -> None:
    """Each proves the exact bound of each kind of counted loop, with the same relations."""
    model, expected = PROVED[name]
    found = [prove(model, BUDGET, find_checker(checker)) for checker in CHECKERS]
    assert [outcome.bound for outcome in found] == [expected] * len(found)
    assert len({(outcome.relations, outcome.reached) for outcome in found}) == 1
    assert found[0].reached <= expected


@pytest.mark.parametrize("checker", [NusmvChecker(nusmv.find_solver()), SmtChecker()])
@pytest.mark.parametrize(
    ("model", "claim"),
    [
        (THREES, at_most(85)),
        (THREES, FALSE),
        (LoopModel((N,), (), (), (terms.ult(N, word(1)), terms.ult(word(1), N)), FALSE), TRUE),
        (LoopModel((), (), (), (FALSE,), FALSE), at_most(9)),
    ],
)
def test_what_is_not_so_is_not_proved(
    checker: NusmvChecker | SmtChecker, model: LoopModel, claim: Term
) -> None:
    """A bound that is exceeded, or anything of a model without an initial state."""
    session = SolverSession(model, BUDGET, checker)
    with pytest.raises(SolverFailed, match="does not confirm"):
        session.proves(claim, 4)
    assert not session.text


@pytest.mark.slow("waits for limits of a solver")
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_proof_that_takes_too_long(checker: str) -> None:
    """Is none, and no failure; a budget that is spent ends the search."""
    a, b = terms.sym("a", 64), terms.sym("b", 64)
    product = terms.operation("mul", a, b)
    small = [terms.ult(x, terms.const(1 << 32, 64)) for x in (a, b)]
    one = [terms.ult(terms.const(1, 64), x) for x in (a, b)]
    model = LoopModel((a, b), (), (), (*small, *one), FALSE)
    claim = terms.negate(terms.eq(product, terms.const(9633832748884915969, 64)))
    budget = Budget(
        seconds=20, limits=SolverLimits(ProcessLimits(seconds=1), StepLimits(steps=200))
    )
    assert not SolverSession(model, budget, find_checker(checker)).proves(claim, 0)
    with pytest.raises(OutOfTime):
        SolverSession(model, Budget(seconds=0), find_checker(checker)).proves(claim, 0)
    with pytest.raises(OutOfTime):
        SolverSession(model, Budget(queries=0), find_checker(checker)).first_inductive([claim], 1)


@pytest.mark.slow("NuSMV proves each bound")
def test_without_nusmv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SMT solver proves the same bounds, and says that it did."""
    code = function("main")
    wanted = code.bounds(options=BoundOptions(Budget(seconds=20), workers=1))
    monkeypatch.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = code.bounds(options=BoundOptions(Budget(seconds=20), workers=1, checker=SMT))
    assert {b.method for b in wanted} == {NUSMV, ""}
    said = [replace(b, seconds=0.0, method=SMT if b.method else "") for b in wanted]
    assert [replace(b, seconds=0.0) for b in found] == said


def test_keys_name_every_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name and version of the search and of the checker are in the key of a proof."""
    versions = {"file": "1", "package": "1"}
    monkeypatch.setattr(nusmv_checker, "file_version", lambda path: versions["file"])
    monkeypatch.setattr(
        smt_checker, "package_version", lambda name: f"{name} {versions['package']}"
    )
    monkeypatch.setattr("loopbounds.proof.keys.versions", lambda *folders: ())

    def keys() -> list[str]:
        return [model_key(THREES, BUDGET, find_checker(name)) for name in CHECKERS]

    before = keys()
    assert len(set(before)) == 2
    versions["file"] = "2"
    assert [a == b for a, b in zip(before, keys(), strict=True)] == [False, True]
    versions.update(file="1", package="2")
    assert not set(before) & set(keys())
    versions["package"] = "1"
    assert keys() == before
    assert find_checker(SMT).identity == (("bitwuzla", "bitwuzla 1"),)


def test_the_library_is_told_apart_by_its_version() -> None:
    """It is one file, not a folder: a former version hashed all packages."""
    assert package_version("bitwuzla").startswith("bitwuzla-0.9.1.dist-info ")


def lost(question: str) -> ProofOutcome:
    """Asked of a worker that may use 64 MiB and a second."""
    found: dict[int, ProofOutcome] = {}

    def ask() -> ProofOutcome:
        if question == "time":
            while True:
                pass
        words = bytearray(1 << 28)
        return ProofOutcome.lost(f"it had {len(words)} bytes")

    work = ParallelTasks([ask], ProofOutcome.lost, found.__setitem__)
    run_all(work, 1, WorkerLimits(seconds=1, memory=1 << 26))
    return found[0]


@pytest.mark.slow("waits for limits of time and memory")
def test_a_worker_has_limits() -> None:
    """A query that hangs in the library, or uses up memory there, fails alone."""
    start = time.monotonic()
    assert lost("time").failed == "a worker process was killed by signal 24"
    assert time.monotonic() - start < 60
    script = "from tests.loopbounds.proof.test_checkers import lost; lost('memory')"
    root = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {script}"]
    ended = children.run(command, seconds=60)  # a process that had much before has room to spare
    assert ended.status == 1
    assert ended.errors.endswith("MemoryError\n")


@pytest.mark.slow("starts an interpreter with all commands")
def test_the_library_is_loaded_when_it_is_needed() -> None:
    """Most runs prove nothing: it would cost them ten milliseconds."""
    script = "import sys, wcet.cli, loopbounds.bounds; sys.exit('bitwuzla' in sys.modules)"
    root = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {script}"]
    assert children.run(command, seconds=60).status == 0
