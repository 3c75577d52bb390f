# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's ELF has its claimed encodings, calls, exits, sections and sizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.bilby.build import BILBY, BOARDS, CROSS, ROOT, TEXT_LIMIT, make, output, symbols
from tests.testing.bilby.listing import (
    CODE,
    Function,
    Insn,
    branches,
    call_graph,
    disassemble,
    exception_returns,
)

STACK_BYTES = 4096

# Encodings that the r0p4 ARM1136 lacks: (mask, value, name).
FORBIDDEN = [
    (0x0FF00000, 0x03000000, "movw"),
    (0x0FF00000, 0x03400000, "movt"),
    (0x0FFFFF00, 0x0320F000, "hint (nop, yield, wfe, wfi, sev)"),
    (0xFFFFFFF0, 0xF57FF040, "dsb"),
    (0xFFFFFFF0, 0xF57FF050, "dmb"),
    (0xFFFFFFF0, 0xF57FF060, "isb"),
    (0xFFFFFFFF, 0xF57FF01F, "clrex"),
    (0x0FF00FFF, 0x01B00F9F, "ldrexd"),
    (0x0FF00FFF, 0x01D00F9F, "ldrexb"),
    (0x0FF00FFF, 0x01F00F9F, "ldrexh"),
    (0x0FF00FF0, 0x01A00F90, "strexd"),
    (0x0FF00FF0, 0x01C00F90, "strexb"),
    (0x0FF00FF0, 0x01E00F90, "strexh"),
    (0x0FF0F0F0, 0x0730F010, "udiv"),
    (0x0FF0F0F0, 0x0710F010, "sdiv"),
    (0x0FE00070, 0x07C00010, "bfi, bfc"),
    (0x0FE00070, 0x07E00050, "ubfx"),
    (0x0FE00070, 0x07A00050, "sbfx"),
    (0x0FF000F0, 0x00600090, "mls"),
    (0x0FFF0FF0, 0x06FF0F30, "rbit"),
    (0x0FFFFFF0, 0x01600070, "smc"),
    (0x0F100010, 0x0E000010, None),  # mcr: see coprocessor()
    (0x0F100010, 0x0E100010, None),  # mrc
    (0x0F000010, 0x0E000000, "cdp or floating point"),
    (0x0E000000, 0x0C000000, None),  # ldc, stc, mcrr, mrrc
    (0x0F000000, 0x0F000000, "svc"),
    (0xFF000000, 0xF2000000, "Advanced SIMD"),
    (0xFF000000, 0xF3000000, "Advanced SIMD"),
]

# Coprocessor accesses the kernel may use: (opc1, CRn, CRm, opc2) of p15.
CP15 = {
    (0, 1, 0, 0), (0, 2, 0, 0), (0, 2, 0, 2), (0, 3, 0, 0),
    (0, 5, 0, 0), (0, 5, 0, 1), (0, 6, 0, 0),
    (0, 7, 0, 4),  # wait for interrupt
    (0, 7, 5, 0), (0, 7, 5, 4), (0, 7, 7, 0), (0, 7, 10, 1), (0, 7, 10, 4),
    (0, 7, 14, 1),  # clean and invalidate a line
    (0, 8, 7, 0), (0, 8, 7, 2), (0, 13, 0, 1),
}  # fmt: skip

# The main ID register, and the thread registers, which revision r0 lacks: where threads change, and
# in boot; a thread register only under the condition that the ID register gives (NE).
MAIN_ID, THREAD_REGISTERS = (0, 0, 0, 0), {(0, 13, 0, 2), (0, 13, 0, 3)}
KNOW_REVISION = {"sched_switch", "_start"}
NE = 1

# Boot alone: (coprocessor, ...) of CPACR, and of Jazelle's JOSCR and JMCR, which it closes.
CLOSED = {(15, 0, 1, 0, 2), (14, 7, 1, 0, 0), (14, 7, 2, 0, 0)}


def asks_revision(word: int, place: tuple[int, int, int, int]) -> bool:
    """Whether it reads the revision, or is executed only where the revision has the register."""
    return place == MAIN_ID or (place in THREAD_REGISTERS and word >> 28 == NE)


def refusal(word: int, function: str = "") -> str | None:
    """Why this instruction may not be in a function of the kernel; None if it may."""
    for mask, value, name in FORBIDDEN:
        if word & mask != value or (word >> 28 == 0xF and mask >> 28 == 0):
            continue
        if name is not None:
            return name
        if (word >> 24) & 0xF == 0xE:
            place = (word >> 21 & 7, word >> 16 & 15, word & 15, word >> 5 & 7)
            if word >> 8 & 15 == 15 and place in CP15:
                return None
            if function == "_start" and (word >> 8 & 15, *place) in CLOSED:
                return None
            if function in KNOW_REVISION and word >> 8 & 15 == 15 and asks_revision(word, place):
                return None
        return "coprocessor access"
    return None


REFUSED_SAMPLES = """
    movw r0, #1; movt r0, #1; nop; wfi; wfe; sev; yield; dsb; dmb; isb; clrex
    ldrexb r0, [r1]; ldrexh r0, [r1]; ldrexd r0, r1, [r2]
    strexb r0, r1, [r2]; strexh r0, r1, [r2]; strexd r0, r2, r3, [r4]
    udiv r0, r1, r2; sdiv r0, r1, r2; bfi r0, r1, #1, #2; bfc r0, #1, #2
    ubfx r0, r1, #1, #2; sbfx r0, r1, #1, #2; mls r0, r1, r2, r3; rbit r0, r1
    smc #0; svc #0; mrc p15, 0, r0, c13, c0, 2; mcr p15, 0, r0, c13, c0, 3
    mcr p15, 0, r0, c13, c0, 4; mrc p14, 0, r0, c0, c0, 0; mrrc p15, 0, r0, r1, c2
    vmov s0, r0; vadd.f32 s0, s1, s2; vadd.i32 d0, d1, d2; vldr s0, [r0]
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
    assert len(insns) == REFUSED_SAMPLES.count(";") + REFUSED_SAMPLES.strip().count("\n") + 1
    for insn in insns:
        for function in ("", "_start", "sched_switch"):
            assert refusal(insn.word, function), f"{insn.word:08x} {insn.mnemonic} {insn.operands}"


def test_thread_registers_are_used_only_where_the_chip_has_them(functions: list[Function]) -> None:
    """Each access follows the test of the revision, with no other change of the flags between."""
    accesses = 0
    for function in functions:
        tested = False
        for insn in function.insns:
            if insn.mnemonic.startswith(("tst", "cmp", "bl", "adds", "subs", "ands", "teq")):
                tested = insn.mnemonic == "tst" and insn.operands.split(",")[1].startswith(
                    " #15728640"
                )
            if insn.word & 0x0F0F0F1F == 0x0E0D0F10 and insn.word >> 5 & 7 != 1:  # not CONTEXTIDR
                assert tested, f"{function.name} {insn.address:#x}"
                accesses += 1
    assert accesses == 4


IDLE_CALL = ("idle_loop", "svc")


def test_no_forbidden_instruction(functions: list[Function]) -> None:
    assert sum(len(function.insns) for function in functions) > 1000
    for function in functions:
        for insn in function.insns:
            if (function.name, insn.mnemonic) == IDLE_CALL:
                continue
            reason = refusal(insn.word, function.name)
            assert reason is None, f"{function.name} {insn.address:#x}: {reason}"


def test_boot_closes_coprocessors(functions: list[Function]) -> None:
    (start,) = (function for function in functions if function.name == "_start")
    written = {
        (w >> 8 & 15, w >> 21 & 7, w >> 16 & 15, w & 15, w >> 5 & 7)
        for w in (insn.word for insn in start.insns)
        if w & 0x0F100010 == 0x0E000010
    }
    assert written >= CLOSED


def test_wait_for_interrupt_only_when_idle(functions: list[Function]) -> None:
    users = {f.name for f in functions for i in f.insns if i.word & 0x0FFF0FFF == 0x0E070F90}
    assert users == {"idle_loop"}


def test_attributes_say_armv6(build: Path) -> None:
    attributes = output(f"{CROSS}readelf", "-A", build / "kernel.elf")
    assert re.search(r"Tag_CPU_arch: v6\s*$", attributes, re.M), attributes


def test_no_library_and_nothing_undefined(build: Path) -> None:
    elf = build / "kernel.elf"
    assert output(f"{CROSS}nm", "-u", elf) == ""
    names = set(symbols(elf))
    assert not {n for n in names if n.startswith(("__aeabi", "__gnu", "__div", "__udiv"))}
    assert not names & {"memcpy", "memset", "memmove", "memcmp", "abort"}


def test_no_recursion(functions: list[Function]) -> None:
    graph = call_graph(functions)
    assert {"sched_switch"} <= graph["sched_run"]
    state: dict[str, int] = {}

    def visit(name: str, path: list[str]) -> None:
        assert state.get(name) != 1, f"recursion: {' -> '.join([*path, name])}"
        if name not in state:
            state[name] = 1
            for target in graph.get(name, set()):
                visit(target, [*path, name])
            state[name] = 2

    for name in graph:
        visit(name, [])


def writes_pc(insn: Insn) -> bool:
    """Not a direct branch, and yet it goes somewhere."""
    m, o = insn.mnemonic, insn.operands
    return (
        bool(re.match(r"^(bx|blx|bxj)", m))
        or (
            re.match(r"^(ldr|mov|add|sub|rfe)", m) is not None
            and (o.startswith("pc,") or m.startswith("rfe"))
        )
        or (m.startswith(("ldm", "pop")) and re.search(r"\bpc\b", o) is not None)
    )


def test_no_indirect_call(functions: list[Function]) -> None:
    """Only returns, jump tables, the vectors' literals, boot's jump, and the exit."""
    for function in functions:
        for insn in function.insns:
            if not writes_pc(insn) or (re.match(r"^b", insn.mnemonic) and "<" in insn.operands):
                continue
            m, o = insn.mnemonic, insn.operands
            allowed = (
                (m.startswith("bx") and o == "lr")
                or (m.startswith(("pop", "ldm")) and "pc" in o and "^" not in o)
                or (m.startswith("ldr") and o.startswith("pc, [sp]"))
                or re.match(r"^(addls|ldrls) ", f"{m} ") is not None
                or (function.name.startswith("vector_") and m == "ldr")
                or (function.name == "_start" and f"{m} {o}" == "bx r3")
                or (m == "movs" and o == "pc, lr")
            )
            assert allowed, f"{function.name} {insn.address:#x}: {m} {o}"


def test_exits_are_all_and_only_the_exception_returns(
    build: Path, functions: list[Function]
) -> None:
    listed = (BILBY / "EXITS").read_text(encoding="utf-8").split()
    table = symbols(build / "kernel.elf")
    named = {name for name in table if name.startswith("exit_to_")}
    assert sorted(listed) == sorted(named)
    assert listed
    returns = {table[name] for name in listed if name != "exit_to_interrupt"}
    assert returns == exception_returns(functions)


def test_a_preempted_path_ends_where_the_interrupt_is_handled(
    build: Path, functions: list[Function]
) -> None:
    at = symbols(build / "kernel.elf")["exit_to_interrupt"]
    (insn,) = [i for f in functions for i in f.insns if i.address == at]
    assert (insn.mnemonic, insn.operands.split()[1]) == ("bl", "<handle_interrupt>")


POINTS = re.compile(r"\bPREEMPTION_POINT\((\d+)\)")


def test_preemption_points_are_numbered_once_and_have_their_symbols(build: Path) -> None:
    """Over all presets each number is used once; a point of this build has two symbols."""
    numbers = [
        int(number)
        for path in sorted((BILBY / "src").glob("*.c"))
        for number in POINTS.findall(path.read_text(encoding="utf-8"))
    ]
    assert sorted(numbers) == sorted(set(numbers))
    table = symbols(build / "kernel.elf")
    built = {int(m[1]) for n in table if (m := re.fullmatch(r"preemption_point_(\d+)", n))}
    assert built <= set(numbers)
    assert len(built) >= 6
    assert {f"preemption_start_{number}" for number in built} <= set(table)
    listed = (BILBY / "docs" / "guide.md").read_text(encoding="utf-8")
    in_guide = {int(number) for number in re.findall(r"^\| (\d+) \|", listed, re.M)}
    assert in_guide == set(numbers)


def test_vectors_are_linked_where_they_run(build: Path) -> None:
    table = symbols(build / "kernel.elf")
    order = ["reset", "undefined", "svc", "prefetch_abort", "data_abort", "unused", "irq", "fiq"]
    for number, name in enumerate(order):
        assert table[f"vector_{name}"] == 0xFFFF0000 + 4 * number
    headers = output(f"{CROSS}readelf", "-lW", build / "kernel.elf")
    assert re.search(r"LOAD\s+0x\w+ 0xffff0000 0x80\w{6} ", headers), headers


def test_entry_symbols_are_functions_with_sizes(build: Path) -> None:
    listing = output(f"{CROSS}readelf", "-sW", build / "kernel.elf")
    for name in ["entry_svc", "entry_irq", "entry_undefined", "entry_prefetch_abort",
                 "entry_data_abort", "return_to_current", "kernel_panic", "idle_loop",
                 "vector_svc", "_start"]:  # fmt: skip
        match = re.search(rf"\s(\d+) FUNC\s+GLOBAL\s+DEFAULT\s+\d+ {name}$", listing, re.M)
        assert match, name
        assert int(match[1]) > 0, name


def test_size(build: Path) -> None:
    sizes = dict(
        re.findall(r"^(\.\w+)\s+(\d+)", output(f"{CROSS}size", "-A", build / "kernel.elf"), re.M)
    )
    total = sum(int(sizes.get(name, 0)) for name in (".text", ".rodata", ".idle", ".vectors"))
    assert 4096 < total <= TEXT_LIMIT


def test_the_stack_is_deep_enough(build: Path, functions: list[Function]) -> None:
    frames: dict[str, int] = {}
    for path in (build / "obj").glob("*.su"):
        for line in path.read_text(encoding="utf-8").splitlines():
            place, size, kind = line.split("\t")
            assert kind == "static", line
            frames[place.rsplit(":", 1)[1]] = int(size)
    graph = call_graph(functions)
    deepest: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in deepest:
            below = max((depth(target) for target in graph.get(name, ())), default=0)
            deepest[name] = frames.get(name, 0) + below
        return deepest[name]

    handlers = ["handle_syscall", "handle_interrupt", "handle_undefined",
                "handle_prefetch_abort", "handle_data_abort", "boot_main"]  # fmt: skip
    assert all(name in frames for name in handlers)
    worst = max(depth(name) for name in handlers)
    assert 0 < worst <= STACK_BYTES


def called_after_null(function: Function, call: Insn) -> str:
    """The function that is called next where this call returns null."""
    jumps = {
        insn.address: (insn.mnemonic, target, name) for insn, target, name in branches(function)
    }
    at = call.address + 4
    while True:
        mnemonic, target, name = jumps.get(at, ("", 0, ""))
        if mnemonic == "bl":
            return name
        at = target if mnemonic in ("b", "beq") else at + 4


@pytest.mark.parametrize("board", BOARDS)
def test_a_path_through_the_tests_for_a_fastpath_ends_behind_a_lookup(board: str) -> None:
    """Where lookups are kept, no path goes through these tests and an operation."""
    elf = f"build/bilby/{board}-latency/kernel.elf"
    make(BILBY, f"BOARD={board}", "PRESET=latency", f"../../{elf}")
    (handler,) = (f for f in disassemble(ROOT / elf, CODE) if f.name == "handle_syscall")
    tests = [insn for insn, _, name in branches(handler) if name.endswith("_applies")]
    assert [called_after_null(handler, insn) for insn in tests] == ["lookup_first"] * 2
