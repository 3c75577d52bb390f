"""Random programs whose functions call one another from many places."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, FLAGS, Writer

FUNCTIONS = 4


class Callers(Writer):
    """Programs whose functions call one another from many places."""

    def program(self) -> str:
        numbers = ", ".join(str(self.random.randrange(256)) for _ in range(64))
        self.lines = [
            f"static const unsigned char table[64] = {{{numbers}}};",
            "unsigned data[256];",
            "struct item { unsigned char kind; short count; unsigned word; } items[16];",
        ]
        functions: list[str] = []
        for number in range(FUNCTIONS):
            name = f"f{number}"
            self.loops = 2 if number % 2 else 3
            self.function(f"__attribute__((noinline, noclone)) unsigned {name}", functions, 1)
            functions.append(name)
        self.loops = 2
        self.function("unsigned main", functions, 2)
        return "\n".join(self.lines) + "\n"

    def statement(self, callees: list[str], depth: int, level: int) -> None:
        pad = "    " * level
        if not callees or self.random.random() < 0.4:
            super().statement(callees, depth, level)
        elif self.random.random() < 0.2:
            self.lines.append(f"{pad}{self.random.choice(callees)}((unsigned)&local[2], x);")
        else:
            self.lines.append(f"{pad}x += {self.random.choice(callees)}(x, b);")


def calling_program(seed: int, optimise: str) -> Path:
    """The ELF of one program."""
    source = Callers(Random(seed)).program()
    return build(source, *FLAGS, optimise=optimise, link=(CODE,))
