"""Every command where a solver gives a bound, and no counts that reach it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solve import BoundProof, maximise
from ilp.solvers.solver_result import Proposal, Solver
from tests.testing.quoll.building import build
from wcet.cli import main

SOURCE = """volatile unsigned sink;
__attribute__((noinline)) void step(unsigned n) {
    for (unsigned i = 0; i < (n & 7); i++) sink = i;
}
void main(unsigned n) {
    for (unsigned i = 0; i < 9; i++) { if (n & 1) step(n); else sink = n; }
}
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Bounds without counts, and proofs of loops, for all commands."""
    return str(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def elf(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program, of which a solver proves bounds only."""

    def without_counts(
        model: IntegerProgram,
        solver: Solver,
        seconds: float | None = None,
        proposal: Proposal | None = None,
    ) -> BoundProof:
        proof = maximise(model, solver, seconds, proposal)
        return replace(proof, values=None, attained=False, method="no counts")

    monkeypatch.setattr("ilp.longest_path.maximise", without_counts)
    return build(SOURCE, optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))


COMMANDS: dict[str, tuple[str, int]] = {
    "analyse": ("analyse {elf} --entry main", 0),
    "wide, details": ("analyse {elf} --entry main --wide --details", 0),
    "full paths": ("analyse {elf} --entry main --paths full --stats", 0),
    "json, page": ("analyse {elf} --entry main --json {out}/a.json --html {out}/a.html", 0),
    "a copy of each call": ("analyse {elf} --entry main --share never --html {out}/a.html", 0),
    "always shared": ("analyse {elf} --entry main --share always --html {out}/a.html", 0),
    "path": ("path {elf} --entry main", 8),
    "why": ("path {elf} --entry main --why step", 8),
    "advise": ("advise {elf} --entry main", 2),
    "cache": ("cache {elf} --entry main", 0),
    "timing": ("timing {elf} step --entry main", 0),
    "latency": ("latency {elf} --entry main --json {out}/a.json", 0),
    "masked": ("masked {elf} --entry main", 0),
    "everywhere": ("masked {elf} --everywhere", 2),
    "baseline": ("baseline {elf} --entry main --output {out}/b.json", 0),
    "diff": ("diff {elf} {elf} --entry main", 0),
    "drawn": ("cfg {elf} --function step --cycles main --dot {out}/a.dot", 2),
}


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_bound_without_counts(
    capsys: pytest.CaptureFixture[str], elf: Path, kept: str, tmp_path: Path, name: str
) -> None:
    """It was a defect: causes and pages counted the nodes of counts that are not there."""
    command, wanted = COMMANDS[name]
    words = command.format(elf=elf, out=tmp_path).split()
    if words[0] != "cfg":
        words += ["--cache", kept, "--quiet"]
    status = main([*words, "--platform", "kzm"])
    said = capsys.readouterr()
    assert status != 70, said.err
    assert status == wanted, said
