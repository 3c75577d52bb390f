"""The main job on the shipped kernel: five bounds, their paths, and executions as witnesses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.follow import MissingEdge, NodeVisit, follow
from quoll.recordings.trace import End, Execution, Trace
from tests.testing.harness import build
from tests.testing.harness.build import ENTRIES
from tests.testing.wcet.entry_graphs import EntryGraphs
from wcet.cli import main

pytestmark = pytest.mark.usefixtures("all_processors")

LEGAL_EXITS = set((build.ROOT / "kernels/bilby/EXITS").read_text().split())


@pytest.fixture(scope="module")
def image(kernel: Path) -> Image:
    return Image.load(kernel)


@pytest.fixture(scope="module")
def graphs(entry_graphs: dict[int, EntryGraphs]) -> dict[int, Supergraph]:
    """The full expansion of each entry, by vector address: no fact, no pruning."""
    return {vector: found.whole for vector, found in entry_graphs.items()}


@pytest.fixture(scope="module")
def executions(trace: Trace) -> tuple[Execution, ...]:
    """The first completed execution of each path."""
    ended = [e for e in reversed(trace.distinct()) if e.end is not End.STOPPED]
    return tuple({e.pcs.tobytes(): e for e in ended}.values())


@pytest.fixture(scope="module")
def followed(
    executions: tuple[Execution, ...], graphs: dict[int, Supergraph], image: Image
) -> list[tuple[NodeVisit, ...]]:
    """The path of each execution through the graph of its entry."""
    return [follow(graphs[e.entry], image, e.pcs) for e in executions]


def test_every_entry_has_a_bound(report: dict[str, Any]) -> None:
    assert set(report["entries"]) == set(ENTRIES)
    for entry in report["entries"].values():
        assert entry["cycles"] > 0
        assert entry["optimal"], "the counts reach the proven bound"
        assert entry["microseconds"] == pytest.approx(entry["cycles"] / 532, rel=1e-9)
        assert all(loop["bound"] is not None for loop in entry["loops"])
        assert {loop["method"] for loop in entry["loops"]} <= {"nusmv"}, "and no fact"


@pytest.mark.parametrize("name", ENTRIES)
def test_the_worst_path_is_contiguous_and_adds_up(
    report: dict[str, Any],
    graphs: dict[int, Supergraph],
    image: Image,
    name: str,
    kernel: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Checked against an expansion of its own, not against the run that made the path."""
    entry = report["entries"][name]
    assert entry["path_unrealisable"] is None
    assert main(["path", str(kernel), "--entry", name, "--full", "--quiet"]) == 0
    _, *path = map(json.loads, capsys.readouterr().out.splitlines())
    pcs: list[int] = []
    for step in path:
        at, end = int(step["address"], 16), int(step["end"], 16)
        pcs.extend(range(at, end, 4))
    vector = int(entry["address"], 16)
    visits = follow(graphs[vector], image, pcs)
    assert len(visits) >= len(path)
    last = image.symbol_at(pcs[-1])
    assert {s.name for s in image.symbols.at(pcs[-1])} & LEGAL_EXITS, last
    assert sum(step["cycles"] for step in path) == entry["cycles"]
    assert sum(entry["causes"].values()) == entry["cycles"]
    assert all(sum(s["causes"].values()) == s["cycles"] for s in path)
    blocks = [block for section in entry["path"] for block in section["blocks"]]
    assert sum(block["executions"] for block in blocks) == len(path)


def test_interrupt_latency_is_longest_masked_path_plus_interrupt(report: dict[str, Any]) -> None:
    cycles = {name: e["cycles"] for name, e in report["entries"].items()}
    latency = report["interrupt_latency"]
    assert latency["cycles"] == max(cycles.values()) + cycles["interrupt"]
    assert cycles[latency["longest_masked_path"]] == max(cycles.values())


def test_every_execution_is_a_path_of_the_graph(
    executions: tuple[Execution, ...],
    followed: list[tuple[NodeVisit, ...]],
    graphs: dict[int, Supergraph],
    image: Image,
) -> None:
    preempted = {s.addr for s in (image.symbol("exit_to_interrupt"),) if s is not None}
    for execution, visits in zip(executions, followed, strict=True):
        graph = graphs[execution.entry]
        length = sum(len(graph.nodes[v.node].block.insns) for v in visits)
        if execution.pcs[length - 1] in preempted:
            continue  # the rest is the path of the interrupt
        after = {image.symbol_at(pc) for pc in execution.pcs[length:]}
        assert {found[0].name for found in after if found} <= {"idle_loop"}
    assert {e.entry for e in executions} == set(graphs), "each of the five entries was executed"
    assert len(executions) > 100


def test_the_witness_notices_a_missing_instruction(
    executions: tuple[Execution, ...], graphs: dict[int, Supergraph], image: Image
) -> None:
    """The check above can fail: an execution with one instruction cut out is refused."""
    execution = max(executions, key=lambda e: len(e.pcs))
    pcs = list(execution.pcs)
    for at in (1, len(pcs) // 2):
        with pytest.raises(MissingEdge):
            follow(graphs[execution.entry], image, pcs[:at] + pcs[at + 1 :])


def test_executions_take_no_dead_edge_and_touch_only_addresses_that_values_allow(
    executions: tuple[Execution, ...],
    entry_graphs: dict[int, EntryGraphs],
    image: Image,
) -> None:
    """Rules 1, 4 and 5: value analysis covers the executions in QEMU."""
    checked = 0
    for execution in executions:
        _, graph, values = entry_graphs[execution.entry]
        visits = follow(graph, image, execution.pcs)
        at = [(v.node, i) for v in visits for i in range(len(graph.nodes[v.node].block.insns))]
        first: dict[int, int] = {}
        for access in execution.accesses():
            if access.index < len(at):
                first[access.index] = min(access.addr, first.get(access.index, access.addr))
        for index, address in first.items():
            allowed = values.access(*at[index])
            pc = execution.pcs[index]
            assert allowed is not None, image.place(pc)
            assert address in allowed, (image.place(pc), hex(address), allowed)
            checked += 1
    assert checked > 10_000


def test_no_execution_runs_a_loop_beyond_its_bound(
    executions: tuple[Execution, ...],
    followed: list[tuple[NodeVisit, ...]],
    report: dict[str, Any],
    graphs: dict[int, Supergraph],
    image: Image,
) -> None:
    """Loop bounds hold in executions; a place has the largest bound of its contexts."""
    bounds: dict[str, int] = {}
    for entry in report["entries"].values():
        for loop in entry["loops"]:
            bounds[loop["place"]] = max(bounds.get(loop["place"], 0), loop["bound"])
    checked = 0
    for execution, visits in zip(executions, followed, strict=True):
        graph = graphs[execution.entry]
        headers = {loop.header for loop in graph.loops}
        entries = {edge for loop in graph.loops for edge in loop.entries}
        count: dict[int, int] = {}
        arrived: int | None = None
        for visit in visits:
            before, arrived = arrived, visit.edge
            if visit.node in headers:
                inside = before is not None and before not in entries
                count[visit.node] = 1 + (count[visit.node] if inside else 0)
                place = image.place(graph.nodes[visit.node].block.addr)
                if place not in bounds:  # it goes round only while no interrupt is pending
                    continue
                assert count[visit.node] <= bounds[place], place
                checked += 1
    assert checked > 1_000
