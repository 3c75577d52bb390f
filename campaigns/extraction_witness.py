"""Execution as witness: ``python -m campaigns.extraction_witness [CORPUS...]``.

Each program runs in user-mode QEMU, one instruction at a time. The executed addresses are followed
through the extracted graphs with a stack of calls. At an unresolved call through a pointer the
execution gives the target; such calls are counted separately. Any other step outside the graphs is
a missed edge, and the campaign exits with status 1.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path

from campaigns.corpora import CSMITH_SEEDS, corpus
from campaigns.extraction import entries_of
from quoll.cfg.cfg import Block, Cfg, EdgeKind, Program
from quoll.extraction.extract import extract
from quoll.image.image import Image

__all__ = ["MissedEdge", "Walk", "executed", "witness"]

CORPORA_RUN = ("csmith", "library")
TRACE = re.compile(rb"^Trace \d+: \S+ \[\w+/(\w+)/")
LIMIT = 120  # seconds in QEMU


class MissedEdge(AssertionError):
    """An execution takes a step that is not in the graphs."""


@dataclass(slots=True)
class Function:
    """A graph prepared for walking."""

    cfg: Cfg
    after: list[dict[int, Block]]  # by block: successors without calls and returns
    across: set[int] = field(default_factory=set)  # return addresses of calls
    at: dict[int, Block] = field(default_factory=dict)  # blocks by address


class Walk:
    """A position in the graphs of a program: the call stack and the current block."""

    def __init__(self, program: Program, start: int) -> None:
        self._program = program
        self._functions: dict[int, Function] = {}
        self._unresolved = {u.addr for u in program.unresolved}
        self.start(start)
        self.edges: set[tuple[int, int]] = set()  # transfers between blocks
        self.blocks: set[int] = set()
        self.by_pointer = 0  # transfers at unresolved places
        self.instructions = 0

    def start(self, entry: int) -> None:
        """Go to the start of the function at ``entry``, called by nobody."""
        self._stack: list[tuple[Function, tuple[int, ...]]] = []  # caller and where it goes on
        self._function = self._prepared(entry)
        self.block = self._function.cfg.blocks[0]

    def follow(self, addrs: Iterator[int]) -> None:
        """Go along ``addrs``, the first of which starts the current block."""
        block = self.block
        addr = next(addrs, None)
        if addr != block.addr:
            raise MissedEdge(f"the execution starts at {addr}, not at {block.addr:#x}")
        while True:
            self.blocks.add(block.addr)
            for insn in block.insns[1:]:
                addr = next(addrs, None)
                if addr != insn.addr:
                    text = "the end" if addr is None else hex(addr)
                    raise MissedEdge(f"{text} comes inside a block, before {insn.addr:#x}")
            self.instructions += len(block.insns)
            self.block = block
            addr = next(addrs, None)
            if addr is None:
                return
            self.edges.add((block.last.addr, addr))
            block = self._next(block, addr)

    def _next(self, block: Block, addr: int) -> Block:
        inside = self._function.after[block.index].get(addr)
        if inside is not None:
            return inside
        if addr in block.calls:
            return self._enter(block, addr, tail=block.tail)
        if block.returns and self._stack and addr in self._stack[-1][1]:
            return self._come_back(block, addr)
        if block.last.addr in self._unresolved and addr in self._program.functions:
            self.by_pointer += 1
            returns_here = not self._function.across.isdisjoint(block.returned_to)
            return self._enter(block, addr, tail=not returns_here)
        raise MissedEdge(f"{block.last.addr:#x} {block.last.text} is followed by {addr:#x}")

    def _enter(self, block: Block, entry: int, *, tail: bool) -> Block:
        if not tail:
            self._stack.append((self._function, block.returned_to))
        self._function = self._prepared(entry)
        return self._function.cfg.blocks[0]

    def _come_back(self, block: Block, addr: int) -> Block:
        if not self._function.cfg.returns:
            raise MissedEdge(f"{self._function.cfg.name} returns at {block.last.addr:#x}")
        self._function, _ = self._stack.pop()
        if addr not in self._function.across:
            raise MissedEdge(f"the call before {addr:#x} returns")
        return self._function.at[addr]

    def _prepared(self, entry: int) -> Function:
        known = self._functions.get(entry)
        if known is None:
            cfg = self._program.functions[entry]
            known = Function(cfg, [{} for _ in cfg.blocks])
            known.at = {block.addr: block for block in cfg.blocks}
            for edge in cfg.edges:
                target = cfg.blocks[edge.dst]
                if edge.kind is EdgeKind.ACROSS:
                    known.across.add(target.addr)
                else:
                    known.after[edge.src][target.addr] = target
            self._functions[entry] = known
        return known


def executed(path: Path) -> Iterator[int]:
    """The addresses of all instructions that the program executes, in order."""
    with tempfile.NamedTemporaryFile() as log:
        command = ["qemu-arm", "-singlestep", "-d", "exec,nochain", "-D", log.name, str(path)]
        subprocess.run(command, timeout=LIMIT, check=False, capture_output=True)
        for line in log:
            match = TRACE.match(line)
            if match is not None:
                yield int(match[1], 16)


def witness(path: Path) -> tuple[Walk, Program]:
    """Follow an execution of ``path`` from ``_start`` on. Raises MissedEdge."""
    image = Image.load(path)
    start, stop = image.symbol("_start"), image.symbol("stop")
    assert start is not None
    assert stop is not None
    program = extract(image, [start.addr, *entries_of(image)], exits=frozenset({stop.addr}))
    walk = Walk(program, start.addr)
    walk.follow(dropwhile(lambda addr: addr != start.addr, executed(path)))
    if not walk.block.exits:
        raise MissedEdge(f"the execution ends after {walk.block.last.addr:#x}")
    return walk, program


def main() -> int:
    parser = argparse.ArgumentParser(description="Executions in QEMU are in the graphs.")
    parser.add_argument("corpora", nargs="*", help=f"of {', '.join(CORPORA_RUN)}; all without any")
    parser.add_argument("--seeds", type=int, default=CSMITH_SEEDS, help="of csmith programs")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    print("| program | executed | blocks | transfers | by pointer | missed | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    failed = False
    for name in options.corpora or CORPORA_RUN:
        totals = [0, 0, 0, 0, 0]
        began = time.perf_counter()
        for path in corpus(name, options.seeds):
            if options.only not in path.name:
                continue
            start = time.perf_counter()
            try:
                walk, _ = witness(path)
                counts = [walk.instructions, len(walk.blocks), len(walk.edges), walk.by_pointer, 0]
            except MissedEdge as fault:
                print(f"{path}: {fault}")
                counts = [0, 0, 0, 0, 1]
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
            _print_row(f"{name} {path.stem}", counts, time.perf_counter() - start)
        _print_row(f"**{name}**", totals, time.perf_counter() - began)
        failed |= bool(totals[-1])
    return int(failed)


def _print_row(name: str, counts: list[int], seconds: float) -> None:
    cells = " | ".join(f"{count:,}" for count in counts)
    print(f"| {name} | {cells} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
