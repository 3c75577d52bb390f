"""Interrupts that arrive in random preemptible kernels wait no longer than ``wcet masked`` says.

``make campaign-masked_arrivals`` does it for all styles and builds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.wcet.masked_arrivals import in_qemu, on_the_machine


@pytest.mark.slow("executes a random kernel for each arrival")
@pytest.mark.parametrize(
    ("style", "build"), [("drivers", "gcc thumb"), ("switches", "clang arm"), ("masks", "gcc arm")]
)
def test_no_masked_interval_is_longer_than_its_bound(
    style: str, build: str, tmp_path: Path
) -> None:
    found = on_the_machine(2, style, build, tmp_path, 25)
    assert not found.exceeded
    assert found.closest > 0.1


@pytest.mark.slow("runs a random kernel in QEMU")
@pytest.mark.parametrize(("style", "build"), [("locks", "gcc arm")])
def test_no_interrupt_in_qemu_waits_for_longer(style: str, build: str, tmp_path: Path) -> None:
    found = in_qemu(2, style, build, tmp_path, 80)
    assert not found.exceeded
    assert found.arrivals == 80
    assert found.closest > 0
