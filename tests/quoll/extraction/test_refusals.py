"""Refusals give a reason and a hint."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quoll.errors import FactsError, InputError, UsageError
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.quoll.building import TEXT_BASE, address, build
from wcet.cli import main

pytestmark = [
    pytest.mark.slow("builds each program that is refused"),
    pytest.mark.xdist_group("refusals"),
]

COUNTDOWN = """
        .syntax unified
        .thumb
        .global main
main:   movs r0, #3
1:      subs r0, #1
        bne 1b
        bx lr
"""
CALLED = """
        .syntax unified
        .arm
        .global main
main:   push {r4, lr}
        blx r3
        pop {r4, pc}
        .thumb
called: movs r0, #3
        push {r4, lr}
1:      subs r0, #1
        bne 1b
        pop {r4, pc}
"""


def stripped(source: str, tmp_path: Path) -> Image:
    """Linked, and without a symbol."""
    elf = build(source, language="asm", cpu="cortex-a8")
    bare = tmp_path / "bare.elf"
    subprocess.run(["arm-none-eabi-strip", "-s", elf, "-o", bare], check=True, timeout=60)
    return Image.load(bare)


def hints(image: Image, entry: int, facts: str = "") -> list[str]:
    program = extract(image, [entry], locate(parse(facts, "k.facts"), image))
    return [f"{u.reason} ({u.hint})" for u in program.unresolved]


def test_code_that_may_be_thumb(tmp_path: Path) -> None:
    image = stripped(COUNTDOWN.replace(".global main\n", ""), tmp_path)
    (reason,) = hints(image, TEXT_BASE)
    assert "is no known instruction" in reason
    assert (
        "whether there is ARM or Thumb code at 0x8000: if it is Thumb code, write 0x8001" in reason
    )
    assert not hints(image, TEXT_BASE | 1)


def test_an_entry_between_words_may_be_thumb(tmp_path: Path) -> None:
    image = stripped(COUNTDOWN, tmp_path)
    with pytest.raises(UsageError, match="not aligned") as refused:
        extract(image, [TEXT_BASE + 2])
    assert "write 0x8003" in str(refused.value)


def test_an_odd_entry_of_the_elf_says_that_it_is_thumb(tmp_path: Path) -> None:
    source = COUNTDOWN.replace("main:", ".thumb_func\nmain:")
    image = stripped(source, tmp_path)
    assert image.entry == TEXT_BASE | 1
    assert not hints(image, TEXT_BASE)


@pytest.mark.parametrize("target", [0x800C, 0x800E])
def test_a_stated_target_that_may_be_thumb(tmp_path: Path, target: int) -> None:
    image = stripped(CALLED, tmp_path)
    (reason,) = hints(image, TEXT_BASE, f"targets of 0x8004 are {target:#x}\n")
    assert f"if it is Thumb code, write {target | 1:#x}" in reason
    assert not hints(image, TEXT_BASE, f"targets of 0x8004 are {target | 1:#x}\n")


TWINS = """
static __attribute__((noinline)) int twice(int x) { return x + (*(volatile int *)0x9000)%s; }
int %s(int x) { return twice(x); }
"""


def twins(tmp_path: Path, debug: str) -> Image:
    """Two files that have a function of one name each."""
    names = []
    for number, name in enumerate(("main", "other"), 1):
        (tmp_path / f"{name}.c").write_text(TWINS % (f" * {number}", name))
        names.append(f"{name}.c")
    command = ["arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-O1", debug, "-nostdlib", *names]
    command += ["-Wl,-Ttext=0x8000", "-Wl,-e,main", "-o", "twins.elf"]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=60)
    return Image.load(tmp_path / "twins.elf")


@pytest.mark.parametrize(
    "fact",
    ["function twice takes at most 9 cycles", "loop twice at most 3", "path must end at twice",
     "targets of main are twice", "ignore twice", "main executes at most 3 times in twice"],
)  # fmt: skip
def test_a_fact_about_a_name_of_two_functions(
    tmp_path: Path, fact: str, capsys: pytest.CaptureFixture[str]
) -> None:
    twins(tmp_path, "-g")
    (tmp_path / "k.facts").write_text(f"\n{fact}\n")
    options = ["--platform", "kzm", "--entry", "main", "--no-cache", "--quiet", "--facts"]
    elf, facts = str(tmp_path / "twins.elf"), str(tmp_path / "k.facts")
    assert main(["analyse", elf, *options, facts]) == FactsError.exit_status
    refused = capsys.readouterr().err
    assert "k.facts:2: several symbols are named twice: 0x0000" in refused
    assert "main.c:2" in refused
    assert "other.c:2" in refused


def test_commands_that_look_at_all_functions_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twins(tmp_path, "-g")
    elf = str(tmp_path / "twins.elf")
    assert main(["loops", elf, "--platform", "kzm", "--quiet"]) == 0
    assert main(["init", elf, "--entry", "main", "--output", "-"]) == 0
    assert "several symbols" not in capsys.readouterr().err


def test_without_lines_the_symbol_table_has_the_files(tmp_path: Path) -> None:
    image = twins(tmp_path, "-g0")
    with pytest.raises(InputError, match="several symbols") as refused:
        image.symbol("twice")
    assert "<twice> of main.c, " in str(refused.value)
    assert "<twice> of other.c" in str(refused.value)


BLOCK = """
        .syntax unified
        .thumb
        .global main
        .type main, %function
        .thumb_func
main:   push {{r4, lr}}
        cmp r0, #0
        .inst.n {it:#x}
        {insn}
        .inst.n 0x2101
        pop {{r4, pc}}
        nop
after:  bx lr
"""
ITT_EQ, IT_EQ = 0xBF04, 0xBF08
TRANSFERS = {
    "b": ".inst.n 0xe001",
    "b.w": ".inst.w 0xf000b802",
    "bl": ".inst.w 0xf000f802",
    "blx": ".inst.n 0x4798",
    "bx": ".inst.n 0x4770",
    "pop": ".inst.n 0xbd10",
    "mov": ".inst.n 0x46f7",
    "add": ".inst.n 0x449f",
    "ldr": ".inst.w 0xf8d1f000",
    "tbb": ".inst.w 0xe8d1f000",
}
NOWHERE = {
    "cbz": ".inst.n 0xb101",
    "cbnz": ".inst.n 0xb901",
    "bne": ".inst.n 0xd101",
    "bne.w": ".inst.w 0xf0408002",
    "it": ".inst.n 0xbf08",
    "cpsid": ".inst.n 0xb672",
    "cpsid.w": ".inst.w 0xf3af8640",
    "setend": ".inst.n 0xb650",
}


def refusals(it: int, insn: str) -> str:
    source = BLOCK.format(it=it, insn=insn)
    image = Image.load(build(source, language="asm", cpu="cortex-a8"))
    return "; ".join(hints(image, address(image, "main")))


@pytest.mark.parametrize("insn", TRANSFERS.values(), ids=TRANSFERS)
def test_a_transfer_in_the_middle_of_an_it_block(insn: str) -> None:
    assert "in the middle of an IT block" in refusals(ITT_EQ, insn)
    assert "IT block" not in refusals(IT_EQ, insn)


@pytest.mark.parametrize("insn", NOWHERE.values(), ids=NOWHERE)
def test_what_no_it_block_may_hold(insn: str) -> None:
    assert "in an IT block, which is UNPREDICTABLE" in refusals(IT_EQ, insn)
    assert "IT block" not in refusals(0xBF00, insn) or insn == NOWHERE["it"]


@pytest.mark.parametrize(("it", "wrong"), [(0xBFF8, True), (0xBFE8, False), (0xBFEC, True)])
def test_a_condition_that_is_none(it: int, wrong: bool) -> None:
    assert ("has a condition that is none" in refusals(it, "nop")) == wrong


JUMPS = """
        .syntax unified
        .thumb
        .global main
        .type main, %function
        .thumb_func
main:   push {{r4, lr}}
        movs r3, #8
        {insn}
        nop
        pop {{r4, pc}}
        .align 2
there:  nop
        nop
        pop {{r4, pc}}
"""


@pytest.mark.parametrize(
    "insn",
    ["0xeb0e0f03", "0xf10e0f04", "0xebae0f03", "0xeb0f0f03", "0xea6f0f0e", "0xeb030f0e"],
)
def test_wide_arithmetic_that_writes_the_pc_goes_somewhere(insn: str) -> None:
    """It was taken for an instruction after which there is nothing: the function never returned."""
    source = JUMPS.format(insn=f".inst.w {insn}")
    image = Image.load(build(source, language="asm", cpu="cortex-a8"))
    start = address(image, "main")
    (reason,) = hints(image, start)
    assert " pc, " in reason


@pytest.mark.parametrize("insn", ["add pc, r3", "mov pc, r3"])
def test_narrow_arithmetic_that_writes_the_pc_is_followed(insn: str) -> None:
    source = JUMPS.format(insn=insn).replace("movs r3, #8", "adr r3, there")
    source = source.replace("adr r3, there", "movs r3, #4") if "add" in insn else source
    image = Image.load(build(source, language="asm", cpu="cortex-a8"))
    start = address(image, "main")
    program = extract(image, [start])
    assert not program.unresolved
    reached = {i.addr for f in program.functions.values() for b in f.blocks for i in b.insns}
    assert address(image, "there") & ~1 in reached
