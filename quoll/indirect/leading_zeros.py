"""Computed jumps whose index is a difference of leading zeros, as in libgcc's division.

The target depends on the magnitudes of two compared words, and only the comparison keeps the
difference in its range. So the state at the start of a path is split into cases, each word in 0, 1,
2 to 3, 4 to 7, and so on; the cases together cover the state. In each case the number of leading
zeros is constant; the comparison excludes the cases with another outcome.
"""

from __future__ import annotations

from itertools import product

from quoll.abstract_domain.abstract_state import AbstractState
from quoll.abstract_domain.terms import MASK, RIGID
from quoll.arm.operation import Operation
from quoll.indirect.tables import PathInterpreter, TargetSelection, TransferPath, target_of
from quoll.intervals.strided_interval import ANY, ValueSet, progression

__all__ = ["by_magnitude"]

OPERANDS = 2
CASES = (ValueSet(0, 0, 0), *(progression(1 << n, (2 << n) - 1, 1) for n in range(32)))


def by_magnitude(interpreter: PathInterpreter, path: TransferPath) -> TargetSelection | None:
    """The target in each possible case; None if it is not constant in one of them."""
    symbols = _operands(path)
    if len(symbols) != OPERANDS:
        return None
    targets: list[int] = []
    before = path.state
    for case in product(CASES, repeat=OPERANDS):
        facts = {**before.facts, **dict(zip(symbols, case, strict=True))}
        chosen = AbstractState(before.registers, before.frames, before.globals, before.banks, facts)
        leave = interpreter.follow(path, chosen)
        if leave is None:
            continue
        target = target_of(leave, interpreter.environment)
        if target is None:
            return None
        targets.append(target)
    return TargetSelection(tuple(sorted(set(targets))), None) if targets else None


def _operands(path: TransferPath) -> tuple[int, ...]:
    """Symbols, at the start of ``path``, of the registers whose leading zeros it counts.

    Only unrestricted words are split: a split would lose known restrictions.
    """
    insns = (insn for block in path.blocks for insn in block.insns)
    registers = {i.sources[0] for i in insns if i.operation is Operation.COUNT_LEADING_ZEROS}
    terms = [path.state.term(register) for register in sorted(registers)]
    free = all(t >> 32 >= RIGID and t & MASK == 0 for t in terms)
    unknown = all(path.state.facts.get(t >> 32, ANY) is ANY for t in terms)
    return tuple(dict.fromkeys(t >> 32 for t in terms)) if free and unknown else ()
