"""Two address spaces, as real tables for the MMU: they differ where no platform fixes addresses.

Sections of 1 MiB map the fixed windows onto themselves. In the first address space ``.low`` and
``.other`` are at their ELF addresses; in the second one they are exchanged. (ARM DDI 0406, B3.5;
the short format is the same in ARMv6 and ARMv7.) They are also exchanged for the process
``PROCESS`` of the fast context switch extension, which moves addresses below 32 MiB (B.4).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FIRST", "PROCESS", "SECOND", "AddressSpace", "switched_on"]

MEGABYTE = 20
FIXED = (*range(0xF00, 0xF08), *range(0xE00, 0xE08), 0xF80)
LOW, OTHER = 0x001, 0x002
PROCESS = 0x0200_0000  # of FCSEIDR: added to addresses below it
SECTION = 0xC02  # read and write, domain 0


@dataclass(frozen=True, slots=True)
class AddressSpace:
    """A table of sections at ``base``; ``low`` and ``other``: the sections' addresses."""

    base: int
    low: int
    other: int

    @property
    def descriptor(self) -> int:
        """The descriptor of the section of ``.low``."""
        return self.low << MEGABYTE | SECTION

    @property
    def entry(self) -> int:
        """The address of that descriptor."""
        return self.base + 4 * LOW

    def table(self) -> bytes:
        """The table."""
        words = [0] * 4096
        for section in FIXED:
            words[section] = section << MEGABYTE | SECTION
        words[LOW] = self.low << MEGABYTE | SECTION
        words[OTHER] = self.other << MEGABYTE | SECTION
        words[LOW + (PROCESS >> MEGABYTE)] = self.other << MEGABYTE | SECTION
        words[OTHER + (PROCESS >> MEGABYTE)] = self.low << MEGABYTE | SECTION
        return b"".join(word.to_bytes(4, "little") for word in words)


FIRST = AddressSpace(0xF060_0000, LOW, OTHER)
SECOND = AddressSpace(0xF060_4000, OTHER, LOW)


def switched_on(space: AddressSpace | None) -> bytes:
    """ARM code that flushes the TLB, and switches the MMU on if ``space`` is given."""
    flush = 0xEE080F17  # mcr p15, 0, r0, c8, c7, 0
    if space is None:
        return flush.to_bytes(4, "little")
    words = (
        0xE59F_0020,  # ldr r0, [pc, #32]: the table
        0xEE02_0F10,  # mcr p15, 0, r0, c2, c0, 0
        0xEE02_0F30,  # mcr p15, 0, r0, c2, c0, 1
        0xE3A0_0003,  # mov r0, #3
        0xEE03_0F10,  # mcr p15, 0, r0, c3, c0, 0: no access is checked
        flush,
        0xEE11_0F10,  # mrc p15, 0, r0, c1, c0, 0
        0xE380_0001,  # orr r0, r0, #1
        0xEE01_0F10,  # mcr p15, 0, r0, c1, c0, 0
        0xE320_F000,  # nop
        space.base,
    )
    return b"".join(word.to_bytes(4, "little") for word in words)
