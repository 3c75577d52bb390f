"""A solver that is missing or dies: one message, the exit status, and the remaining functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopbounds.nusmv import nusmv_run as nusmv
from tests.testing.harness.cases import spread
from tests.testing.quoll.building import build
from wcet.cli import main

# No execution is followed behind a store that may hit any word: the loops need a solver.
SOURCE = """volatile unsigned sink;
void other(unsigned a) {
    for (unsigned i = 0; i < (a & 7); i++) sink = i;
}
void main(unsigned a, unsigned *p) {
    *p = a;
    for (unsigned i = 0; i < (a & 65535); i++) sink = i;
    for (unsigned x = a & 31; x; x >>= 1) sink = x;
    other(a);
    other(sink);
}
"""
ALL = "loop prog.c:3 at most 8\nloop prog.c:7 at most 65536\nloop prog.c:8 at most 6\n"


@pytest.fixture
def elf() -> Path:
    flags = ("-fno-unroll-loops", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra")
    return build(SOURCE, *flags, optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))


@pytest.fixture(params=["missing", "dead", "garbage"])
def solver(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The message for this defect of NuSMV."""
    if request.param == "missing":
        monkeypatch.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
        return "NuSMV is missing"
    body = "os.kill(os.getpid(), signal.SIGSEGV)" if request.param == "dead" else "print('true')"
    path = tmp_path / "NuSMV"
    path.write_text(f"#!{sys.executable}\nimport os, signal\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return "killed by signal 11" if request.param == "dead" else "not understood"


def analysed(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    words = ["analyse", *map(str, arguments), "--entry", "main", "--no-cache", "--quiet"]
    words += ["--checker", "nusmv"]
    status = main([*words, "--platform", "kzm"])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.slow("waits for solvers that fail")
def test_no_answer_is_status_8(capsys: pytest.CaptureFixture[str], elf: Path, solver: str) -> None:
    """Status 6 was for loops that are not proved; each loop is named once, in any contexts."""
    status, out, err = analysed(capsys, elf)
    assert (status, out) == (8, "")
    assert err.count("wcet: error E1") == 1
    assert err.count(solver) == 1
    for line in (3, 7, 8):
        assert err.count(f"prog.c:{line}") == 1


@pytest.mark.slow("waits for solvers that fail")
def test_stated_loops_need_no_solver(
    capsys: pytest.CaptureFixture[str], elf: Path, solver: str, tmp_path: Path
) -> None:
    """An entry whose loops are all stated had no bound without NuSMV."""
    facts = tmp_path / "all.facts"
    facts.write_text(ALL)
    status, out, err = analysed(capsys, elf, "--facts", facts)
    assert (status, err) == (0, "")
    assert out.count("assumed, no proof was tried") >= 3
    status, out, err = analysed(capsys, elf, "--facts", facts, "--prove-stated")
    assert status == 0
    assert out.count("assumed, not proved; the solver failed") >= 3
    for line in (3, 7, 8):
        assert err.count(f"prog.c:{line}") == 1


def test_what_is_not_proved_is_status_6(capsys: pytest.CaptureFixture[str]) -> None:
    elf = build("void main(volatile unsigned *p) { while (*p) ; }", link=("-Wl,-Ttext=0xf0010000",))
    assert analysed(capsys, elf)[0] == 6


@pytest.mark.slow("waits for solvers that fail")
def test_the_listing_says_8(capsys: pytest.CaptureFixture[str], elf: Path, solver: str) -> None:
    words = ["loops", str(elf), "--entry", "main", "--no-cache", "--quiet"]
    assert main([*words, "--checker", "nusmv"]) == 8
    assert solver in capsys.readouterr().out


@pytest.mark.slow("waits for solvers that fail")
@pytest.mark.parametrize("command", spread(["loops", "analyse"], 1))
def test_the_smt_solver_proves_in_its_place(
    capsys: pytest.CaptureFixture[str], elf: Path, solver: str, tmp_path: Path, command: str
) -> None:
    """Unless NuSMV is named: each bound says who proved it, and the run why."""
    words = [command, str(elf), "--entry", "main", "--platform", "kzm", "--quiet"]
    document = tmp_path / "out.json"
    for _ in range(2):  # the second time it is recalled
        assert main([*words, "--cache", str(tmp_path / "kept"), "--json", str(document)]) == 0
        said = capsys.readouterr()
        assert document.read_text().count('"method": "smt"') >= 3
        assert document.read_text().count('"method": "nusmv"') == 0
        if solver == "NuSMV is missing":
            assert said.err.count(solver) == 1
            assert "'wcet setup' gets NuSMV" in said.err
        else:
            assert said.err.count(f"NuSMV failed ({solver}") >= 3 or solver in said.err


@pytest.mark.slow("waits for solvers that fail")
def test_what_one_proved_is_not_taken_for_the_other_ones(
    capsys: pytest.CaptureFixture[str],
    elf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["loops", str(elf), "--entry", "main", "--cache", str(tmp_path), "--quiet"]

    def methods() -> set[str]:
        assert main([*words, "--json", str(tmp_path / "out.json")]) == 0
        capsys.readouterr()
        loops = json.loads((tmp_path / "out.json").read_text())["loops"]
        return {loop["method"] for loop in loops}

    with monkeypatch.context() as patched:
        patched.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
        assert methods() == {"smt"}
    assert methods() == {"nusmv"}
    with monkeypatch.context() as patched:
        patched.setattr(nusmv, "LIBRARY", tmp_path / "absent.so")
        assert methods() == {"smt"}


PROGRAM = """import sys
sys.prefix = "/nonexistent"  # no environment has a NuSMV
from wcet.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow("waits for solvers that fail")
@pytest.mark.parametrize("broken", ["", "no library"])
def test_an_installation_without_a_nusmv_that_runs(elf: Path, tmp_path: Path, broken: str) -> None:
    """In a process of its own: where no library is, and where one is that cannot be loaded."""
    if broken:
        library = tmp_path / "quoll" / "nusmv" / "libdependencies.so"
        library.parent.mkdir(parents=True)
        library.write_text(broken)
    words = ["loops", str(elf), "--entry", "main", "--no-cache", "--quiet"]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    found = {}
    for checker in ([], ["--checker", "nusmv"]):
        found[not checker] = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words, *checker],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert found[True].returncode == 0
    assert found[True].stdout.count("  smt  ") >= 3
    said = "it cannot be loaded" if broken else "NuSMV is missing"
    assert said in found[True].stderr
    assert found[False].returncode == 8
    assert said in found[False].stdout
