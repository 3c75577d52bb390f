"""Loops with a single run that has few phases: counters that are raised on their way, or wrap."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopbounds.proof.abstractions import prove
from loopbounds.strategies.linear_phases import in_phases, phases_of
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, const, sym
from loopbounds.terms.evaluate import evaluate
from loopbounds.terms.rewrite import substitute
from loopbounds.transition.model import COUNT, LoopModel, StateVariable
from loopbounds.transition.stepper import ModelStepper
from tests.testing.harness.cases import cases, in_turn
from tests.testing.loopbounds.brute_force import most_executions
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.counting import load
from tests.testing.loopbounds.drawn_models import J, P, Q, models
from tests.testing.loopbounds.models import BUDGET
from tests.testing.quoll.building import build
from tests.testing.quoll.sketch import HEADER

STEPS = 300  # more than two words of four bits have states


@st.composite
def single(draw: st.DrawFn) -> LoopModel:
    """A random model in which parameters and inputs are constants."""
    model = draw(models())
    known: dict[Term, Term] = {s: const(draw(st.integers(0, 15)), 4) for s in (P, Q, J)}
    state = tuple(
        StateVariable(v.symbol, substitute(v.initial, known), substitute(v.next, known))
        for v in model.state
    )
    constraints = tuple(substitute(c, known) for c in model.constraints)
    return LoopModel((), state, (), constraints, substitute(model.again, known))


@pytest.mark.slow("many random loop models")
@given(single())
@settings(max_examples=cases(60))
def test_every_state_is_in_a_phase(model: LoopModel) -> None:
    """The last phase ends with the run; of a run that never ends, or is none, there are none."""
    phases = phases_of(model, STEPS)
    stepper = ModelStepper(model)
    state = stepper.start(())
    if state is None or most_executions(model) is None:
        assert phases == ()
        return
    assert phases[-1].last == most_executions(model)
    claim, executions = in_phases(model, phases), 0
    symbols = [v.symbol for v in model.state]
    while state is not None:
        executions += 1
        found = {COUNT: executions, **dict(zip(symbols, state, strict=True))}
        assert evaluate(claim, found)
        assert not evaluate(claim, {**found, COUNT: executions + STEPS})
        state = stepper.step((), state, ())


def test_a_model_that_may_have_several_runs_has_no_phases() -> None:
    x, start = sym("x", 32), sym("p", 32)
    down = terms.add(x, const(-1, 32))
    again = terms.negate(terms.eq(down, const(0, 32)))
    model = LoopModel((start,), (StateVariable(x, start, down),), (), (), again)
    assert phases_of(model, STEPS) == ()
    assert (
        len(phases_of(LoopModel((), (StateVariable(x, const(9, 32), down),), (), (), again), 99))
        == 1
    )


@pytest.mark.slow("NuSMV proves each bound")
def test_the_length_of_a_long_run_is_proved() -> None:
    """A counter that is raised by 1,000 in each of the first 60 executions."""
    x, turn = sym("x", 32), sym("y", 32)
    raised = terms.ite(terms.ult(turn, const(60, 32)), terms.add(x, const(1000, 32)), x)
    left = terms.add(raised, const(-1, 32))
    state = (
        StateVariable(x, const(10, 32), left),
        StateVariable(turn, const(0, 32), terms.add(turn, const(1, 32))),
    )
    again = terms.negate(terms.eq(left, const(0, 32)))
    outcome = prove(LoopModel((), state, (), (), again), BUDGET, find_checker())
    assert (outcome.bound, outcome.relations) == (60_010, 1)


CALLER = """main: push {{r4, lr}}
 sub sp, sp, #16
 mov r0, #10
 str r0, [sp, #4]
 mov r4, #0
1: add r0, sp, #4
 bl h
 add r4, r4, #1
 {again}
 ldr r0, [sp, #4]
 subs r0, r0, #1
 str r0, [sp, #4]
 bne 1b
 add sp, sp, #16
 pop {{r4, pc}}
"""
RAISE = " ldr r1, [r0]\n add r1, r1, #20\n str r1, [r0]\n"
CALLEES = {
    "conditional instructions": (
        "h: cmp r4, #5\n ldrlt r1, [r0]\n addlt r1, r1, #20\n strlt r1, [r0]\n bx lr",
        "",
        110,
    ),
    "other conditions": (
        "h: cmp r4, #7\n ldreq r1, [r0]\n addeq r1, r1, #300\n streq r1, [r0]\n bx lr",
        "",
        310,
    ),
    "a branch": (f"h: cmp r4, #5\n bge 2f\n{RAISE}2: bx lr", "", 110),
    "two levels": (
        f"h: push {{r4, lr}}\n cmp r4, #5\n bllt g\n pop {{r4, pc}}\ng:{RAISE} bx lr",
        "",
        110,
    ),
    "two sites": (
        "h: cmp r4, #5\n ldrlt r1, [r0]\n addlt r1, r1, #20\n strlt r1, [r0]\n bx lr",
        "add r0, sp, #4\n bl h",
        190,
    ),
}


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", CALLEES)
def test_a_callee_raises_a_counter_of_its_caller(name: str) -> None:
    """Through a pointer to a word of the caller's frame, a few times."""
    callee, again, executions = CALLEES[name]
    code = load(build(HEADER + CALLER.format(again=again) + callee + "\n", language="S"))
    [bound] = code.bounds()
    assert (bound.bound, bound.exact) == (executions, True)
    assert code.counts(())[code.header(bound)] == executions


BUDGETS = """volatile unsigned sink;
struct budget { int left, extra; };
__attribute__((noinline)) void raise(struct budget *b) {
    if (b->extra) { b->extra--; b->left += 3; }
}
int main(unsigned n) {
    struct budget b = { 20, START };
    while (b.left > 0) { raise(&b); b.left--; sink = b.left; }
    return 0;
}
"""


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("start", "built"),
    in_turn(["7", "n & 7"], [("-O0", False), ("-O2", True), ("-O0", True), ("-O2", False)]),
)
def test_a_callee_raises_a_field(start: str, built: tuple[str, bool]) -> None:
    """From a known start, and from one of a few."""
    optimise, thumb = built
    source = BUDGETS.replace("START", start)
    code = load(build(source, optimise=optimise, thumb=thumb, cpu="cortex-a8"))
    [bound] = code.bounds()
    assert bound.bound == 41 + (optimise == "-O0")
    assert code.counts((7,))[code.header(bound)] == bound.bound
