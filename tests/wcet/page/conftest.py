"""The report of the shipped kernel, written once per test run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.testing.harness import build
from wcet.cli import main

BASELINE = build.ROOT / "tests/wcet/baseline.json"


@pytest.fixture(scope="session")
def kernel_page(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``wcet analyse --html`` of all entries, with the comparison with the committed baseline."""
    out = tmp_path_factory.mktemp("page") / "report.html"
    asked = ["--html", str(out), "--source-dir", str(build.ROOT / "kernels/bilby")]
    asked += ["--baseline", str(BASELINE), "--quiet"]
    assert main(["analyse", str(kernel), *asked]) == 0
    return out


@pytest.fixture(scope="session")
def kernel_data(kernel_page: Path) -> dict[str, Any]:
    """The document in that page."""
    found = re.search(r'id="data">(.*?)</script>', kernel_page.read_text(), re.DOTALL)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


def pytest_itemcollected(item: pytest.Item) -> None:
    """One process writes the page."""
    if {"kernel_page", "kernel_data"} & set(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.xdist_group("kernel"))
        item.add_marker(pytest.mark.slow("the report of the shipped kernel"))
