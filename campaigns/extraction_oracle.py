"""Extraction compared with an independent listing.

Each reached instruction must match objdump's, with the same length and the same direct target.
Instructions inside functions that extraction does not reach are classified; two classes may not
occur: targets of branches in reached code, and code after a reached instruction that falls through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from campaigns.extraction_listing import Line
from quoll.arm.insn import ControlFlow, Insn
from quoll.cfg.cfg import Program
from quoll.cfg.discover import falls_through
from quoll.image.image import Image

__all__ = ["Comparison", "Unreached", "compare"]

CALLS = (ControlFlow.CALL, ControlFlow.INDIRECT_CALL)


class Unreached(Enum):
    """Why instructions inside a function are not reached."""

    FILLER = "padding"
    AFTER_NORETURN = "after a call that never returns"
    AFTER_DEAD = "after a transfer that is proved never to be made"
    ADDRESS_TAKEN = "only its address is taken"
    DEAD = "nothing leads there"
    BRANCHED_TO = "missed: reached code branches there"
    FALLEN_INTO = "missed: reached code runs on there"


@dataclass(slots=True)
class Comparison:
    """Differences, and the number of unreached instructions by class."""

    instructions: int = 0  # reached, once per address
    branches: int = 0  # direct ones reached
    differences: list[str] = field(default_factory=list)
    unreached: Counter[Unreached] = field(default_factory=Counter)
    runs: list[str] = field(default_factory=list)  # of unreached code that is not padding

    @property
    def missed(self) -> int:
        """Instructions that extraction should have reached."""
        return self.unreached[Unreached.BRANCHED_TO] + self.unreached[Unreached.FALLEN_INTO]


def compare(image: Image, program: Program, lines: Mapping[int, Line]) -> Comparison:
    """``program``, extracted from every function of ``image``, against ``lines``."""
    reached = {i.addr: i for f in program.functions.values() for b in f.blocks for i in b.insns}
    result = Comparison(len(reached))
    for insn in reached.values():
        _check(image, insn, lines.get(insn.addr), result)
    stops = {
        **dict.fromkeys(_noreturn_calls(program), Unreached.AFTER_NORETURN),
        **dict.fromkeys(_long_jumps(program), Unreached.DEAD),
        **{t.addr: Unreached.AFTER_DEAD for t in program.jump_tables if not t.targets},
    }
    targets = _targets(reached, program)
    words = _words(image)
    for run in _runs(image, reached, lines):
        kind = _classify(run, reached, stops, targets, words)
        result.unreached[kind] += len(run)
        if kind is not Unreached.FILLER:
            text = f"{run[0].name} {run[0].operands}"
            result.runs.append(f"{kind.value}: {len(run)} at {image.place(run[0].addr)}: {text}")
    return result


def _check(image: Image, insn: Insn, line: Line | None, result: Comparison) -> None:
    place = f"{image.place(insn.addr)}: {insn.text}"
    if line is None:
        if not image.is_marked_data(insn.addr):
            result.differences.append(f"{place} is not in the listing")
        return
    if line.size != insn.size:
        result.differences.append(f"{place} has {insn.size} bytes, in the listing {line.size}")
    if line.target is None and insn.target is None:
        return
    result.branches += 1
    if line.target != insn.target or line.is_call != (insn.flow is ControlFlow.CALL):
        result.differences.append(f"{place} differs from {line.name} {line.operands}")


def _noreturn_calls(program: Program) -> set[int]:
    """Calls of functions that never return."""
    return {
        block.last.addr
        for cfg in program.functions.values()
        for block in cfg.blocks
        if block.calls and all(not program.functions[c].returns for c in block.calls)
    }


def _long_jumps(program: Program) -> set[int]:
    """``bl`` that only jumps, in Thumb code."""
    return {
        block.last.addr
        for cfg in program.functions.values()
        for block in cfg.blocks
        if block.last.flow is ControlFlow.CALL and not block.calls
    }


def _targets(reached: Mapping[int, Insn], program: Program) -> set[int]:
    direct = {insn.target for insn in reached.values() if insn.target is not None}
    return direct | {target for table in program.jump_tables for target in table.targets}


def _words(image: Image) -> set[int]:
    """Everything stored in an aligned word, Thumb bits cleared."""
    found: set[int] = set()
    for segment in image.segments:
        data = segment.data[-segment.addr % 4 :]
        found.update(memoryview(data[: len(data) & ~3]).cast("I"))
    return {word & ~1 for word in found}


def _runs(image: Image, reached: Mapping[int, Insn], lines: Mapping[int, Line]) -> list[list[Line]]:
    """Contiguous instructions of the listing, inside functions, that are not reached."""
    covered = {
        addr
        for symbol in image.symbols.symbols
        if symbol.kind == "func"
        for addr in range(symbol.addr, symbol.addr + symbol.size, 2)
    }
    runs: list[list[Line]] = []
    after = -1
    for addr in sorted(lines):
        if addr in reached or addr not in covered:
            continue
        if addr != after:
            runs.append([])
        runs[-1].append(lines[addr])
        after = addr + lines[addr].size
    return runs


def _classify(
    run: list[Line],
    reached: Mapping[int, Insn],
    stops: Mapping[int, Unreached],
    targets: set[int],
    words: set[int],
) -> Unreached:
    addrs = [line.addr for line in run]
    before = [reached.get(addrs[0] - size) for size in (2, 4)]
    previous = next((i for i in before if i is not None and i.next == addrs[0]), None)
    if targets.intersection(addrs):
        return Unreached.BRANCHED_TO
    if previous is not None and previous.addr in stops:
        return stops[previous.addr]
    if previous is not None and (previous.flow in CALLS or falls_through(previous)):
        return Unreached.FALLEN_INTO
    if all(line.is_filler for line in run):
        return Unreached.FILLER
    return Unreached.ADDRESS_TAKEN if words.intersection(addrs) else Unreached.DEAD
