# SPDX-License-Identifier: BSD-2-Clause
"""Who holds a scheduling context: the states and transitions that the kernel's guide has."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from kernels.bilby.verification.fuzz.directed import (
    budgets,
    donations,
    sequences,
    timeouts,
    without_context,
)
from kernels.bilby.verification.spec.refinement import Refinement
from kernels.bilby.verification.spec.state import Context, Kernel
from tests.testing.bilby.build import BILBY
from tests.testing.bilby.scripts import scripts

GUIDE = BILBY / "docs" / "guide.md"
TIMING = BILBY / "include" / "time_contexts" / "timing.h"
ROW = re.compile(r"^\| `(free|at_home|donated|queued)` \| `(\w+)` \|", re.M)
PRESET = "mcs"


def in_the_guide() -> set[tuple[str, str]]:
    return {(row[1], row[2]) for row in ROW.finditer(GUIDE.read_text(encoding="utf-8"))}


def holder(kernel: Kernel, context: Context) -> str:
    if kernel.time is not None and context in kernel.time.waiting:
        return "queued"
    if context.thread is None:
        return "free"
    return "at_home" if context.thread is context.home else "donated"


class Watch:
    """Transitions between the states before and after operations that the host build agrees to."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()
        self._kernel: Kernel | None = None
        self._holders: dict[int, str] = {}

    def look(self, kernel: Kernel) -> None:
        contexts = [item for item in kernel.objects.values() if isinstance(item, Context)]
        holders = {context.address: holder(kernel, context) for context in contexts}
        if self._kernel is kernel:
            before = [self._holders.get(address, "free") for address in holders]
            self.seen |= set(zip(before, holders.values(), strict=True))
        self._kernel, self._holders = kernel, holders


def test_states_are_names_of_the_code() -> None:
    named = set(re.findall(r"\bcontext_is_(\w+)\(const", TIMING.read_text(encoding="utf-8")))
    assert set(chain.from_iterable(in_the_guide())) <= named


def test_contexts_change_hands_as_the_guide_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transition is seen, and no other."""
    watch = Watch()
    check = Refinement.check

    def checked(self: Refinement, changes: dict[int, int], current: int, idle: int) -> None:
        check(self, changes, current, idle)
        watch.look(self.kernel)

    monkeypatch.setattr(Refinement, "check", checked)
    with scripts() as script_of:
        for module in (budgets, donations, timeouts, without_context):
            for sequence in sequences(module):
                sequence(script_of(PRESET))
    assert {(before, after) for before, after in watch.seen if before != after} == in_the_guide()
