"""Build attributes of an ELF: its intended processor.

The reader in pyelftools does not terminate at a subsection of length 0.

Source: Addenda to, and Errata in, the ABI for the Arm Architecture, sections 3.2 and 3.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quoll.image.byte_stream import ByteStream, EndOfBytes

__all__ = ["BuildAttributes", "parse_attributes"]

TAG_FILE, TAG_CPU_RAW_NAME, TAG_CPU_NAME, TAG_CPU_ARCH, TAG_COMPATIBILITY = 1, 4, 5, 6, 32
TAG_PROFILE, TAG_MULTIPROCESSING, TAG_DIVISION = 7, 42, 44
OLD_TAG_MULTIPROCESSING = 70
PROFILES = {ord(letter): letter for letter in "ARM"}  # "S": A or R; 0: before profiles existed
DIVIDES_IN_A = 2
MICROCONTROLLER = re.compile(r"(v?\d+\S*-M\b.*|cortex-m\d.*|star-mc\d|sc[03]00)", re.IGNORECASE)
ARCHITECTURES = {
    0: "pre-v4", 1: "v4", 2: "v4T", 3: "v5T", 4: "v5TE", 5: "v5TEJ", 6: "v6", 7: "v6KZ",
    8: "v6T2", 9: "v6K", 10: "v7", 11: "v6-M", 12: "v6S-M", 13: "v7E-M", 14: "v8-A",
    15: "v8-R", 16: "v8-M.baseline", 17: "v8-M.mainline", 21: "v8.1-M.mainline", 22: "v9-A",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BuildAttributes:
    """File-scope attributes; None where the file does not state one (or states it unreadably)."""

    cpu: str | None = None  # Tag_CPU_name, such as "ARM1136JF-S"
    arch: str | None = None  # Tag_CPU_arch, such as "v6"
    profile: str | None = None  # Tag_CPU_arch_profile: "A", "R" or "M"
    multiprocessing: bool = False  # whether the multiprocessing extension may be used
    division: bool = (
        False  # whether sdiv and udiv may be used where the architecture leaves it open
    )

    @property
    def microcontroller(self) -> str | None:
        """The evidence (profile, architecture or name) that it is for the M profile, or None."""
        if self.profile == "M":
            return "Tag_CPU_arch_profile is M"
        for tag, value in (("Tag_CPU_arch", self.arch), ("Tag_CPU_name", self.cpu)):
            if value is not None and MICROCONTROLLER.fullmatch(value):
                return f"{tag} is {value}"
        return None


def parse_attributes(data: bytes) -> BuildAttributes:
    """Read an ``.ARM.attributes`` section; damage ends the reading, and earlier values stand."""
    tags: dict[int, int | str] = {}
    try:
        stream = ByteStream(data)
        if stream.u8() != ord("A"):
            return BuildAttributes()
        while stream.left:
            length = stream.u32()
            vendor = ByteStream(stream.take(max(length - 4, 0)))
            if vendor.text() == "aeabi":
                _file_scope(vendor, tags)
    except EndOfBytes:
        pass
    cpu, arch, profile = map(tags.get, (TAG_CPU_NAME, TAG_CPU_ARCH, TAG_PROFILE))
    return BuildAttributes(
        cpu if isinstance(cpu, str) and cpu else None,
        ARCHITECTURES.get(arch, f"number {arch}") if isinstance(arch, int) else None,
        PROFILES.get(profile) if isinstance(profile, int) else None,
        bool(tags.get(TAG_MULTIPROCESSING) or tags.get(OLD_TAG_MULTIPROCESSING)),
        tags.get(TAG_DIVISION) == DIVIDES_IN_A,
    )


def _file_scope(stream: ByteStream, tags: dict[int, int | str]) -> None:
    while stream.left:
        scope = stream.uleb()
        size = stream.u32()
        body = ByteStream(stream.take(max(size - 5, 0)))
        while scope == TAG_FILE and body.left:
            tag = body.uleb()
            if tag == TAG_COMPATIBILITY:
                body.uleb()
                body.text()
            elif tag in (TAG_CPU_RAW_NAME, TAG_CPU_NAME) or (tag > 32 and tag % 2):
                tags[tag] = body.text()
            else:
                tags[tag] = body.uleb()
