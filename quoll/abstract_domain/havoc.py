"""The state after a call whose callee is not examined (rule 2).

Registers that it does not provably preserve, the flags and its callers' memory are unknown
afterwards. Under S1 (rule 1) its stores spare live stack frames, unless an argument is a stack
address: then its stores may hit frames, and F1 spares only saved registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import reduce

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_memory import S1, live_frames
from quoll.abstract_domain.abstract_state import FLAG, MASKED, MODE, AbstractState
from quoll.abstract_domain.banked_registers import without_saved_status
from quoll.abstract_domain.terms import (
    BIAS,
    MASK,
    TAINT,
    TAINTED,
    AnchoredTerm,
    Fact,
    describe,
    entry_symbol,
    is_marked,
    on_stack,
)
from quoll.arm.insn import LR, SP
from quoll.assumptions import F1
from quoll.facts.applied import CALLEE_SAVED, FunctionReplacement
from quoll.facts.contract import CallFrame, ReadArguments
from quoll.intervals.strided_interval import ValueSet, join

__all__ = ["after_call", "hands_on_a_stack_address"]

RESULT = 0
ARGUMENTS = (0, 1, 2, 3, 12)
SAVED = frozenset(entry_symbol(register) << 32 for register in (*CALLEE_SAVED, LR))


def after_call(
    before: AbstractState,
    environment: AnalysisEnvironment,
    position: int,
    callees: Sequence[FunctionReplacement],
    saved: Callable[[], Set[int]],
    frame: CallFrame | None,
) -> AbstractState:
    """The state after one of ``callees`` was entered in ``before``.

    New symbols belong to ``position``. ``saved``: distances from sp of words with registers that
    the active functions have saved. ``frame``: of the caller, if it is known.
    """
    preserves = all(callee.preserves for callee in callees)
    preserves_mode = all(callee.preserves_mode for callee in callees)
    preserved = frozenset.intersection(*(callee.preserved for callee in callees))
    names = environment.names
    read = ReadArguments.of_any(callee.reads for callee in callees)
    handed = hands_on_a_stack_address(before, read.arguments(frame))
    facts = dict(before.facts)
    registers = list(before.registers)
    fresh: dict[int, int] = {}
    for register in set(range(FLAG)) - preserved:
        symbol = fresh[register] = names.of(position, ("passed", register))
        registers[register] = symbol << 32
        facts.pop(symbol, None)
        if handed:
            facts[symbol] = TAINTED
    result = _result_of(callees)
    if RESULT in fresh and result and (not handed or result.exact is not None):
        facts[fresh[RESULT]] = result  # a constant is no stack address
    registers[FLAG:MODE] = [None] * (MODE - FLAG)
    if not preserves_mode:
        registers[MODE] = None
    may_mask = any(callee.settled for callee in callees)  # a summary may mask, but not unmask
    if not preserves_mode or (may_mask and not before.known_mask):
        registers[MASKED] = None
    banks = without_saved_status(before.banks) if preserves_mode else {}
    if preserves:
        return AbstractState(tuple(registers), before.frames, before.globals, banks, facts)
    frames: Mapping[int, object] = {}
    if SP in preserved:
        frames = live_frames(before.frames, before.term(SP), before.facts)
    if frames and handed:
        sp = before.term(SP)
        places = {sp >> 32 << 32 | (sp + distance) & MASK for distance in saved()}
        frames = {at: cell for at, cell in frames.items() if cell in SAVED or at in places}
        environment.used.add(F1.of())
    if frames:
        environment.used.add(S1)
    remaining = dict(frames)
    for callee in callees:
        for base, low, high in callee.stores:
            _overwrite(remaining, before.fact(base), low, high)
    for at in [k for k, cell in before.frames.items() if is_marked(cell, before.facts)]:
        if at not in remaining:
            symbol = names.of(position, ("passed", at))
            facts[symbol] = TAINTED
            remaining[at] = symbol << 32
    return AbstractState(tuple(registers), remaining, {}, banks, facts)


def _result_of(callees: Sequence[FunctionReplacement]) -> ValueSet | None:
    """The words that one of ``callees`` returns in r0; None if they are not known."""
    known = [callee.result for callee in callees]
    return None if None in known else reduce(join, filter(None, known))


def _overwrite(frames: dict[int, object], where: Fact, low: int, high: int) -> None:
    """Forget the cells that overlap bytes ``low`` to before ``high`` relative to ``where``."""
    if not on_stack(where) or not isinstance(where, AnchoredTerm):
        return
    first = where.offsets.low - BIAS + low - 3
    reach = where.offsets.high - where.offsets.low + high - low + 3
    for key in list(frames):
        same = where.base == key >> 32 and (key - first) & MASK < reach
        if same or where.base == TAINT:
            del frames[key]


def hands_on_a_stack_address(state: AbstractState, above: Set[int]) -> bool:
    """Whether an argument, or a known word outside the caller's frame, may be a stack address.

    ``above``: distances from sp of the words that may hold arguments.
    """
    words = [state.term(register) for register in ARGUMENTS]
    words += [cell for cell in state.globals.values() if type(cell) is int]
    sp = state.term(SP)
    words += [
        cell
        for at, cell in state.frames.items()
        if type(cell) is int and (at >> 32 != sp >> 32 or (at - sp) & MASK in above)
    ]
    return any(on_stack(describe(word, state.facts)) for word in words)
