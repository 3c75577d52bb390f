"""Recursion with a stated depth: executions take at most the bound; deeper ones refute the fact."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from quoll.errors import ControlFlowError, FactsError
from quoll.recordings.follow import RefutedFact, follow, follow_prefix
from tests.testing.quoll.building import address, build
from tests.testing.wcet.programs import CODE, FLAGS, check, guided, run
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
    "list": """
        struct item { struct item *next; unsigned value; } *items;
        __attribute__((noinline)) unsigned fact(struct item *at) {
            return at ? fact(at->next) + at->value : 0;
        }
        unsigned main(void) { return fact(items) + 1; }
    """,
}
PROVED = {"direct": 4, "tree": 4, "mutual": 4}  # depth of fact
OPTIONS = (*FLAGS, "-fno-optimize-sibling-calls", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-ra")


def compiled(name: str) -> Path:
    return build(PROGRAMS[name], *OPTIONS, optimise="-O1", link=(CODE,))


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("name", PROVED)
def test_executions_stay_below_the_bound(name: str, tmp_path: Path) -> None:
    """The depth is proved, and a looser fact changes nothing where a proof is asked for."""
    elf = compiled(name)
    cycles = []
    for fact in ("", "recursion of fact at most 6"):
        result = guided(elf, tmp_path, fact, prove_stated=True)
        entry = result.entries["main"]
        depth = entry.graph.guidance.depths[address(result.image, "fact")]
        assert (depth.activations, depth.facts) == (PROVED[name], ())
        assert not any("recursion" in text for text in map(str, entry.assumptions))
        assert [label.label for label in result.facts] == ["proved"] * bool(fact)
        assert check(result, 3, inputs=8, states=2)
        cycles.append(entry.cycles)
    assert cycles[0] == cycles[1]


@pytest.mark.slow("several whole analyses")
def test_a_tighter_depth_is_assumed(tmp_path: Path) -> None:
    """Callers decide how deep it goes, so that a fact may say more."""
    elf = compiled("mutual")
    proved = guided(elf, tmp_path, "").entries["main"].cycles
    entry = guided(elf, tmp_path, "recursion of odd at most 2").entries["main"]
    assert entry.cycles < proved
    assert any(
        text.endswith(": recursion of odd at most 2") for text in map(str, entry.assumptions)
    )


def test_a_depth_that_is_always_exceeded_is_refuted(tmp_path: Path) -> None:
    """The error names the fact and says how deep it goes."""
    source = PROGRAMS["direct"].replace("(a & 3) + 1", "5")
    elf = build(source, *OPTIONS, "-fno-ipa-vrp", optimise="-O1", link=(CODE,))
    with pytest.raises(FactsError, match="fact has 5 activations at a time in the") as e:
        guided(elf, tmp_path, "recursion of fact at most 3")
    assert e.value.hint == "state at least 5, or remove the fact"


@pytest.mark.slow("several whole analyses")
def test_a_deeper_recursion_takes_longer(tmp_path: Path) -> None:
    facts = [f"recursion of fact at most {depth}" for depth in (1, 2, 5)]
    cycles = [guided(compiled("list"), tmp_path, fact).entries["main"].cycles for fact in facts]
    assert cycles[0] < cycles[1] < cycles[2]


def test_recursion_over_a_list_shows_the_cycle(capsys: pytest.CaptureFixture[str]) -> None:
    """No depth is proved where memory decides, and the message names the word."""
    status = main(["analyse", str(compiled("list")), "--platform", "kzm", "--entry", "main",
                   "--quiet", "--no-cache"])  # fmt: skip
    error = capsys.readouterr().err
    assert status == ControlFlowError.exit_status
    assert "recursion: fact -> fact" in error
    assert "nothing bounds the word that 'ldr" in error
    assert "recursion of fact at most N" in error


def test_a_deeper_execution_refutes_the_fact(tmp_path: Path) -> None:
    result = guided(compiled("direct"), tmp_path, "recursion of fact at most 2")
    entry, refuted = result.entries["main"], 0
    for seed in range(8):
        pcs, _ = run(result.image, entry.address, Random(seed))
        deep = pcs.count(result.image.symbol("fact").addr) > 2  # type: ignore[union-attr]
        if deep:
            with pytest.raises(
                RefutedFact, match=r"refutes 'fact: .*: recursion of fact at most 2"
            ):
                follow(entry.graph, result.image, pcs)
        else:
            follow(entry.graph, result.image, pcs)
        refuted += deep
    assert 0 < refuted < 8


def test_a_call_behind_a_missing_return_refutes_no_depth(tmp_path: Path) -> None:
    """An execution that leaves the graph goes on in another activation, where it may call."""
    result = guided(compiled("direct"), tmp_path, "recursion of fact at most 2")
    entry, fact = result.entries["main"], result.image.symbol("fact")
    assert fact is not None
    runs = (run(result.image, entry.address, Random(seed))[0] for seed in range(8))
    pcs = next(pcs for pcs in runs if pcs.count(fact.addr) == 2)
    inner = pcs.index(fact.addr, pcs.index(fact.addr) + 1)
    inside = [i for i, pc in enumerate(pcs) if fact.addr <= pc < fact.addr + fact.size]
    path = follow_prefix(entry.graph, result.image, [*pcs[: inside[-1] + 1], *pcs[inner - 1 :]])
    assert path[-1].start <= inside[-1]


def test_a_depth_of_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="at least one activation"):
        guided(compiled("direct"), tmp_path, "recursion of fact at most 0")


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("facts", "depths", "text"),
    [
        (
            "",
            {"fact": 4, "odd": 4},
            "4 activations of odd, proved, at most 4 activations of fact, proved)",
        ),
        (
            "recursion of odd at most 3",
            {"fact": 4, "odd": 3},
            "(at most 3 activations of odd, at most 4 activations of fact, proved)",
        ),
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


@pytest.mark.slow("several whole analyses")
def test_loops_are_listed_with_the_depth_of_recursion(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["loops", str(compiled("direct")), "--entry", "main", "--quiet", "--no-cache"]
    assert main([*asked, "--json", "-"]) == 0
    [depth] = json.loads(capsys.readouterr().out)["recursion"]
    assert (depth["function"], depth["activations"]) == ("fact", 4)
    assert depth["evidence"].startswith("count <= 4 is an invariant")
    assert main(asked) == 0
    assert "recursion: main: at most 4 activations of fact at a time" in capsys.readouterr().out
