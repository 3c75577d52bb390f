"""Conditional instructions that are not executed on the way along a conditional branch.

What the branch needs is traced back through the instructions before it: the states of the flags,
a set of the sixteen, with which control can get there. An instruction whose condition holds in
none of them is skipped whenever the branch goes this way, so that its results do not blur what is
known.
"""

from __future__ import annotations

from quoll.arm.insn import Cond, Flow, Insn
from quoll.cfg.cfg import EdgeKind

__all__ = ["on_the_way"]

BRANCHES = (Flow.JUMP, Flow.CALL, Flow.INDIRECT, Flow.INDIRECT_CALL)
ALL = (1 << 16) - 1  # a bit for each state of N, Z, C and V


def _holds(cond: Cond, state: int) -> bool:
    """Whether a condition holds (ARM ARM A8.3)."""
    n, z, c, v = (bool(state & bit) for bit in (8, 4, 2, 1))
    plain = (z, c, n, v, c and not z, n == v, n == v and not z, True)[cond >> 1]
    return plain != bool(cond & 1) if cond is not Cond.AL else True


STATES = {cond: sum(1 << s for s in range(16) if _holds(cond, s)) for cond in Cond}


def on_the_way(insns: tuple[Insn, ...], edge: EdgeKind) -> tuple[Insn, ...]:
    """``insns``, a block or the end of one, without what is not executed before ``edge``."""
    last = insns[-1]
    if last.flow not in BRANCHES or edge not in (EdgeKind.TAKEN, EdgeKind.FALLTHROUGH):
        return insns
    if not last.conditional:
        return insns
    states = STATES[last.cond]
    if edge is EdgeKind.FALLTHROUGH:
        states ^= ALL
    kept = [last]
    for insn in reversed(insns[:-1]):
        executed = STATES[insn.cond]
        if not states & executed and not insn.sets_flags:
            continue
        kept.append(insn)
        if insn.sets_flags:
            states = executed | (states & ~executed)
    return tuple(reversed(kept))
