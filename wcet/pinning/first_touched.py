"""The paper's rule: pin the lines that the worst paths touch first, of each set the first ones.

Source: Blackham, Shi, Heiser (EuroSys 2012), section 4: the first lines of execution traces are
pinned; here the worst paths take the place of the traces.
"""

from __future__ import annotations

from collections.abc import Sequence

from wcet.pinning.bounds import EntryWithPins, PinnedBounds
from wcet.pinning.choice import Choice
from wcet.pinning.pins import NO_PINS, fitting

__all__ = ["first_touched"]


def first_touched(bounds: PinnedBounds, unpinned: Sequence[EntryWithPins] = ()) -> Choice:
    """The lines by that rule, and the bounds with them. Raises UnboundedLoop.

    ``unpinned``: the bounds without pins, if they are known.
    """
    entries = bounds.solved(NO_PINS, NO_PINS, unpinned)
    lines = [line for entry in entries for line in entry.order]
    pins = fitting(bounds.run.platform.hierarchy, lines, bounds.ways)
    return Choice(pins, bounds.solved(pins), complete=True)
