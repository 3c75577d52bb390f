"""The shipped kernel by another compiler and at another level of optimisation.

Its own Makefile builds it. Assembly and linking stay GCC's.
"""

from __future__ import annotations

from pathlib import Path

from campaigns.corpora_packages import environment, run

__all__ = ["build_kernel"]

ROOT = Path(__file__).resolve().parents[1]
COMPILERS = {"gcc": "arm-none-eabi-gcc", "clang": "clang"}


def build_kernel(folder: Path, compiler: str, level: str) -> Path:
    """``kernel.elf`` of the KZM board, as ``folder/COMPILER-LEVEL.elf``."""
    elf = folder / f"{compiler}-{level}.elf"
    if elf.exists():
        return elf
    build = folder / f"{compiler}-{level}"
    settings = [f"B={build}", f"CC={COMPILERS[compiler]}", f"OPT=-{level}"]
    target = build / "kernel.elf"
    run(["make", "--silent", "-C", ROOT / "kernels/bilby", *settings, target], env=environment())
    elf.write_bytes(target.read_bytes())
    return elf
