"""A program whose linker script lays sections over each other."""

from __future__ import annotations

from pathlib import Path

from tests.testing.quoll.building import build

__all__ = ["overlaid"]

OVERLAID = """
        .section .first, "ax"
        .word 1, 2
        .section .second, "ax"
        .word 3, 4
        .text
        .arm
        .global main
        .type main, %function
main:   bx lr
"""
OVERLAY_SCRIPT = """
SECTIONS {
    .text 0x8000 : { *(.text) }
    OVERLAY 0xffff0000 : AT (0x9000) { .first { *(.first) } .second { *(.second) } }
}
"""


def overlaid(folder: Path) -> Path:
    """A program with two sections for one address, as Linux has them for its vectors."""
    script = folder / "overlay.ld"
    script.write_text(OVERLAY_SCRIPT)
    return build(OVERLAID, f"-Wl,-T,{script}", language="S")
