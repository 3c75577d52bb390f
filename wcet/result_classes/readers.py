"""Whether callers of a function may branch on its result."""

from __future__ import annotations

from collections.abc import Iterator

from quoll.cfg.cfg import Block, Cfg, EdgeKind, Program

__all__ = ["may_decide"]

RESULT = 0  # the register of a result


def may_decide(program: Program, function: int) -> bool:
    """Whether code behind a call of ``function`` reads r0, or returns with it, before a write."""
    return any(
        _is_read(cfg, block)
        for cfg in program.functions.values()
        for block in cfg.blocks
        if function in block.calls
    )


def _is_read(cfg: Cfg, call: Block) -> bool:
    """Whether the result of a call is read in a block to which it returns, or returned."""
    return call.tail or any(map(_reads, _behind(cfg, call)))


def _behind(cfg: Cfg, call: Block) -> Iterator[Block]:
    """The blocks to which a call returns."""
    for edge in cfg.edges:
        if edge.src == call.index and edge.kind is EdgeKind.ACROSS:
            yield cfg.blocks[edge.dst]


def _reads(block: Block) -> bool:
    """Whether a block reads r0 as it is at its start, or leaves it to the next one."""
    for insn in block.insns:
        if RESULT in insn.reads:
            return True
        if RESULT in insn.writes and not insn.conditional:
            return False
    return not block.calls and not block.passes
