"""Recursion with a bound on its depth: what runs stays below the bound, deeper runs refute it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest

from quoll.errors import ControlFlowError, FactsError
from quoll.witness import RefutedFact, follow
from tests.quoll.building import build
from tests.wcet.programs import CODE, FLAGS, check, run
from tests.wcet.test_guidance import guided
from wcet.cli import main

PROGRAMS = {
    "direct": """
        unsigned data[64];
        __attribute__((noinline)) unsigned fact(unsigned n) {
            data[n & 63]++;
            return n < 2 ? 1 : n * fact(n - 1);
        }
        unsigned main(unsigned a) { return fact((a & 3) + 1) + 1; }
    """,
    "tree": """
        __attribute__((noinline)) unsigned fact(unsigned n) {
            return n < 2 ? n : fact(n - 1) + fact(n - 2);
        }
        unsigned main(unsigned a) { return fact(a & 3) + fact(4); }
    """,
    "mutual": """
        unsigned data[64];
        unsigned odd(unsigned n);
        __attribute__((noinline)) unsigned fact(unsigned n) {
            data[n & 63] = n;
            return n == 0 ? 1 : odd(n - 1) + 1;
        }
        __attribute__((noinline)) unsigned odd(unsigned n) {
            return n == 0 ? 0 : fact(n - 1) + data[n & 63];
        }
        unsigned main(unsigned a) { return fact(a & 7) + 1; }
    """,
}
OPTIONS = (*FLAGS, "-fno-optimize-sibling-calls", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-ra")


def compiled(name: str) -> Path:
    return build(PROGRAMS[name], *OPTIONS, optimise="-O1", link=(CODE,))


@pytest.mark.parametrize("name", PROGRAMS)
def test_executions_stay_below_the_bound(name: str, tmp_path: Path) -> None:
    elf = compiled(name)
    cycles = []
    for depth in (4, 6):
        result = guided(elf, tmp_path, f"recursion of fact at most {depth}")
        entry = result.entries["main"]
        assert any(f"recursion of fact at most {depth} (" in text for text in entry.assumptions)
        assert check(result, 3, inputs=8, states=2)
        cycles.append(entry.cycles)
    assert cycles[0] == cycles[1], "values prove the depth: deeper calls are dead"


def test_a_deeper_recursion_takes_longer(tmp_path: Path) -> None:
    elf = build(PROGRAMS["direct"].replace("a & 3", "a"), *OPTIONS, optimise="-O1", link=(CODE,))
    facts = [f"recursion of fact at most {depth}" for depth in (1, 2, 5)]
    cycles = [guided(elf, tmp_path, fact).entries["main"].cycles for fact in facts]
    assert cycles[0] < cycles[1] < cycles[2]


@pytest.mark.parametrize("name", PROGRAMS)
def test_recursion_without_a_depth_shows_the_cycle(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["analyse", str(compiled(name)), "--platform", "kzm", "--entry", "main",
                   "--quiet", "--no-cache"])  # fmt: skip
    error = capsys.readouterr().err
    assert status == ControlFlowError.exit_status
    cycle = re.search(r"recursion: (\w+) -> .*recursion of (\w+) at most N", error)
    assert cycle
    assert cycle[1] == cycle[2]


def test_a_deeper_execution_refutes_the_fact(tmp_path: Path) -> None:
    result = guided(compiled("direct"), tmp_path, "recursion of fact at most 2")
    entry, refuted = result.entries["main"], 0
    for seed in range(8):
        pcs, _ = run(result.image, entry.address, Random(seed))
        deep = pcs.count(result.image.symbol("fact").addr) > 2  # type: ignore[union-attr]
        if deep:
            with pytest.raises(RefutedFact, match="refutes 'recursion of fact at most 2"):
                follow(entry.graph, result.image, pcs)
        else:
            follow(entry.graph, result.image, pcs)
        refuted += deep
    assert 0 < refuted < 8


def test_a_depth_of_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="at least one activation"):
        guided(compiled("direct"), tmp_path, "recursion of fact at most 0")


@pytest.mark.parametrize(
    ("facts", "depths", "text"),
    [
        ("", {}, "(no depth is given)"),
        ("recursion of odd at most 3", {"odd": 3}, "(at most 3 activations of odd)"),
    ],
)
def test_recursion_is_listed_with_its_depth(
    facts: str,
    depths: dict[str, int],
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stated = tmp_path / "my.facts"
    stated.write_text(facts + "\n")
    asked = ["cfg", str(compiled("mutual")), "--entry", "main", "--facts", str(stated)]
    assert main([*asked, "--json", "-"]) == 0
    (recursion,) = json.loads(capsys.readouterr().out)["recursion"]
    assert sorted(recursion["functions"]) == sorted(recursion["cycle"]) == ["fact", "odd"]
    assert recursion["depths"] == depths
    assert recursion["bounded"] is bool(depths)
    assert main(asked) == 0
    assert text in capsys.readouterr().out
