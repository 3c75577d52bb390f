"""Ends of masked paths: code on no path, unmasking, waiting (rule 33)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

KERNEL = """
.syntax unified
.macro function name
.global \\name
.type \\name, %function
\\name:
.endm
.global main
main:
function vector_svc
{body}
function exit_to_user
    movs pc, lr
{rest}
function vector_undefined
    b exit_to_user
function vector_prefetch_abort
    b exit_to_user
function vector_data_abort
    b exit_to_user
function vector_irq
    b exit_to_user
"""
SPINS = """
    ldr r3, =4096
1:  subs r3, r3, #1
    bne 1b
    ldr r0, [r0]
    cmp r0, #0
    bne other
"""
UNMASKS_FOR_EVER = "other: cpsie i\n2: str r0, [r1]\nb 2b\n"


def analyse(
    folder: Path,
    body: str,
    rest: str = "",
    *more: str,
    entry: str = "all",
    cpu: str = "arm1136jf-s",
) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of one run."""
    out = folder / "report.json"
    source = KERNEL.format(body=body, rest=rest)
    elf = build(source, language="asm", cpu=cpu, link=("-Wl,-Ttext=0xf0010000",))
    options = ["--entry", entry, "--quiet", "--no-cache", "--paths", "none", "--json", str(out)]
    status = main(["analyse", str(elf), *options, *more])
    return status, json.loads(out.read_text()) if status == 0 else {}


def test_code_on_no_path_to_an_end_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 18, 4: the path through ``cpsie i`` into an endless loop was left out in silence."""
    assert analyse(tmp_path, SPINS, UNMASKS_FOR_EVER)[0] == 5
    error = capsys.readouterr().err
    assert "<other>" in error
    assert "path must end at PLACE" in error


@pytest.mark.slow("several whole analyses")
def test_a_stated_end_covers_the_path_up_to_it(tmp_path: Path) -> None:
    """The path into the end is charged, and the end is listed."""
    status, report = analyse(tmp_path, SPINS, UNMASKS_FOR_EVER, "--end", "other")
    assert status == 0
    assert report["entries"]["syscall"]["cycles"] > 4096
    assert report["interrupt_latency"]["longest_masked_path"] == "syscall"
    assert "fact: --end:1: path must end at other" in report["assumptions"]


@pytest.mark.slow("several whole analyses")
def test_a_panic_is_an_end_of_the_platform(tmp_path: Path) -> None:
    rest = "other: nop\nfunction kernel_panic\ncpsid if\n2: b 2b\n"
    status, report = analyse(tmp_path, SPINS, rest)
    assert status == 0
    assert any("<kernel_panic>" in a for a in report["assumptions"] if a.startswith("ends: "))


def test_the_path_into_a_loop_that_does_nothing_is_charged(tmp_path: Path) -> None:
    """Up to the loop, where it ends; also the code between the last choice and the loop."""
    halts = "other: " + "ldr r0, [r1]\n" * 50 + "2: b 2b\n"
    status, report = analyse(tmp_path, SPINS, halts)
    assert status == 0
    syscall = report["entries"]["syscall"]
    assert any(text.startswith("halt: ") for text in syscall["assumptions"])
    without = analyse(tmp_path, SPINS, halts.replace("ldr r0, [r1]\n" * 50, ""))[1]
    assert syscall["cycles"] > without["entries"]["syscall"]["cycles"] + 50


@pytest.mark.parametrize("unmasks", ["", "cpsie i\n"])
def test_code_without_effect_is_charged_up_to_a_halt(tmp_path: Path, unmasks: str) -> None:
    """Interrupts are masked in it, so that they wait for its end."""
    delay = "other: ldr r0, =100000\n1: subs r0, r0, #1\nbne 1b\n"
    status, report = analyse(tmp_path, SPINS, f"{delay}{unmasks}2: b 2b\n")
    assert status == 0
    assert report["entries"]["syscall"]["cycles"] > 100000
    assert_never_served(report, masked=not unmasks)


def assert_never_served(report: dict[str, Any], *, masked: bool) -> None:
    """An interrupt that arrives in a halt, or before it, is served only if it unmasks them."""
    never = [text for text in report["assumptions"] if "would never be served" in text]
    assert len(never) == masked
    assert all("<other" in text for text in never)
    assert (report["interrupt_latency"] is not None) is masked


@pytest.mark.parametrize("masks", ["cpsid i\n", "msr cpsr_c, r0\n"])
def test_a_halt_that_may_be_masked_again_is_named(masks: str, tmp_path: Path) -> None:
    _, report = analyse(tmp_path, SPINS, f"other: cpsie i\nnop\n{masks}2: b 2b\n")
    assert [text for text in report["assumptions"] if "would never be served" in text]


@pytest.mark.parametrize("restores", ["", "msr cpsr_c, r2\n"])
def test_a_region_ends_at_a_halt(tmp_path: Path, restores: str) -> None:
    """The word of the msr may unmask: then the interrupt is taken there, not at an end of path."""
    body = "ldr r0, [r0]\ncmp r0, #0\nbne other\n"
    work = "ldr r2, [r3]\n" + "ldr r1, [r3]\n" * 100
    source = KERNEL.format(body=body, rest=f"other: {work}{restores}2: b 2b\n")
    elf = build(source, language="asm", cpu="arm1136jf-s", link=("-Wl,-Ttext=0xf0010000",))
    out = tmp_path / "masked.json"
    options = ["--platform", "kzm", "--no-cache", "--quiet", "--json", str(out)]
    assert main(["masked", str(elf), "--entry", "syscall", *options]) == 0
    document = json.loads(out.read_text())
    assert not document["partial"]
    assert max(region["cycles"] for region in document["regions"]) > 6000
    ended = [text for text in document["assumptions"] if "where its path ends after" in text]
    assert not any("<other" in text for text in ended)


@pytest.mark.parametrize("effect", ["cpsid i\ncpsie i", "mcr p15, 0, r0, c7, c10, 0", "setend le"])
def test_an_endless_loop_with_an_effect_is_no_halt(tmp_path: Path, effect: str) -> None:
    """It masks interrupts again and again, or writes dirty lines back: for so long, they wait."""
    assert analyse(tmp_path, SPINS, f"other: cpsie i\n2: {effect}\nb 2b\n")[0] == 5


@pytest.mark.parametrize("dead", ["udf #0", "2: str r0, [r1]\nb 2b", "bl other"])
def test_traps_and_endless_loops_are_no_ends(tmp_path: Path, dead: str) -> None:
    """Paths into a trap, a loop and endless recursion were left out in silence."""
    assert analyse(tmp_path, SPINS, f"function other\n{dead}\n")[0] == 5


@pytest.mark.slow("several whole analyses")
def test_a_fact_excuses_what_it_excludes(tmp_path: Path) -> None:
    facts = tmp_path / "k.facts"
    facts.write_text("ignore other\n")
    status, report = analyse(tmp_path, SPINS, UNMASKS_FOR_EVER, "--facts", str(facts))
    assert status == 0
    assert any("ignore other" in a for a in report["assumptions"])


def test_what_values_exclude_needs_no_fact(tmp_path: Path) -> None:
    body = "mov r0, #1\nbl check\n"
    check = "function check\ncmp r0, #1\nbxeq lr\n2: str r0, [r1]\nb 2b\n"
    assert analyse(tmp_path, body, check)[0] == 0
    assert analyse(tmp_path, body.replace("mov r0, #1", "ldr r0, [r0]"), check)[0] == 5


def test_values_that_leave_only_a_loop_without_end_are_no_excuse(tmp_path: Path) -> None:
    """The exit of the loop is infeasible: the remaining paths never leave the loop."""
    loop = "2: str r2, [r0]\ncmp r1, #1\nbeq 2b\n"
    body = f"ldr r2, [r0]\ncmp r2, #0\nbne 3f\nmov r1, #1\n{loop}3: nop\n"
    assert analyse(tmp_path, body)[0] == 5


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("code", "unmasks"),
    [
        ("cpsie i", True),
        ("cpsie if, #0x1f", True),
        ("cpsie f", False),
        ("cpsid i", False),
        ("cps #0x1f", False),
        ("msr cpsr_c, #0x53", True),
        ("msr cpsr_c, #0xd3", False),
        ("msr cpsr_f, r1", False),
        ("msr cpsr_c, r1", True),
        ("mov r1, #0x53\nmsr cpsr_c, r1", True),
        ("mov r1, #0xd3\nmsr cpsr_c, r1", False),
        ("mrs r1, cpsr\norr r2, r1, #0x80\nmsr cpsr_c, r2\nnop\nmsr cpsr_c, r1", False),
        ("mrs r1, cpsr\nbic r1, r1, #0x1f\norr r1, r1, #0x13\nmsr cpsr_cxsf, r1", False),
        ("mrs r1, cpsr\nbic r1, r1, #0x80\nmsr cpsr_c, r1", True),
        ("mrs r1, spsr\nmsr cpsr_c, r1", True),
        ("mrs r1, cpsr\ncmp r0, #0\nldrne r1, [r0]\nmsr cpsr_c, r1", True),
    ],
)
def test_where_interrupts_may_be_unmasked_no_latency_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, unmasks: bool
) -> None:
    """Issue 18, 4: unmasking in the middle of a path did not end the masked path."""
    status, report = analyse(tmp_path, code)
    assert status == 0
    assert (report["interrupt_latency"] is None) == unmasks
    assert ("no interrupt latency: syscall may unmask" in capsys.readouterr().out) == unmasks
    listed = [a for a in report["assumptions"] if a.startswith("syscall: interrupts: none")]
    assert bool(listed) == unmasks


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("code", "unmasks"),
    [
        ("cpsie i", True),
        ("cpsie.w if, #31", True),
        ("cpsie f", False),
        ("cpsid.w i, #31", False),
        ("mrs r1, cpsr\norr r2, r1, #128\nmsr cpsr_c, r2", False),
        ("mrs r1, cpsr\nbic r2, r1, #128\nmsr cpsr_c, r2", True),
    ],
)
def test_unmasking_in_thumb_code(tmp_path: Path, code: str, unmasks: bool) -> None:
    thumb = f".thumb\n.thumb_func\nfunction inner\n{code}\nb exit_to_interrupt\n"
    thumb += ".thumb_func\nfunction exit_to_interrupt\nnop\n.arm\n.align 2\n"
    report = analyse(tmp_path, "blx inner\n", thumb, cpu="cortex-a8")[1]
    assert (report["interrupt_latency"] is None) == unmasks


@pytest.mark.slow("several whole analyses")
def test_what_a_flush_of_the_tlb_leaves_to_assume_is_listed(tmp_path: Path) -> None:
    texts = {
        option: "\n".join(
            analyse(tmp_path, "mcr p15, 0, r0, c8, c7, 0", "", *option)[1]["assumptions"]
        )
        for option in ((), ("--tlb", "last-page"))
    }
    found = ["that are invalidated at" in text for text in texts.values()]
    assert found == [True, False]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("cpu", ["arm1136jf-s", "cortex-a8"])
def test_what_is_presupposed_of_the_machine_is_listed(tmp_path: Path, cpu: str) -> None:
    status, report = analyse(tmp_path, "nop", cpu=cpu)
    texts = "\n".join(report["assumptions"])
    assert status == 0
    for listed in ("machine: the caches, the MMU", "aborts: no access", "fast interrupts: none"):
        assert listed in texts
    assert "is no exception" not in texts
    assert "is no exception" in "\n".join(
        analyse(tmp_path, "nop", entry="vector_irq", cpu=cpu)[1]["assumptions"]
    )


@pytest.mark.slow("several whole analyses")
def test_an_exception_return_that_nobody_states_is_listed(tmp_path: Path) -> None:
    """It may return to the kernel, with interrupts masked: then the path is longer."""
    _, report = analyse(tmp_path, "ldr r0, [r0]\ncmp r0, #0\nmovseq pc, lr\n")
    (text,) = (a for a in report["assumptions"] if "exception return" in a)
    assert text.startswith("syscall: ends: the exception return at 0xf0010008 <vector_svc+0x8>")


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    ("wait", "cpu"),
    [
        ("wfi", "cortex-a8"),
        ("wfe", "cortex-a8"),
        ("wfine", "cortex-a8"),
        ("mcr p15, 0, r0, c7, c0, 4", "arm1136jf-s"),
        ("mcrne p15, 0, r3, c7, c0, 4", "arm1136jf-s"),
    ],
)
def test_waiting_has_no_duration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wait: str, cpu: str
) -> None:
    """Issue 18, 8: WFI and WFE cost 9 cycles."""
    assert analyse(tmp_path, f"nop\n{wait}\n", cpu=cpu)[0] == 5
    error = capsys.readouterr().err
    assert "waits for an interrupt" in error
    assert "path must end at PLACE" in error
    status, report = analyse(tmp_path, f"nop\n{wait}\n", "", "--end", "vector_svc+4", cpu=cpu)
    assert status == 0
    assert "fact: --end:1: path must end at vector_svc+4" in report["assumptions"]


def test_waiting_in_thumb_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waits = ".thumb\n.thumb_func\nfunction waits\nwfi\nbx lr\n.arm\n.align 2\n"
    assert analyse(tmp_path, "blx waits\n", waits, cpu="cortex-a8")[0] == 5
    assert "waits for an interrupt" in capsys.readouterr().err


@pytest.mark.slow("several whole analyses")
def test_events_and_other_hints_do_not_wait(tmp_path: Path) -> None:
    assert analyse(tmp_path, "sev\nyield\nnop\n", cpu="cortex-a8")[0] == 0


CONTROL = {
    "SCTLR": "mcr p15, 0, r0, c1, c0, 0",
    "ACTLR": "mcr p15, 0, r0, c1, c0, 1",
    "TTBR1": "mcr p15, 0, r0, c2, c0, 1",
    "TTBCR": "mcr p15, 0, r0, c2, c0, 2",
    "cache lockdown": "mcr p15, 0, r0, c9, c0, 0",
    "tightly coupled": "mcr p15, 0, r0, c9, c1, 0",
    "lockdown register of the level-2": "mcr p15, 1, r0, c9, c0, 0",
    "control register of the level-2": "mcr p15, 1, r0, c9, c0, 2",
    "TLB lockdown": "mcr p15, 0, r0, c10, c0, 0",
    "memory remap": "mcr p15, 0, r0, c10, c2, 0",
    "preloading": "mcr p15, 0, r0, c11, c0, 0",
    "vector base": "mcr p15, 0, r0, c12, c0, 0",
    "FCSE": "mcr p15, 0, r0, c13, c0, 0",
    "implementation": "mcrne p15, 0, r0, c15, c2, 4",
    "not known": "mcrr p15, 0, r0, r1, c7",
    "a range of data": "mcrr p15, 0, r0, r1, c6",
    "a range of instructions": "mcrr p15, 0, r0, r1, c5",
    "clean of a range": "mcrr p15, 0, r0, r1, c12",
    "whole data cache": "mcr p15, 0, r0, c7, c6, 0",
    "set and way": "mcr p15, 0, r0, c7, c6, 2",
    "both caches": "mcr p15, 0, r0, c7, c7, 0",
}


@pytest.mark.parametrize("what", CONTROL)
def test_writes_that_change_what_caches_do_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """Issue 18, 9: after code switched the data cache off, loads still hit."""
    assert analyse(tmp_path, CONTROL[what] + "\nldr r1, [r2]\nldr r1, [r2]\n")[0] == 7
    error = capsys.readouterr().err
    assert what in error
    assert "<vector_svc>" in error
    assert "function NAME takes at most N cycles" in error


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize(
    "insn",
    [
        "mcr p15, 0, r0, c1, c0, 2",
        "mcr p15, 0, r0, c2, c0, 0",
        "mcr p15, 0, r0, c3, c0, 0",
        "mcr p15, 0, r0, c8, c7, 2",
        "mcr p15, 0, r0, c13, c0, 1",
        "mcr p15, 0, r0, c13, c0, 3",
        "mcr p15, 0, r0, c15, c12, 1",
        "mrc p15, 0, r0, c1, c0, 0",
    ],
)
def test_writes_that_are_understood_are_not(tmp_path: Path, insn: str) -> None:
    assert analyse(tmp_path, insn)[0] == 0
