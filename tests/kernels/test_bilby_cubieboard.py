# SPDX-License-Identifier: BSD-2-Clause
"""The kernel `bilby` for the Cubieboard: the same tests pass, the core has every instruction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.bilby.build import (
    BILBY,
    CROSS,
    TEXT_LIMIT,
    check_exceptions,
    output,
    run_program,
    symbols,
)
from tests.testing.bilby.listing import CODE, Function, disassemble, exception_returns, merge_labels
from tests.testing.bilby.tap import PROMISES, check_tap
from tests.testing.harness import build as products

BOARD = "cubieboard-after"


@pytest.fixture(scope="module")
def elf() -> Path:
    return products.kernel(BOARD, "kernel.elf", "tests.elf")


@pytest.fixture(scope="module")
def functions(elf: Path) -> list[Function]:
    return merge_labels(disassemble(elf, CODE))


VECTORS = ["reset", "undefined", "svc", "prefetch_abort", "data_abort", "unused", "irq", "fiq"]


def test_user_level_tests_pass_and_the_kernel_never_faults(elf: Path, tmp_path: Path) -> None:
    log = tmp_path / "exceptions"
    done = run_program("tests", "-d", "int", "-D", str(log), build=BOARD)
    assert done.returncode == 0, done.stdout + done.stderr
    sentences = [sentence for _, _, sentence in check_tap(done.stdout).lines]
    for promise in PROMISES:
        assert any(promise in sentence for sentence in sentences), promise
    check_exceptions(log, idle="3")  # secure state


# Instructions that the Cortex-A8 lacks, or the kernel must not use: (mask, value, name).
FORBIDDEN = [
    (0x0FF0F0F0, 0x0730F010, "udiv"),
    (0x0FF0F0F0, 0x0710F010, "sdiv"),
    (0x0FFFFFF0, 0x01600070, "smc"),
    (0x0FFFFFF0, 0x01400070, "hvc"),
    (0x0F000010, 0x0E000000, "cdp or floating point"),
    (0x0E000000, 0x0C000000, "ldc, stc, mcrr, mrrc or floating point"),
    (0x0F000000, 0x0F000000, "svc"),
    (0xFE000000, 0xF2000000, "Advanced SIMD"),
    (0xFF100000, 0xF4000000, "Advanced SIMD"),
]

# Coprocessor accesses outside boot: (opc1, CRn, CRm, opc2) of p15.
CP15 = {
    (0, 2, 0, 0), (0, 13, 0, 1),              # table base, address space number
    (0, 5, 0, 0), (0, 5, 0, 1), (0, 6, 0, 0),  # faults
    (0, 7, 5, 0), (0, 7, 10, 1), (0, 8, 7, 2),  # ICIALLU, DCCMVAC, TLBIASID
    (0, 13, 0, 2), (0, 7, 14, 1),  # TPIDRURW, DCCIMVAC
}  # fmt: skip

# CPACR, PMUSERENR and the thread registers, which boot sets to 0.
CLOSED = {(0, 1, 0, 2), (0, 9, 14, 0), (0, 13, 0, 2), (0, 13, 0, 3)}

BOOT_CP15 = {
    (0, 1, 0, 0), (0, 1, 0, 1), (0, 2, 0, 0), (0, 2, 0, 2), (0, 3, 0, 0), (0, 13, 0, 1),
    (1, 0, 0, 1), (2, 0, 0, 0), (1, 0, 0, 0),  # CLIDR, CSSELR, CCSIDR
    (0, 7, 6, 2), (0, 7, 5, 0), (0, 7, 5, 6),  # DCISW, ICIALLU, BPIALL
    (0, 7, 10, 1), (0, 8, 7, 0),
    *CLOSED,
}  # fmt: skip

TEECR = (6, 0, 0, 0)  # of coprocessor 14: boot alone


def refusal(word: int, allowed: set[tuple[int, int, int, int]]) -> str | None:
    """Why this instruction may not be in the kernel; None if it may."""
    for mask, value, name in FORBIDDEN:
        if word & mask == value and (word >> 28 != 0xF or mask >> 28 == 0xF):
            return name
    if word >> 28 != 0xF and word & 0x0F000010 == 0x0E000010:
        place = (word >> 21 & 7, word >> 16 & 15, word & 15, word >> 5 & 7)
        if word >> 8 & 15 == 14 and place == TEECR and allowed is BOOT_CP15:
            return None
        return None if word >> 8 & 15 == 15 and place in allowed else f"coprocessor {place}"
    return None


REFUSED_SAMPLES = """
    udiv r0, r1, r2; sdiv r0, r1, r2; smc #0; svc #0; mrc p15, 0, r0, c13, c0, 3
    mcr p15, 0, r0, c7, c5, 1; mrc p15, 0, r0, c9, c13, 0; mrc p14, 0, r0, c0, c0, 0
    mrrc p15, 0, r0, r1, c2; vmov s0, r0; vadd.f32 s0, s1, s2; vadd.i32 d0, d1, d2
    vldr s0, [r0]; vld1.8 {d0}, [r0]
"""


def test_the_detector_refuses_each_forbidden_encoding(tmp_path: Path) -> None:
    source = tmp_path / "samples.s"
    source.write_text(
        ".syntax unified\n.arch armv7-a\n.arch_extension idiv\n.arch_extension sec\n.fpu neon\n"
        + REFUSED_SAMPLES.replace(";", "\n").strip()
        + "\n",
        encoding="utf-8",
    )
    output(f"{CROSS}as", source, "-o", tmp_path / "samples.o")
    insns = disassemble(tmp_path / "samples.o", [".text"])[0].insns
    assert len(insns) == 14
    for insn in insns:
        assert refusal(insn.word, CP15), f"{insn.word:08x} {insn.mnemonic} {insn.operands}"


IDLE_CALL = ("idle_loop", "svc")


def test_no_forbidden_instruction(elf: Path, functions: list[Function]) -> None:
    boot = symbols(elf)["_start"]
    assert sum(len(function.insns) for function in functions) > 1000
    for function in functions:
        for insn in function.insns:
            allowed = BOOT_CP15 if boot <= insn.address < 0xFFFF0000 else CP15
            if (function.name, insn.mnemonic) == IDLE_CALL:
                continue
            reason = refusal(insn.word, allowed)
            assert reason is None, f"{function.name} {insn.address:#x}: {reason}"


def test_boot_closes_coprocessors(functions: list[Function]) -> None:
    (start,) = (function for function in functions if function.name == "_start")
    words = [insn.word for insn in start.insns if insn.word & 0x0F100010 == 0x0E000010]
    places = {(w >> 21 & 7, w >> 16 & 15, w & 15, w >> 5 & 7): w >> 8 & 15 for w in words}
    assert {place for place, coprocessor in places.items() if coprocessor == 15} >= CLOSED
    assert places[TEECR] == 14


def test_switching_spaces_is_fenced(functions: list[Function]) -> None:
    """Each write to the space number or table base is followed by an ISB at once."""
    writes = 0
    for function in functions:
        if function.name == "_start":
            continue
        for insn, following in zip(function.insns, function.insns[1:], strict=False):
            if insn.word & 0x0FFF0FFF in (0x0E0D0F30, 0x0E020F10):
                assert following.word & 0xFFFFFFF0 == 0xF57FF060, f"{insn.address:#x}"
                writes += 1
    assert writes >= 3


def test_build_attributes_name_the_core(elf: Path) -> None:
    attributes = output(f"{CROSS}readelf", "-A", elf)
    assert re.search(r"Tag_CPU_name: \"7-A\"$", attributes, re.M), attributes
    assert re.search(r"Tag_CPU_arch: v7$", attributes, re.M), attributes


def test_size(elf: Path) -> None:
    sizes = dict(re.findall(r"^(\.\w+)\s+(\d+)", output(f"{CROSS}size", "-A", elf), re.M))
    total = sum(int(sizes.get(name, 0)) for name in (".text", ".rodata", ".idle", ".vectors"))
    assert 4096 < total <= TEXT_LIMIT


def test_loaded_in_the_memory_of_the_board(elf: Path) -> None:
    headers = output(f"{CROSS}readelf", "-lW", elf)
    assert re.search(r"LOAD\s+0x\w+ 0xf0010000 0x40010000 ", headers), headers
    assert re.search(r"LOAD\s+0x\w+ 0xffff0000 0x40\w{6} ", headers), headers


def test_exits_are_all_and_only_the_exception_returns(elf: Path, functions: list[Function]) -> None:
    listed = (BILBY / "EXITS").read_text(encoding="utf-8").split()
    table = symbols(elf)
    returns = {table[name] for name in listed if name != "exit_to_interrupt"}
    assert returns == exception_returns(functions)


def test_control_flow_is_resolved(elf: Path) -> None:
    image = Image.load(elf)
    entries = [symbols(elf)[f"vector_{name}"] for name in VECTORS]
    assert not extract(image, entries).unresolved
