# SPDX-License-Identifier: BSD-2-Clause
"""Random operations on the host build of `bilby`, against its specification."""

from __future__ import annotations

import pytest

from kernels.bilby.verification.fuzz.host import CheckFailure, program, running
from kernels.bilby.verification.fuzz.interleave import Interleaver
from kernels.bilby.verification.fuzz.run import SEQUENCE, Run, symbols
from kernels.bilby.verification.spec import invocations
from kernels.bilby.verification.spec.copying import copy_of
from kernels.bilby.verification.spec.invocation import Invocation
from kernels.bilby.verification.spec.layout import API
from kernels.bilby.verification.spec.refinement import Mismatch
from kernels.bilby.verification.spec.state import Context, Kernel, Thread
from tests.testing.harness.cases import cases, spread

OPERATIONS = cases(1200)
INTERLEAVINGS = cases(300)  # of each preset
SEED = 3
PRESETS = ["after", "before", "mcs", "latency"]


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


@pytest.mark.slow("fuzzes the host build")
@pytest.mark.parametrize("preset", spread(PRESETS, 2))
def test_a_call_is_preempted_while_others_act(preset: str) -> None:
    """It ends as one of two orders does, unless it works in steps that others can see."""
    path = program(preset)
    with running(path) as host:
        statistics = Interleaver(path, host, SEED, preset).run(INTERLEAVINGS)
    assert statistics.interleaved == INTERLEAVINGS
    assert statistics.acts >= INTERLEAVINGS
    assert statistics.preempted >= INTERLEAVINGS // 50
    assert statistics.ends["in steps that others saw"] <= statistics.preempted // 3


def described(kernel: Kernel) -> list[object]:
    """The abstract state by addresses; equal for equal states."""
    slots = [
        (s.address, s.cap and (s.cap.kind, dict(s.cap.fields)), s.prev and s.prev.address,
         s.next and s.next.address, s.parent and s.parent.address, s.revocable)
        for s in kernel.slots.values()
    ]  # fmt: skip
    threads = [
        (t.address, list(t.regs), t.state, t.priority, t.waits_on and t.waits_on.address)
        for t in kernel.objects.values()
        if isinstance(t, Thread)
    ]
    contexts = [
        (c.address, c.thread and c.thread.address, c.left, c.used, c.due, c.consumed)
        for c in kernel.objects.values()
        if isinstance(c, Context)
    ]
    time = kernel.time and (kernel.time.now, [c.address for c in kernel.time.waiting])
    current = kernel.current and kernel.current.address
    return [slots, threads, contexts, time, current, set(kernel.masked), set(kernel.objects),
            dict(kernel.count)]  # fmt: skip


def begun(run: Run, operations: int) -> Run:
    """The first of its sequences that goes on after so many operations, there."""
    for sequence in range(10):
        run.start(sequence)
        for _ in range(operations):
            if run.is_stuck():
                break
            run.let_time_pass()
            run.step(run.generator.next(), force=False)
        if not run.is_stuck():
            return run
    raise AssertionError("all of them end before")


@pytest.mark.parametrize("preset", spread(PRESETS, 2))
def test_a_copy_of_the_abstract_state_goes_on_by_itself(preset: str) -> None:
    """Operations on one of the two do not change the other, and both start equal."""
    path = program(preset)
    with running(path) as host:
        run = begun(Run(host, symbols(path), SEED, preset), 40)
        before = described(run.kernel)
        original = run.kernel
        run.kernel = copy_of(original, original.read)
        run.refinement = run.refinement.copy_for(run.kernel)
        run.generator.kernel = run.kernel
        assert described(run.kernel) == before
        run.refinement.check_everything()
        for _ in range(60):
            if run.is_stuck():
                break
            run.let_time_pass()
            run.step(run.generator.next(), force=False)
        assert described(run.kernel) != before
        run.refinement.check_everything()
        assert described(original) == before


def without_effect(call: Invocation) -> None:
    """The effect in a specification that forgets one."""


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


@pytest.mark.parametrize("operation", invocations.TIMED, ids=lambda operation: str(operation))
def test_a_difference_of_time_is_found(
    monkeypatch: pytest.MonkeyPatch, operation: tuple[str, int]
) -> None:
    """An operation that only exists where time is a capability."""
    monkeypatch.setitem(invocations.TIMED, operation, without_effect)
    path = program("mcs")
    with running(path) as host, pytest.raises((Mismatch, CheckFailure)):
        Run(host, symbols(path), SEED, "mcs").run(5000)


SIGHTS = ("waits", "donated", "told", "idle", "wrapped", "low")


def test_time_passes_and_is_used_up() -> None:
    """Threads wait for time, donate it and are told that it is used up; the clock wraps.

    No thread that waits for its donated context is runnable meanwhile.
    """
    path, seen, wanted = program("mcs"), set[str](), set(SIGHTS)
    with running(path) as host:
        run = Run(host, symbols(path), SEED, "mcs")
        run.start(0)
        for sequence in range(1, 60):
            if seen == wanted:
                break
            for _ in range(SEQUENCE):
                if run.is_stuck():
                    break
                run.let_time_pass()
                run.step(run.generator.next(), force=False)
                seen |= sights(run.kernel)
            run.start(sequence)
    assert seen == wanted


def sights(kernel: Kernel) -> set[str]:
    time = kernel.time
    assert time is not None
    threads = [item for item in kernel.objects.values() if isinstance(item, Thread)]
    found = {
        "waits": bool(time.waiting),
        "donated": any(thread.donated for thread in threads),
        "runnable without a context": any(
            t.is_running and t.home and not t.context for t in threads
        ),
        "told": any(thread.fault == API["FAULT_TIMEOUT"] for thread in threads),
        "idle": kernel.current is None,
        "wrapped": time.now >> 32 > 0,
        "low": any(t.is_running and t.criticality < time.level for t in threads),
    }
    return {name for name, is_seen in found.items() if is_seen}


def test_a_difference_is_found_in_an_interleaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """A specification in which the urgent thread's copies are not made explains neither order."""
    path = program("after", "plain")
    perform = invocations.OPERATIONS["cnode", API["LABEL_CNODE_COPY"]]

    def by_others(call: Invocation) -> None:
        if call.caller.priority < 255:
            perform(call)

    with running(path) as host:
        interleaver = Interleaver(path, host, SEED, "after")
        monkeypatch.setitem(invocations.OPERATIONS, ("cnode", API["LABEL_CNODE_COPY"]), by_others)
        with pytest.raises(Mismatch):
            interleaver.run(3000)
