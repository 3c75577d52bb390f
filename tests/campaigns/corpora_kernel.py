"""The shipped kernel by another compiler and at another level of optimisation.

Its own Makefile builds it, with the compiler replaced. Assembly and linking stay GCC's.
"""

from __future__ import annotations

from pathlib import Path

from tests.campaigns.corpora_packages import environment, run

__all__ = ["build_kernel"]

ROOT = Path(__file__).resolve().parents[2]
SHARED = (
    "-marm -g -std=c11 -ffreestanding -nostdlib -w -fno-common -fno-stack-protector "
    "-fno-unwind-tables -fno-asynchronous-unwind-tables -fno-pic"
)
FLAGS = {
    "gcc": "-fno-tree-loop-distribute-patterns -mno-unaligned-access",
    "clang": "-fno-builtin -mno-unaligned-access",
}
LINK = (
    "-nostdlib -static -Wl,--build-id=none -Wl,--no-warnings -Wl,-z,noexecstack "
    "-Wl,--no-warn-rwx-segments -Wl,-z,max-page-size=4096"
)
WRAPPER = """#!/bin/sh
# C by Clang, everything else by GCC
for word; do
    case $word in
    *.c) exec clang --target=arm-none-eabi "$@" ;;
    esac
done
exec arm-none-eabi-gcc "$@"
"""


def build_kernel(folder: Path, compiler: str, level: str) -> Path:
    """``kernel.elf`` of the KZM board, as ``folder/COMPILER-LEVEL.elf``."""
    elf = folder / f"{compiler}-{level}.elf"
    if elf.exists():
        return elf
    build = folder / f"{compiler}-{level}"
    command = "arm-none-eabi-gcc"
    if compiler == "clang":
        wrapper = folder / "clang-cc"
        wrapper.write_text(WRAPPER)
        wrapper.chmod(0o755)
        command = str(wrapper)
    flags = f"$(CPU) -{level} {SHARED} {FLAGS[compiler]} $(STABLE)"
    headers = "-Iinclude -Iboards/$(BOARD) -Imachine/$(MACHINE) -I$(B)/gen"
    settings = [
        f"B={build}",
        f"CC={command}",
        f"COMMON={flags}",
        f"KERNEL_FLAGS=$(COMMON) {headers}",
        f"LINK={LINK}",
    ]
    target = build / "kernel.elf"
    run(["make", "--silent", "-C", ROOT / "kernels/bilby", *settings, target], env=environment())
    elf.write_bytes((build / "kernel.elf").read_bytes())
    return elf
