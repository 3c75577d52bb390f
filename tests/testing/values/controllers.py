"""Interrupt controllers as machines: the concrete twins of predicates.

Each has lines that are enabled or not, and pending or not, and the registers of its manual at their
offsets, as docs/preemption.md and the files in ``wcet/platforms/controllers`` describe them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

__all__ = ["ACKNOWLEDGING", "CONTROLLERS", "Controller", "Registers"]

ALL_BITS = 0xFFFF_FFFF
Registers = dict[int, Callable[[], int]]  # offset -> what a load gives, with its effect
Stores = dict[int, Callable[[int], None]]  # offset -> the effect of a stored word


@dataclass
class Controller(ABC):
    """Lines, and nothing else: ``disabled`` ones may be pending, too."""

    lines: range  # that software may use
    pending: set[int] = field(default_factory=set)
    disabled: set[int] = field(default_factory=set)

    @property
    def shown(self) -> list[int]:
        """Pending and enabled lines, ascending."""
        return sorted(self.pending - self.disabled)

    def arrive(self, line: int) -> None:
        """The line becomes pending."""
        self.pending.add(line)

    def store(self, offset: int, word: int) -> None:
        """What a store to the word at ``offset`` does."""
        self.stores()[offset](word)

    def stores(self) -> Stores:
        """All registers to which programs store."""
        return {}

    def load(self, offset: int) -> int:
        """What a load of the word at ``offset`` gives."""
        return self.registers()[offset]()

    @abstractmethod
    def registers(self) -> Registers:
        """All registers that tests load."""

    def raw(self, number: int) -> int:
        """Pending lines, 32 * ``number`` and the next 31."""
        return word(self.pending, number)

    def enabled(self, number: int) -> int:
        """Enabled lines."""
        return word(set(self.lines) - self.disabled, number)

    def masked(self, number: int) -> int:
        """Lines that are not enabled."""
        return word(self.disabled, number)

    def both(self, number: int) -> int:
        """Lines that are pending and enabled."""
        return word(self.shown, number)


def word(lines: Collection[int], number: int) -> int:
    """Lines 32 * ``number`` on as bits."""
    return sum(1 << line % 32 for line in lines if line // 32 == number)


class Avic(Controller):
    """AVIC: of equal priorities the highest number goes first."""

    def registers(self) -> Registers:
        """NIVECSR, INTENABLEH and L, INTSRCH and L, NIPNDH and L."""
        return {
            0x40: self.vector,
            0x10: partial(self.enabled, 1),
            0x14: partial(self.enabled, 0),
            0x48: partial(self.raw, 1),
            0x4C: partial(self.raw, 0),
            0x58: partial(self.both, 1),
            0x5C: partial(self.both, 0),
        }

    def stores(self) -> Stores:
        """INTENNUM, INTDISNUM: the number of a line."""
        return {0x08: self.disabled.discard, 0x0C: self.disabled.add}

    def vector(self) -> int:
        """Number and priority level."""
        return max(self.shown) << 16 | max(self.shown) % 16 if self.shown else ALL_BITS


class AcknowledgingAvic(Avic):
    """AVIC as QEMU has it: after a load of NIVECSR the line is no longer pending."""

    def vector(self) -> int:
        """Number and priority level, once."""
        found = super().vector()
        self.pending -= set(self.shown[-1:])
        return found


class Gic(Controller):
    """GIC: lines below 16 are software generated, with the number of a CPU."""

    def registers(self) -> Registers:
        """GICC_HPPIR."""
        return {0x18: self.highest}

    def highest(self) -> int:
        """The lowest number, as of equal priorities."""
        if not self.shown:
            return 1023
        first = min(self.shown)
        return first | (first % 8 << 10 if first < 16 else 0)


@dataclass
class Omap(Controller):
    """INTC: the sorted number stays until a new agreement, which no test writes."""

    number: int | None = None

    def registers(self) -> Registers:
        """SIR_IRQ, and ITR, MIR, PENDING_IRQ of each 32 lines."""
        found: Registers = {0x40: self.sorted}
        for n in range(self.lines.stop // 32):
            found |= {
                0x80 + 0x20 * n: partial(self.raw, n),
                0x84 + 0x20 * n: partial(self.masked, n),
                0x98 + 0x20 * n: partial(self.both, n),
            }
        return found

    def sorted(self) -> int:
        """The lowest number, or any number with the flag of a spurious one."""
        if self.number is None and self.shown:
            self.number = min(self.shown)
        return 0xFFFF_FF80 | 5 if self.number is None else self.number


class A10(Controller):
    """Allwinner A10: a line of an even number is disabled by ENABLE, an odd one by MASK."""

    def registers(self) -> Registers:
        """VECTOR, and PENDING, ENABLE, MASK of each 32 lines."""
        found: Registers = {0x00: lambda: 4 * max(self.shown, default=0)}
        for n in range(3):
            found |= {
                0x10 + 4 * n: partial(self.raw, n),
                0x40 + 4 * n: partial(self.unless_disabled, n),
                0x50 + 4 * n: partial(self.odd, n),
            }
        return found

    def unless_disabled(self, number: int) -> int:
        """ENABLE."""
        return self.enabled(number) | self.odd(number)

    def odd(self, number: int) -> int:
        """MASK."""
        return self.masked(number) & 0xAAAA_AAAA


class Pl190(Controller):
    """PL190: IRQSTATUS."""

    def registers(self) -> Registers:
        """IRQSTATUS."""
        return {0x00: partial(self.both, 0)}


class Bcm2835(Controller):
    """BCM2835: GPU lines 0 to 63, of which some show in basic pending; ARM lines from 64 on."""

    SHORTCUTS = (7, 9, 10, 18, 19, 53, 54, 55, 56, 57, 62)

    def registers(self) -> Registers:
        """Basic pending, pending 1, pending 2."""
        return {
            0x200: self.basic,
            0x204: partial(self.both, 0),
            0x208: partial(self.both, 1),
        }

    def basic(self) -> int:
        """ARM lines, whether others are in pending 1 and 2, and lines with bits of their own."""
        own = [line for line in self.shown if line in self.SHORTCUTS]
        bits = self.both(2) & 0xFF
        for number in (0, 1):
            bits |= any(x // 32 == number and x not in own for x in self.shown) << 8 + number
        return bits | sum(1 << 10 + self.SHORTCUTS.index(line) for line in own)


CONTROLLERS: dict[str, Callable[[], Controller]] = {
    "avic": lambda: Avic(range(64)),
    "gic": lambda: Gic(range(1020)),
    "omap3": lambda: Omap(range(96)),
    "am335x": lambda: Omap(range(128)),
    "a10": lambda: A10(range(1, 96)),
    "pl190": lambda: Pl190(range(32)),
    "bcm2835": lambda: Bcm2835(range(72)),
}
ACKNOWLEDGING: dict[str, Callable[[], Controller]] = {
    "avic": lambda: AcknowledgingAvic(range(64)),
}  # by the controller's name: twins on which loads have effects
