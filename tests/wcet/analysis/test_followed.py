"""A nest whose step doubles has its total, and no loop is proved that executions bound."""

from __future__ import annotations

import pytest

from loopbounds.proof.bound import EXECUTION
from loopbounds.proof.options import BoundOptions
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, bound, check
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import StageLog

SOURCE = """volatile unsigned char data[64];
int main(void) {{
    int s = 0;
    for (int width = 1; width < 32; width *= 2)
        for (int k = 0; k < 32; k += 2 * width) s += data[k];
    {other}
    return s;
}}
"""
OTHERS = {
    "alone": "",
    "left early": "for (int j = 0; j < 20 && data[j]; j++) s++;",
    "a masked word": "int n = data[0] & 7; for (int j = 0; j < n; j++) s += data[j];",
}


@pytest.mark.slow("whole analyses with proofs")
@pytest.mark.parametrize("other", OTHERS)
def test_a_nest_has_its_total(other: str) -> None:
    elf = build(SOURCE.format(other=OTHERS[other]), optimise="-O1", link=(CODE,))
    result = bound(elf)
    entry = result.entries["main"]
    inner = [b for b in entry.bounds if entry.graph.loops[b.loop].parent is not None]
    assert [b.total for b in inner] == [31]
    if other != "a masked word":
        assert {b.method for b in inner} == {EXECUTION}
    assert check(result, 5, inputs=3, states=2)


@pytest.mark.parametrize("other", OTHERS)
def test_no_loop_is_proved_that_all_executions_bound(
    other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = build(SOURCE.format(other=OTHERS[other]), optimise="-O1", link=(CODE,))
    options = AnalysisOptions(
        entries=("main",),
        platform="kzm",
        neighbouring_facts=False,
        solver="highs",
        bounds=BoundOptions(workers=1),
    )
    analyse(elf, options, StageLog(verbose=True))
    said = capsys.readouterr().err
    assert "loop bounds" in said
    assert "loop bounds: 1 of" not in said
