# SPDX-License-Identifier: BSD-2-Clause
"""The state of an IT block before an SVC in it, as ``flags.h`` computes it: compiled for here."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

# By the high bits of a condition, from N, Z, C and V (ARM ARM, A8.3.1).
HOLDS: list[Callable[[bool, bool, bool, bool], bool]] = [
    lambda n, z, c, v: z, lambda n, z, c, v: c, lambda n, z, c, v: n, lambda n, z, c, v: v,
    lambda n, z, c, v: c and not z, lambda n, z, c, v: n == v,
    lambda n, z, c, v: n == v and not z, lambda n, z, c, v: True,
]  # fmt: skip
NEVER = 0xF  # no condition of a block
OTHERS = 0x000F0230  # flags that are not of the block


def holds(condition: int, nzcv: int) -> bool:
    found = HOLDS[condition >> 1](*(bool(nzcv >> bit & 1) for bit in (3, 2, 1, 0)))
    return bool(found) != bool(condition & 1)


def cpsr(state: int, nzcv: int) -> int:
    return nzcv << 28 | OTHERS | (state & 0xFC) << 8 | (state & 3) << 25


def wrong_state(bilby: Path, folder: Path) -> str:
    """The first state of a block that is not found again from the one behind the SVC."""
    (folder / "layout.h").write_text("typedef unsigned word_t;\n", encoding="utf-8")
    (folder / "before.c").write_text(
        '#include "flags.h"\nword_t before(word_t cpsr) { return machine_cpsr_of_svc(cpsr); }\n',
        encoding="utf-8",
    )
    made = Path(tempfile.mkdtemp(dir=folder)) / "before.so"  # a name is loaded once
    includes = [f"-I{folder}", f"-I{bilby / 'machine' / 'cortex-a8'}"]
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", *includes, str(folder / "before.c")]
    subprocess.run([*command, "-o", str(made)], check=True, capture_output=True)
    before = ctypes.CDLL(str(made)).before
    before.restype, before.argtypes = ctypes.c_uint32, [ctypes.c_uint32]
    for state in range(256):
        if state >> 4 == NEVER:
            continue
        after = (state & 0xE0) | (state << 1 & 0x1F) if state & 7 else 0
        for nzcv in range(16):
            if not holds(state >> 4, nzcv):
                continue
            expected = cpsr(state if after else 0, nzcv)
            found = before(cpsr(after, nzcv))
            if found != expected:
                return f"state {state:#x} with flags {nzcv:#x}: {found:#x}, not {expected:#x}"
    return ""
