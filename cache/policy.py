"""Each replacement policy with the rules that an analysis may use.

Every policy evicts a line only to make room in its own set. So the line used last is there until
its set is used again, whatever the policy (``AgingRule`` of capacity 1: the "one-way" model), and
this rule is always among those applied: no policy is analysed less precisely than "one-way".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["AgingRule", "ReplacementPolicy", "credited_rules", "strict_rules"]


class ReplacementPolicy(Enum):
    """How a cache chooses the line that makes room. An invalid way is always filled first."""

    ONE_WAY = "one-way"  # whatever it is: only the line used last is counted on
    ROUND_ROBIN = "round-robin"  # one counter for all sets, as in the ARM1136
    RANDOM = "random"
    LRU = "lru"  # the line of the set that was used (loaded, fetched or stored to) longest ago
    FIFO = "fifo"  # the line of the set that was filled longest ago

    def persistent(self, ways: int) -> int:
        """Lines of one set that stay once they are in, while no other line of it is used (rule 7).

        With FIFO the first line to miss twice was evicted by ``ways`` misses since its first, of
        at most ``ways`` - 1 other lines, so that another line missed twice before it. The one
        counter for all sets and random choice give no such argument for more than one line.
        """
        return ways if self in (ReplacementPolicy.LRU, ReplacementPolicy.FIFO) else 1


@dataclass(frozen=True, slots=True)
class AgingRule:
    """A line counts as resident while its age is less than ``capacity``.

    The age counts other lines of the set used since it was used; or, if ``fills``, lines filled
    into the set since it was filled itself. ``stores``: stores that hit count as uses.
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

    Of a line that hits, FIFO may make room next; of a line that misses, after ``ways`` fills. So
    from an access that was charged on, either the charge is left or the line is there.
    """
    if policy is ReplacementPolicy.FIFO and ways > 1:
        return (LAST, AgingRule(ways, fills=True))
    return strict_rules(policy, ways)
