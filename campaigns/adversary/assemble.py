"""Programs to one ELF: hundreds in one call of the assembler, each with symbols of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from campaigns.adversary.program import Program

__all__ = ["LOW", "OTHER", "TEXT", "assemble"]

TEXT, DATA = 0xF001_0000, 0xF040_0000
# Memory whose translation no platform fixes, and its content in the second address space.
LOW = {".low": 0x0010_0000, ".lowdata": 0x0014_0000}
OTHER = {".other": 0x0020_0000, ".otherdata": 0x0024_0000}
HEAD = ".syntax unified\n.fpu {fpu}\n"
FPU = {"arm1136jf-s": "vfpv2", "cortex-a8": "neon"}


def assemble(programs: Sequence[Program], folder: Path) -> Path:
    """The ELF of the programs of one board; program i is at ``p<i>``. Raises ValueError."""
    cpu = programs[0].board.cpu
    assert all(p.board.cpu == cpu for p in programs)
    source, elf = folder / "programs.S", folder / "programs.elf"
    texts = [program.text(str(number)) for number, program in enumerate(programs)]
    source.write_text(HEAD.format(fpu=FPU[cpu]) + "".join(texts))
    command = ["arm-none-eabi-gcc", f"-mcpu={cpu}", "-nostdlib", "-Wl,--build-id=none"]
    command += ["-Wa,-mimplicit-it=always", "-mfloat-abi=softfp", f"-Wl,-Ttext={TEXT:#x}"]
    command += [f"-Wl,-Tdata={DATA:#x}", "-Wl,-e,p0", "-Wl,--no-warn-rwx-segments", "-w"]
    command += [f"-Wl,--section-start={name}={at:#x}" for name, at in {**LOW, **OTHER}.items()]
    done = subprocess.run(
        [*command, str(source), "-o", str(elf)], capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise ValueError(done.stderr[:2000])
    return elf
