"""``wcet analyse`` where code tests for interrupts: bounds of segments (rule 21)."""

from __future__ import annotations

import json
import os
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cache.classify import ClassifiedFetches
from ilp.constraints.constraint import UNLIMITED
from ilp.paths.path_check import path_cycles, violations
from loopbounds.proof.options import BoundOptions
from quoll.arm.decode import decode
from quoll.image.image import Image
from quoll.recordings.follow import MissingEdge
from quoll.recordings.trace import End, Execution
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.quoll.building import build
from wcet.analysis import schedule
from wcet.analysis.analysis import analyse as run
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import StageLog
from wcet.cli import main
from wcet.executions.path_replay import ReplaySubject, replay_paths
from wcet.executions.recorded_paths import cut

CLEARING = """
#define LOW  (*(volatile unsigned *)0xf8000058u)
#define HIGH (*(volatile unsigned *)0xf800005cu)
unsigned done;
__attribute__((noinline)) void chunk(unsigned *at) { for (int i = 0; i < 64; i++) at[i] = 0; }
int main(unsigned *at, unsigned *end) {
    while (at != end) {
        chunk(at);
        at += 64;
        done++;
        if (TEST) return 1;
    }
    return 0;
}
"""
PREEMPTIBLE = CLEARING.replace("TEST", "LOW | HIGH")


def analyse(folder: Path, source: str, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of one run."""
    out = folder / "report.json"
    elf = build(source, link=("-Wl,-Ttext=0xf0010000",))
    options = ["--entry", "main", "--platform", "kzm", "--quiet", "--solver", "highs"]
    status = main(["analyse", str(elf), *options, "--json", str(out), *more])
    return status, json.loads(out.read_text()) if status == 0 else {}


@pytest.mark.slow("several whole analyses")
def test_without_a_test_for_interrupts_the_loop_has_no_bound(tmp_path: Path) -> None:
    assert analyse(tmp_path, CLEARING.replace("TEST", "0"))[0] == 6


@pytest.mark.slow("several whole analyses")
def test_a_preemptible_loop_costs_one_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = analyse(tmp_path, PREEMPTIBLE)
    assert status == 0
    entry = report["entries"]["main"]
    assert [loop["bound"] for loop in entry["loops"]] == [64]
    assert len(entry["starts"]) >= 2
    assert entry["cycles"] == entry["starts"][0]["cycles"]
    assert sorted(s["cycles"] for s in entry["starts"])[::-1] == [
        s["cycles"] for s in entry["starts"]
    ]
    contexts = entry["contexts"]
    sections = [s for s in entry["path"] if contexts[s["context"]]["function"] == "chunk"]
    executed = sum(block["executions"] for s in sections for block in s["blocks"])
    assert 0 < executed <= 2 * 64 + 4
    assert any("an interrupt is pending" in a for a in entry["assumptions"])
    if entry["starts"][0]["place"] is None:
        expected = f"{len(entry['starts']) - 1} starts at preemption points take less"
    else:
        expected = "from just after the test for interrupts at"
    printed = text(capsys)
    assert expected in printed
    rows = printed.split("to the end of the path\n")[1].split("\n\n")[0].splitlines()[1:]
    cycles = [int(row.split()[0].replace(",", "")) for row in rows]
    assert cycles == [start["cycles"] for start in entry["starts"]][:10]


@pytest.mark.slow("several whole analyses")
def test_a_preemptible_loop_is_listed_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    """Its bound comes from the tests for interrupts and does not depend on the solver."""
    for source, methods in ((PREEMPTIBLE, {64: "nusmv", 1: "pending"}), (CLEARING, {})):
        elf = build(source.replace("TEST", "0"), link=("-Wl,-Ttext=0xf0010000",))
        status = main(
            ["loops", str(elf), "--entry", "main", "--platform", "kzm", "--quiet", "--json", "-"]
        )
        report = json.loads(capsys.readouterr().out)
        bounds = {loop["bound"]: loop for loop in report["loops"]}
        pending = any("an interrupt is pending" in a for a in report["assumptions"])
        assert pending == bool(methods)
        if not methods:
            assert status == 6
            assert bounds.keys() == {64, None}
            continue
        assert status == 0
        assert {bound: loop["method"] for bound, loop in bounds.items()} == methods
        assert "is tested at" in bounds[1]["evidence"]
        assert bounds[1]["seconds"] == 0


COUNTING = CLEARING.replace("TEST", "preempted()").replace(
    "int main",
    """__attribute__((noinline)) int preempted(void) {
    static unsigned work;
    if (++work < 100) return 0;
    work = 0;
    return (LOW | HIGH) != 0;
}
int main""",
)
TWICE = (
    COUNTING.replace("int main", "__attribute__((noinline)) int once")
    + """
__attribute__((noinline)) int again(unsigned *at, unsigned *end) { return once(at, end); }
int main(unsigned *at, unsigned *end) {
    if (once(at, end)) return 1;
    return again(end, at + 4096);
}
"""
)


@pytest.mark.slow("several whole analyses")
def test_a_loop_that_tests_every_hundredth_time_iterates_as_often(tmp_path: Path) -> None:
    """Two operations that share the word count a hundred times together."""
    found = {}
    for name, source in (("one", COUNTING), ("two", TWICE)):
        status, report = analyse(tmp_path, source)
        assert status == 0, name
        entry = report["entries"]["main"]
        assert {loop["bound"] for loop in entry["loops"]} == {64, 101}
        assert all(loop["seconds"] == 0 for loop in entry["loops"] if loop["bound"] == 101)
        assert any("counts the work between tests" in a for a in entry["assumptions"])
        found[name] = entry["cycles"]
    assert 0.9 * found["one"] < found["two"] < 1.1 * found["one"]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("dies", [False, True])
def test_starts_of_paths_cost_the_same_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """Also where a worker process dies: its part is then done again."""
    tested = PREEMPTIBLE.replace("done++;", "done++; if (HIGH) return 2;")
    _, alone = analyse(tmp_path, tested, "--no-cache")
    parent = os.getpid()

    def with_data(fetches: ClassifiedFetches, values: Any) -> Any:
        if dies and os.getpid() != parent:
            os._exit(9)
        return classified(fetches, values)

    classified = ClassifiedFetches.with_data
    monkeypatch.setattr(ClassifiedFetches, "with_data", with_data)
    monkeypatch.setattr(schedule, "LARGE", 1)
    _, together = analyse(tmp_path, tested, "--no-cache")
    one, other = alone["entries"]["main"], together["entries"]["main"]
    assert len(one["starts"]) > 2
    for of in ("cycles", "starts", "path", "assumptions"):
        assert one[of] == other[of]


@pytest.mark.slow("several whole analyses")
def test_a_fact_about_a_loop_that_some_parts_of_paths_leave_at_once(tmp_path: Path) -> None:
    facts = tmp_path / "my.facts"
    facts.write_text("loop clearing.c:7 at most 100\n")
    named = PREEMPTIBLE.replace("\nunsigned done", '\n#line 4 "clearing.c"\nunsigned done')
    status, report = analyse(tmp_path, named, "--facts", str(facts))
    assert status == 0
    assert report["entries"] == analyse(tmp_path, named)[1]["entries"]


def text(capsys: pytest.CaptureFixture[str]) -> str:
    """The text report of the preemptible program."""
    elf = build(PREEMPTIBLE, link=("-Wl,-Ttext=0xf0010000",))
    capsys.readouterr()
    assert main(["analyse", str(elf), "--entry", "main", "--platform", "kzm", "--quiet"]) == 0
    return capsys.readouterr().out


class Accesses:
    """Memory that notes the accesses of the instruction at ``index``."""

    def __init__(self) -> None:
        self.memory, self.index = ByteMemory(), 0
        self.words: list[tuple[int, int, int]] = []

    def load(self, addr: int, size: int) -> int:
        self.words.append((self.index, addr, size))
        return self.memory.load(addr, size)

    def store(self, addr: int, size: int, value: int) -> None:
        self.words.append((self.index, addr, size | 1 << 8))
        self.memory.store(addr, size, value)


def execution(image: Image, chunks: int) -> Execution:
    """A run of ``main`` that clears ``chunks`` chunks and never sees an interrupt."""
    symbol = image.symbol("main")
    assert symbol is not None
    memory = Accesses()
    for segment in image.segments:
        for place, byte in enumerate(segment.data):
            memory.memory.content[segment.addr + place] = byte
    machine = ConcreteMachine(memory)
    machine.registers[:2] = [0xF100_0000, 0xF100_0000 + 256 * chunks]
    machine.registers[13:16] = [0xF200_0000, 0x1000, symbol.addr]
    pcs = array("I")
    while machine.registers[15] != 0x1000:
        pc = machine.registers[15]
        memory.index = len(pcs)
        pcs.append(pc)
        code = image.read(pc, 4)
        assert code is not None
        machine.step(decode(code, pc, False))
    return Execution(memoryview(pcs), np.array(memory.words, np.uint32), End.OUTSIDE)


@pytest.mark.slow("several whole analyses")
def test_an_execution_without_interrupts_is_cut_at_its_tests() -> None:
    elf = build(PREEMPTIBLE, link=("-Wl,-Ttext=0xf0010000",))
    options = AnalysisOptions(("main",), "kzm", None, (), False, (), "highs", 60.0, BoundOptions())
    result = run(elf, options, StageLog(verbose=False))
    entry, image = result.entries["main"], result.image
    ran = execution(image, 5)
    pieces = cut(entry.paths, image, [[ran]])
    assert [p.paths.start is None for p in pieces[:2]] == [True, False]
    assert [p.complete for p in pieces][-1]
    assert not any(p.complete for p in pieces[:-1])
    begins = [begin for p in pieces for _, begin in p.sources]
    assert begins == sorted(set(begins))
    assert len(pieces) >= 3, "the turns in the middle are alike"
    subject = ReplaySubject("main", entry.paths, image, result.platform)
    replayed = replay_paths(subject, [[ran]], 3, seed=1)
    assert not any(r.exceeds(entry.cycles) for r in replayed)
    assert any(r.most * 3 > entry.cycles for r in replayed)
    assert sum(r.executions for r in replayed) == 1
    for piece, one in zip(pieces, replayed, strict=True):
        steps, graph = piece.interrupted(), piece.paths.graph
        assert steps is not None
        assert not violations(graph, [UNLIMITED] * len(graph.loops), (), steps)
        assert one.interrupted == path_cycles(piece.paths.costs, steps)
        assert one.most <= one.interrupted <= entry.cycles
    whole = replace(ran, pcs=ran.pcs[: len(ran.pcs) // 2])
    with pytest.raises(MissingEdge):
        cut(entry.paths, image, [[whole]])
