"""Files of other analysers: their numbers against the iterations of the loops, and round trips."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

CODE = "-Wl,-Ttext=0xf0010000"
COUNTED = """\
volatile unsigned total;
void main(void) {
    for (unsigned i = 0; i < 8; i++)
        total += i;
}
"""
HEADS = {"-O0": 9, "-O2": 8}  # executions of the header; the compiler leaves out the last test
TWO = """\
struct item { struct item *next; } *first;
volatile unsigned total;
__attribute__((noinline)) void once(void) {
    for (struct item *i = first; i; i = i->next) total++;
}
__attribute__((noinline)) void twice(void) {
    for (struct item *i = first; i; i = i->next) total += 2;
    for (struct item *i = first; i; i = i->next) total += 3;
}
void main(void) { once(); twice(); }
"""


def loops(elf: Path, *options: str | Path) -> tuple[int, list[dict[str, object]]]:
    """Exit status, and the loops."""
    output = elf.parent / "loops.json"
    output.unlink(missing_ok=True)
    words = ["loops", elf, "--entry", "main", "--platform", "kzm", "--quiet", "--no-cache"]
    status = main([*map(str, words), "--json", str(output), *map(str, options)])
    found = json.loads(output.read_text())["loops"] if output.exists() else []
    return status, found


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("level", HEADS)
@pytest.mark.parametrize(
    ("name", "form", "less"),
    [
        ("a.ff", "loop {at} {n} ;", 1),
        ("a.ffx", "<flowfacts><loop address='{at}' maxcount='{n}'/></flowfacts>", 1),
        ("a.ais", "loop {at} max {n} begin;", 1),
        ("a.ais", "loop {at} max {n};", 1),
        ("a.ais", "loop {at} max {n} end;", 0),
        ("a.ais", 'loop "main.L1" {{ bound: 0..{n}; }}', 1),
    ],
)
def test_numbers_count_what_they_count(
    level: str, name: str, form: str, less: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exact number is accepted; one less is refuted by the only execution of the loop."""
    elf = build(COUNTED, CODE, optimise=level)
    _, [loop] = loops(elf)
    assert loop["bound"] == HEADS[level]
    exact = HEADS[level] - less
    file = tmp_path / name
    file.write_text(form.format(at=loop["address"], n=exact))
    status, [again] = loops(elf, "--facts", file)
    assert (status, again["bound"]) == (0, HEADS[level])
    capsys.readouterr()
    file.write_text(form.format(at=loop["address"], n=exact - 1))
    status, _ = loops(elf, "--facts", file)
    said = capsys.readouterr().err
    assert status == 4
    assert f"{name}:1" in said
    assert f"executed {HEADS[level]} times" in said


def test_what_is_written_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(TWO, CODE, optimise="-O1")
    ours, theirs = tmp_path / "our.facts", tmp_path / "their.ffx"
    ours.write_text("loop prog.c:4 at most 7\nloop prog.c:7 at most 5\nloop prog.c:8 at most 6\n")
    status, found = loops(elf, "--facts", ours, "--ffx", theirs)
    assert status == 0
    assert theirs.read_text().count("maxcount") == 3
    status, again = loops(elf, "--facts", theirs)
    bounds = {loop["address"]: loop["bound"] for loop in found}
    assert status == 0
    assert {loop["address"]: loop["bound"] for loop in again} == bounds
    assert sorted(map(int, map(str, bounds.values()))) == [5, 6, 7]
    status, _ = loops(elf, "--facts", ours, "--ffx", theirs, "--ffx", ours)
    assert status == 2  # an input is not overwritten
    assert "is an input of this run" in capsys.readouterr().err


def test_loops_without_a_bound_are_not_written(tmp_path: Path) -> None:
    elf = build(TWO, CODE, optimise="-O1")
    facts, written = tmp_path / "a.facts", tmp_path / "a.ffx"
    facts.write_text("loop prog.c:4 at most 7\n")
    status, _ = loops(elf, "--facts", facts, "--ffx", written)
    assert status == 6
    assert written.read_text().count("<loop ") == 1


def test_a_position_needs_a_function_with_one_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = build(TWO, CODE, optimise="-O1")
    file = tmp_path / "a.ais"
    file.write_text('loop "once" + 1 loop max 6 begin;\n')
    status, found = loops(elf, "--facts", file)
    assert status == 6
    assert sorted(str(loop["bound"]) for loop in found) == ["7", "None", "None"]
    capsys.readouterr()
    file.write_text('loop "twice" + 1 loop max 6 begin;\n')
    status, _ = loops(elf, "--facts", file)
    said = capsys.readouterr().err
    assert status == 4
    assert "names one of 2 loops by its position" in said
    assert said.count("<twice+") == 2


def test_what_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = build(COUNTED, CODE, optimise="-O1")
    file = tmp_path / "a.ff"
    file.write_text('checksum "prog.elf" 0x1;\nloop "main" + 12 max 8 total 80;\n')
    loops(elf, "--facts", file)
    said = capsys.readouterr().err
    assert "a.ff:1: the checksum is not compared" in said
    assert "a.ff:2: the total is ignored, the maximum is used" in said
