"""Small kernels with all entries of the KZM board, and executions of one entry after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from quoll.arm.decode import decode
from quoll.arm.insn import LR, PC, SP, Insn
from quoll.image.image import Image
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.quoll.building import address, build

__all__ = ["ENTRIES", "EntryMachine", "kernel"]

ENTRIES = ("svc", "undefined", "prefetch_abort", "data_abort", "irq")
STACK = 0xF0200000
RETURN = 0xF0300000  # where every entry returns to
LONGEST = 10_000  # instructions
RETURNS = "movs pc, lr\n"


def kernel(
    code: Mapping[str, str],
    data: str,
    at: str = "0xf0020000",
    without: tuple[str, ...] = (),
    link: tuple[str, ...] = (),
) -> Path:
    """The ELF of a kernel: the assembly of each entry in ``code``; others return at once."""
    lines = [".syntax unified", ".arm", ".text"]
    for name in (one for one in ENTRIES if one not in without):
        body = code.get(name, RETURNS)
        lines += [f".global vector_{name}", f".type vector_{name}, %function", f"vector_{name}:"]
        lines += [f"{body}", ".ltorg"]
    lines += [code.get("others", ""), ".ltorg", ".data", ".balign 64", data]
    places = ("-Wl,-Ttext=0xf0010000", f"-Wl,-Tdata={at}", "-Wl,-e,vector_svc")
    return build("\n".join(lines) + "\n", language="S", link=(*places, *link))


@dataclass(slots=True)
class EntryMachine:
    """The concrete machine between entries; memory is as loaded at first."""

    image: Image
    memory: ByteMemory
    decoded: dict[int, Insn]

    @staticmethod
    def of(image: Image) -> EntryMachine:
        """The machine before the first entry."""

        def loaded(addr: int) -> int:
            return (image.read(addr, 1) or b"\0")[0]

        return EntryMachine(image, ByteMemory(background=loaded), {})

    def enter(self, name: str, random: Random) -> None:
        """Execute an entry with random registers."""
        machine = ConcreteMachine(self.memory, oracle=lambda op: random.getrandbits(32))
        words = (random.getrandbits(32), random.randrange(16), 0xFFFFFFFF)
        machine.registers[:13] = [random.choice(words) for _ in range(13)]
        machine.registers[SP], machine.registers[LR] = STACK, RETURN
        machine.registers[PC] = address(self.image, f"vector_{name}")
        for _ in range(LONGEST):
            pc = machine.registers[PC]
            if pc == RETURN:
                return
            if pc not in self.decoded:
                code = self.image.read(pc, 4)
                assert code is not None
                self.decoded[pc] = decode(code, pc, thumb=False)
            machine.step(self.decoded[pc])
        raise AssertionError("the entry does not return")
