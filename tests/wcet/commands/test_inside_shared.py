"""The report lists the costly loops and calls inside functions that were analysed once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from tests.testing.wcet.schemas import faults
from wcet.cli import main

SOURCE = """
volatile unsigned left, *volatile more;
__attribute__((noinline)) void turn(unsigned a) { for (unsigned i = 0; i < 50; i++) left = a; }
__attribute__((noinline)) unsigned walk(unsigned n) {
    turn(n);
    return *more ? walk(n - 1) + walk(n - 2) : n;
}
__attribute__((noinline)) unsigned cheap(unsigned a) { return left == a ? left : a; }
unsigned main(unsigned n) { return walk(n) + cheap(n) + cheap(n + 1); }
"""
FLAGS = ("-fno-optimize-sibling-calls", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-ra")


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "program.elf"
    path.write_bytes(
        build(SOURCE, *FLAGS, optimise="-O1", link=("-Wl,-Ttext=0xf0010000",)).read_bytes()
    )
    path.with_suffix(".facts").write_text("recursion of walk at most 3\n")
    return path


def analysed(elf: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    wanted = [str(elf), "--entry", "main", "--platform", "kzm", "--no-cache", "--share", "always"]
    assert main(["analyse", *wanted, *options]) == 0
    return capsys.readouterr().out


@pytest.mark.slow("several whole analyses")
def test_each_activation_has_its_loops_and_calls(
    elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = analysed(elf, capsys)
    _, found, after = text.partition("inside functions that were analysed once for all their calls")
    assert found
    rows = after.partition("\n\n")[0].splitlines()[2:]
    calls = [r.split() for r in rows if r.split()[-1] == "walk"]
    assert [row[2] for row in calls] == ["1", "2", "4"]
    loops = [r for r in rows if " loop " in r and "<turn+" in r]
    assert len(loops) == 3
    assert all(re.search(r": 50 times \(at most 50, nusmv\)$", r) for r in loops)
    assert "cheap" not in after.partition("\n\n")[0]


@pytest.mark.slow("several whole analyses")
def test_calls_take_no_more_than_what_calls_them(
    elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(analysed(elf, capsys, "--json", "-"))
    assert not faults("analyse", document)
    entry = document["entries"]["main"]
    above = [entry["cycles"]]
    for call in entry["shared_functions"]:
        assert call["cycles"] == call["calls"] * call["cycles_of_a_call"]
        del above[call["depth"] + 1 :]
        assert call["cycles"] <= above[-1]
        above.append(call["cycles"])
    assert [call["calls"] for call in entry["shared_functions"]] == [1, 2, 4]


@pytest.mark.slow("several whole analyses")
def test_nothing_is_said_where_nothing_is_shared(
    elf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "analysed once" not in analysed(elf, capsys, "--share", "never")
