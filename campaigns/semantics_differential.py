"""Semantics of library code against Unicorn: ``python -m campaigns.semantics_differential``.

Arguments: states per instruction, seed. Takes every distinct encoding of newlib's and libgcc's
archives, and random encodings that the assembler reproduces from objdump's text (so neither
UNPREDICTABLE nor with bits that should be zero). Prints a table by instruction set and group, with
``--write`` into ``docs/results/semantics.md``; ends with status 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random

from campaigns.documented import markdown, replace
from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow, Insn
from quoll.semantics.system import COPROCESSOR
from tests.testing.arm.corpus import archives, decoded
from tests.testing.arm.differential import Comparison, Verdict, comparable, placed, random_state
from tests.testing.arm.encodings import random_encodings

ADDR = 0x10_0000
SHOWN = 5
RANDOM = 60_000  # candidates in each instruction set
HALFWORDS = range(0xE800)  # all Thumb instructions of 16 bits
HEAD = ("source", "set", "group", "encodings", "equal", "unknown", "wrong")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("states", type=int, nargs="?", default=3)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--write", action="store_true", help="into docs/results/semantics.md")
    options = parser.parse_args()
    choice = Random(options.seed)
    start = time.perf_counter()
    table = Table(choice)
    for insn, it in _library():
        table.add("library", insn, it, options.states)
    for raw, thumb in random_encodings(choice, RANDOM, HALFWORDS):
        table.add("random", decode(raw, ADDR, thumb), False, 1)
    text = markdown(HEAD, table.rows())
    print(text)
    if options.write:
        replace("results/semantics.md", "semantics", text)
    print(f"{time.perf_counter() - start:.0f} s")
    return int(table.wrong > 0)


def _library() -> list[tuple[Insn, bool]]:
    distinct = {}
    for path in archives():
        for item in decoded(path):
            insn = item.insn
            distinct[insn.raw, insn.thumb, insn.cond, item.it] = placed(insn, item.it, ADDR)
    return list(distinct.values())


class Table:
    """Counts of verdicts by source, instruction set and group."""

    def __init__(self, choice: Random) -> None:
        self._compare = Comparison()
        self._choice = choice
        self._instructions: Counter[tuple[str, str, str]] = Counter()
        self._verdicts: Counter[tuple[str, str, str, Verdict]] = Counter()
        self._shown: Counter[str] = Counter()

    @property
    def wrong(self) -> int:
        return sum(n for key, n in self._verdicts.items() if key[3] is Verdict.WRONG)

    def add(self, source: str, insn: Insn, it: bool, states: int) -> None:
        row = (source, "Thumb" if insn.thumb else "ARM", _group(insn))
        self._instructions[row] += 1
        if not comparable(insn):
            return
        for _ in range(states):
            verdict, why = self._compare(insn, random_state(self._choice, insn), it)
            self._verdicts[(*row, verdict)] += 1
            if verdict is Verdict.WRONG:
                self._shown[insn.mnemonic] += 1
                if self._shown[insn.mnemonic] <= SHOWN:
                    print(f"{insn.raw.hex()} {insn.text}: {why[:200]}")

    def rows(self) -> list[list[str]]:
        """Cells of the table."""
        return [
            [*row, f"{count:,}", *(f"{self._verdicts[(*row, v)]:,}" for v in Verdict)]
            for row, count in sorted(self._instructions.items())
        ]


def _group(insn: Insn) -> str:
    if insn.mnemonic in COPROCESSOR:
        return "coprocessor"
    if insn.mnemonic[0] == "v":
        return "VFP and NEON"
    if insn.flow is ControlFlow.UNDEFINED:
        return "undefined"
    if insn.flow in (ControlFlow.TRAP, ControlFlow.EXCEPTION_RETURN) or insn.mnemonic in SYSTEM:
        return "system"
    if insn.flow is not ControlFlow.NEXT:
        return "branches"
    if insn.memory is not None:
        return "loads and stores"
    return "data processing"


SYSTEM = frozenset(["cps", "it", "mrs", "msr", "rfe", "setend", "srs", "wfe", "wfi"])

if __name__ == "__main__":
    sys.exit(main())
