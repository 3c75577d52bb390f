# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's system operations, in order: all besides loads, stores and arithmetic.

These are coprocessor accesses, barriers, changes of mode and exclusive accesses; an emulator
without caches shows few of their effects. ``machine/*/operations.toml`` lists the required ones,
with reasons.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.testing.bilby.build import BILBY, CROSS, output
from tests.testing.bilby.listing import Function, disassemble

MACHINES = {"kzm": "arm1136", "cubieboard": "cortex-a8"}
PLAIN = re.compile(r"^(?:dsb|dmb|isb|wfi|nop|clrex|strex|cpsi[de]|cps|msr|mrs)")
MOVES = re.compile(r"(mcr|mrc)(?:eq|ne)?")
CONSTANT = re.compile(r"^mov (\w+), #(\d+)$")
INLINE = re.compile(r"^static inline (\w+) (machine_\w+)\(([^)]*)\)", re.M)
FLAGS = {"arm1136": ["-mcpu=arm1136j-s"], "cortex-a8": ["-mcpu=cortex-a8", "-mfpu=neon"]}


@dataclass(frozen=True, slots=True)
class Sequence:
    """Of one function, or of one written in assembly."""

    of: str
    operations: tuple[str, ...]
    why: str


def stated(machine: str) -> dict[str, Sequence]:
    """By function. Raises KeyError if a row lacks something."""
    path = BILBY / "machine" / machine / "operations.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["sequence"]
    return {row["of"]: Sequence(row["of"], tuple(row["operations"]), row["why"]) for row in rows}


def operations(function: Function) -> tuple[str, ...]:
    """Without registers, which a compiler chooses; with a constant that is written, as ``=0``."""
    found: list[str] = []
    constants: dict[str, str] = {}
    for insn in function.insns:
        parts = re.findall(r"\w+", insn.operands)
        moved = MOVES.fullmatch(insn.mnemonic)
        kind = moved[1] if moved else ""
        if moved:
            places = [part.replace("cr", "c") for part in parts[3:]]
            value = constants.get(parts[2]) if kind == "mcr" else None
            said = [insn.mnemonic, f"p{parts[0]}", parts[1], *places]
            found.append(" ".join([*said, f"={value}"] if value is not None else said))
        elif PLAIN.match(insn.mnemonic):
            operands = insn.operands if insn.mnemonic.startswith("cps") else ""
            found.append(f"{insn.mnemonic} {operands}".strip())
        written = parts[2] if kind == "mrc" else parts[0] if parts else ""
        if kind != "mcr":
            constants.pop(written, None)
        if moved := CONSTANT.match(f"{insn.mnemonic} {insn.operands}"):
            constants[moved[1]] = moved[2]
    return tuple(found)


def of_headers(machine: str, bilby: Path, folder: Path) -> dict[str, tuple[str, ...]]:
    """Each function of ``machine.h`` and ``cp15.h``, compiled by itself."""
    texts = [bilby / "machine" / machine / "machine.h", bilby / "machine" / "cp15.h"]
    lines = ["#include <machine.h>"]
    for kind, name, parameters in INLINE.findall("".join(p.read_text("utf-8") for p in texts)):
        names = [re.findall(r"\w+", part)[-1] for part in parameters.split(",") if part != "void"]
        call = f"{name}({', '.join(names)});"
        body = call if kind == "void" else f"return {call}"
        lines.append(f"{kind} of_{name}({parameters}) {{ {body} }}")
    source, made = folder / "functions.c", folder / "functions.o"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    board = next(board for board, name in MACHINES.items() if name == machine)
    includes = [f"-I{bilby / part}" for part in (f"machine/{machine}", "machine", "include",
                                                 f"boards/{board}")]  # fmt: skip
    generated = BILBY.parents[1] / "build" / "bilby" / f"{board}-after" / "gen"
    output(f"{CROSS}gcc", *FLAGS[machine], "-marm", "-O2", "-c", *includes, f"-I{generated}",
           source, "-o", made)  # fmt: skip
    functions = disassemble(made, [".text"])
    return {function.name.removeprefix("of_"): operations(function) for function in functions}


def of_assembly(elf: Path) -> dict[str, tuple[str, ...]]:
    """Functions that are written in assembly."""
    names = ("_start", "pin_lines", "pin_outer", "idle_loop", "kernel_panic", "return_to_current",
             "entry_")  # fmt: skip
    found = disassemble(elf, [".vectors", ".text", ".idle", ".boot"])
    return {f.name: operations(f) for f in found if f.name.startswith(names)}


def differences(machine: str, found: dict[str, tuple[str, ...]]) -> list[str]:
    """Functions with other operations than the stated ones."""
    known = stated(machine)
    wanted = {name: known[name].operations if name in known else () for name in found}
    return [
        f"{name}: {', '.join(listed) or 'nothing'}; "
        f"stated is {', '.join(wanted[name]) or 'nothing'}"
        for name, listed in found.items()
        if listed != wanted[name]
    ]
