# SPDX-License-Identifier: BSD-2-Clause
"""The output of the user-level tests: TAP, read strictly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class Tap:
    plan: int | None = None
    lines: list[tuple[bool, int, str]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


def read_tap(text: str) -> Tap:
    tap = Tap()
    for line in text.replace("\r", "").splitlines():
        if match := re.fullmatch(r"1\.\.(\d+)", line):
            assert tap.plan is None, "two plans"
            tap.plan = int(match[1])
        elif match := re.fullmatch(r"(ok|not ok) (\d+) - (.+)", line):
            tap.lines.append((match[1] == "ok", int(match[2]), match[3]))
        elif line != "TAP version 13":
            tap.other.append(line)
    return tap


def check_tap(text: str) -> Tap:
    """Fail unless every planned test ran, in order, and held."""
    tap = read_tap(text)
    assert tap.plan is not None, f"no plan in:\n{text}"
    assert [number for _, number, _ in tap.lines] == list(range(1, tap.plan + 1))
    assert not tap.other, tap.other
    assert all(good for good, _, _ in tap.lines), text
    return tap


# Promises of the kernel's first version, as words that some test's sentence contains.
PROMISES = [
    "send crosses address spaces",
    "non-blocking send",
    "receiver blocks",
    "reply-and-receive",
    "reply alone",
    "yield",
    "120 words",
    "capability arrives",
    "receive slot",
    "timer interrupts wake",
    "unmapped page reaches its handler",
    "cannot be executed reaches its handler",
    "undefined instruction reaches its handler",
    "32 levels deep",
    "random invocations",
]
