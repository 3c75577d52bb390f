"""Each replacement policy with the rules that an analysis may use.

Every policy evicts a line only to make room in its own set. So under any policy the line used last
stays until its set is used again (``AgingRule`` of capacity 1: the "one-way" model). This rule is
always applied too, so no policy is analysed less precisely than "one-way".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["AgingRule", "ReplacementPolicy", "credited_rules", "strict_rules"]


class ReplacementPolicy(Enum):
    """The rule by which a cache chooses a victim. A miss always fills an invalid way first."""

    ONE_WAY = "one-way"  # any policy: the analysis relies only on the line used last
    ROUND_ROBIN = "round-robin"  # one counter for all sets, as in the ARM1136
    RANDOM = "random"
    LRU = "lru"  # the line of the set that was used (loaded, fetched or stored to) longest ago
    FIFO = "fifo"  # the line of the set that was filled longest ago

    def persistent(self, ways: int) -> int:
        """Lines of one set that stay once filled, while no other line of it is used (rule 7).

        Under FIFO, take the first line to miss twice: ``ways`` misses since its first one evicted
        it. They are misses of at most ``ways`` - 1 other lines, so another line missed twice before
        it: a contradiction. One counter for all sets and random choice allow no such argument
        beyond one line.
        """
        return ways if self in (ReplacementPolicy.LRU, ReplacementPolicy.FIFO) else 1


@dataclass(frozen=True, slots=True)
class AgingRule:
    """A line counts as resident while its age is less than ``capacity``.

    The age counts the other lines of the set used since the line's own use; with ``fills``, the
    lines filled into the set since the line's own fill. ``stores``: stores that hit count as uses.
    """

    capacity: int
    fills: bool = False
    stores: bool = False


LAST = AgingRule(1)


def strict_rules(policy: ReplacementPolicy, ways: int) -> tuple[AgingRule, ...]:
    """Aging rules for resident lines."""
    return (
        (LAST, AgingRule(ways, stores=True))
        if policy is ReplacementPolicy.LRU and ways > 1
        else (LAST,)
    )


def credited_rules(policy: ReplacementPolicy, ways: int) -> tuple[AgingRule, ...]:
    """Aging rules for credited lines.

    FIFO may evict a line right after a hit on it, but only after ``ways`` fills since a miss. So
    after a charged access, either its charge is unused or the line is resident.
    """
    if policy is ReplacementPolicy.FIFO and ways > 1:
        return (LAST, AgingRule(ways, fills=True))
    return strict_rules(policy, ways)
