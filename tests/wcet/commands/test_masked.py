"""``wcet masked``: no execution is masked for longer than the bound of its region."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quoll.image.image import Image
from tests.testing.harness.cases import spread
from tests.testing.wcet.masked_runs import masked_times
from tests.testing.wcet.preemptible_kernels import CALLS, preemptible
from wcet.cli import main
from wcet.platforms import platform_model as platforms

QUIET = ("--quiet", "--no-cache", "--platform")
RETURNS = "{give:#x} returns to its caller\n"
INLINE = """
__attribute__((noinline)) void deep(unsigned n) {
    unsigned flags = save();
    for (unsigned i = 0; i < 8; i++) cells[i] += n;
    if (n & 1) cells[9] = ticks;
    restore(flags);
}
unsigned main(unsigned n) {
    unsigned outer = save();
    for (unsigned i = 0; i < 4; i++) deep(n);
    restore(outer);
    for (unsigned i = 0; i < 6; i++) { deep(i); cells[i] ^= cells[i + 1]; }
    return cells[n & 31];
}
"""
BITS = """
unsigned main(unsigned n) {
    unsigned word;
    __asm__ volatile("mrs %0, cpsr" : "=r"(word));
    __asm__ volatile("orr %0, %0, #128\\n msr cpsr_c, %0" : "+r"(word) : : "memory");
    for (unsigned i = 0; i < (n & 7); i++) cells[i] = i;
    __asm__ volatile("bic %0, %0, #128\\n msr cpsr_c, %0" : "+r"(word) : : "memory");
    for (unsigned i = 0; i < 32; i++) cells[i] += n;
    return 0;
}
"""
PROGRAMS = {"calls": CALLS, "inline": INLINE, "bits": BITS}
ARRIVALS = 400  # of interrupts, in each run


def answered(elf: Path, folder: Path, status: int = 0, *more: str) -> dict[str, Any]:
    image, file = Image.load(elf), folder / "m.json"
    platform = "cubieboard" if image.cpu and "A8" in image.cpu.upper() else "kzm"
    facts = folder / "m.facts"
    give = image.symbol("give")
    last = give and give.addr + give.size - (2 if give.thumb else 4)
    facts.write_text(RETURNS.format(give=last) if last else "")
    command = ["masked", str(elf), "--json", str(file), "--facts", str(facts), *QUIET, platform]
    assert main([*command, *more]) == status
    document: dict[str, Any] = json.loads(file.read_text())
    return document


@pytest.mark.slow("analyses and executes random programs")
@pytest.mark.parametrize(("name", "optimise"), spread(product(PROGRAMS, ("-O1", "-O2", "-Os")), 4))
def test_no_execution_is_masked_for_longer(name: str, optimise: str, tmp_path: Path) -> None:
    elf = preemptible(PROGRAMS[name], optimise)
    document = answered(elf, tmp_path)
    assert not document["partial"]
    image, platform, random = Image.load(elf), platforms.load("kzm"), Random(7)
    bounds = {int(r["start"].split()[0], 16): r["cycles"] for r in document["regions"]}
    longest = max(bounds.values())
    seen: set[int] = set()
    for argument in range(16):
        for time in masked_times(image, platform, random, argument):
            seen.add(time.start)
            assert time.cycles <= bounds[time.start], hex(time.start)
            for _ in range(ARRIVALS // 16):
                arrival = random.uniform(0, time.cycles)  # waits for the rest
                assert time.cycles - arrival <= longest
    assert len(seen) >= 3, "the entry, a lock, the way back"
    assert document["latency_cycles"] == longest + document["interrupt"]["cycles"]


@pytest.mark.slow("several whole analyses")
def test_a_nested_lock_does_not_end_the_outer_region(tmp_path: Path) -> None:
    """The inner unlock restores a status word that was read while interrupts were masked."""
    regions = answered(preemptible(CALLS), tmp_path)["regions"]
    chains = {region["calls"][-1]: region for region in regions if region["entry"] == "syscall"}
    assert chains["take"]["cycles"] > chains["add"]["cycles"]
    assert chains["add"]["contexts"] == 1


@pytest.mark.slow("several whole analyses")
def test_what_has_no_bound_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = CALLS.replace("i < (n & 15)", "i < ticks")
    elf = preemptible(source)
    document = answered(elf, tmp_path, 6)
    assert document["partial"]
    assert any("add" in one["start"] for one in document["not_bounded"])
    assert any(region["entry"] == "interrupt" for region in document["regions"])
    capsys.readouterr()
    facts = str(tmp_path / "m.facts")
    assert main(["masked", str(elf), "--facts", facts, "--paths", "1", *QUIET, "kzm"]) == 6
    text = capsys.readouterr().out
    assert "not bounded: syscall: " in text
    assert "this result is partial" in text


@pytest.mark.slow("several whole analyses")
def test_the_way_to_a_handler_is_shorter(tmp_path: Path) -> None:
    elf = preemptible(CALLS)
    whole = answered(elf, tmp_path)["interrupt"]["cycles"]
    first = answered(elf, tmp_path, 0, "--handler", "handler")["interrupt"]
    assert first["handler"] == "handler"
    assert first["cycles"] < whole


SWITCHED = """
unsigned place[16];
__attribute__((naked, noinline)) void change(unsigned *from, unsigned *to) {
    __asm__("stmia r0, {r4-r11, sp, lr}\\n ldmia r1, {r4-r11, sp, pc}");
}
unsigned main(unsigned n) {
    unsigned flags = save();
    change(place, place);
    restore(flags);
    return n;
}
"""


def test_what_runs_after_a_context_switch_is_said_not_to_be_added(tmp_path: Path) -> None:
    elf = preemptible(SWITCHED)
    (tmp_path / "more.facts").write_text("change switches context\n")
    document = answered(elf, tmp_path, 0, "--facts", str(tmp_path / "more.facts"))
    assert not document["partial"]
    (text,) = (t for t in document["assumptions"] if "is not included" in t)
    assert "<change+0x4>" in text
    regions = {region["calls"][-1]: region["cycles"] for region in document["regions"]}
    assert regions["main"] > 1000, "it goes on behind the switch"


RECURSIVE = """
__attribute__((noinline)) unsigned down(unsigned n) {
    if (ticks == n) return cells[0];
    cells[1] = down(n + ticks);
    return cells[1] + down(n * 3);
}
unsigned main(unsigned n) {
    __asm__ volatile("cpsid i" : : : "memory");
    n = down(n);
    __asm__ volatile("cpsie i" : : : "memory");
    return n;
}
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("more", [(), ("--everywhere",)])
def test_recursion_of_no_known_depth_is_named(tmp_path: Path, more: tuple[str, ...]) -> None:
    """It has no full inlining, whose contexts could be counted."""
    document = answered(preemptible(RECURSIVE), tmp_path, 5, *more)
    assert any("recursi" in one["reason"] for one in document["not_bounded"])
