# SPDX-License-Identifier: BSD-2-Clause
"""Random operations on the host build of `bilby`, against its specification."""

from __future__ import annotations

import pytest

from kernels.bilby.fuzz.host import CheckFailure, program, running
from kernels.bilby.fuzz.run import Run, symbols
from kernels.bilby.spec import invocations
from kernels.bilby.spec.invocation import Invocation
from kernels.bilby.spec.layout import API
from kernels.bilby.spec.refinement import Mismatch

OPERATIONS = 10_000
SEED = 3
PRESETS = ["after", "before", "latency"]


@pytest.mark.parametrize("preset", PRESETS)
def test_random_operations_refine_the_specification(preset: str) -> None:
    path = program(preset)
    with running(path) as host:
        statistics = Run(host, symbols(path), SEED, preset).run(OPERATIONS, force_every=4)
    assert statistics.operations == OPERATIONS
    assert statistics.success >= 0.3
    assert len(statistics.errors) >= 10
    assert len(statistics.by_name) >= 30, statistics.by_name


def test_the_same_seed_gives_the_same_operations() -> None:
    path = program()
    histories = []
    for _ in range(2):
        with running(path) as host:
            run = Run(host, symbols(path), 7)
            run.run(200)
            histories.append(list(run.history))
    assert histories[0] == histories[1]


def without_effect(call: Invocation) -> None:
    """What a specification would say that forgot something."""


@pytest.mark.parametrize(
    "operation",
    [
        ("untyped", "LABEL_UNTYPED_RETYPE"),
        ("cnode", "LABEL_CNODE_MINT"),
        ("tcb", "LABEL_TCB_RESUME"),
        ("tcb", "LABEL_TCB_SET_PRIORITY"),
        ("frame", "LABEL_FRAME_MAP"),
        ("irq_handler", "LABEL_IRQ_SET_NOTIFICATION"),
    ],
    ids=lambda operation: operation[1],
)
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, operation: tuple[str, str]) -> None:
    key = (operation[0], API[operation[1]])
    monkeypatch.setitem(invocations.OPERATIONS, key, without_effect)
    path = program()
    with running(path) as host, pytest.raises((Mismatch, CheckFailure)):
        Run(host, symbols(path), SEED).run(3000)
