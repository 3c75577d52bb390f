"""The cycles of supervisor calls are part of a bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loopbounds.proof.options import BoundOptions
from tests.testing.quoll.building import build
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.fact_survey import survey
from wcet.analysis.stage_times import StageLog

SOURCE = """
.text
.global main
.type main, %function
main:   push {r4, lr}
        mov r4, #3
1:      svc #1
        subs r4, r4, #1
        bne 1b
        svc #2
        pop {r4, pc}
"""


def options(folder: Path, text: str) -> AnalysisOptions:
    (facts := folder / "test.facts").write_text(text)
    return AnalysisOptions(
        entries=("main",),
        platform="kzm",
        l2=None,
        facts=(facts,),
        neighbouring_facts=False,
        exits=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(workers=1),
    )


@pytest.fixture(scope="module")
def elf() -> Path:
    return build(SOURCE, "-Wl,-Ttext=0xf0010000", language="S")


@pytest.mark.slow("several whole analyses")
def test_four_calls_cost_four_times(elf: Path, tmp_path: Path) -> None:
    found = [
        analyse(
            elf,
            options(tmp_path, f"every supervisor call takes at most {n} cycles\n"),
            StageLog(verbose=False),
        )
        .entries["main"]
        .cycles
        for n in (1, 101)
    ]
    assert found[1] - found[0] == 400


@pytest.mark.slow("several whole analyses")
def test_one_question(elf: Path, tmp_path: Path) -> None:
    found = survey(elf, options(tmp_path, ""), StageLog(verbose=False))
    assert [missing.fact for _, missing in found.missing] == [
        "every supervisor call takes at most N cycles"
    ]


@pytest.mark.slow("several whole analyses")
def test_an_answer_does_not_depend_on_what_was_asked_before(tmp_path: Path) -> None:
    elf = build(SOURCE.replace("svc #", "svc #0x5a"), "-Wl,-Ttext=0xf0010000", language="S")
    stated = options(tmp_path, "every supervisor call takes at most 1 cycles\n")
    unstated = replace(stated, facts=())
    first = survey(elf, unstated, StageLog(verbose=False))
    analyse(elf, stated, StageLog(verbose=False))
    again = survey(elf, unstated, StageLog(verbose=False))
    assert first.missing == again.missing
    assert [missing.fact for _, missing in first.missing] == [
        "every supervisor call takes at most N cycles"
    ]
