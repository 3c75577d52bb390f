"""Linux for ARMv6 with symbols: ``python -m tests.campaigns.vmlinux [--image FILE]``.

Fetches Debian's debug image of the Raspberry Pi kernel (armel), extracts it from all its functions
and prints what was resolved and what remained. Ends with status 1 beyond 60 s or 4 GiB.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from quoll.arm.insn import Flow
from quoll.cfg import EdgeKind, Program
from quoll.extract import extract
from quoll.image import Image
from quoll.listing import function_loops
from quoll.transfers import links
from tests.campaigns.corpora_packages import CORPORA, unpack_foreign
from tests.campaigns.extraction import entries_of

__all__ = ["kernel", "table"]

PACKAGE, ARCHITECTURE, RELEASE = "linux-image-rpi-dbg", "armel", "bookworm"
MOST_SECONDS, MOST_MEMORY = 60, 4 << 30


def kernel() -> Path:
    """The uncompressed kernel with symbols, fetched first where it is missing."""
    folder = CORPORA / "vmlinux"
    pattern = "usr/lib/debug/boot/vmlinux-*"
    if not list(folder.glob(pattern)):
        unpack_foreign(PACKAGE, ARCHITECTURE, RELEASE, folder)
    return sorted(folder.glob(pattern))[-1]


def table(image: Image, program: Program) -> dict[str, int]:
    """What was found, and what remained by kind."""
    cfgs = program.functions.values()
    loops = [function_loops(cfg) for cfg in cfgs]
    insns = {i.addr: i for cfg in cfgs for b in cfg.blocks for i in b.insns}
    counts = {
        "functions": len(cfgs),
        "instructions": len(insns),
        "blocks": sum(len(cfg.blocks) for cfg in cfgs),
        "edges": sum(len(cfg.edges) for cfg in cfgs),
        "loops": sum(len(found) for found, _ in loops),
        "functions with irreducible loops": sum(bool(entries) for _, entries in loops),
        "functions that never return": sum(not cfg.returns for cfg in cfgs),
        "jump tables resolved": _jump_tables(program),
        "calls through constants resolved": _constant_calls(program),
    }
    for kind, count in sorted(_remaining(program).items()):
        counts[f"unresolved: {kind}"] = count
    counts["returns not proved"] = sum(
        "returns to the caller" in text for text in program.assumptions
    )
    return counts


def _jump_tables(program: Program) -> int:
    jumps = {
        cfg.blocks[edge.src].last.addr
        for cfg in program.functions.values()
        for edge in cfg.edges
        if edge.kind is EdgeKind.INDIRECT
    }
    return sum(found.addr in jumps and len(found.targets) > 1 for found in program.jump_tables)


def _constant_calls(program: Program) -> int:
    return sum(
        bool(block.calls) and block.last.flow in (Flow.INDIRECT, Flow.INDIRECT_CALL)
        for cfg in program.functions.values()
        for block in cfg.blocks
    )


def _remaining(program: Program) -> Counter[str]:
    kinds: Counter[str] = Counter()
    reasons = {u.addr: u.reason for u in program.unresolved}
    for cfg in program.functions.values():
        for block in cfg.blocks:
            reason = reasons.pop(block.last.addr, None)
            if reason is None:
                continue
            before = block.insns[-2] if len(block.insns) > 1 else None
            if block.last.flow is Flow.INDIRECT_CALL or links(before, block.last):
                kinds["indirect calls"] += 1
            elif block.last.flow is Flow.INDIRECT and "targets" in reason:
                kinds[f"{block.last.mnemonic}: {_general(reason.rpartition(':')[2])}"] += 1
            else:
                kinds[_general(reason)] += 1
    return kinds


def _general(reason: str) -> str:
    """``reason`` without what is particular to one place."""
    reason = re.sub(r"0x[0-9a-f]+(?: <[^>]*>)?(?: \S+:\d+)?", "N", reason)
    reason = re.sub(
        r"^.* (is not proved to return|raises an exception)", r"an instruction \1", reason
    )
    return re.sub(r"\b(r\d+|one of .*)", "R", reason).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Extract a Linux kernel.")
    parser.add_argument("--image", type=Path, help="instead of Debian's")
    options = parser.parse_args()
    path = options.image or kernel()
    start = time.perf_counter()
    image = Image.load(path)
    loaded = time.perf_counter()
    program = extract(image, entries_of(image))
    done = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(f"| {path.name} | |\n|---|---:|")
    for name, count in table(image, program).items():
        print(f"| {name} | {count:,} |")
    print(f"| seconds to load | {loaded - start:.1f} |")
    print(f"| seconds to extract | {done - loaded:.1f} |")
    print(f"| MiB at most | {memory >> 20:,} |")
    return int(done - start > MOST_SECONDS or memory > MOST_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
