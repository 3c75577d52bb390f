"""Firmware that nobody knows: two commands and one edit lead to the bounds of all entries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.harness.cases import spread
from tests.testing.programs import needs
from tests.testing.wcet.generated_firmware import (
    BUILDS,
    FirmwareBuild,
    build_generated,
    firmware,
)
from tests.testing.wcet.generated_hour import generated_hour
from wcet.gate.project_file import ProjectFile

FIRST_SEED = 100
TRIED = tuple(enumerate(BUILDS, FIRST_SEED))  # more of them: make campaign-firmware
MOST_SECONDS = 60  # of processor time
NEVER = re.compile(r"\b(?:vectors|stub|abort_entry|svc_entry|irq_entry)\b")


@pytest.mark.slow("several whole analyses")
@needs("clang")
@pytest.mark.parametrize(("seed", "build"), spread(TRIED, 1), ids=str)
def test_all_entries_have_bounds(seed: int, build: FirmwareBuild, tmp_path: Path) -> None:
    build_generated(firmware(seed), build, tmp_path)
    hour = generated_hour(tmp_path)
    assert not hour.errors, hour.facts
    project = ProjectFile.load(tmp_path / "wcet.toml")
    assert set(hour.bounds) == set(project.entries)
    assert {"irq_entry"} <= hour.bounds.keys() <= {"irq_entry", "svc_entry"}
    assert hour.seconds <= 2 * MOST_SECONDS
    called = [fact.partition(" go ")[2] for fact in hour.facts if fact.startswith("calls at")]
    assert not any(map(NEVER.search, called)), "exceptions are no callbacks"
