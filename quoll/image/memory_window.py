"""The bytes of code around an address, as decoding goes on from there."""

from __future__ import annotations

from quoll.image.image import Image

__all__ = ["LONGEST", "Window"]

LONGEST = 4  # bytes of an instruction


class Window:
    """``code`` is a whole piece of code of an image, at ``start``: the one last decoded from."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.start, self.code = 0, b""

    def at(self, addr: int, thumb: bool) -> bytes | None:
        """The bytes at ``addr`` of at most one instruction, None if it is not code."""
        if addr % (2 if thumb else 4):
            return None
        if not self.start <= addr < self.start + len(self.code):
            self.start, self.code = self._image.code_around(addr) or (0, b"")
        return self.code[addr - self.start : addr - self.start + LONGEST] or None

    def is_code(self, addr: int, thumb: bool) -> bool:
        """Whether an instruction may start at ``addr``."""
        inside = 0 <= addr - self.start < len(self.code) or self._image.is_executable(addr)
        return inside and addr % (2 if thumb else 4) == 0
