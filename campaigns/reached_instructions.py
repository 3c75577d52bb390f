"""Reached instructions of a kernel that are unknown: ``python -m campaigns.reached_instructions``.

Extracts a kernel from all its functions (``--image``; by default Debian's Linux for ARMv6, which
``campaigns.vmlinux`` fetches), and looks up the semantics of each instruction and its timing class
on a core. Prints the number of instructions with both, the others by reason, and the evidence for
functions that never return.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

from campaigns.extraction import entries_of
from campaigns.vmlinux import dumped, kernel
from pipeline.core import load_core
from pipeline.demand import demand
from pipeline.timing_model import CoreProfile
from quoll.arm.insn import ControlFlow, Insn
from quoll.errors import ControlFlowError, TimingError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.listing.never_returns import why_never_returns
from quoll.semantics.lift import lift

__all__ = ["counted"]

SHOWN = 12


def counted(insns: dict[int, Insn], core: str) -> tuple[int, Counter[str]]:
    """The number of instructions with semantics and a class; the others by reason."""
    rows = load_core(core, CoreProfile.WCET)
    known, missing = 0, Counter[str]()
    for insn in insns.values():
        try:
            if insn.flow is ControlFlow.UNDEFINED:
                missing["no instruction"] += 1
                continue
            lift(insn)
            demand(rows, insn, aligned=True, aligned8=False)
            known += 1
        except (ControlFlowError, TimingError) as error:
            missing[f"{insn.text}: {error.message}"] += 1
    return known, missing


def _kind(why: str) -> str:
    """The evidence without names and places, each kind once."""
    parts = (re.sub(r" at 0x.*|(?<=follows) .*", "", part) for part in why.split("; "))
    return "; ".join(sorted({re.sub(r"calls .*?,", "calls one,", part) for part in parts}))


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Reached instructions of a kernel that are unknown."
    )
    parser.add_argument("--image", type=Path, help="an ELF (default: Debian's Linux for ARMv6)")
    parser.add_argument("--core", default="arm1136")
    options = parser.parse_args()
    path = options.image or kernel()
    image = Image.load(path, dumped(path))
    start = time.process_time()
    program = extract(image, entries_of(image))
    insns = {i.addr: i for c in program.functions.values() for b in c.blocks for i in b.insns}
    print(f"{len(program.functions):,} functions, {len(insns):,} instructions, "
          f"{time.process_time() - start:.0f} CPU s")  # fmt: skip
    known, missing = counted(insns, options.core)
    print(f"{known:,} with semantics and a class on {options.core}; {missing.total():,} without:")
    for reason, count in missing.most_common(SHOWN):
        print(f"  {count:>7,} {reason}")
    never = [cfg for cfg in program.functions.values() if not cfg.returns]
    reasons = Counter(_kind(why_never_returns(program, cfg, image)) for cfg in never)
    print(f"{len(never):,} functions never return:")
    for reason, count in reasons.most_common(SHOWN):
        print(f"  {count:>7,} {reason}")
    asked = Counter(re.sub(r"^\S.*?(leaves|calls|is |are |raises|waits)", r"\1", u.reason)[:70]
                    for u in program.unresolved)  # fmt: skip
    print(f"{len(program.unresolved):,} questions:")
    for reason, count in asked.most_common(SHOWN):
        print(f"  {count:>7,} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
