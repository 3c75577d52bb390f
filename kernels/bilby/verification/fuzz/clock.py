# SPDX-License-Identifier: BSD-2-Clause
"""The time of the next random operation, and whether the alarm interrupts."""

from __future__ import annotations

import random

from kernels.bilby.verification.spec.budgets import Time

TURN = 1 << 32  # ticks, until the clock's counter begins again
LATE = 0.03  # of the operations happen after the alarm, and before its interrupt


class Clock:
    """Draws times, in ticks since boot."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def later(self, time: Time, *, idle: bool) -> int:
        """Mostly a little; sometimes about when the alarm comes, or much later."""
        now, draw = time.now, self._rng.random()
        if idle or draw < 0.08:
            return max(now, time.alarm_at + self._rng.choice([-1, 0, 0, 0, 1, 50]))
        if draw < 0.75:
            return now + self._rng.randrange(4)
        if draw < 0.92:
            return now + self._rng.randrange(60)
        if draw < 0.97:
            return now + self._rng.randrange(300)
        if draw < 0.99:
            return now + self._rng.randrange(3000)
        return now + self._rng.choice([100_000, 1 << 28, 1 << 30])

    def start(self) -> list[int]:
        """Times of alarms after which the clock's counter is about to begin again."""
        return [TURN // 2 - 1, TURN - self._rng.randrange(1, 4000)]

    def delay(self) -> int:
        """Of an interrupt."""
        return self._rng.choice([0, 0, 0, 0, 1, 3, 40, 200])

    def is_late(self) -> bool:
        return self._rng.random() < LATE
