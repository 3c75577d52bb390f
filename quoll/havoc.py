"""What a call leaves when its callee is not looked at (rule 2).

Registers that the procedure call standard lets it change, the flags and its callers' memory are
unknown afterwards. Under S1 (rule 1) its stores spare live stack frames, unless it was handed an
address in a stack: then they may be meant for a frame.
"""

from __future__ import annotations

from quoll.arm.insn import SP
from quoll.machine import Environment
from quoll.memory import S1, live_frames
from quoll.state import FLAG, MODE, State
from quoll.terms import MASK, TAINT, TAINTED, Anchored, Fact, describe, is_stack

__all__ = ["after_call"]

CHANGED = (0, 1, 2, 3, 12, 14)
ARGUMENTS = (0, 1, 2, 3, 12)
STACK_ARGUMENTS = 64  # bytes above sp that may hold arguments


def after_call(before: State, environment: Environment, position: int, *, preserves: bool) -> State:
    """The state after a callee that was entered in ``before``; ``preserves``: memory.

    New symbols belong to ``position``.
    """
    names = environment.names
    handed = _handed_a_stack_address(before)
    facts = dict(before.facts)
    registers = list(before.registers)
    for register in CHANGED:
        symbol = names.of(position, ("passed", register))
        registers[register] = symbol << 32
        facts.pop(symbol, None)
        if handed:
            facts[symbol] = TAINTED
    registers[FLAG:MODE] = [None] * (MODE - FLAG)
    if preserves:
        return State(tuple(registers), before.frames, before.globals, before.banks, facts)
    frames = {} if handed else live_frames(before.frames, before.term(SP), before.facts)
    if frames:
        environment.used.add(S1)
    return State(tuple(registers), frames, {}, before.banks, facts)


def _handed_a_stack_address(state: State) -> bool:
    """Whether an argument, or memory outside of stacks, may hold an address in a stack."""
    words = [state.term(register) for register in ARGUMENTS]
    words += [cell for cell in state.globals.values() if type(cell) is int]
    sp = state.term(SP)
    words += [
        cell
        for at, cell in state.frames.items()
        if type(cell) is int and (at >> 32 != sp >> 32 or (at - sp) & MASK < STACK_ARGUMENTS)
    ]
    return any(_is_tainted(describe(word, state.facts)) for word in words)


def _is_tainted(fact: Fact) -> bool:
    return isinstance(fact, Anchored) and (fact.base == TAINT or is_stack(fact.base))
