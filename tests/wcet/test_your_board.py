"""docs/your-board.md: its commands print the quoted output, and its edits make a valid board."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.wcet.first_hour import build_handler
from tests.testing.wcet.told import retold
from wcet.platforms.platform_model import load

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "your-board.md"


@pytest.mark.slow("starts the command for each step of the guide")
def test_the_guide_is_followed(tmp_path: Path) -> None:
    """Written by ``make campaign-own_board``."""
    build_handler("gcc -O2 arm", tmp_path)
    text = DOCUMENT.read_text(encoding="utf-8")
    found = retold(text, tmp_path)
    assert found == text
    assert found.count("$ wcet ") == 5
    assert "beagle.toml: 3 implausible" in found
    assert "beagle.toml: nothing implausible" in found
    board = load(str(tmp_path / "beagle.toml"))
    assert (board.clock_hz, board.hierarchy.l1d.size) == (600_000_000, 16_384)
    assert board.entries["interrupt"].vector == 0x80000018
    assert board.hierarchy.memory.fixed(0x80000000)
