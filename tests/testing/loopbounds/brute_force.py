"""The oracle of proofs: a model in words of a few bits, and all of its executions.

A slice of 32-bit code is *narrowed*: every word of w bits becomes one of w / by, constants are cut
off. That is another loop than the one it came from, of the same shape, and small enough that every
initial state and every input can be tried.
"""

from __future__ import annotations

from itertools import product

from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, const, sym
from loopbounds.transition.model import LoopModel, StateVariable
from loopbounds.transition.stepper import ModelStepper

__all__ = ["NotNarrow", "free_bits", "most_executions", "narrowed"]

_State = tuple[int, ...]


class NotNarrow(Exception):
    """A width that cannot be divided."""


def free_bits(model: LoopModel) -> int:
    """Of the initial state and of the inputs of one step, as long as no constraint is looked at."""
    return sum(s.width for s in (*model.parameters, *model.inputs))


def narrowed(model: LoopModel, by: int) -> LoopModel:
    """The model with words ``by`` times narrower; flags stay. Raises NotNarrow."""
    return LoopModel(
        tuple(_narrow(p, by) for p in model.parameters),
        tuple(
            StateVariable(_narrow(v.symbol, by), _narrow(v.initial, by), _narrow(v.next, by))
            for v in model.state
        ),
        tuple(_narrow(i, by) for i in model.inputs),
        tuple(_narrow(c, by) for c in model.constraints),
        _narrow(model.again, by),
        tuple(_narrow(h, by) for h in model.hints),
        tuple(_narrow(e, by) for e in model.exits),
    )


def _narrow(term: Term, by: int) -> Term:
    done: dict[Term, Term] = {}
    for t in rewrite.walk([term]):
        done[t] = _one(t, [done[a] for a in t.args], by)
    return done[term]


def _width(width: int, by: int) -> int:
    if width == 1:
        return 1
    if width % by:
        raise NotNarrow
    return width // by


def _one(t: Term, args: list[Term], by: int) -> Term:
    width = _width(t.width, by)
    if t.op == "const":
        return const(t.value, width)
    if t.op == "sym":
        return sym(f"{t.name}_by{by}", width)
    if t.op == "linear":
        return terms.combine(width, t.value, t.factors, args)
    if t.op in ("zext", "sext"):
        return (terms.zext if t.op == "zext" else terms.sext)(args[0], width)
    if t.op == "extract":
        top = t.args[0].width - 1
        low = args[0].width - 1 if t.value == top else t.value // by
        return terms.extract(args[0], low, width)
    if t.op == "concat" and args[0].width + args[1].width != width:
        raise NotNarrow
    return rewrite.rebuild(t, args)


def most_executions(model: LoopModel) -> int | None:
    """Of the header, over all initial states and inputs; 0: no initial state; None: no limit."""
    stepper = ModelStepper(model)
    inputs = list(product(*(range(1 << s.width) for s in model.inputs)))
    best = 0
    for parameters in product(*(range(1 << p.width) for p in model.parameters)):
        state = stepper.start(parameters)
        if state is None:
            continue
        count = _longest(stepper, parameters, state, inputs)
        if count is None:
            return None
        best = max(best, count)
    return best


def _longest(
    stepper: ModelStepper, parameters: _State, start: _State, inputs: list[_State]
) -> int | None:
    """From one initial state, depth first; None: a state can come back."""

    def following(state: _State) -> set[_State]:
        steps = (stepper.step(parameters, state, i) for i in inputs)
        return {s for s in steps if s is not None}

    longest: dict[_State, int] = {}
    path: dict[_State, tuple[set[_State], list[_State]]] = {}  # all successors, and unvisited ones

    def enter(state: _State) -> None:
        after = following(state)
        path[state] = after, list(after)

    enter(start)
    while path:
        state, (after, left) = next(reversed(path.items()))
        if not left:
            longest[state] = 1 + max((longest[s] for s in after), default=0)
            del path[state]
        elif (chosen := left.pop()) in path:
            return None
        elif chosen not in longest:
            enter(chosen)
    return longest[start]
