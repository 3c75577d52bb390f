"""Concrete translation look-aside buffers: the twin of ``tlb``.

A micro-TLB for each side, instructions and data, and one main TLB with locked entries. Initial
contents and victims are drawn at random.
"""

from __future__ import annotations

from enum import IntEnum
from random import Random

from pipeline.tlb_model import TlbModel

__all__ = ["Tlb", "TlbSide", "Translation"]

SMALL, MAIN = 10, 64  # entries


class TlbSide(IntEnum):
    """The micro-TLB of an access."""

    CODE = 0
    DATA = 1


class Translation(IntEnum):
    """Where a translation was found."""

    SMALL = 0
    MAIN = 1
    TABLES = 2


class Tlb:
    """The micro-TLBs and the main TLB; ``pages`` may be present at the start."""

    def __init__(self, model: TlbModel, pages: list[int], random: Random) -> None:
        self.model, self.random = model, random
        self._small: list[list[int | None]] = [[None] * SMALL for _ in TlbSide]
        self._main: list[int | None] = [None] * MAIN
        for buffer in (*self._small, self._main):
            for entry in range(len(buffer)):
                if pages and random.random() < 0.5:
                    buffer[entry] = random.choice(pages)

    def translate(self, side: TlbSide, addr: int) -> Translation:
        """Translate ``addr``; afterwards its page is in the micro-TLB of ``side``."""
        page = self.model.page(addr)
        small = self._small[side]
        if page in small:
            return Translation.SMALL
        small[self.random.randrange(SMALL)] = page
        if self.model.is_locked(page) or page in self._main:
            return Translation.MAIN
        self._main[self.random.randrange(MAIN)] = page
        return Translation.TABLES

    def forget(self) -> None:
        """Drop every translation that is not locked, because translations changed."""
        self._small = [[None] * SMALL for _ in TlbSide]
        self._main = [None] * MAIN
