"""Every form with every overlap of its operands: ``python -m campaigns.operand_overlap``.

A base, an index, a source and a destination may be one register, and the order in which an
instruction reads and writes is the manual's (rule 43). Words of every value of bits 31 to 20 and 7
to 4 (ARM), and several of bits 31 to 20 (32-bit Thumb), get each of the 52 ways in which four
register fields can be equal to each other or to 15, which many forms require in a field. They run
on random states against the core of Unicorn, which is QEMU's. ``campaigns.semantics_differential``
runs all 16-bit Thumb encodings. Words are left out if they are UNPREDICTABLE
(``quoll.arm.unpredictable``), if the assembler rejects them, if Unicorn cannot run them, or if they
have no operands that overlap (``mrs``, ``msr``). With ``--write``, the table of
docs/results/semantics.md is written. Exits with status 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random

from campaigns.decode_forms import ALWAYS
from campaigns.documented import markdown, replace
from campaigns.encodings import UNCONDITIONAL, instructions
from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.unpredictable import unpredictable_form
from tests.testing.arm.differential import Comparison, Verdict, comparable, random_state

__all__ = ["group", "overlapping", "partitions", "words"]

ADDR = 0x10_0000
FIELDS = (16, 12, 8, 0)  # of Thumb too, with its first half above
REGISTERS = (15, 2, 4, 6, 8)  # even ones, as pairs begin with them
THUMB = range(0xE80, 0x1000)  # bits 31 to 20 of 32-bit encodings (A6.1)
DRAWN = 12  # Thumb words for each value of these bits
SHOWN = 3


def partitions(fields: int) -> Iterator[tuple[int, ...]]:
    """The ways in which ``fields`` fields can be equal: a number for each field."""

    def extended(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(chosen) == fields:
            yield chosen
            return
        for number in range(max(chosen, default=-1) + 2):
            yield from extended((*chosen, number))

    return extended(())


def words(random: Random, forms: Iterable[int], *, thumb: bool) -> Iterator[bytes]:
    """Every overlap of a word with bits 31 to 20 and 7 to 4 of each form; other bits are drawn."""
    overlaps = [overlap[1:] for overlap in partitions(1 + len(FIELDS))]
    for form in forms:
        word = form >> 4 << 20 | random.getrandbits(20) & ~0xF0 | (form & 15) << 4
        for overlap in overlaps:
            made = word
            for field, number in zip(FIELDS, overlap, strict=True):
                made = made & ~(15 << field) | REGISTERS[number] << field
            high, low = made >> 16, made & 0xFFFF
            halves = (high, low) if thumb else (low, high)
            yield b"".join(half.to_bytes(2, "little") for half in halves)


def overlapping(encodings: Iterable[bytes], *, thumb: bool) -> Iterator[Insn]:
    """The encodings that are instructions with a meaning and that Unicorn can run."""
    for raw, *_ in instructions(dict.fromkeys(encodings), thumb):
        insn = decode(raw, ADDR, thumb)
        apart = insn.flow is ControlFlow.TRAP or insn.mnemonic in ("mrs", "msr")
        if comparable(insn) and not apart and unpredictable_form(insn) is None:
            yield insn


def group(insn: Insn) -> str:
    """The row of an instruction in the table."""
    if insn.mnemonic[0] in "fv":
        return "VFP and NEON"
    if insn.memory is None:
        return "branches" if insn.flow is not ControlFlow.NEXT else "data processing"
    if insn.memory.exclusive:
        return "exclusive accesses"
    return "lists" if insn.memory.count > 2 else "loads and stores"


def main() -> int:
    parser = argparse.ArgumentParser(description="Every overlap of operands, against Unicorn.")
    parser.add_argument("--states", type=int, default=2, help="random states for each encoding")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="take one of so many forms")
    parser.add_argument(
        "--write", action="store_true", help="write the table of docs/results/semantics.md"
    )
    options = parser.parse_args()
    start, random = time.process_time(), Random(options.seed)
    compare = Comparison()
    encodings, counts = Counter[tuple[str, str]](), Counter[tuple[str, str, Verdict]]()
    shown = Counter[str]()
    arm = [high << 4 | low for high in (*ALWAYS, *UNCONDITIONAL) for low in range(16)]
    thumb = [high << 4 | random.getrandbits(4) for high in THUMB for _ in range(DRAWN)]
    for name, forms in (("ARM", arm), ("Thumb", thumb)):
        some = forms[options.seed % options.every :: options.every]
        drawn = words(random, some, thumb=name == "Thumb")
        for insn in overlapping(drawn, thumb=name == "Thumb"):
            encodings[name, group(insn)] += 1
            for _ in range(options.states):
                verdict, why = compare(insn, random_state(random, insn))
                counts[name, group(insn), verdict] += 1
                if verdict is Verdict.WRONG:
                    shown[insn.mnemonic] += 1
                    if shown[insn.mnemonic] <= SHOWN:
                        print(f"{insn.raw.hex()} {insn.text}: {why[:200]}")
    rows = [
        (*key, *(f"{n:,}" for n in (count, *(counts[(*key, verdict)] for verdict in Verdict))))
        for key, count in sorted(encodings.items())
    ]
    table = markdown(("set", "group", "encodings", *(v.value for v in Verdict)), rows)
    print(table)
    print(f"{time.process_time() - start:.0f} s of processor time")
    if options.write:
        replace("results/semantics.md", "operand overlap", table)
    return int(any(n for key, n in counts.items() if key[2] is Verdict.WRONG))


if __name__ == "__main__":
    sys.exit(main())
