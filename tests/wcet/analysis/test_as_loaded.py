"""Entries that start with memory as loaded: by a fact, or from reset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

PROGRAM = """
unsigned count = 12, given[4] = {1, 2, 3, 4}, sum;
unsigned main(void) { for (unsigned i = 0; i != count; i++) sum += i; return sum; }
void other(unsigned *p) { *p = 3; }
"""
CHANGED = """
volatile unsigned out;
unsigned mode = 4;
__attribute__((noinline)) unsigned work(unsigned a) {
    unsigned x = a;
    if (mode != 4)
        for (unsigned i = 0; i < 100; i++)
            x = x * 3 + out;
    return x;
}
__attribute__((noinline)) unsigned twice(unsigned a) { return work(a) + work(a + 1); }
unsigned main(unsigned a) { mode = 100; return twice(a) + twice(a + 2); }
"""
UNBOUNDED = 6


@pytest.fixture(scope="module")
def elf() -> Path:
    return build(PROGRAM, "-fno-tree-loop-distribute-patterns", optimise="-O1")


def analysed(elf: Path, out: Path, *more: str, entry: str = "main") -> int:
    options = ["--entry", entry, "--no-cache", "--quiet", "--json", str(out)]
    return main(["analyse", str(elf), *options, *more])


def listed(out: Path) -> list[str]:
    found: list[str] = json.loads(out.read_text())["assumptions"]
    return [text for text in found if "as loaded" in text or "initial contents" in text]


@pytest.mark.slow("several whole analyses")
def test_a_loop_that_counts_in_data_is_bounded_from_reset(elf: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert analysed(elf, out) == UNBOUNDED
    assert analysed(elf, out, "--from-reset") == 0
    (text,) = listed(out)
    assert "main: memory as loaded: when a path starts, these addresses have" in text
    reset = json.loads(out.read_text())["entries"]["main"]["cycles"]
    facts = tmp_path / "my.facts"
    region = "region data from 0x8000 to 0xFFFFF is cached\n"
    facts.write_text(region + "region data holds its initial contents at main\n")
    assert analysed(elf, out, "--facts", str(facts)) == 0
    assert len(listed(out)) == 2
    document = json.loads(out.read_text())
    assert "fact: initial contents" in {row["kind"] for row in document["assumption_kinds"]}
    assert document["entries"]["main"]["cycles"] <= reset
    facts.write_text(region + "region data holds its initial contents at other\n")
    assert analysed(elf, out, "--facts", str(facts)) == UNBOUNDED


@pytest.mark.slow("several whole analyses")
def test_a_function_analysed_once_begins_with_what_its_callers_stored(tmp_path: Path) -> None:
    """Memory holds the loaded data at the start of a path, not at each call of a function."""
    elf, out = build(CHANGED, optimise="-O1"), tmp_path / "out.json"
    cycles = {}
    for share in ("never", "always"):
        assert analysed(elf, out, "--from-reset", "--share", share) == 0
        cycles[share] = json.loads(out.read_text())["entries"]["main"]["cycles"]
    assert cycles["always"] >= cycles["never"] > 4 * 100 * 5


def test_what_is_said_of_no_memory_is_refused(
    elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, facts = tmp_path / "out.json", tmp_path / "my.facts"
    for region, wrong in (
        ("region r from 0x400000 to 0x4FFFFF is cached", "the ELF stores no byte of r"),
        ("region r from 0x8000 to 0xFFFFF is device", "r is a device, which holds nothing"),
        ("", "there is no region r"),
    ):
        facts.write_text(f"{region}\nregion r holds its initial contents at main\n")
        assert analysed(elf, out, "--facts", str(facts)) not in (0, UNBOUNDED)
        assert wrong in capsys.readouterr().err
    several = ["--entry", "other", "--from-reset"]
    assert analysed(elf, out, *several) == 2
    assert "--from-reset is about paths from one entry, not from 2" in capsys.readouterr().err


@pytest.mark.slow("several whole analyses")
def test_the_list_of_loops_knows_it_too(elf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["loops", str(elf), "--entry", "main", "--no-cache", "--from-reset"]) == 0
    assert "memory as loaded" in capsys.readouterr().out
