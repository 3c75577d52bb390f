"""Random callers and callees that store into each other's frames, and how they are run.

Stores have every form: words, halves, bytes and pairs, lists, exclusive stores and swaps, pushes
beyond the frame, through sp, a frame pointer, a pointer argument in a register or on the stack, by
loops and by bounded indices. Stored words are an argument, a constant, or the address of code
without callers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from quoll.arm.decode import decode
from quoll.arm.insn import LR, PC, SP, Insn
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine

__all__ = ["Run", "Writer", "execute"]

STACK, RETURN, DATA = 0x7000_0000, 0x4000_0000, 0x3000_0000
LONGEST = 3000  # instructions
POINTERS = ("r0", "r1", "r2", "r3", "ip")


class Writer:
    """Writes one program of an entry, some functions, and two places that nothing calls.

    All its symbols begin with ``name``, which is the entry.
    """

    def __init__(self, random: Random, name: str) -> None:
        self.random, self.name, self.lines, self.labels = random, name, [""], 0

    def program(self) -> str:
        """Assembly text of the whole."""
        count, name = self.random.randint(1, 3), self.name
        for number in range(count + 1):
            self.function(self.called(number), range(number + 1, count + 1))
        for number, place in enumerate(("wild", "other")):
            self.lines += [f".type {name}{place}, %function", f"{name}{place}: mov r0, #{number}"]
            self.lines.append(" bx lr")
        return "\n".join([*self.lines[1:], " .ltorg"])

    def called(self, number: int) -> str:
        return f"{self.name}f{number}" if number else self.name

    def say(self, *lines: str) -> None:
        self.lines += [f" {line}" for line in lines]

    def label(self) -> str:
        self.labels += 1
        return f".L{self.name}{self.labels}x"

    def function(self, name: str, callees: range) -> None:
        random = self.random
        self.lines += [f".type {name}, %function", f"{name}:"]
        saved = random.choice(("r4, lr", "r4, r5, lr", "r4, r5, r6, r11, lr", "lr"))
        leaf = not callees and random.random() < 0.5
        room = random.choice((0, 8, 16, 32))
        if not leaf:
            self.say(f"push {{{saved}}}")
        if room:
            self.say(f"sub sp, sp, #{room}")
        for _ in range(random.randint(1, 4)):
            self.statement(room)
        for callee in callees:
            if random.random() < 0.8:
                self.call(self.called(callee), room, saved)
        if room:
            self.say(f"add sp, sp, #{room}")
        if leaf:
            self.say("bx lr")
        elif random.random() < 0.2:
            self.say(f"pop {{{saved}}}", "bx lr")
        else:
            self.say(f"pop {{{saved.replace('lr', 'pc')}}}")

    def call(self, callee: str, room: int, saved: str) -> None:
        random = self.random
        if random.random() < 0.6:
            at = random.randrange(0, room + 9, 4)
            self.say(f"add {random.choice(POINTERS)}, sp, #{at}")
        if room and random.random() < 0.3:
            self.say("add r3, sp, #4", "str r3, [sp]")
        if "r4" in saved and random.random() < 0.3:
            table = self.label()
            self.say("and r4, r1, #3", f"bl {callee}", "cmp r4, #2", "ldrls pc, [pc, r4, lsl #2]")
            self.say(f"b {table}0", *(f".word {table}{i}" for i in range(3)))
            self.lines += [line for i in range(3) for line in (f"{table}{i}:", " nop")]
        else:
            self.say(f"bl {callee}")

    def statement(self, room: int) -> None:
        random = self.random
        kind = random.choice(("value", "store", "store", "store", "through", "through", "walk"))
        value = random.choice(("r0", "r1", "r2", "r3", "r4", "r5"))
        if kind == "value":
            code = (f"={self.name}wild", f"={self.name}other")
            self.say(f"ldr {value}, {random.choice((*code, '=64', '[r2]', '[sp]'))}")
        elif kind == "store":
            self.store("sp", value, random.choice((0, 4, 8, room, room + 4, room + 12, room + 21)))
        elif kind == "through":
            base = random.choice((*POINTERS, "r11"))
            if random.random() < 0.2:
                self.say(f"ldr {base}, [sp, #{random.choice((room, room + 4, room + 12))}]")
            self.store(base, value, random.choice((-8, -4, 0, 4, 8, 12, 17)))
        else:
            self.walk(value, room)

    def store(self, base: str, value: str, at: int) -> None:
        """One store of ``value`` at ``at`` from ``base``, or near it."""
        random = self.random
        low = at & ~3
        cond = ""
        if random.random() < 0.2:
            self.say("cmp r1, #5")
            cond = random.choice(("eq", "ne"))
        shape = random.randrange(12)
        if shape < 5:
            self.say(f"str{cond} {value}, [{base}, #{low}]")
        elif shape == 5:
            self.say(f"strb{cond} {value}, [{base}, #{at}]")
        elif shape == 6:
            self.say(f"strh{cond} {value}, [{base}, #{at & ~1}]")
        elif shape == 7:
            self.say(f"strd{cond} r2, r3, [{base}, #{low}]")
        elif shape == 8:
            self.say(f"add r12, {base}, #{low}", f"stm{cond} r12, {{r2, r3, r5}}")
        elif shape == 9:
            self.say(
                f"add r12, {base}, #{low}", f"strex{cond} lr, {value}, [r12]".replace("lr", "r6")
            )
        elif shape == 10:
            self.say(f"add r12, {base}, #{low}", f"swp{cond} {value}, {value}, [r12]")
        else:
            self.say(f"and r12, r1, #{random.choice((1, 3, 7))}", f"add r12, {base}, r12, lsl #2")
            self.say(f"str{cond} {value}, [r12, #{low}]")

    def walk(self, value: str, room: int) -> None:
        """A loop that stores word after word."""
        random, again = self.random, self.label()
        base = random.choice(("sp", "sp", *POINTERS))
        self.say(f"add r12, {base}, #{random.choice((0, 4, room))}")
        self.say(f"add r6, r12, #{4 * random.randint(1, 6)}")
        self.lines.append(f"{again}:")
        self.say(f"str {value}, [r12], #4", "cmp r12, r6", f"bne {again}")


@dataclass
class Run:
    """An execution: ``pcs``, and the stores of each step that hit the stack at or above sp.

    ``returned``: whether it came back to where the entry was called. ``wrote_code``: whether it
    ends because it was about to change itself.
    """

    pcs: list[int] = field(default_factory=list)
    hits: dict[int, list[int]] = field(default_factory=dict)
    returned: bool = False
    wrote_code: bool = False


class _Watched(ByteMemory):
    """Memory that records stores."""

    def __init__(self, image: Image, random: Random) -> None:
        salt = random.getrandbits(32)

        def byte(addr: int) -> int:
            known = image.read(addr, 1)
            return known[0] if known else (addr * 0x9E3779B1 + salt >> 13) & 0x3F

        super().__init__(background=byte)
        self.stored: list[int] = []

    def store(self, addr: int, size: int, value: int) -> None:
        self.stored += range(addr, addr + size)
        super().store(addr, size, value)


def execute(image: Image, entry: int, random: Random) -> Run:
    """A run from ``entry`` with random registers, of which none but sp is a stack address."""
    memory, run = _Watched(image, random), Run()
    machine = ConcreteMachine(memory, lambda op: random.getrandbits(32))
    machine.registers[:LR] = [DATA + (random.getrandbits(8) << 4) for _ in range(LR)]
    machine.registers[1] = random.randrange(8)
    machine.registers[SP], machine.registers[LR], machine.registers[PC] = STACK, RETURN, entry
    known: dict[int, Insn] = {}
    while len(run.pcs) < LONGEST and machine.registers[PC] != RETURN:
        pc = machine.registers[PC]
        code = image.read(pc, 4)
        if code is None or pc & 3 or not image.is_executable(pc):
            return run
        if pc not in known:
            known[pc] = decode(code, pc, thumb=False)
        sp = machine.registers[SP]
        memory.stored.clear()
        try:
            machine.step(known[pc])
        except ControlFlowError:  # a trap: data is executed
            run.pcs.append(pc)
            run.hits[len(run.pcs) - 1] = []
            return run
        low = min(sp, machine.registers[SP])
        run.hits[len(run.pcs)] = [at for at in memory.stored if low <= at < STACK + 256]
        run.pcs.append(pc)
        run.wrote_code = any(map(image.is_executable, memory.stored))
        if machine.thumb or run.wrote_code:
            return run
    run.returned = machine.registers[PC] == RETURN
    return run
