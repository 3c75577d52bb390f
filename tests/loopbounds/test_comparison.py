"""The counts of a comparison of two versions' bounds."""

from __future__ import annotations

from campaigns.loop_comparison import Bounds, compared


def test_each_difference_is_counted_once() -> None:
    """A bound that is gone is no smaller one; a loop of one version alone is none of them."""
    before: Bounds = {
        ("same",): 3,
        ("more",): 3,
        ("less",): 3,
        ("lost",): 3,
        ("new",): None,
        ("old",): 9,
    }
    now: Bounds = {
        ("same",): 3,
        ("more",): 4,
        ("less",): 2,
        ("lost",): None,
        ("new",): 3,
        ("none",): 9,
    }
    found = compared(before, now)
    assert found["loops"] == 5
    assert (found["bounded before"], found["bounded now"]) == (4, 4)
    assert all(found[what] == 1 for what in ("larger", "lost", "smaller", "gained"))
