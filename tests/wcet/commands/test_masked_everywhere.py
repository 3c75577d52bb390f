"""``wcet masked --everywhere``: the regions of all functions, also of those no entry reaches."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quoll.errors import ControlFlowError
from quoll.image.image import Image
from tests.testing.wcet.masked_runs import masked_times
from tests.testing.wcet.preemptible_kernels import CALLS, preemptible
from wcet.cli import main
from wcet.platforms import platform_model as platforms

UNKNOWN = """
void (*hook)(unsigned);
__attribute__((noinline)) void held(unsigned n) {
    unsigned flags = save();
    hook(n);
    restore(flags);
}
__attribute__((noinline)) void apart(unsigned n) {
    hook(n);
    unsigned flags = save();
    cells[0] = n;
    restore(flags);
}
unsigned main(unsigned n) { held(n); apart(n); return 0; }
"""
LONG = """
__attribute__((noinline)) void work(void) { for (unsigned i = 0; i < 64; i++) cells[i] ^= i; }
unsigned main(unsigned n) {
    unsigned flags = save();
    work();
    restore(flags);
    return n;
}
"""
AGAIN = """
__attribute__((noinline)) void pause(void) {
    unsigned flags = save();
    __asm__ volatile("cpsie i" : : : "memory");
    cells[1]++;
    restore(flags);             /* called while masked, it goes on so in its callers */
    for (unsigned i = 0; i < 3; i++) cells[i]++;
}
unsigned main(unsigned n) {
    unsigned flags = save();
    pause();
    for (unsigned i = 0; i < 40; i++) cells[i] += n;
    restore(flags);
    return n;
}
"""
MIDDLE = """
__asm__(".type counted, %function\\ncounted: mov r1, #2\\ninside: mrs r2, cpsr\\n cpsid i\\n"
        "1: subs r1, r1, #1\\n bne 1b\\n msr cpsr_c, r2\\n bx lr\\n.size counted, . - counted\\n");
__asm__(".type longer, %function\\nlonger: mov r1, #50\\n b inside\\n.size longer, . - longer\\n");
void counted(void);
void longer(void);
unsigned main(unsigned n) { counted(); longer(); return n; }
"""


def asked(elf: Path, folder: Path, facts: str, *more: str) -> dict[str, Any]:
    file, stated = folder / "m.json", folder / "m.facts"
    stated.write_text(facts)
    main([
        *("masked", str(elf), "--everywhere", "--json", str(file), "--facts", str(stated)),
        *("--no-facts", "--quiet", "--no-cache", "--platform", "kzm", *more),
    ])  # fmt: skip
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def bounds_of(document: dict[str, Any]) -> dict[int, int]:
    return {int(r["start"].split()[0], 16): r["cycles"] for r in document["regions"]}


@pytest.mark.slow("several whole analyses")
def test_calls_in_regions_are_inlined_and_others_passed_over(tmp_path: Path) -> None:
    elf = preemptible(CALLS)
    image = Image.load(elf)
    give = image.symbol("give")
    assert give is not None
    document = asked(elf, tmp_path, f"{give.addr + 4:#x} returns to its caller\n")
    bounds, random = bounds_of(document), Random(3)
    seen: set[int] = set()
    for argument in range(16):
        for time in masked_times(image, platforms.load("kzm"), random, argument):
            seen.add(time.start)
            assert time.cycles <= bounds[time.start], hex(time.start)
    assert len(seen) >= 4
    assert document["partial"]
    locks = {one["entry"] for one in document["not_bounded"] if "for its callers" in one["reason"]}
    assert {"take", "give"} <= locks
    assert "add" not in locks


def test_a_region_that_calls_what_is_not_known_is_named(tmp_path: Path) -> None:
    document = asked(preemptible(UNKNOWN), tmp_path, "")
    missing = {one["entry"]: one["reason"] for one in document["not_bounded"]}
    assert "makes an unresolved call at" in missing["held"]
    assert "apart" not in missing
    assert any(region["entry"] == "apart" for region in document["regions"])
    assert any(kind["kind"] == "other-calls" for kind in document["assumption_kinds"])


@pytest.mark.slow("several whole analyses")
def test_a_region_beyond_the_budget_is_named(tmp_path: Path) -> None:
    elf = preemptible(LONG)
    small = asked(elf, tmp_path, "", "--budget", "2")
    assert any("more than 2 instructions" in one["reason"] for one in small["not_bounded"])
    assert not any(region["entry"] == "main" for region in small["regions"])
    assert any(region["entry"] == "main" for region in asked(elf, tmp_path, "")["regions"])


@pytest.mark.slow("several whole analyses")
def test_what_masks_again_for_a_caller_is_followed_there(tmp_path: Path) -> None:
    document = asked(preemptible(AGAIN), tmp_path, "")
    pause = next(one for one in document["not_bounded"] if one["entry"] == "pause")
    assert "for its callers" in pause["reason"]
    chains = [r["calls"] for r in document["regions"] if r["cycles"] > 1000]
    assert any(chain[-2:] == ["main", "pause"] for chain in chains)


@pytest.mark.slow("several whole analyses")
def test_a_jump_into_the_middle_of_a_function_brings_its_own_values(tmp_path: Path) -> None:
    """From its start the loop runs twice; from elsewhere fifty times."""
    elf = preemptible(MIDDLE)
    inside = Image.load(elf).symbol("inside")
    assert inside is not None
    bounds = bounds_of(asked(elf, tmp_path, ""))
    assert bounds[inside.addr + 4] >= 50
    image, random = Image.load(elf), Random(5)
    for time in masked_times(image, platforms.load("kzm"), random, 0):
        assert time.cycles <= bounds[time.start]


@pytest.mark.slow("several whole analyses")
def test_what_is_not_looked_at_in_time_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = preemptible(LONG)
    whole = asked(elf, tmp_path, "")
    assert bounds_of(whole)
    none = asked(elf, tmp_path, "", "--within", "1e-9")
    assert none["partial"]
    assert not none["regions"]
    late = {one["entry"] for one in none["not_bounded"] if "not analysed" in one["reason"]}
    assert {region["entry"] for region in whole["regions"]} <= late
    capsys.readouterr()
    status = main([
        *("masked", str(elf), "--everywhere", "--within", "1e-9", "--quiet", "--no-cache"),
        *("--no-facts", "--platform", "kzm"),
    ])  # fmt: skip
    printed = capsys.readouterr().out
    assert status == ControlFlowError.exit_status
    assert "not analysed within 1e-09 s: main" in printed


@pytest.mark.slow("several whole analyses")
def test_entries_that_are_not_found_do_not_stop_the_others(tmp_path: Path) -> None:
    elf = tmp_path / "without.elf"
    shutil.copy(preemptible(LONG), elf)
    names = ("undefined", "svc", "prefetch_abort", "data_abort", "irq", "fiq")
    dropped = [word for name in names for word in ("-N", f"vector_{name}")]
    subprocess.run(["arm-none-eabi-objcopy", "-R", ".vectors", *dropped, elf], check=True)
    document = asked(elf, tmp_path, "")
    assert "main" in {region["entry"] for region in document["regions"]}
    assert "none of the symbols" in document["not_bounded"][0]["reason"]
    assert document["partial"]


WALK = """
struct item { struct item *next; } *first;
unsigned main(unsigned n) {
    unsigned flags = save();
    for (struct item *i = first; i; i = i->next) cells[0]++;
    restore(flags);
    return n;
}
"""
NAMES = ("--everywhere", "x, which may unmask them: no latency is given")


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["--everywhere", "--entry=syscall"])
def test_no_name_of_a_file_takes_an_assumption_away(
    command: str, name: str, tmp_path: Path
) -> None:
    """Assumptions are distinguished by their kind, never by words in their text."""
    elf = preemptible(WALK)
    line = 1 + elf.with_name("prog.c").read_text().split("i = i->next")[0].count("\n")
    found = []
    for file in ("plain", name):
        stated = tmp_path / file
        stated.write_text(f"loop prog.c:{line} at most 7\n")
        written = tmp_path / "m.json"
        main([
            *("masked", str(elf), command, "--json", str(written), "--facts", str(stated)),
            *("--no-facts", "--quiet", "--no-cache", "--platform", "kzm"),
        ])  # fmt: skip
        document = json.loads(written.read_text())
        assert any(str(stated) in text for text in document["assumptions"])
        found.append(sorted(one["kind"] for one in document["assumption_kinds"]))
    assert found[0] == found[1]
