"""The listing of objdump: an independent decoder, guided by mapping symbols."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Line", "listing"]

LINE = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t(\S+)(?:\t([^@;]*))?")
TARGET = re.compile(r"(?:^|, )([0-9a-f]+) <")
BRANCH = re.compile(
    r"^(?:b|bl|blx|cbz|cbnz)(?:eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?(?:\.[nw])?$"
)
CALL = re.compile(r"^blx?(?:eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?$")
FILLERS = ("nop", "nop.w", "udf")
FILLING = {("mov", "r8, r8"), ("mov", "r0, r0"), ("andeq", "r0, r0, r0"), ("movs", "r0, r0")}


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction of a listing."""

    addr: int
    size: int  # bytes
    name: str
    operands: str
    target: int | None  # of a direct branch or call

    @property
    def is_call(self) -> bool:
        """Whether it is bl, or blx to an address."""
        return self.target is not None and CALL.match(self.name) is not None

    @property
    def is_filler(self) -> bool:
        """Whether assemblers put it between functions."""
        return self.name in FILLERS or (self.name, self.operands) in FILLING


def listing(path: Path) -> dict[int, Line]:
    """The instructions that objdump decodes in the executable sections of ``path``."""
    command = ["arm-none-eabi-objdump", "-d", "-w", str(path)]
    found: dict[int, Line] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            match = LINE.match(text)
            if match is None or match[3].startswith("."):
                continue
            addr, name, operands = int(match[1], 16), match[3], (match[4] or "").strip()
            target = TARGET.search(operands) if BRANCH.match(name) else None
            found[addr] = Line(
                addr,
                len(match[2].replace(" ", "")) // 2,
                name,
                operands,
                int(target[1], 16) if target else None,
            )
    return found
