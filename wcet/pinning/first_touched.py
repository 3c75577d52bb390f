"""The paper's rule: pin the lines that the worst paths touch first, of each set the first ones.

Source: Blackham, Shi, Heiser (EuroSys 2012), section 4: the first lines of execution traces are
pinned; here the worst paths take the place of the traces.
"""

from __future__ import annotations

from wcet.pinning.bounds import PinnedBounds
from wcet.pinning.choice import Choice
from wcet.pinning.pins import NO_PINS, fitting

__all__ = ["first_touched"]


def first_touched(bounds: PinnedBounds) -> Choice:
    """The lines by that rule, and the bounds with them. Raises UnboundedLoop."""
    lines = [line for entry in bounds.solved(NO_PINS) for line in entry.order]
    pins = fitting(bounds.run.platform.hierarchy, lines, bounds.ways)
    return Choice(pins, bounds.solved(pins), complete=True)
