"""Firmware that nobody knows: two commands and one edit lead to the bounds of all entries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.harness.cases import spread
from tests.testing.programs import needs
from tests.testing.wcet.generated_firmware import BUILDS, build_generated, firmware
from tests.testing.wcet.generated_hour import generated_hour
from wcet.gate.project_file import ProjectFile

TRIED = (104, 107, 108)  # more seeds: make campaign-firmware
STRIDE = 7  # of builds, as in the campaign
MOST_SECONDS = 60  # of processor time
NEVER = re.compile(r"\b(?:vectors|endless|abort_entry|svc_entry|irq_entry)\b")


@pytest.mark.slow("several whole analyses")
@needs("clang")
@pytest.mark.parametrize("seed", spread(TRIED, 1))
def test_all_entries_have_bounds(seed: int, tmp_path: Path) -> None:
    build_generated(firmware(seed), BUILDS[STRIDE * seed % len(BUILDS)], tmp_path)
    hour = generated_hour(tmp_path)
    assert not hour.errors, hour.facts
    project = ProjectFile.load(tmp_path / "wcet.toml")
    assert set(hour.bounds) == set(project.entries)
    assert {"irq_entry"} <= hour.bounds.keys() <= {"irq_entry", "svc_entry"}
    assert hour.seconds <= MOST_SECONDS
    called = [fact.partition(" go ")[2] for fact in hour.facts if fact.startswith("calls at")]
    assert not any(map(NEVER.search, called)), "exceptions are no callbacks"
