"""The misses of data that were counted along executions; without the analyses that count them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quoll.intervals.strided_interval import ValueSet

__all__ = ["DataMisses", "Place"]

Place = tuple[int, int]  # node, position of the instruction in its block


@dataclass(frozen=True, slots=True)
class DataMisses:
    """The most that any whole path of an entry misses, by node and position in its block.

    ``lines``: that its loads fill; ``words``: that its stores write past L1. Both are numbers for
    accesses to cached memory by way of L1; ``elsewhere``: instructions with other accesses. An
    instruction that is in none of them never misses. ``addresses``: of the first byte of accesses
    on whole paths, where executions reach fewer lines than value analysis knows.
    """

    lines: Mapping[Place, int]
    words: Mapping[Place, int]
    elsewhere: frozenset[Place] = frozenset()
    addresses: Mapping[Place, ValueSet] = field(default_factory=dict)
