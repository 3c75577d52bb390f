"""The demands of one instruction on an in-order pipeline, in cycles.

All times count from the first cycle of the instruction's issue.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.classes import InsnClass, classify_insn
from pipeline.core import CoreRow, CoreTable, DualIssuePairing
from quoll.arm.insn import Condition, Insn
from quoll.errors import TimingError

__all__ = ["InsnDemand", "demand"]


@dataclass(frozen=True, slots=True)
class InsnDemand:
    """Waits are (register, cycles): start >= ready time of the register + cycles.

    ``results`` and ``locks`` are (register, latency). ``taken`` and ``not_taken`` are the cycles
    to the next instruction of a transfer of control; None where it does not apply.
    """

    issue: int
    memory: int  # cycles in the load/store unit, 0 if it is not used
    waits: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]
    locks: tuple[tuple[int, int], ...]
    reads_flags: bool
    sets_flags: bool
    address: frozenset[int]
    updates: tuple[int, int] | None  # base written back, and its latency
    taken: int | None
    not_taken: int | None
    flags_to_target: int  # 0: the target does not wait for the flag setter
    cond: Condition
    pair: DualIssuePairing
    flags_late: int  # cycles after its issue until it needs the flags


def demand(core: CoreTable, insn: Insn, *, aligned: bool, aligned8: bool) -> InsnDemand:
    """The demand of ``insn`` on ``core``. Raises TimingError naming it if a row is missing."""
    try:
        return _demand(core, insn, classify_insn(insn, aligned=aligned, aligned8=aligned8))
    except TimingError as error:
        if error.where is not None:
            raise
        where = f"{insn.addr:#x}: {insn.text}"
        raise TimingError(error.message, where=where, hint=error.hint) from error


def _demand(core: CoreTable, insn: Insn, kind: InsnClass) -> InsnDemand:
    row = core.row(*kind.row)
    taken = not_taken = None
    issue, extra, memory = row.issue, 0, row.memory
    if kind.taken is not None:
        transfer = core.row(*kind.taken)
        taken = transfer.issue + (row.issue if transfer.after_list else 0)
        if transfer.with_list:
            extra, memory = 1, memory + 1  # the pc is loaded first, the others follow
    if kind.not_taken is not None:
        not_taken = max(core.row(*kind.not_taken).issue, row.issue)
    elif insn.conditional and kind.taken is not None:
        not_taken = row.issue
    updates = None
    if kind.updates is not None:
        updates = (kind.updates, core.base_latency(row, last=kind.updates_last))
    flags = core.row("FLAGS_TO_TARGET").latency[0] if kind.flag_rule else 0
    return InsnDemand(
        issue=issue,
        memory=memory,
        waits=_waits(insn, kind, row),
        results=_latencies(kind.results, row, extra),
        locks=_latencies(kind.held, row, 0),
        reads_flags=insn.conditional or insn.reads_flags,
        sets_flags=insn.sets_flags,
        address=kind.address,
        updates=updates,
        taken=taken,
        not_taken=not_taken,
        flags_to_target=flags,
        cond=insn.cond,
        pair=core.row(*(kind.taken or kind.row)).pair
        if row.pair is not DualIssuePairing.ALONE
        else row.pair,
        flags_late=row.late.get("flags", 0),
    )


def _latencies(registers: tuple[int, ...], row: CoreRow, extra: int) -> tuple[tuple[int, int], ...]:
    """Each register with its latency; a row without one gives its result when it has issued.

    A stored register without a lock (single stores) is read on time and may be overwritten.
    """
    if not row.latency:
        return () if row.memory else tuple((r, row.issue) for r in registers)
    last = len(row.latency) - 1
    return tuple((r, row.latency[min(i, last)] + extra) for i, r in enumerate(registers))


def _waits(insn: Insn, kind: InsnClass, row: CoreRow) -> tuple[tuple[int, int], ...]:
    """A register in two roles is needed at the earlier time."""
    needed: dict[int, int] = {}
    for role, register in kind.roles.items():
        at = 1 if role in row.early else -row.late.get(role, 0)
        needed[register] = max(at, needed.get(register, at))
    return tuple((r, needed.get(r, 0)) for r in sorted(insn.reads | frozenset(kind.held)))
