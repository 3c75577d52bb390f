"""A solver that is missing or dies: what is said, once, by which status, and what still works."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from loopbounds.nusmv import query as nusmv
from tests.testing.quoll.building import build
from wcet.cli import main

SOURCE = """volatile unsigned sink;
void other(unsigned a) {
    for (unsigned i = 0; i < (a & 31); i++) sink = i;
}
void main(unsigned a) {
    for (unsigned i = 0; i < (a & 15); i++) sink = i;
    for (unsigned x = a & 0xff; x; x &= x - 1) sink = x;
    other(a);
    other(sink);
}
"""
ALL = "loop prog.c:3 at most 33\nloop prog.c:6 at most 17\nloop prog.c:7 at most 9\n"


@pytest.fixture
def elf() -> Path:
    flags = ("-fno-unroll-loops", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra")
    return build(SOURCE, *flags, optimise="-O1", link=("-Wl,-Ttext=0xf0010000",))


@pytest.fixture(params=["missing", "dead", "garbage"])
def solver(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is wrong with NuSMV."""
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
    status = main([*words, "--platform", "kzm"])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.slow
def test_no_answer_is_status_8(capsys: pytest.CaptureFixture[str], elf: Path, solver: str) -> None:
    """Status 6 was for loops that are not proved; each loop is named once, in any contexts."""
    status, out, err = analysed(capsys, elf)
    assert (status, out) == (8, "")
    assert err.count("wcet: error E1") == 1
    assert err.count(solver) == 1
    for line in (3, 6, 7):
        assert err.count(f"prog.c:{line}") == 1


@pytest.mark.slow
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
    for line in (3, 6, 7):
        assert err.count(f"prog.c:{line}") == 1


def test_what_is_not_proved_is_status_6(capsys: pytest.CaptureFixture[str]) -> None:
    elf = build("void main(volatile unsigned *p) { while (*p) ; }", link=("-Wl,-Ttext=0xf0010000",))
    assert analysed(capsys, elf)[0] == 6


@pytest.mark.slow
def test_the_listing_says_8(capsys: pytest.CaptureFixture[str], elf: Path, solver: str) -> None:
    assert main(["loops", str(elf), "--entry", "main", "--no-cache", "--quiet"]) == 8
    assert solver in capsys.readouterr().out
