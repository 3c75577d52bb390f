"""Where lr holds a return address by convention: untouched since entry, or reloaded from the stack.

This tells ``bx lr`` as a return from ``bx lr`` through a computed address; compilers use lr as a
scratch register in between.
"""

from __future__ import annotations

from quoll.arm.insn import LR, SP, Insn
from quoll.cfg import Cfg

__all__ = ["holds_return_address"]


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
