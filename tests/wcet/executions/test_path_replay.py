"""Recorded executions on the concrete machine: at most the bound and their path's charge."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from cache.classify import classify
from cache.geometry import CacheGeometry
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from pipeline.charge import charge
from quoll.arm.insn import Condition
from quoll.errors import InputError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.follow import NodeVisit, follow
from quoll.recordings.trace import End, Execution, Trace
from quoll.value_analysis.value_results import ValueResults
from tests.testing.cache.graphs import at, pool
from tests.testing.harness import qemu
from tests.testing.harness.build import ENTRIES
from tests.testing.harness.cases import spread
from tests.testing.quoll.recordings import written
from tests.testing.wcet.entry_graphs import EntryGraphs
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.prepared import PreparedPaths
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.cli import main
from wcet.executions.path_replay import ReplayPath as Walk
from wcet.executions.path_replay import (
    ReplaySubject,
    StartContents,
    by_path,
    executed,
    first_addresses,
    random_machine,
    replay,
    replay_paths,
)
from wcet.platforms.platform_model import Platform, load

ONE_WAY = CacheGeometry(4096, 1, 32)
PATHS = 100  # of each entry


@pytest.fixture(scope="module")
def recorded(recording: Path, kernel: Path) -> dict[int, list[list[Execution]]]:
    starts = frozenset(qemu.preemption_starts(Image.load(kernel)))
    trace = Trace.read(recording)
    left = tuple(e for e in trace.executions if starts.isdisjoint(e.pcs))
    return by_path(replace(trace, executions=left))


@pytest.fixture(scope="module")
def graphs(
    kernel: Path, entry_graphs: dict[int, EntryGraphs]
) -> dict[str, tuple[Image, Supergraph, ValueResults]]:
    image = Image.load(kernel)
    return {
        name: (image, entry_graphs[entry.vector].graph, entry_graphs[entry.vector].values)
        for name, entry in load("kzm").entries.items()
    }


def subject(
    graphs: dict[str, tuple[Image, Supergraph, ValueResults]], name: str, platform: Platform
) -> ReplaySubject:
    image, graph, values = graphs[name]
    classes = classify(graph, values, platform.hierarchy)
    charges = charge(graph, classes, values, platform.hierarchy, platform.timing)
    return ReplaySubject(name, (PreparedPaths(None, graph, charges.costs, ()),), image, platform)


def one_way(platform: Platform) -> Platform:
    """Direct-mapped caches of one way: they satisfy all that the analysis assumes, and no more."""
    return replace(platform, hierarchy=replace(platform.hierarchy, l1i=ONE_WAY, l1d=ONE_WAY))


@pytest.mark.parametrize(
    "platform", spread([one_way(load("kzm")), load("kzm")], 1), ids=lambda platform: platform.name
)
def test_costs_cover_every_path_that_was_executed(
    graphs: dict[str, tuple[Image, Supergraph, ValueResults]],
    recorded: dict[int, list[list[Execution]]],
    platform: Platform,
) -> None:
    """The charges of the very path that ran, not of the worst one.

    ``test_the_command`` does the same for kzm-paper, the tour in README.md for kzm.
    """
    closest, count = 10.0, 0
    for name in ENTRIES:
        of = subject(graphs, name, platform)
        paths = spread(recorded[platform.entries[name].vector], PATHS)
        for replayed in replay_paths(of, paths, 1, seed=5):
            assert replayed.charged is not None
            assert replayed.ratio is not None
            assert replayed.most <= replayed.charged, replayed
            closest = min(closest, replayed.ratio)
            count += 1
    assert count > PATHS
    assert closest < 2, "the comparison is so loose that it proves nothing"


def before_scheduler(of: ReplaySubject, path: Iterable[NodeVisit]) -> Iterable[NodeVisit]:
    """The beginning of a path."""
    scheduler, nodes = of.image.symbol("sched_run"), of.paths[0].graph.nodes
    assert scheduler is not None
    return takewhile(lambda visit: nodes[visit.node].block.addr != scheduler.addr, path)


def test_the_bound_covers_the_charge_of_every_path(
    graphs: dict[str, tuple[Image, Supergraph, ValueResults]],
    recorded: dict[int, list[list[Execution]]],
    report: dict[str, Any],
) -> None:
    """With the test above: no replay exceeds the bound. This one sees loops and the solver.

    All entries but the interrupt's test for interrupts before they call the scheduler: if one is
    pending, as the bound presupposes, their paths end there.
    """
    platform = load("kzm")
    for name in ENTRIES:
        of = subject(graphs, name, platform)
        for number, executions in enumerate(recorded[platform.entries[name].vector]):
            path = follow(of.paths[0].graph, of.image, executions[0].pcs)
            visits = path if name == "interrupt" else before_scheduler(of, path)
            charged = path_cycles(of.paths[0].costs, (PathStep(v.node, v.edge) for v in visits))
            assert charged <= report["entries"][name]["cycles"], (name, number)


def analysing(monkeypatch: pytest.MonkeyPatch, *entries: str) -> None:
    """``wcet replay`` analyses these entries only."""

    def of_some(elf: Path, options: AnalysisOptions, stages: StageLog) -> AnalysisResult:
        return analyse(elf, replace(options, entries=entries), stages)

    monkeypatch.setattr("wcet.commands.replay.analyse", of_some)


def test_the_command(
    kernel: Path,
    trace: Trace,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it at once, on the paper's assumptions; the tour in README.md has all entries."""
    entries = spread(ENTRIES[1:], 2)
    analysing(monkeypatch, *entries)
    out, some = tmp_path / "replay.json", tmp_path / "some.trace"
    vectors = [load("kzm-paper").entries[name].vector for name in entries]
    recorded = [by_path(trace)[vector] for vector in vectors]
    paths = [one[0] for entry in recorded for one in spread(entry, PATHS // 4)]
    some.write_bytes(written(paths))
    arguments = ["replay", str(some), "--kernel", str(kernel), "--platform", "kzm-paper"]
    assert main([*arguments, "--states", "1", "--quiet", "--json", str(out)]) == 0
    table = capsys.readouterr().out
    document = json.loads(out.read_text())
    assert set(document["entries"]) == set(entries)
    for name, entry in document["entries"].items():
        assert entry["bound_cycles"] >= entry["most_cycles"] > 0
        charged = entry["most_charged_cycles"]
        assert charged is None or entry["most_cycles"] <= charged <= entry["bound_cycles"]
        assert entry["charged_over_seen"]["least"] >= 1
        assert f"{entry['most_cycles']:,}" in table, name
        assert entry["exceeding"] == []


def test_names_in_facts_are_given_numbers(
    kernel: Path,
    recorded: dict[int, list[list[Execution]]],
    report: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fact that allows fewer levels of a lookup lowers the bound. One handler is analysed."""
    analysing(monkeypatch, "undefined")
    trace, facts, out = (tmp_path / name for name in ("one.trace", "named.facts", "replay.json"))
    trace.write_bytes(written(recorded[load("kzm").entries["undefined"].vector][0][:1]))
    facts.write_text("loop resolve.h:43 at most levels + 1\n")
    arguments = ["replay", str(trace), "--kernel", str(kernel), "--facts", str(facts)]
    arguments += ["--states", "1", "--quiet", "--json", str(out)]
    assert main(arguments) == 2
    assert "--set levels=N" in capsys.readouterr().err
    assert main([*arguments, "--set=levels=20"]) == 0
    bound = json.loads(out.read_text())["entries"]["undefined"]["bound_cycles"]
    assert bound < report["entries"]["undefined"]["cycles"]


def test_a_machine_with_slower_memory_exceeds(
    graphs: dict[str, tuple[Image, Supergraph, ValueResults]],
    recorded: dict[int, list[list[Execution]]],
) -> None:
    """The comparison can fail: costs for memory of 60 cycles do not cover memory of 240."""
    of = subject(graphs, "interrupt", load("kzm"))
    slow = replace(of.platform.timing.memory, access=240)
    platform = replace(of.platform, timing=replace(of.platform.timing, memory=slow))
    paths = recorded[platform.entries["interrupt"].vector]
    assert any(
        r.exceeds(1 << 62) for r in replay_paths(replace(of, platform=platform), paths, 2, 1)
    )


def test_states_and_seeds_matter_and_repeat(
    graphs: dict[str, tuple[Image, Supergraph, ValueResults]],
    recorded: dict[int, list[list[Execution]]],
) -> None:
    of = subject(graphs, "undefined", load("kzm"))
    paths = recorded[of.platform.entries["undefined"].vector]
    first, again = (replay_paths(of, paths, 3, 1) for _ in range(2))
    assert first == again
    assert first != replay_paths(of, paths, 3, 2)


def test_cold_and_polluted_caches_cost_more_than_own_lines(
    graphs: dict[str, tuple[Image, Supergraph, ValueResults]],
    recorded: dict[int, list[list[Execution]]],
) -> None:
    """Medians over states: the contents drawn differ in the way they are meant to."""
    of = subject(graphs, "interrupt", load("kzm"))
    execution = recorded[of.platform.entries["interrupt"].vector][0][0]
    path = Walk.of(of.paths[0].graph, follow(of.paths[0].graph, of.image, execution.pcs))
    first = {a.index: a.addr for a in reversed(list(execution.accesses()))}
    means = {}
    for contents in StartContents:
        cycles = 0
        for seed in range(20):
            random = Random(seed)
            steps = executed(path, first, of.platform, random)
            machine = random_machine(of.platform, steps, contents, random)
            cycles += replay(machine, steps, exception=True)
        means[contents] = cycles / 20
    assert means[StartContents.MIXED] < means[StartContents.COLD] < means[StartContents.POLLUTED]


def walk(text: str, *taken: bool) -> Walk:
    insns = tuple(at(insn, 0x8000 + 4 * i) for i, insn in enumerate(pool(text)))
    return Walk(insns, taken or (False,) * len(insns), tuple(range(len(insns))))


def test_conditions_that_read_the_same_flags_agree() -> None:
    """Drawn where nothing tells; told by a branch or an access; drawn again after new flags."""
    text = "cmp r0, #0\nmoveq r1, #1\nmovne r1, #2\nldrne r2, [r3]\ncmp r1, #0\nmoveq r1, #1\n"
    path, platform = walk(text), load("kzm")
    assert path.insns[1].cond is Condition.EQ
    seen = set()
    for seed in range(40):
        for accesses in ({}, {3: 0xF0020000}):
            steps = executed(path, accesses, platform, Random(seed))
            assert steps[1].passed is not steps[2].passed
            assert steps[3].passed is steps[2].passed is bool(accesses)
            seen.add(steps[5].passed)
    assert seen == {False, True}


def test_branches_tell_their_condition() -> None:
    path = walk("cmp r0, #0\nmovge r1, #1\nblt .\n", False, False, True)
    for seed in range(10):
        assert not executed(path, {}, load("kzm"), Random(seed))[1].passed


def test_a_missing_access_is_an_error_and_a_missing_preload_is_not() -> None:
    with pytest.raises(InputError, match="lacks the access"):
        executed(walk("ldr r0, [r1]\n"), {}, load("kzm"), Random(1))
    (step,) = executed(walk("pld [r1]\n"), {}, load("kzm"), Random(1))
    assert step.address is None


def test_accesses_behind_a_function_that_is_not_in_the_graph() -> None:
    """The positions of a path have gaps where code of the execution is left out."""
    path = walk("ldr r0, [r1]\nldrne r2, [r3]\n")
    path = replace(path, origin=(0, 7))
    accesses = np.array([[2, 0x100, 4], [3, 0x200, 4], [9, 0x300, 4], [10, 0x400, 4]], np.uint32)
    execution = Execution(memoryview(bytes(4 * 12)), accesses, End.OUTSIDE)
    found = first_addresses(execution, 2, path)
    assert found == {0: 0x100, 1: 0x200, 7: 0x300}
    assert [step.address for step in executed(path, found, load("kzm"), Random(1))] == [
        0x100,
        0x300,
    ]


def test_memory_types() -> None:
    path, platform = walk("ldr r0, [r1]\n"), load("kzm")
    cached = {
        addr: {executed(path, {0: addr}, platform, Random(s))[0].cached for s in range(20)}
        for addr in (0xF0020000, 0xF8000000, 0x00100000)
    }
    assert cached == {0xF0020000: {True}, 0xF8000000: {False}, 0x00100000: {True, False}}


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--states", "0"], 2, "--states"),
        (["--raw", "memory.bin"], 2, "is not FILE@ADDRESS"),
        ([], 3, "is no address"),
    ],
)
def test_bad_input(
    kernel: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    said: str,
) -> None:
    trace = tmp_path / "a.trace"
    trace.write_bytes(b"something else")
    assert main(["replay", str(trace), "--kernel", str(kernel), "--quiet", *arguments]) == status
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
