"""Every loop of the kernel is bounded without a fact.

This tests one of the presets that promise this; ``make campaign-loop_comparison`` bounds the loops
of both boards' kernels.
"""

from __future__ import annotations

import json

import pytest

from tests.testing.bilby.build import BILBY, ROOT, make
from wcet.cli import main


@pytest.mark.slow("proves every loop of a kernel")
@pytest.mark.parametrize(("board", "preset"), [("kzm", "latency")])
def test_all_loops_are_bounded(capsys: pytest.CaptureFixture[str], board: str, preset: str) -> None:
    make(BILBY, f"BOARD={board}", f"PRESET={preset}")
    elf = ROOT / "build" / "bilby" / f"{board}-{preset}" / "kernel.elf"
    status = main(["loops", str(elf), "--no-facts", "--quiet", "--json", "-"])
    loops = json.loads(capsys.readouterr().out)["loops"]
    assert [loop["place"] for loop in loops if loop["bound"] is None] == []
    assert status == 0
    methods = {loop["method"] for loop in loops}
    assert methods == {"nusmv", "pending"}
    assert len(loops) > 100
