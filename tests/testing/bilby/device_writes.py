# SPDX-License-Identifier: BSD-2-Clause
"""What a board's functions write to devices when the kernel boots, as a core executes them.

QEMU's devices lack registers that boards have, and come out of reset as the kernel wants them.
"""

from __future__ import annotations

import tomllib
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
from unicorn.arm_const import UC_ARM_REG_LR, UC_ARM_REG_SP

from tests.testing.bilby.build import BILBY, CROSS, output, symbols
from tests.testing.bilby.operations import FLAGS, MACHINES

FUNCTIONS = ("interrupts_init", "tick_start")
CODE, STACK, STOP, PAGE = 0x8000, 0x20000, 0x4000, 0x1000
DEVICES = 0xF0000000  # windows of devices are above


def stated(board: str) -> dict[str, list[tuple[int, int]]]:
    """By function: register by its offset in the device's page, and what is written."""
    path = BILBY / "boards" / board / "registers.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["writes"]
    assert all(len(row["why"].split()) > 4 for row in rows)
    return {row["of"]: [(offset, value) for offset, value in row["registers"]] for row in rows}


def written(board: str, bilby: Path, folder: Path) -> dict[str, list[tuple[int, int]]]:
    """The same of the headers as they are."""
    source, made = folder / "writes.c", folder / "writes.elf"
    lines = ["#include <interrupts.h>", "#include <tick.h>"]
    lines += [f"void of_{name}(void) {{ {name}(); }}" for name in FUNCTIONS]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    machine = MACHINES[board]
    parts = (f"boards/{board}", f"machine/{machine}", "machine", "include", "boards")
    generated = BILBY.parents[1] / "build" / "bilby" / f"{board}-after" / "gen"
    output(f"{CROSS}gcc", *FLAGS[machine], "-marm", "-O1", "-nostdlib", "-ffreestanding",
           f"-Wl,-Ttext={CODE:#x},-e,of_{FUNCTIONS[0]}", *[f"-I{bilby / part}" for part in parts],
           f"-I{generated}", source, "-o", made)  # fmt: skip
    output(f"{CROSS}objcopy", "-O", "binary", "-j", ".text", made, folder / "writes.bin")
    code = (folder / "writes.bin").read_bytes()
    return {name: _writes(code, symbols(made)[f"of_{name}"]) for name in FUNCTIONS}


def _writes(code: bytes, start: int) -> list[tuple[int, int]]:
    core = Uc(UC_ARCH_ARM, UC_MODE_ARM)
    found: list[tuple[int, int]] = []

    def write(_: Any, __: int, address: int, size: int, value: int, ___: object) -> None:
        if address >= DEVICES:
            assert size == 4
            found.append((address % PAGE, value & 0xFFFFFFFF))

    def device(_: Any, __: int, address: int, ___: int, ____: int, _____: object) -> bool:
        core.mem_map(address // PAGE * PAGE, PAGE)
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
    return found


def other_writes(board: str, bilby: Path, folder: Path) -> list[str]:
    """Functions that write something else than is stated."""
    wanted = stated(board)
    return [
        f"{name} writes {shown(found)}; stated is {shown(wanted[name])}"
        for name, found in written(board, bilby, folder).items()
        if found != wanted[name]
    ]


def shown(writes: list[tuple[int, int]]) -> str:
    return ", ".join(f"[{offset:#x}]={value:#x}" for offset, value in writes) or "nothing"
