"""What the cache stage says of each memory reference: the value the cost model consumes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Classification", "Hit", "Kind", "Reference"]


class Kind(Enum):
    """What a reference is to the memory system."""

    FETCH = "fetch"
    LOAD = "load"
    STORE = "store"


class Hit(Enum):
    """Classification at one level: always hit, always miss, not classified."""

    AH = "always hit"
    AM = "always miss"
    NC = "not classified"


@dataclass(frozen=True, slots=True)
class Reference:
    """One line (FETCH) or one data access, in one node.

    FETCH references are one per cache line entered; LOAD and STORE one per cache line that the
    access may touch (an ldm of unknown alignment may touch one more than its size suggests).
    """

    insn: int  # index into the node's block
    kind: Kind
    low: int | None  # lowest and highest address the first byte may have; None: unknown
    high: int | None
    words: int  # 32-bit words transferred to or from this line (stores are charged per word)
    cacheable: bool
    l1: Hit
    l2: Hit | None  # None: no L2


@dataclass(frozen=True, slots=True)
class Classification:
    """References per node of the supergraph, in program order."""

    references: tuple[tuple[Reference, ...], ...]
    assumptions: tuple[str, ...] = ()
