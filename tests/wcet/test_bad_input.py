"""Bad input: one clear paragraph, the documented exit status, no half-written file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

from wcet.cli import main

START = ".global _start\n.type _start, %function\n_start:\n"


class Assemble(Protocol):
    """Links assembly text into an ELF."""

    def __call__(
        self, text: str, *options: str, name: str = "program.elf", link: bool = True
    ) -> Path: ...


@pytest.fixture
def assemble(tmp_path: Path) -> Assemble:
    """Link assembly text into an ELF."""

    def build(text: str, *options: str, name: str = "program.elf", link: bool = True) -> Path:
        source, elf = tmp_path / "program.S", tmp_path / name
        source.write_text(text)
        linking = ["-nostdlib", "-Wl,--build-id=none"] if link else ["-c"]
        command = ["arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-g", *linking, *options]
        subprocess.run([*command, "-o", elf, source], check=True, capture_output=True)
        return elf

    return build


def fails(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> str:
    """Run ``wcet`` and check how it fails; returns the message."""
    assert main([str(a) for a in arguments]) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if line.startswith("wcet: ")]
    message = lines[-1]
    assert message.startswith("wcet: error E1"), captured.err
    assert "Traceback" not in captured.err
    return message


def test_no_such_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "missing.elf" in fails(capsys, 3, "analyse", tmp_path / "missing.elf", "--quiet")


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x01\x01\x01" * 30])
def test_not_an_elf(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(content)
    assert "kernel.elf" in fails(capsys, 3, "analyse", path, "--quiet")


def test_wrong_machine(capsys: pytest.CaptureFixture[str]) -> None:
    message = fails(capsys, 3, "analyse", Path(sys.executable).resolve(), "--quiet")
    assert "ARM" in message or "32" in message


def test_big_endian(capsys: pytest.CaptureFixture[str], assemble: Assemble) -> None:
    elf = assemble(START + "bx lr\n", "-mbig-endian")
    assert "endian" in fails(capsys, 3, "analyse", elf, "--quiet")


def test_not_linked(capsys: pytest.CaptureFixture[str], assemble: Assemble) -> None:
    elf = assemble(START + "bx lr\n", link=False)
    assert "link" in fails(capsys, 3, "analyse", elf, "--quiet")


def test_no_such_entry(capsys: pytest.CaptureFixture[str], assemble: Assemble) -> None:
    elf = assemble(START + "bx lr\n")
    message = fails(capsys, 2, "analyse", elf, "--entry", "_strat", "--quiet")
    assert "_strat" in message
    assert "_start" in message, "near names are offered"


def test_all_entries_of_a_program_without_vectors(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
) -> None:
    elf = assemble(START + "bx lr\n")
    assert "vector_svc" in fails(capsys, 2, "analyse", elf, "--entry", "all", "--quiet")


def test_entry_in_data(capsys: pytest.CaptureFixture[str], assemble: Assemble) -> None:
    elf = assemble(START + "bx lr\n.data\n.global table\n.type table, %object\ntable: .word 1\n")
    assert "table" in fails(capsys, 2, "analyse", elf, "--entry", "table", "--quiet")


def test_unresolved_branch(capsys: pytest.CaptureFixture[str], assemble: Assemble) -> None:
    elf = assemble(START + "ldr r1, [r0]\nbx r1\n")
    message = fails(capsys, 5, "analyse", elf, "--entry", "_start", "--quiet")
    assert "_start+0x4" in message
    assert "program.S:5" in message
    assert "targets of" in message


def test_loop_without_a_bound(capsys: pytest.CaptureFixture[str], assemble: Assemble) -> None:
    elf = assemble(START + "1: ldr r0, [r0]\ncmp r0, #0\nbne 1b\nbx lr\n")
    message = fails(capsys, 6, "analyse", elf, "--entry", "_start", "--quiet")
    assert "_start" in message
    assert "program.S:4" in message
    assert "at most" in message, "the fact to add is spelled out"


def test_the_same_loop_with_a_fact(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    tmp_path: Path,
) -> None:
    elf = assemble(START + "1: ldr r0, [r0]\ncmp r0, #0\nbne 1b\nbx lr\n")
    facts = tmp_path / "more.facts"
    facts.write_text("loop program.S:4 at most 5  # a list of four\n")
    arguments = ["analyse", str(elf), "--entry", "_start", "--facts", str(facts), "--quiet"]
    assert main(arguments) == 0
    assert "more.facts:1 (assumed, no proof was tried)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("loop nowhere at most 3\n", "nowhere"),
        ("loop _start+0x400 at most 3\n", "_start"),
        ("loop program.S:999 at most 3\n", "999"),
        ("loop program.S:4 at most -3\n", "-3"),
        ("gibberish\n", "gibberish"),
    ],
)
def test_facts_that_say_nothing(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    tmp_path: Path,
    text: str,
    said: str,
) -> None:
    elf = assemble(START + "1: subs r0, r0, #1\nbne 1b\nbx lr\n")
    facts = tmp_path / "wrong.facts"
    facts.write_text("# a comment\n" + text)
    message = fails(capsys, 4, "analyse", elf, "--entry", "_start", "--facts", facts, "--quiet")
    assert "wrong.facts:2" in message
    assert said in message


def test_a_missing_facts_file(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    tmp_path: Path,
) -> None:
    elf = assemble(START + "bx lr\n")
    absent = tmp_path / "absent.facts"
    message = fails(capsys, 4, "analyse", elf, "--entry", "_start", "--facts", absent, "--quiet")
    assert "absent.facts" in message


def test_no_platform(capsys: pytest.CaptureFixture[str], assemble: Assemble) -> None:
    elf = assemble(START + "bx lr\n")
    arguments = ["analyse", elf, "--entry", "_start", "--platform", "kmz", "--quiet"]
    assert "kzm" in fails(capsys, 3, *arguments)


def test_failure_leaves_an_existing_output_alone(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    tmp_path: Path,
) -> None:
    elf = assemble(START + "ldr r1, [r0]\nbx r1\n")
    out = tmp_path / "result.json"
    out.write_text("precious")
    fails(capsys, 5, "analyse", elf, "--entry", "_start", "--json", out, "--quiet")
    assert out.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def test_an_output_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    tmp_path: Path,
) -> None:
    elf = assemble(START + "bx lr\n")
    out = tmp_path / "no-such-folder" / "result.json"
    fails(capsys, 2, "analyse", elf, "--entry", "_start", "--json", out, "--quiet")


def test_cbc_missing(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ilp.solvers.cbc

    monkeypatch.setattr(ilp.solvers.cbc, "bundled", lambda: Path("/nonexistent/cbc"))
    elf = assemble(START + "bx lr\n")
    message = fails(capsys, 8, "analyse", elf, "--entry", "_start", "--quiet", "--solver", "cbc")
    assert "cbc" in message.lower()


def test_cbc_killed(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    import ilp.solvers.cbc

    killed = tmp_path / "cbc"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setattr(ilp.solvers.cbc, "bundled", lambda: killed)
    elf = assemble(START + "bx lr\n")
    message = fails(capsys, 8, "analyse", elf, "--entry", "_start", "--quiet", "--solver", "cbc")
    assert "cbc" in message.lower()


@pytest.mark.parametrize(("name", "status"), [("glpk", 2), ("CPLEX_CMD", 8)])
def test_solvers_that_pulp_does_not_find(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    name: str,
    status: int,
) -> None:
    elf = assemble(START + "bx lr\n")
    message = fails(capsys, status, "analyse", elf, "--quiet", "--solver", name)
    assert name in message
    assert "cbc, highs, PULP_CBC_CMD" in message


# More iterations than executions are followed for: a solver is needed.
COUNTED = START + "lsr r0, r0, #19\n1: subs r0, r0, #1\nbpl 1b\nbx lr\n"


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("status", ["kill -9 $$", "exit 3", "echo nonsense"])
def test_nusmv_killed_failing_or_babbling(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    status: str,
) -> None:
    """A number that depends on whether the solver works would be worse than none."""
    elf = assemble(COUNTED)
    (tmp_path / "bin").mkdir()
    solver = tmp_path / "bin" / "NuSMV"
    solver.write_text(f"#!/bin/sh\n{status}\n")
    solver.chmod(0o755)
    monkeypatch.setenv("PATH", f"{solver.parent}:/usr/bin:/bin")
    arguments = ["analyse", elf, "--entry", "_start", "--no-cache", "--quiet"]
    arguments += ["--checker", "nusmv"]
    message = fails(capsys, 8, *arguments)
    assert "solver failed" in message
    assert "program.S:5" in message
    facts = tmp_path / "more.facts"
    facts.write_text("loop program.S:5 at most 8193\n")
    stated = [*map(str, arguments), "--facts", str(facts)]
    assert main([*stated, "--prove-stated"]) == 0
    assert "solver failed" in capsys.readouterr().out, "a stated bound counts, and is marked"
    assert main(stated) == 0
    assert "no proof was tried" in capsys.readouterr().out, "nothing is asked of the solver"


def test_nusmv_missing(
    capsys: pytest.CaptureFixture[str],
    assemble: Assemble,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import loopbounds.nusmv.nusmv_run

    elf = assemble(COUNTED)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(
        loopbounds.nusmv.nusmv_run, "LIBRARY", Path("/nonexistent/libdependencies.so")
    )
    words = (elf, "--entry", "_start", "--no-cache", "--quiet", "--checker", "nusmv")
    message = fails(capsys, 8, "analyse", *words)
    assert "NuSMV is missing" in message
    assert "wcet setup" in message
