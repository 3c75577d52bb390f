# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's instructions as objdump shows them: functions, branches, returns.

Read with the cross tool chain, so that these tests share no code with the analyser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.testing.bilby.build import CROSS, output


@dataclass(frozen=True)
class Insn:
    address: int
    word: int
    mnemonic: str
    operands: str


@dataclass
class Function:
    name: str
    insns: list[Insn]
    data: dict[int, int] = field(default_factory=dict)  # words among the instructions


LINE = re.compile(r"^\s*([0-9a-f]+):\s+([0-9a-f]{8})\s+(\S+)\s*(.*)$")
LABEL = re.compile(r"^([0-9a-f]+) <(.+)>:$")
CODE = [".vectors", ".text", ".idle", ".boot"]


def disassemble(elf: Path, sections: list[str]) -> list[Function]:
    """Functions as objdump sees them."""
    functions: list[Function] = []
    arguments = [part for section in sections for part in ("-j", section)]
    for line in output(f"{CROSS}objdump", "-d", *arguments, elf).splitlines():
        if match := LABEL.match(line):
            functions.append(Function(match[2], []))
        elif (match := LINE.match(line)) and match[3].startswith("."):
            functions[-1].data[int(match[1], 16)] = int(match[2], 16)
        elif match:
            operands = match[4].split(";")[0].split("@")[0].strip()
            functions[-1].insns.append(
                Insn(int(match[1], 16), int(match[2], 16), match[3], operands)
            )
    return functions


def merge_labels(functions: list[Function]) -> list[Function]:
    """Labels inside a function (exit_to_user, preemption_point_1) belong to it."""
    merged: list[Function] = []
    for function in functions:
        if function.name.startswith(("exit_to_", "preemption_")) and merged:
            merged[-1].insns += function.insns
            merged[-1].data |= function.data
        else:
            merged.append(function)
    return merged


BRANCH = re.compile(r"^([0-9a-f]+) <([^+>]+)(?:\+0x[0-9a-f]+)?>$")


def branches(function: Function) -> list[tuple[Insn, int, str]]:
    """Direct branches and calls: (instruction, target, symbol of the target)."""
    found = []
    for insn in function.insns:
        if re.match(r"^blx?|^b", insn.mnemonic) and (match := BRANCH.match(insn.operands)):
            found.append((insn, int(match[1], 16), match[2]))
    return found


def call_graph(functions: list[Function]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for function in functions:
        targets = graph.setdefault(function.name, set())
        for insn, _, symbol in branches(function):
            if symbol != function.name or (
                insn.mnemonic.startswith("bl") and insn.mnemonic not in ("bls", "blt", "ble", "blo")
            ):
                targets.add(symbol)
    return graph


def exception_returns(functions: list[Function]) -> set[int]:
    return {
        insn.address
        for function in functions
        for insn in function.insns
        if (insn.operands.startswith("pc,") and re.match(r"^(movs|subs|adds|ldm)", insn.mnemonic))
        or insn.mnemonic.startswith("rfe")
        or (insn.mnemonic.startswith("ldm") and "pc" in insn.operands and "^" in insn.operands)
    }
