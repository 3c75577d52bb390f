"""Instructions with unknown results, in docs/semantics.md: ``-m campaigns.unknown_results``.

Random words of every form (``campaigns.encodings``) that are instructions and have a meaning.
Coprocessor, VFP and NEON instructions are left out, as all of their results are unknown.
"""

from __future__ import annotations

import argparse
from random import Random

from campaigns.decode_forms import ALWAYS, arm_words, thumb_words
from campaigns.documented import markdown, replace
from campaigns.encodings import UNCONDITIONAL, instructions, written
from quoll.arm.decode import decode
from quoll.arm.insn import PC, ControlFlow
from quoll.arm.unpredictable import has_meaning
from quoll.errors import ControlFlowError
from quoll.semantics.lift import lift
from quoll.semantics.ops import UNKNOWN_CODES
from quoll.semantics.system import is_unknown

__all__ = ["unknown_results"]


def unknown_results(random: Random, each: int, *, thumb: bool) -> set[str]:
    """The names of instructions with unknown results among ``each`` random words of every form."""
    if thumb:
        words = [word for word, *_ in thumb_words(random, each) if len(word) == 4]
        words += [half.to_bytes(2, "little") + b"\x00\xbf" for half in range(0, 0xE800, 41)]
    else:
        words = [word for word, *_ in arm_words(random, [*ALWAYS, *UNCONDITIONAL], each)]
    words += [raw.ljust(4, b"\xbf") for raw in written(thumb=thumb) if len(raw) == 4]
    found = set()
    for raw, *_ in instructions(words, thumb):
        insn = decode(raw, 0x1000, thumb)
        leaves = insn.flow in (
            ControlFlow.UNDEFINED,
            ControlFlow.EXCEPTION_RETURN,
            ControlFlow.WAIT,
        )
        if leaves or is_unknown(insn) or not has_meaning(insn):
            continue
        try:
            codes = {op.code for op in lift(insn)}
        except ControlFlowError:
            continue
        if codes & UNKNOWN_CODES:
            stored = PC in insn.transfers
            user = insn.memory is not None and insn.memory.user and insn.memory.count > 1
            more = " of the pc" if stored else " of User registers" if user else ""
            found.add(_kind(insn.mnemonic) + more)
    return found


def _kind(name: str) -> str:
    """One name for instructions that are alike, so that few words find all."""
    if name.startswith(("q", "uq", "ssat", "usat")):
        return "saturating arithmetic"
    if name.startswith("strex"):
        return "strex and its sizes"
    return "sums of absolute differences" if name.startswith("usad") else name


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions with unknown results.")
    parser.add_argument("--each", type=int, default=30, help="random words of each form")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for name, thumb in (("ARM", False), ("Thumb", True)):
        found = unknown_results(Random(options.seed), options.each, thumb=thumb)
        rows.append((name, ", ".join(sorted(found))))
    replace("semantics.md", "unknown results", markdown(("set", "instructions"), rows))


if __name__ == "__main__":
    main()
