"""Hostile programs: the output of generators, and the text for the assembler.

In the text of a program ``~`` stands for its number: it begins at ``p~`` and uses the data at
``d~``; its interrupt handler, if it has one, is ``h~``; labels are ``.L~name``, callees ``f~name``.
Every program is written in the unified syntax, so most of them are ARM and Thumb code alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

__all__ = [
    "ARM",
    "ARM_V7",
    "BOARDS",
    "DATA_WORDS",
    "THUMB",
    "Board",
    "Input",
    "Memory",
    "Program",
    "Writer",
]

DATA_WORDS = 64
Input = tuple[tuple[str, object], ...]  # register -> number, or text such as "d+8" (its data)


@dataclass(frozen=True, slots=True)
class Board:
    """A core, with the registers of its interrupt controller."""

    name: str
    platform: str
    cpu: str
    thumb: bool
    pending: tuple[int, ...]
    controller: int  # base of the controller; its acknowledge register is ``ACK`` behind it

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets of the pending registers from the base."""
        return tuple(register - self.controller for register in self.pending)

    @property
    def armv7(self) -> bool:
        """Whether it is the Cortex-A8, an ARMv7 core; else it is the ARM1136, an ARMv6 core."""
        return self.cpu == "cortex-a8"


ARM = Board("arm1136", "kzm", "arm1136jf-s", False, (0xF800_0058, 0xF800_005C), 0xF800_0000)
THUMB = Board("cortex-a8", "cubieboard", "cortex-a8", True, (0xF802_0400,), 0xF802_0000)
ARM_V7 = replace(THUMB, name="cortex-a8-arm", thumb=False)
BOARDS = (ARM, THUMB, ARM_V7)


class Memory(Enum):
    """The executor's model of memory."""

    FLAT = "no translation, no cache"
    PAGED = "the MMU is on; ``.low`` and ``.other`` trade places in the second address space"
    CACHED = "stores may stay in a write-back cache until a line is cleaned, or be lost with it"


@dataclass(frozen=True, slots=True)
class Program:
    """One program. ``enumerated``: its control flow depends on ``inputs`` only.

    ``apart``: names of assumptions that its executions may violate, separated by spaces. Refuted
    claims are counted separately if the report lists such an assumption.
    """

    family: str
    board: Board
    lines: tuple[str, ...]
    handler: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ((),)
    enumerated: bool = False
    windows: int = 1  # 2: the platform maps the data a second time, 256 MiB below
    apart: str = ""
    memory: Memory = Memory.FLAT
    form: str = ""  # the kind of program, counted by the campaign
    meaningless: bool = False  # an instruction has no meaning on its core: no bound
    facts: str = ""  # lines of a facts file, which all executions satisfy
    wrong_facts: str = ""  # lines that no execution satisfies: no bound
    constant_returns: bool = False  # targets and status of all exception returns are constants

    def text(self, number: str) -> str:
        """The text for the assembler."""
        parts = [function(f"p{number}", self.lines, self.board)]
        if self.handler:
            parts.append(function(f"h{number}", self.handler, self.board))
        data = [".data", ".balign 256", f".global d{number}", f"d{number}:"]
        data += [f"    .word {i + 1}" for i in range(DATA_WORDS)]
        parts.append("\n".join([*data, ".text", ""]))
        return "".join(parts).replace("~", number)

    def stated(self, number: str) -> str:
        """The text of the facts file; "" for none."""
        return f"{self.facts}{self.wrong_facts}".replace("~", number)


def function(name: str, lines: Sequence[str], board: Board) -> str:
    """A function with its literals behind it."""
    head = [".text", ".balign 4", f".global {name}", f".type {name}, %function"]
    head += [".thumb", ".thumb_func"] if board.thumb else [".arm"]
    return "\n".join([*head, f"{name}:", *lines, ".ltorg", ""])


@dataclass(slots=True)
class Writer:
    """Writes one program. ``draw`` decides everything."""

    draw: Random
    board: Board
    lines: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)  # callees, behind the program
    labels: int = 0

    def add(self, *lines: str) -> None:
        """Append instructions; a label ends with a colon."""
        for line in lines:
            self.lines.append(line if line.endswith(":") else "    " + line)

    def label(self, name: str = "l") -> str:
        """A new label."""
        self.labels += 1
        return f".L~{name}{self.labels}"

    def callee(self, name: str, *lines: str) -> str:
        """A function behind the program; its name."""
        symbol = f"f~{name}"
        code = ".thumb_func" if self.board.thumb else ".arm"
        self.after += [".ltorg", ".balign 4", f".type {symbol}, %function", code, f"{symbol}:"]
        self.after += [line if line.endswith(":") else "    " + line for line in lines]
        return symbol

    def one_of(self, *texts: str) -> str:
        """A random one of ``texts``."""
        return self.draw.choice(texts)

    def chance(self, share: float) -> bool:
        """True with probability ``share``."""
        return self.draw.random() < share

    def spin(self, register: str, count: int, *body: str) -> None:
        """A loop of a known count; it changes ``register`` and the flags."""
        again = self.label("spin")
        self.add(f"ldr {register}, ={count}" if count > 255 else f"mov {register}, #{count}")
        self.add(f"{again}:", *body, f"subs {register}, {register}, #1", f"bne {again}")

    def slow(self, count: int) -> None:
        """A loop that reads a device: few instructions, much time. r1, r12 and flags change."""
        self.add(f"ldr r12, ={self.board.controller + 8:#x}")
        self.spin("r1", count, "ldr r6, [r12]")

    def count_down(self, register: str, *body: str) -> None:
        """A loop with as many iterations as ``register`` says, none if that is 0."""
        again, out = self.label("turn"), self.label("out")
        self.add(f"cmp {register}, #0", f"beq {out}", f"{again}:", *body)
        self.add(f"subs {register}, {register}, #1", f"bne {again}", f"{out}:")

    def decide(self, register: str, *values: int) -> None:
        """Code that depends on ``register``: a loop, or mostly branches that are cheap to bound.

        If an analysis uses a wrong value, it misses a branch to executed code.
        """
        if self.chance(0.25):
            self.count_down(register, "add r5, r5, #1")
            return
        for value in values or (self.draw.randrange(1, 8),):
            other = self.label("other")
            self.add(f"cmp {register}, #{value}", f"{self.one_of('bne', 'bhi', 'blo')} {other}")
            if self.chance(0.2):
                self.spin("r3", self.count())
            self.add("add r5, r5, #1", f"{other}:", "nop")

    def bits(self, register: str, *positions: int) -> None:
        """Branches that depend on single bits, which detect values with a wrong bit."""
        for position in positions or self.draw.sample(range(8), 3):
            other = self.label("bit")
            self.add(f"tst {register}, #{1 << position:#x}", f"{self.one_of('beq', 'bne')} {other}")
            self.add("nop", f"{other}:")

    def count(self) -> int:
        """A number of iterations, one of a few, so that equal queries are memoised."""
        return self.draw.choice([3, 8, 60])

    def low(self, section: str, *lines: str) -> None:
        """Text of another section, behind the program."""
        flags = "aw" if "data" in section else "ax"
        code = ".thumb" if self.board.thumb else ".arm"
        self.after += [f'.section {section}, "{flags}"', ".balign 4", code, *lines, ".text"]

    def done(self, family: str, **more: object) -> Program:
        """The program written so far."""
        return Program(family, self.board, (*self.lines, *self.after), **more)  # type: ignore[arg-type]
