# SPDX-License-Identifier: BSD-2-Clause
"""Sequences that random operations hardly reach; each states its aim.

They run on every preset, and first of all on every mutant.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from kernels.bilby.verification.fuzz.directed import (
    aborts,
    arguments,
    boot,
    bound,
    budgets,
    capabilities,
    checks,
    deletion,
    devices,
    donations,
    lookups,
    messages,
    order,
    preemption,
    spaces,
    stopped,
    timeouts,
    waiting,
    without_context,
)
from kernels.bilby.verification.fuzz.script import Script


def sequences(module: ModuleType) -> list[Callable[[Script], None]]:
    own = [item for name, item in vars(module).items() if callable(item) and name[0] != "_"]
    return [item for item in own if item.__module__ == module.__name__]


SEQUENCES: list[Callable[[Script], None]] = [
    sequence
    for module in (
        aborts,
        arguments,
        boot,
        bound,
        budgets,
        capabilities,
        checks,
        deletion,
        devices,
        donations,
        lookups,
        messages,
        order,
        preemption,
        spaces,
        stopped,
        timeouts,
        waiting,
        without_context,
    )
    for sequence in sequences(module)
]
