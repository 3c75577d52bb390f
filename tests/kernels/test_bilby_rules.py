# SPDX-License-Identifier: BSD-2-Clause
"""Each rule that the kernel once broke has faults, and tests that find them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from campaigns.documented import inside
from campaigns.kernel_rules import BILBY, RuleFault, outcome, read_faults
from tests.testing.bilby.build import BUILDS
from tests.testing.harness.cases import spread

FAULTS = read_faults()
PAGE = inside((BILBY / "docs" / "testing.md").read_text(encoding="utf-8"), "rules")
TESTS = [path.read_text(encoding="utf-8") for path in (BILBY / "user").glob("*.c")]
QUICK = [fault for fault in FAULTS if fault.program == "signals"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_applies_and_its_test_exists(fault: RuleFault) -> None:
    assert fault.applied() != (BILBY / fault.file).read_text(encoding="utf-8")
    assert set(fault.builds) <= set(BUILDS)
    assert any(f'"{fault.test}"' in text for text in TESTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_the_page_says_that_each_fault_is_found(fault: RuleFault) -> None:
    """Else: ``make campaign-kernel_rules ARGS=--write``."""
    for name in fault.builds:
        row = f"| {fault.rule} | {fault.what} | `{name}` | `{fault.program}` | {fault.test}: "
        assert row in PAGE, row
    assert "passes" not in PAGE


@pytest.mark.slow("builds the kernel with a fault and runs a program")
@pytest.mark.parametrize("fault", spread(QUICK, 1), ids=lambda fault: fault.what)
def test_a_fault_is_found(fault: RuleFault, tmp_path: Path) -> None:
    """And none where the replacement changes nothing."""
    same = dataclasses.replace(fault, new=fault.old)
    assert outcome(tmp_path, fault, fault.builds[0]) is not None
    assert outcome(tmp_path, same, fault.builds[0]) is None
