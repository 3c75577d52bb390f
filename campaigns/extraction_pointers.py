"""The kinds of unresolved transfers.

Only calls through pointers in memory or in arguments may remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from quoll.abstract_domain.function_values import LocalValues
from quoll.abstract_domain.terms import entry_symbol
from quoll.arm.insn import LR, SP, ControlFlow
from quoll.cfg.cfg import Block, Cfg, EdgeKind, Program
from quoll.cfg.link_register import is_jump_through
from quoll.cfg.transfers import links
from quoll.cfg.unresolved import UnresolvedKind, UnresolvedTransfer
from quoll.errors import WcetError
from quoll.image.image import Image

__all__ = ["HELPERS", "Remaining", "remaining"]

RETURN_HELPER = "__gnu_thumb1_case_"  # returns to a place selected by data after the call
CALL_HELPERS = ("_call_via_", "_interwork_", ".Lchange_")  # call through a register
HELPERS = (RETURN_HELPER, *CALL_HELPERS)
CONTEXT_SWITCHES = ("longjmp", "_Unwind", "unwind", "restore_core_regs")


class Remaining(Enum):
    """Kinds of unresolved places."""

    CALL = "function-pointer call"
    TAIL_CALL = "function-pointer tail call"
    SYSTEM = "system call, or waiting"
    CONTEXT = "longjmp or unwinding"
    RETURN = "return not proved"
    OTHER = "other"


def remaining(image: Image, program: Program) -> Iterator[tuple[Remaining, UnresolvedTransfer]]:
    """Each unresolved place of ``program`` with its kind, once for each function with it."""
    places = {u.addr: u for u in program.unresolved}
    for cfg in program.functions.values():
        values: LocalValues | None = None
        jumps = {edge.src for edge in cfg.edges if edge.kind is EdgeKind.INDIRECT}
        for block in cfg.blocks:
            unresolved = places.get(block.last.addr)
            if unresolved is None or block.index in jumps or block.calls or block.returns:
                continue
            kind = _by_form(cfg, block, unresolved)
            if kind is None:
                values = values or _values(image, cfg)
                kind = Remaining.OTHER if values is None else _by_values(values, block)
            yield kind, unresolved


def _values(image: Image, cfg: Cfg) -> LocalValues | None:
    """The values in a function whose callees keep to the procedure call standard."""
    try:
        return LocalValues(cfg, image)
    except WcetError:
        return None


def _by_form(cfg: Cfg, block: Block, why: UnresolvedTransfer) -> Remaining | None:
    insn = block.last
    before = block.insns[-2] if len(block.insns) > 1 else None
    if insn.flow in (ControlFlow.TRAP, ControlFlow.WAIT):
        return Remaining.SYSTEM
    if any(part in cfg.name for part in CONTEXT_SWITCHES):
        return Remaining.CONTEXT
    if cfg.name.startswith(CALL_HELPERS) or (len(block.insns) == 1 and is_jump_through(insn)):
        return Remaining.TAIL_CALL
    if why.kind is UnresolvedKind.NOT_PROVED_TO_RETURN:
        return Remaining.RETURN
    if insn.flow is ControlFlow.INDIRECT_CALL or links(before, insn):
        return Remaining.CALL
    return None


def _by_values(values: LocalValues, block: Block) -> Remaining:
    """A call if lr holds the next address, a tail call if sp and lr are the caller's.

    ``mov pc`` is no tail call: libraries for ARMv4T and later have ``bx`` for that.
    """
    insn, outcome = block.last, values.outcome(block.index)
    if outcome is None or outcome.leave is None:
        return Remaining.OTHER
    state = outcome.leave.state
    if state.term(LR) in (insn.next, insn.next | 1):
        return Remaining.CALL
    if insn.mnemonic in ("bx", "ldr", "ldm") and all(
        state.term(register) == entry_symbol(register) << 32 for register in (SP, LR)
    ):
        return Remaining.TAIL_CALL
    return Remaining.OTHER
