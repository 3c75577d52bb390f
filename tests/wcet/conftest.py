"""The shipped kernel, analysed once per test run, and its executions in QEMU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quoll.recordings.trace import Trace
from tests.testing.harness import build
from tests.testing.wcet.entry_graphs import EntryGraphs, graphs_of
from wcet.cli import main


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests on the analysed kernel and its trace run in one process, which makes them once."""
    needed = set(getattr(item, "fixturenames", ()))
    if {"report", "trace", "recording"} & needed:
        item.add_marker(pytest.mark.xdist_group("kernel"))
    if {"kernel", "report", "trace", "recording"} & needed:
        item.add_marker(pytest.mark.slow("the shipped kernel: built, analysed, or run in QEMU"))


@pytest.fixture(scope="session")
def kernel() -> Path:
    build.kernel()
    return build.ROOT / "build" / "bilby" / "kzm-after" / "kernel.elf"


@pytest.fixture(scope="session")
def report(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The JSON of ``wcet analyse --entry all`` on the shipped kernel."""
    out = tmp_path_factory.mktemp("analyse") / "result.json"
    assert main(["analyse", str(kernel), "--entry", "all", "--quiet", "--json", str(out)]) == 0
    document: dict[str, Any] = json.loads(out.read_text())
    return document


@pytest.fixture(scope="session")
def entry_graphs(kernel: Path) -> dict[int, EntryGraphs]:
    return graphs_of(kernel)


@pytest.fixture(scope="module")
def trace(recording: Path) -> Trace:
    """Every kernel execution of the user-level test suite, as long as a module needs them."""
    return Trace.read(recording)
