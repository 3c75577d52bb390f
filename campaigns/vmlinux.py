"""Linux for ARMv6 with symbols: ``python -m campaigns.vmlinux``; others with ``--image``.

Fetches Debian's debug image of the Raspberry Pi kernel (armel), extracts it from all its functions
and prints the resolved and the remaining transfers. Exits with status 1 beyond 60 s or 4 GiB.

The running code is analysed, which differs from the file: when it starts, Linux overwrites the
calls of its tracer at the head of nearly every function (``ftrace_init``). A dump of a running
kernel would have these words; here they are written as Linux writes them.
"""

from __future__ import annotations

import argparse
import re
import resource
import struct
import sys
import time
from collections import defaultdict
from pathlib import Path

from campaigns.corpora_packages import CORPORA, unpack_foreign
from campaigns.extraction import entries_of
from quoll.arm.insn import ControlFlow
from quoll.assumptions import RETURN_BY_FORM
from quoll.cfg.cfg import EdgeKind, Program
from quoll.cfg.transfers import links
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import load
from quoll.image.image import Image, RawMemory
from quoll.listing.program_text import function_loops

__all__ = ["dumped", "kernel", "rewritten", "table"]

PACKAGE, ARCHITECTURE, RELEASE = "linux-image-rpi-dbg", "armel", "bookworm"
MOST_SECONDS, MOST_MEMORY = 60, 4 << 30
KINDS_SHOWN, EXAMPLES = 8, 3
LISTED = {  # kind of place: the symbols around its list, and the bytes of each
    "tracer calls, turned off": ("__{}_mcount_loc", 4),
    "static keys, whose code is rewritten": ("__{}___jump_table", 12),
    "exception fixups, which are no edges": ("__{}___ex_table", 8),
}
UNKNOWN = "are not known: "  # in reasons, before why
DUMP = ".bin"  # suffix of the files written beside the kernel
CALL = 0xEB  # first byte of bl
TRACER_OFF = bytes.fromhex("0040bde8")  # pop {lr}: the caller has pushed it (arch/arm ftrace.c)


def kernel() -> Path:
    """The uncompressed kernel with symbols, fetched first where it is missing."""
    folder = CORPORA / "vmlinux"
    boot = folder / "usr/lib/debug/boot"
    if not boot.exists():
        unpack_foreign(PACKAGE, ARCHITECTURE, RELEASE, folder)
    return sorted(p for p in boot.glob("vmlinux-*") if p.suffix != DUMP)[-1]


def dumped(path: Path) -> tuple[RawMemory, ...]:
    """The code sections of the started kernel, with every tracer call off."""
    image = Image.load(path)
    start, stop = (image.symbol(f"__{end}_mcount_loc") for end in ("start", "stop"))
    if start is None or stop is None:
        return ()
    listed = image.read(start.addr, stop.addr - start.addr) or b""
    sections: dict[int, bytearray] = {}
    for (site,) in struct.iter_unpack("<I", listed):
        addr, code = image.code_around(site) or sys.exit(f"{site:#x} is no code")
        if addr not in sections:
            sections[addr] = bytearray(code)
        content = sections[addr]
        if content[site - addr + 3] != CALL:
            sys.exit(f"{image.place(site)} is no call of the tracer")
        content[site - addr : site - addr + len(TRACER_OFF)] = TRACER_OFF
    found = []
    for addr, content in sections.items():
        dump = path.with_name(f"{path.name}-{addr:x}{DUMP}")
        dump.write_bytes(content)
        found.append(RawMemory(addr, str(dump), writable=False))
    return tuple(found)


def table(image: Image, program: Program) -> dict[str, int]:
    """The counts of resolved transfers, and of remaining ones by kind."""
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
    for kind, found in sorted(_remaining(program).items()):
        counts[f"unresolved: {kind}"] = len(found)
    counts["returns not proved"] = sum(a.kind is RETURN_BY_FORM for a in program.assumptions)
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
        bool(block.calls) and block.last.flow in (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)
        for cfg in program.functions.values()
        for block in cfg.blocks
    )


def rewritten(image: Image) -> dict[str, int]:
    """The numbers of places that Linux lists as rewritten while it runs, or left by an exception.

    Extraction reads loaded or dumped code, and does not know these lists.
    """
    counts = {}
    for what, (name, size) in LISTED.items():
        start, stop = (image.symbol(form) for form in (name.format("start"), name.format("stop")))
        if start is not None and stop is not None:
            counts[what] = (stop.addr - start.addr) // size
    return counts


def _remaining(program: Program) -> dict[str, list[str]]:
    """The places that are not resolved, by kind."""
    kinds: dict[str, list[str]] = defaultdict(list)
    reasons = {u.addr: u.reason for u in program.unresolved}
    for cfg in program.functions.values():
        for block in cfg.blocks:
            reason = reasons.pop(block.last.addr, None)
            if reason is None:
                continue
            before = block.insns[-2] if len(block.insns) > 1 else None
            linked = links(before, block.last) or block.comes_back
            if block.last.flow is ControlFlow.INDIRECT_CALL or linked:
                kind = "indirect calls"
            elif block.last.flow is ControlFlow.INDIRECT and "targets" in reason:
                kind = f"{block.last.mnemonic}: {_general(reason.partition(UNKNOWN)[2])}"
            else:
                kind = _general(reason)
            kinds[kind].append(f"{cfg.name}: {block.last.addr:08x} {block.last.text}")
    return kinds


def _general(reason: str) -> str:
    """``reason`` without names and numbers of a single place."""
    reason = re.sub(r"0x[0-9a-f]+(?: <[^>]*>)?(?: \S+:\d+)?", "N", reason)
    reason = re.sub(
        r"^.* (is not proved to return|raises an exception)", r"an instruction \1", reason
    )
    reason = re.sub(r"beyond (\w+) .*", r"beyond \1", reason)
    return re.sub(r"\b(r\d+|one of .*)", "R", reason).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Extract a Linux kernel.")
    parser.add_argument("--image", type=Path, help="instead of Debian's")
    parser.add_argument("--facts", type=Path, action="append", default=[])
    options = parser.parse_args()
    path = options.image or kernel()
    raw = dumped(path)
    start = time.perf_counter()
    image = Image.load(path, raw)
    loaded = time.perf_counter()
    program = extract(image, entries_of(image), locate(load(tuple(options.facts)), image))
    done = time.perf_counter()
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    memory = usage[0].ru_maxrss << 10
    first, others = (round(used.ru_utime + used.ru_stime) for used in usage)
    print(f"| {path.name} | |\n|---|---:|")
    for name, count in (table(image, program) | rewritten(image)).items():
        print(f"| {name} | {count:,} |")
    print(f"| seconds to load | {loaded - start:.1f} |")
    print(f"| seconds to extract | {done - loaded:.1f} |")
    print(f"| processor time, first process and others | {first} and {others} |")
    print(f"| MiB at most | {memory >> 20:,} |")
    largest = sorted(_remaining(program).items(), key=lambda item: -len(item[1]))
    for kind, found in largest[:KINDS_SHOWN]:
        print(f"{kind}: {'; '.join(found[:: -(-len(found) // EXAMPLES)])}")
    return int(done - start > MOST_SECONDS or memory > MOST_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
