"""Whether lr holds a return address: unchanged since entry, or reloaded from the stack.

This distinguishes a return by ``bx lr`` from ``bx lr`` to a computed address; compilers use lr as a
scratch register in between.
"""

from __future__ import annotations

from collections.abc import Callable

from quoll.arm.immediates import added_constant
from quoll.arm.insn import LR, PC, SP, Condition, ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.cfg.cfg import Cfg

__all__ = [
    "computed_address",
    "holds_return_address",
    "is_jump_through",
    "link_before",
    "sets_lr_by_convention",
]

WORD = 1 << 32


def link_before(insn: Insn, before: Callable[[Insn], Insn | None]) -> int | None:
    """The return address that ``adr lr`` sets before the transfer ``insn``, else None.

    ``before`` gives the instruction that always runs just before another. None if lr is set in
    another way, or under another condition.
    """
    at: Insn | None = insn
    while at is not None and (at := before(at)) is not None:
        if at.sets_flags and insn.conditional:
            return None
        if LR in at.writes:
            always = at.cond in (insn.cond, Condition.AL)
            return computed_address(at) if always else None
    return None


def computed_address(insn: Insn) -> int | None:
    """The result of ``add`` or ``sub`` of the pc and a constant in ARM code."""
    if insn.thumb or insn.sources != (PC,):
        return None
    constant = added_constant(insn)
    return None if constant is None else (insn.pc_operand + constant) % WORD


def holds_return_address(cfg: Cfg, block: int) -> bool:
    """Whether lr is a return address before the last instruction of ``block``, on every path."""
    after = [True] * len(cfg.blocks)  # greatest fixed point: meet is conjunction
    before = [True] * len(cfg.blocks)
    pending = list(range(len(cfg.blocks)))
    successors: list[list[int]] = [[] for _ in cfg.blocks]
    for edge in cfg.edges:
        successors[edge.src].append(edge.dst)
    while pending:
        at = pending.pop()
        state = _run(cfg.blocks[at].insns, before[at])
        if state == after[at]:
            continue
        after[at] = state
        for following in successors[at]:
            if before[following]:
                before[following] = False
                pending.append(following)
    return _run(cfg.blocks[block].insns[:-1], before[block])


def _run(insns: tuple[Insn, ...], state: bool) -> bool:
    for insn in insns:
        if LR in insn.writes:
            reloaded = insn.memory is not None and insn.memory.base == SP
            state = reloaded and (state or not insn.conditional)
    return state


def is_jump_through(insn: Insn) -> bool:
    """Whether ``insn`` always jumps to the address in a register other than lr and pc."""
    register = bool(insn.sources) and insn.sources[0] not in (LR, PC)
    return insn.operation is Operation.BRANCH_EXCHANGE and register and not insn.conditional


def sets_lr_by_convention(insn: Insn) -> bool:
    """Whether ``insn`` sets lr by convention: a call, ``mov lr, pc`` before one, a stack load."""
    if insn.memory is not None:
        return insn.memory.base == SP
    return insn.flow is not ControlFlow.NEXT or insn.sources == (PC,)
