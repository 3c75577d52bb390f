"""``wcet path --doubt``: pairs that look exclusive, and facts that give the bounds it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testing.wcet.infeasible_programs import build_pairs
from wcet.cli import main

PAIRS = [  # kind, seed, whether the pair is proved; pairs that something may change are not
    ("byte", 1, False),
    ("global", 1, True),
]


def document(
    capsys: pytest.CaptureFixture[str], command: str, *arguments: str
) -> dict[str, object]:
    quiet = ("--platform", "kzm", "--quiet", "--no-cache", "--json", "-", "--entry", "main")
    assert main([command, *arguments, *quiet]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.slow("analyses a program twice for each pair")
@pytest.mark.parametrize(("kind", "seed", "proved"), PAIRS)
def test_the_fact_of_a_pair_gives_the_bound(
    kind: str, seed: int, proved: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = build_pairs((kind,), seed, "-O1")
    found = document(capsys, "path", str(program.elf), "--doubt")
    doubts = found["doubts"]
    assert isinstance(doubts, list)
    [doubt] = doubts
    assert doubt["proved"] is proved
    assert doubt["cycles"] < found["cycles"]
    facts = tmp_path / "my.facts"
    facts.write_text(doubt["fact"] + "\n")
    after = document(capsys, "path", str(program.elf), "--facts", str(facts))
    assert after["cycles"] == doubt["cycles"]


@pytest.mark.slow("analyses a program")
def test_the_question_has_the_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = build_pairs(("byte",), 1, "-O1")
    (tmp_path / "prog.c").write_text(program.source)
    command = ["path", str(program.elf), "--entry", "main", "--platform", "kzm", "--quiet"]
    assert main([*command, "--no-cache", "--doubt", "--source-dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "can a path take both of these?" in said
    decision = "if (!(p->kind & 512)) work(b);"
    line = program.source[: program.source.index(decision)].count("\n") + 1
    assert f"{decision}` at prog.c:{line}" in said
    assert " conflicts with " in said
    assert main([*command, "--doubt", "--flame", "-"]) == 2


@pytest.mark.slow("analyses a program")
def test_a_pair_that_may_not_be_exclusive_is_no_doubt(capsys: pytest.CaptureFixture[str]) -> None:
    """The word is changed by a known operation, so that both are possible."""
    program = build_pairs(("toggled",), 1, "-O1")
    assert document(capsys, "path", str(program.elf), "--doubt")["doubts"] == []
