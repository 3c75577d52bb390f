"""The stretches of kernels that unmask interrupts are their masked regions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quoll.image.image import Image
from tests.testing.wcet.preemptible_kernels import preemptible
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import SilentStageLog
from wcet.latency.view import latency_view
from wcet.masked.masked_entries import masked


@pytest.mark.slow("several whole analyses")
def test_the_latency_is_the_longest_region_and_the_interrupt_path(tmp_path: Path) -> None:
    elf, facts = preemptible(), tmp_path / "my.facts"
    give = Image.load(elf).symbol("give")
    assert give is not None
    facts.write_text(f"{give.addr + give.size - 4:#x} returns to its caller\n")
    options = AnalysisOptions(("all",), "kzm", facts=(facts,), neighbouring_facts=False)
    view = latency_view(elf, options, SilentStageLog(), 4)
    regions = masked(elf, options, SilentStageLog(), None)
    assert view.masked == {"syscall"}
    assert view.result.latency is not None
    assert view.result.latency.cycles == regions.latency
    assert set(view.result.assumptions) == set(regions.assumptions)
    first, *others = view.stretches
    assert first.stretch.result.cycles == regions.regions[0].cycles
    loops = [[loop.iterations for loop in one.stretch.loops()] for one in view.stretches]
    assert [15] in loops
    cycles = {region.cycles for region in regions.regions}
    assert {o.stretch.result.cycles for o in others if o.stretch.result.cycles in cycles}
    decided = next(one for one in view.stretches if one.excluded is not None)
    facts.write_text(f"{facts.read_text()}{decided.excluded:#x} never executes\n")
    again = masked(elf, replace(options, facts=(facts,)), SilentStageLog(), None)
    left = {region.cycles for region in again.regions}
    assert decided.remaining is not None
    assert decided.remaining.cycles in left
    assert decided.stretch.result.cycles not in left
