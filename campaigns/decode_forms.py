"""Decoding by form against each word by itself: ``python -m campaigns.decode_forms``.

The decoder decodes one ARM instruction for all of its form (``quoll.arm.forms``), one branch for
all of its distances, and all at address 0. This campaign disassembles each word at its address, and
compares every slot of the two instructions: for ARM all values of bits 31 to 20 and 7 to 4 with
random other bits, for Thumb all 16-bit encodings and random 32-bit ones, outside and inside IT
blocks. Exits with status 1 if there is a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from random import Random

import capstone

from quoll.arm.decode import decode, disassembled
from quoll.arm.insn import Condition, ControlFlow, Insn

__all__ = ["ALWAYS", "arm_words", "compared", "thumb_words"]

Word = tuple[
    bytes, int, bool, tuple[Condition, ...]
]  # bytes, address, Thumb, conditions of an IT block

SHOWN = 10
ALWAYS = range(0xE00, 0xF00)  # bits 31 to 20 without a condition
RARE = (13, 14, 15)  # registers with a meaning of their own
FIRST_OF_TWO = range(0xE800, 0x10000)  # first halves of 32-bit Thumb encodings (A6.1)
IN_BLOCK = ((), (), (Condition.EQ,), (Condition.LT,))

_DISASSEMBLERS = {
    thumb: capstone.Cs(capstone.CS_ARCH_ARM, mode)
    for thumb, mode in ((False, capstone.CS_MODE_ARM), (True, capstone.CS_MODE_THUMB))
}


def arm_words(random: Random, high: Iterable[int], each: int) -> Iterator[Word]:
    """``each`` words for each value of bits 31 to 20 in ``high`` and of bits 7 to 4."""
    for opcode in high:
        for low in range(16):
            for _ in range(each):
                word = opcode << 20 | random.getrandbits(12) << 8 | low << 4 | random.getrandbits(4)
                for field in (16, 12, 8, 0):
                    if random.random() < 0.1:
                        word = word & ~(15 << field) | random.choice((0, *RARE)) << field
                addr = random.getrandbits(32) & ~3
                yield word.to_bytes(4, "little"), addr, False, ()


def thumb_words(random: Random, each: int) -> Iterator[Word]:
    """Every 16-bit encoding, and ``each`` 32-bit ones for every first half."""
    for first in range(1 << 16):
        for _ in range(each if first in FIRST_OF_TWO else 1):
            raw = first.to_bytes(2, "little")
            if first in FIRST_OF_TWO:
                raw += random.getrandbits(16).to_bytes(2, "little")
            yield raw, random.getrandbits(32) & ~1, True, random.choice(IN_BLOCK)


def by_itself(word: Word) -> Insn:
    """The instruction with the disassembler's operands and target at its address."""
    raw, addr, thumb, it = word
    insn = disassembled(raw, thumb, it)._replace(addr=addr)
    if insn.flow not in (ControlFlow.JUMP, ControlFlow.CALL):
        return insn
    (printed,) = _DISASSEMBLERS[thumb].disasm_lite(raw, addr, 1)
    target = printed[3].rpartition("#")[2]
    text = f"{insn.text.rpartition('#')[0]}{target}"
    return insn._replace(target=int(target, 0) & 0xFFFFFFFF, text=text)


def compared(words: Iterable[Word]) -> tuple[int, list[str]]:
    """The number of words, and the words with a difference, each with the first different slot."""
    count, found = 0, list[str]()
    for word in words:
        count += 1
        raw, addr, thumb, it = word
        ours, theirs = decode(raw, addr, thumb, it), by_itself(word)
        for slot, one, other in zip(Insn._fields, ours, theirs, strict=True):
            if one != other:
                place = f"{raw[::-1].hex()} at {addr:#x}, {theirs.text}"
                found.append(f"{place}: {slot} {one!r}, not {other!r}")
                break
    return count, found


def main() -> int:
    parser = argparse.ArgumentParser(description="Decoding by form against each word by itself.")
    parser.add_argument("--each", type=int, default=14, help="words of each form")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start, random = time.process_time(), Random(options.seed)
    arm, wrong = compared(arm_words(random, range(1 << 12), options.each))
    thumb, wrong_thumb = compared(thumb_words(random, options.each))
    wrong += wrong_thumb
    for text in wrong[:SHOWN]:
        print(text)
    seconds = time.process_time() - start
    print(f"{arm:,} ARM and {thumb:,} Thumb words: {len(wrong)} differ; {seconds:.0f} CPU s")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
