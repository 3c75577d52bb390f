"""Little-endian fields read in sequence from untrusted bytes."""

from __future__ import annotations

from quoll.printable import printable

__all__ = ["ByteStream", "EndOfBytes"]

LONGEST_LEB = 10  # bytes of a 64-bit LEB128


class EndOfBytes(Exception):
    """A field reaches beyond the available bytes."""


class ByteStream:
    """A position in ``data``; every read checks its length before it takes memory."""

    __slots__ = ("data", "pos")

    def __init__(self, data: bytes, pos: int = 0) -> None:
        self.data = data
        self.pos = pos

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return max(len(self.data) - self.pos, 0)

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        if count > self.left:
            raise EndOfBytes(f"{count} bytes wanted at 0x{self.pos:x}, {self.left} left")
        self.pos += count
        return self.data[self.pos - count : self.pos]

    def skip_to(self, pos: int) -> None:
        """Move forward to ``pos``."""
        if not self.pos <= pos <= len(self.data):
            raise EndOfBytes(f"0x{pos:x} is not between 0x{self.pos:x} and 0x{len(self.data):x}")
        self.pos = pos

    def unsigned(self, size: int) -> int:
        """An unsigned integer of ``size`` bytes."""
        return int.from_bytes(self.take(size), "little")

    def u8(self) -> int:
        """One byte."""
        if self.pos >= len(self.data):
            raise EndOfBytes(f"1 byte wanted at 0x{self.pos:x}, none left")
        self.pos += 1
        return self.data[self.pos - 1]

    def i8(self) -> int:
        """One signed byte."""
        return int.from_bytes(self.take(1), "little", signed=True)

    def u16(self) -> int:
        """Two bytes."""
        return self.unsigned(2)

    def u32(self) -> int:
        """Four bytes."""
        return self.unsigned(4)

    def u64(self) -> int:
        """Eight bytes."""
        return self.unsigned(8)

    def uleb(self) -> int:
        """An unsigned LEB128 of at most 64 bits (DWARF 5, 7.6)."""
        value = shift = 0
        for _ in range(LONGEST_LEB):
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
        raise EndOfBytes(f"LEB128 longer than {LONGEST_LEB} bytes before 0x{self.pos:x}")

    def sleb(self) -> int:
        """A signed LEB128 of at most 64 bits."""
        start = self.pos
        value = self.uleb()
        bits = 7 * (self.pos - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        """A string up to a zero byte, as UTF-8 where valid, made ``printable``."""
        end = self.data.find(b"\0", self.pos)
        if end < 0:
            raise EndOfBytes(f"unended string at 0x{self.pos:x}")
        return printable(self.take(end + 1 - self.pos)[:-1].decode("utf-8", "replace"))
