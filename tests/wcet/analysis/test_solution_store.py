"""SolvedEntry of integer programs that an earlier run has found (rules 30 and 31)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ilp.worst_case import WorstCase, worst_case
from quoll.results.results_store import ResultsStore
from tests.testing.quoll.building import build
from tests.testing.wcet.kept_program import CODE, PROGRAM
from wcet.analysis import integer_programs
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.run import AnalysisRun
from wcet.analysis.solution_store import ProgramInputs, ProgramSolution, SolutionStore, restored
from wcet.cli import main

NINE = "loop prog.c:20 at most 9\n"  # of drain
ONCE = "work executes at most 1 times\n"


class Runs:
    """Runs on one program with one cache; how many integer programs the last one solved."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.elf = build(PROGRAM, "-fno-inline", link=(CODE,))
        self.folder, self.facts, self.solved = folder, folder / "my.facts", 0
        self.paths: list[tuple[PreparedPaths, WorstCase]] = []
        answer = integer_programs.bound_of_paths

        def counted(*arguments: Any, **named: Any) -> WorstCase:
            self.solved += 1
            return worst_case(*arguments, **named)

        def seen(run: AnalysisRun, paths: PreparedPaths, *more: Any) -> Any:
            found = answer(run, paths, *more)
            self.paths.append((paths, found.worst))
            return found

        monkeypatch.setattr("ilp.entry.worst_case", counted)
        monkeypatch.setattr(integer_programs, "bound_of_paths", seen)

    def __call__(self, facts: str = NINE, *more: str) -> dict[str, Any]:
        """The entries in the JSON of a run."""
        out, self.solved = self.folder / "out.json", 0
        self.facts.write_text(facts)
        arguments = ["analyse", str(self.elf), "--platform", "kzm", "--quiet", "--json", str(out)]
        arguments += ["--entry", "pick", "--entry", "drain", "--facts", str(self.facts)]
        assert main([*arguments, "--cache", str(self.folder / "cache"), *more]) == 0
        entries: dict[str, Any] = json.loads(out.read_text())["entries"]
        return entries


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


@pytest.mark.slow("several whole analyses")
def test_an_answer_is_found_once(runs: Runs) -> None:
    first = runs()
    assert runs.solved == 2
    assert runs() == first
    assert runs.solved == 0


@pytest.mark.slow("several whole analyses")
def test_a_constraint_is_solved_where_it_constrains(runs: Runs) -> None:
    free = runs()
    tight = runs(f"{NINE}{ONCE}")
    assert runs.solved == 1
    assert tight["pick"]["cycles"] < free["pick"]["cycles"]
    assert tight["drain"] == free["drain"]
    again = runs(f"{NINE}# on another line\n{ONCE}")
    assert runs.solved == 0
    assert again["pick"]["cycles"] == tight["pick"]["cycles"]


@pytest.mark.slow("several whole analyses")
def test_a_constraint_that_does_not_bind_solves_nothing(runs: Runs) -> None:
    free = runs()
    loose = runs(f"{NINE}work executes at most 1000 times\n")
    assert runs.solved == 0
    assert loose["pick"]["cycles"] == free["pick"]["cycles"]
    assert any("1000" in text for text in loose["pick"]["assumptions"])
    assert runs(f"{NINE}work executes at most 1000 times\n") == loose
    assert runs.solved == 0
    runs(f"{NINE}pick executes at most 1000 times\n{ONCE}")
    assert runs.solved == 1, "the path breaks one of them"


@pytest.mark.slow("several whole analyses")
def test_facts_that_exclude_every_path_are_found_out(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs()
    with pytest.raises(AssertionError):  # of the status
        runs(f"{NINE}require work\nwork never executes\n")
    assert "exclude every path" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow("several whole analyses")
def test_a_program_that_is_written_is_solved(runs: Runs, tmp_path: Path) -> None:
    runs()
    runs(NINE, "--lp", str(tmp_path / "program.lp"))
    assert runs.solved == 2
    assert "maximize" in (tmp_path / "program.pick.lp").read_text().lower()


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    "change",
    [
        lambda answer: replace(answer, edges=answer.edges[:-1]),  # ends inside
        lambda answer: replace(answer, edges=answer.edges[1:]),  # begins inside
        lambda answer: replace(answer, edges=(*answer.edges[:-1], 1 << 20)),  # no edge
        lambda answer: replace(answer, edges=(*answer.edges[:-1], -1)),
        lambda answer: replace(
            answer, solution=replace(answer.solution, cycles=answer.solution.cycles - 1)
        ),
    ],
)
def test_an_answer_of_something_else_is_not_believed(
    runs: Runs, change: Callable[[ProgramSolution], ProgramSolution]
) -> None:
    runs()
    paths, worst = runs.paths[0]
    edges = tuple(step.edge for step in worst.path.steps if step.edge is not None)
    answer = ProgramSolution(worst.solution, edges)
    assert restored(answer, paths) == replace(worst, model=None)
    assert restored(change(answer), paths) is None


@pytest.mark.slow("several whole analyses")
def test_a_function_of_a_parameter_is_found_again(runs: Runs) -> None:
    runs("loop prog.c:20 at most n\n")
    runs("loop prog.c:20 at most n\n")
    assert runs.solved == 1
    runs("loop prog.c:20 at most n\n", "--set", "n=9")
    assert runs.solved == 1
    runs("loop prog.c:20 at most n\n", "--set", "n=9")
    assert runs.solved == 0
    runs("loop prog.c:20 at most n\n", "--set", "n=10")
    assert runs.solved == 1


@pytest.mark.slow("several whole analyses")
def test_another_bound_of_a_loop_is_another_program(runs: Runs) -> None:
    runs()
    entry, asked = "a key", [ProgramInputs((), {})]
    store, (paths, worst) = ResultsStore(runs.folder / "other"), runs.paths[0]
    SolutionStore(store, entry, [paths], asked, {}).save([worst])
    assert SolutionStore(store, entry, [paths], asked, {}).cached(0, paths) is not None
    more = tuple(replace(bound, bound=(bound.bound or 0) + 1) for bound in paths.bounds)
    other = replace(paths, bounds=more)
    assert SolutionStore(store, entry, [other], asked, {}).cached(0, other) is None
