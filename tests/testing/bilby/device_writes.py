# SPDX-License-Identifier: BSD-2-Clause
"""The writes of a board's functions to devices at boot, and the line that they take.

A core executes the functions: QEMU's devices lack registers of boards, and their reset values
already suit the kernel.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unicorn import (
    UC_ARCH_ARM,
    UC_HOOK_MEM_READ_UNMAPPED,
    UC_HOOK_MEM_WRITE,
    UC_HOOK_MEM_WRITE_UNMAPPED,
    UC_MODE_ARM,
    Uc,
)
from unicorn.arm_const import UC_ARM_REG_LR, UC_ARM_REG_R0, UC_ARM_REG_SP

from tests.testing.bilby.build import BILBY, CROSS, output, symbols
from tests.testing.bilby.operations import FLAGS, MACHINES

FUNCTIONS = ("interrupts_init", "tick_start")
CODE, STACK, STOP, PAGE = 0x8000, 0x20000, 0x4000, 0x1000
DEVICES = 0xF0000000  # windows of devices are above


def stated(board: str) -> dict[str, list[tuple[int, int]]]:
    """By function: pairs (offset of a register in the device's page, written value)."""
    path = BILBY / "boards" / board / "registers.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["writes"]
    assert all(len(row["why"].split()) > 4 for row in rows)
    return {row["of"]: [(offset, value) for offset, value in row["registers"]] for row in rows}


def taken(board: str) -> list[tuple[dict[int, int], int]]:
    """Contents of the interrupt controller's registers, each with the line that is then taken."""
    path = BILBY / "boards" / board / "registers.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["taken"]
    assert all(len(row["why"].split()) > 4 for row in rows)
    return [(dict(row["registers"]), row["line"]) for row in rows]


def compiled(board: str, bilby: Path, folder: Path) -> tuple[bytes, dict[str, int]]:
    """The functions of the headers as they are: code, and where each begins."""
    source, made = folder / "writes.c", folder / "writes.elf"
    lines = ["#include <interrupts.h>", "#include <tick.h>"]
    lines += [f"void of_{name}(void) {{ {name}(); }}" for name in FUNCTIONS]
    lines += ["word_t of_interrupts_take(void) { return interrupts_take(); }"]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    machine = MACHINES[board]
    parts = (f"boards/{board}", f"machine/{machine}", "machine", "include", "boards")
    generated = BILBY.parents[1] / "build" / "bilby" / f"{board}-after" / "gen"
    output(f"{CROSS}gcc", *FLAGS[machine], "-marm", "-O1", "-nostdlib", "-ffreestanding",
           f"-Wl,-Ttext={CODE:#x},-e,of_{FUNCTIONS[0]}", *[f"-I{bilby / part}" for part in parts],
           f"-I{generated}", source, "-o", made)  # fmt: skip
    output(f"{CROSS}objcopy", "-O", "binary", "-j", ".text", made, folder / "writes.bin")
    code = (folder / "writes.bin").read_bytes()
    return code, symbols(made)


def executed(
    code: bytes, start: int, registers: Mapping[int, int]
) -> tuple[list[tuple[int, int]], int]:
    """The writes of a function to devices with these registers, and its result."""
    core = Uc(UC_ARCH_ARM, UC_MODE_ARM)
    found: list[tuple[int, int]] = []

    def write(_: Any, __: int, address: int, size: int, value: int, ___: object) -> None:
        if address >= DEVICES:
            assert size == 4
            found.append((address % PAGE, value & 0xFFFFFFFF))

    def device(_: Any, __: int, address: int, ___: int, ____: int, _____: object) -> bool:
        page = address // PAGE * PAGE
        core.mem_map(page, PAGE)
        for offset, value in registers.items():
            core.mem_write(page + offset, value.to_bytes(4, "little"))
        return True

    core.mem_map(CODE, 4 * PAGE)
    core.mem_map(STACK, PAGE)
    core.mem_map(STOP, PAGE)
    core.mem_write(CODE, code)
    core.reg_write(UC_ARM_REG_SP, STACK + PAGE)
    core.reg_write(UC_ARM_REG_LR, STOP)
    core.hook_add(UC_HOOK_MEM_WRITE, write)
    core.hook_add(UC_HOOK_MEM_READ_UNMAPPED | UC_HOOK_MEM_WRITE_UNMAPPED, device)
    core.emu_start(start, STOP, count=10_000)
    return found, int(core.reg_read(UC_ARM_REG_R0))


def other_writes(board: str, bilby: Path, folder: Path) -> list[str]:
    """Functions that write something else than is stated, or take another line."""
    code, places = compiled(board, bilby, folder)
    told = []
    for name, wanted in stated(board).items():
        found, _ = executed(code, places[f"of_{name}"], {})
        if found != wanted:
            told.append(f"{name} writes {shown(found)}; stated is {shown(wanted)}")
    for registers, line in taken(board):
        writes, got = executed(code, places["of_interrupts_take"], registers)
        if writes or got != line:
            held = shown(list(registers.items()))
            told.append(f"interrupts_take takes line {got} of {held}; stated is {line}")
    return told


def shown(writes: list[tuple[int, int]]) -> str:
    return ", ".join(f"[{offset:#x}]={value:#x}" for offset, value in writes) or "nothing"
