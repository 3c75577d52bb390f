"""Decoding of all library code against objdump: ``python -m campaigns.decode_differential``.

Every instruction of newlib's and libgcc's archives, A- and R-profile multilibs and Thumb-1: its
length, group (jump, call, computed transfer, data access), condition and direct target. Registers
and flags of each distinct one against its ops. Prints a table, and the first differences of each
kind; ends with status 1 if there are any.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict

from quoll.arm.insn import ControlFlow
from tests.testing.arm.agreement import disagreements, register_disagreements
from tests.testing.arm.corpus import Decoded, archives, decoded, form

SHOWN = 5


def main() -> int:
    start = time.perf_counter()
    total: Counter[str] = Counter()
    forms: dict[str, set[object]] = defaultdict(set)
    kinds: Counter[str] = Counter()
    distinct: dict[object, Decoded] = {}
    for path in archives():
        for item in decoded(path):
            insn = item.insn
            name = f"Thumb {8 * insn.size}" if insn.thumb else "ARM"
            total[name] += 1
            forms[name].add(form(insn))
            _count(kinds, item)
            _report(kinds, item, disagreements(item))
            key = (insn.raw, insn.thumb, insn.cond, item.it)
            distinct.setdefault(key, item)
    for item in distinct.values():
        _report(kinds, item, register_disagreements(item.insn))
    for name in sorted(total):
        print(f"{name:9} {total[name]:9,} instructions {len(forms[name]):5} forms")
    print(f"{'distinct':9} {len(distinct):9,}")
    for kind, count in sorted(kinds.items()):
        print(f"{kind:40} {count:9,}")
    print(f"{len(archives())} archives, {time.perf_counter() - start:.0f} s")
    return int(any(kind.startswith("differs") for kind in kinds))


def _count(kinds: Counter[str], item: Decoded) -> None:
    insn = item.insn
    kinds[f"flow: {insn.flow.value}"] += 1
    if insn.target is not None:
        relocated = "R_ARM_" in item.objdump
        kinds["target: left to the linker" if relocated else "target: compared"] += 1
    if insn.memory is not None:
        kinds["data accesses"] += 1
    if insn.flow is ControlFlow.UNDEFINED:
        kinds["undefined in both"] += 1


def _report(kinds: Counter[str], item: Decoded, found: list[str]) -> None:
    for why in found:
        kind = f"differs: {why.split()[0].rstrip(':')}"
        kinds[kind] += 1
        if kinds[kind] <= SHOWN:
            print(f"{item.insn.raw.hex()} {item.insn.text} | {item.objdump} : {why}")


if __name__ == "__main__":
    sys.exit(main())
