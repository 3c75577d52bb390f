"""Test programs: C or assembly text to an ELF, by the cross compiler that is always there."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from quoll.image.image import Image

__all__ = ["address", "build"]

TEXT_BASE = 0x8000


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="quoll-programs-")


@cache
def build(
    source: str,
    *flags: str,
    language: str = "c",
    optimise: str = "-O2",
    thumb: bool = False,
    cpu: str = "arm1136jf-s",
    link: tuple[str, ...] = (),
) -> Path:
    """Compile ``source`` (named prog.c or prog.S) and link it at 0x8000 with no library."""
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    name = "prog.c" if language == "c" else "prog.S"
    (folder / name).write_text(source)
    command = ["arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb" if thumb else "-marm", optimise]
    command += ["-g", "-ffreestanding", "-nostdlib", "-Wl,--build-id=none"]
    command += [f"-Wl,-Ttext={TEXT_BASE:#x}", "-Wl,-e,main", "-Wl,--no-warn-rwx-segments"]
    command += [*flags, name, "-o", "prog.elf", *link]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return folder / "prog.elf"


def address(image: Image, name: str) -> int:
    """Where the symbol ``name`` is, which must be there."""
    symbol = image.symbol(name)
    assert symbol is not None, name
    return symbol.addr
