"""The interrupt path and the latency, against interrupts that arrive anywhere (rule 32)."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from quoll.assumptions import (
    HANDED_OVER,
    KINDS,
    OTHERS_FIRST,
    STAYS_PENDING,
    TAKEN_IMMEDIATELY,
)
from tests.testing.harness.cases import spread
from tests.testing.wcet.interrupts import analysed, interrupt_path, kernel, latencies, random_kernel
from wcet.cli import main
from wcet.executions.recorded_paths import cut
from wcet.platforms.platform_model import DIRECTORY

TESTS = "((*(volatile unsigned *)0xF8000058u | *(volatile unsigned *)0xF800005Cu) != 0)"
EVERY = tuple(product(range(4), range(8)))  # arguments that a call tells apart
CALL = "int main(unsigned a, unsigned b) { return b; }\n"
HANDLER = f"""
unsigned memory[64];
__attribute__((noinline)) void handler(void) {{
    unsigned line = VECTOR;
    for (unsigned i = 0; i < 100; i++) memory[i & 63] += i;
    ACKNOWLEDGE = line;
    if ({TESTS}) return;
    for (unsigned i = 0; i < 200; i++) memory[i & 63] ^= i;
}}
"""
POLLING = """
unsigned memory[64];
__attribute__((noinline)) void serve(void) {
    unsigned line;
    do { line = VECTOR; memory[1]++; ACKNOWLEDGE = line; } while (!TESTS);
}
__attribute__((noinline)) void handler(void) { serve(); }
""".replace("TESTS", TESTS)


@pytest.mark.slow("several whole analyses")
def test_the_interrupt_path_is_not_cut_by_its_own_interrupt() -> None:
    """Item 3: it is the one that is pending, and reads as 0 once it is acknowledged."""
    result = analysed(kernel(CALL + HANDLER))
    entry = result.entries["interrupt"]
    assert [start.place for start in entry.starts] == [None]
    seen = latencies(result, 1)
    assert seen.arrivals > 5_000
    assert {100, 200} <= set(entry.solution.nodes)
    assert result.latency is not None
    assert result.latency.cycles == 2 * entry.cycles


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("seed", "inputs"), spread([(3, EVERY), (109, ((0, 0),)), (13, EVERY), (4, ()), (5, ())], 3)
)
def test_no_arrival_takes_longer_than_the_latency(
    seed: int, inputs: tuple[tuple[int, int], ...]
) -> None:
    """Programs of the tests of segments, handlers included, before every instruction."""
    result = analysed(random_kernel(seed))
    found = latencies(result, seed, inputs)
    assert found.arrivals > 300
    assert found.paths > 10
    assert found.most * 6 > found.bound, "the comparison is so loose that it proves nothing"


@pytest.mark.slow("several whole analyses")
def test_recordings_of_the_interrupt_path_are_replayed_whole() -> None:
    """Item 3: replay cut them where the analysis did, and could not see that it was too short."""
    result = analysed(kernel(CALL + HANDLER))
    recorded = interrupt_path(result)
    (piece,) = cut(result.entries["interrupt"].paths, result.image, [[recorded]])
    assert piece.complete
    last = piece.visits[-1]
    assert last.start + len(piece.paths.graph.nodes[last.node].block.insns) == len(recorded.pcs)


def run(tmp_path: Path, command: str, elf: Path, *more: str) -> tuple[int, dict[str, Any]]:
    out = tmp_path / "report.json"
    options = ["--platform", "kzm", "--quiet", "--json", str(out)]
    status = main([command, str(elf), *options, *more])
    return status, json.loads(out.read_text()) if status in (0, 6) and out.exists() else {}


@pytest.mark.slow("several whole analyses")
def test_what_the_handler_runs_is_bounded_whole_by_its_own_name(tmp_path: Path) -> None:
    elf = kernel(CALL + HANDLER)
    for name in ("handler", "entry_irq", "vector_irq"):
        status, report = run(tmp_path, "analyse", elf, "--entry", name)
        assert status == 0
        assert [s["place"] for s in report["entries"][name]["starts"]] == [None], name
        assert not any("pending" in a for a in report["assumptions"]), name


@pytest.mark.slow("several whole analyses")
def test_a_loop_of_the_handler_that_only_its_tests_end_has_no_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = kernel(CALL + POLLING)
    assert run(tmp_path, "analyse", elf, "--entry", "interrupt")[0] == 6
    assert "on the interrupt path one is being handled" in capsys.readouterr().err
    status, report = run(tmp_path, "loops", elf, "--entry", "interrupt")
    assert status == 6
    assert [loop["bound"] for loop in report["loops"]] == [None]
    loop = report["loops"][0]["address"]
    facts = tmp_path / "my.facts"
    facts.write_text(f"loop {loop} at most 3\n")
    more = ("--entry", "interrupt", "--facts", str(facts))
    assert run(tmp_path, "analyse", elf, *more)[0] == 0


@pytest.mark.slow("several whole analyses")
def test_the_latency_lists_what_it_rests_on(tmp_path: Path) -> None:
    """Rule 40: each assumption has a row; for a preempted call it names ``exit_to_interrupt``."""
    status, report = run(tmp_path, "analyse", kernel(CALL + HANDLER), "--entry", "all")
    assert status == 0
    assert (
        report["interrupt_latency"]["interrupt_cycles"]
        == (report["entries"]["interrupt"]["cycles"])
    )
    listed = [a for a in report["assumption_kinds"] if a["text"].startswith("interrupts: ")]
    kinds = [kind.name for kind in (OTHERS_FIRST, TAKEN_IMMEDIATELY, HANDED_OVER)]
    assert [a["kind"] for a in listed] == kinds
    assert "exit_to_interrupt" in listed[-1]["text"]
    assert STAYS_PENDING in KINDS


@pytest.mark.slow("several whole analyses")
def test_several_interrupts_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last one waits for the masked path and for the others, each with a path of its own."""
    elf = kernel(CALL + HANDLER)
    found = [run(tmp_path, "analyse", elf, "--interrupts", k)[1] for k in ("1", "3")]
    one, three = (report["interrupt_latency"] for report in found)
    assert three["cycles"] == one["cycles"] + 2 * one["interrupt_cycles"]
    assert any(" 2 others are handled at most" in a for a in found[1]["assumptions"])
    assert "+ 3 × interrupt path" in capsys.readouterr().out
    assert run(tmp_path, "analyse", elf, "--interrupts", "0")[0] == 2


@pytest.mark.slow("several whole analyses")
def test_the_delay_of_the_controller_is_part_of_the_latency(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DIRECTORY / "kzm.toml").read_text()
    delay = (
        '\n[controller]\nsource = "manual"\ndelay = { value = 70, source = "manual" }\n[entries]'
    )
    board = tmp_path / "board.toml"
    board.write_text(text.replace("\n[entries]", delay))
    elf = kernel(CALL + HANDLER)
    found = [run(tmp_path, "analyse", elf, *more)[1] for more in ((), ("--platform", str(board)))]
    without, late = (report["interrupt_latency"] for report in found)
    assert without["controller_cycles"] == 0
    assert late["controller_cycles"] == 70
    assert late["cycles"] == without["cycles"] + 70
    assert any("a line at most 70 cycles after" in text for text in found[1]["assumptions"])
    assert not any("controller: the registers" in text for text in found[0]["assumptions"])
    assert "interrupt path (" in (out := capsys.readouterr().out)
    assert " + controller (70)" in out


def test_a_call_that_is_cut_says_that_the_interrupt_stays_pending(tmp_path: Path) -> None:
    call = CALL.replace("return b;", f"do memory[a++ & 63]++; while (!{TESTS}); return 1;")
    status, report = run(
        tmp_path, "analyse", kernel("unsigned memory[64];" + call + HANDLER), "--entry", "syscall"
    )
    assert status == 0
    assert str(STAYS_PENDING.of()) in report["assumptions"]
