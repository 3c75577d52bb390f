"""The live ops of the instructions of a block, and their forks.

The live ops of an instruction depend on its form and on the flags that are read later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quoll.abstract_domain.double_words import is_branch
from quoll.arm.insn import Condition, Insn
from quoll.semantics.lift import Lifted, OpsForm
from quoll.semantics.ops import FLAGS, Op, OpCode, Space, Var

__all__ = ["LiveOps", "guard_of", "live_ops", "rejoins", "sets_flags"]

FIRST_FLAG = 16  # in the numbering of ops
CACHED = 1 << 16
CONTROL = frozenset([OpCode.BRANCH, OpCode.CBRANCH, OpCode.GOTO, OpCode.TRAP])
ALL_FLAGS = frozenset(FLAGS)


@dataclass(frozen=True, slots=True, eq=False)
class LiveOps:
    """``ops``: the ops of a form, with None in place of ops whose results are dead.

    ``flags`` are read by these ops or after them. There is one object per form and set of flags
    read after it.
    """

    ops: tuple[Op | None, ...]
    flags: frozenset[Var]


def live_ops(lifted: Sequence[Lifted]) -> list[LiveOps]:
    """The live ops of each instruction of a block, after which all flags are read."""
    found: list[LiveOps] = []
    flags = ALL_FLAGS
    for form, _ in reversed(lifted):
        known = _known.get((form, flags))
        if known is None:
            if len(_known) >= CACHED:
                _known.clear()
            known = _known[form, flags] = _without_dead(form.ops, flags)
        found.append(known)
        flags = known.flags
    return found[::-1]


_known: dict[tuple[OpsForm, frozenset[Var]], LiveOps] = {}


def _without_dead(ops: tuple[Op, ...], flags: frozenset[Var]) -> LiveOps:
    live: set[Var] = set(flags)
    branches = any(map(is_branch, ops))
    remaining: list[Op | None] = []
    for op in reversed(ops):
        if op.code is OpCode.GOTO:
            live.update(FLAGS)
        if _is_dead(op, live):
            remaining.append(None)
            continue
        if op.out is not None and not branches:
            live.discard(op.out)
        live.update(op.ins)
        remaining.append(op)
    return LiveOps(tuple(remaining[::-1]), frozenset(live & ALL_FLAGS))


def _is_dead(op: Op, live: set[Var]) -> bool:
    out = op.out
    if (
        out is None
        or op.code is OpCode.LOAD
        or (out.space is Space.REG and out.offset < FIRST_FLAG)
    ):
        return False
    return out not in live


def guard_of(ops: Sequence[Op | None]) -> int | None:
    """The branch that skips all of an instruction when its condition fails."""
    for number, op in enumerate(ops):
        if op is not None and is_branch(op):
            skips = op.code is OpCode.CBRANCH and op.ins[0].offset == len(ops)
            return number if skips else None
    return None


def sets_flags(ops: Sequence[Op | None]) -> bool:
    """Whether an op writes N, Z, C or V."""
    return any(op is not None and op.out in FLAGS for op in ops)


def rejoins(before: Condition, following: Iterable[tuple[Insn, LiveOps]]) -> bool:
    """Whether an unconditional instruction stands between instructions of one condition.

    It is the first of ``following``; ``before`` is the condition of the last conditional
    instruction. The paths of both outcomes then stay separate, so that two instructions with
    opposite conditions remain one choice.
    """
    for number, (insn, live) in enumerate(following):
        ops = live.ops
        if insn.cond is not Condition.AL:
            return number > 0 and insn.cond in (before, before ^ 1) and guard_of(ops) is not None
        if sets_flags(ops) or any(op is not None and op.code in CONTROL for op in ops):
            return False
    return False
