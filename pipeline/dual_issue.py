"""Block times of a core that issues up to two instructions in a cycle, in program order.

The state has the resources of ``maxplus`` and one more: the first cycle in which a *younger*
instruction may join the last one. Whether two instructions may issue together depends on the
instructions, never on time, and an instruction that may not join waits one cycle:

    start >= last cycle of the one before             if the two may pair
    start >= last cycle of the one before + 1         if they may not
    start >= last cycle of the one before that + 1    always: no three in a cycle

So every start is still a maximum of sums, and rules 14 and 16 hold as for single issue. "Not both
writing one register" and "one load or store" are maxima too (``LOCK``, ``UNIT``).

Source: Cortex-A8 TRM (DDI 0344), 16.3 for pairs, 16.2 for operands and results; 16.4.5: a
conditional instruction is scheduled as if it passed, with its destination as one more operand.
"""

from __future__ import annotations

from pipeline.core import DualIssuePairing
from pipeline.demand import InsnDemand
from pipeline.maxplus import FLAGS, LOCK, TARGET, UNIT, IssueTime, State
from pipeline.maxplus import SIZE as SINGLE
from quoll.arm.insn import Condition

__all__ = ["IDLE", "DualStepper", "worst"]

JOIN, BRANCH = SINGLE, SINGLE + 1
SIZE = SINGLE + 2
LONG_AGO = -2  # an early operand of an instruction that joins the one before it
IDLE: State = (LONG_AGO,) * SINGLE + (0, LONG_AGO)


def worst(longest: int) -> State:
    """The state with every resource busy for as long as any instruction can use it (rule 15)."""
    return (longest,) * SINGLE + (0, 0)


class DualStepper:
    """Runs the instructions of one block; times count from the start of the block.

    ``at`` is the cycle after the last issue; the next instruction starts then, or one cycle
    earlier if it joins the last one.
    """

    def __init__(self, state: State) -> None:
        self.at = 0
        self.steps: list[IssueTime] = []
        self._free = list(state)

    def run(self, d: InsnDemand) -> None:
        """Issue one instruction."""
        start, reason = self._start(d)
        free = self._free
        last = start + d.issue - 1
        joins = start < self.at
        for register, latency in d.results:
            conditional = d.cond is not Condition.AL
            free[register] = max(free[register] if conditional else LONG_AGO, start + latency)
            free[LOCK + register] = last + 1
        if d.updates is not None:
            register, latency = d.updates
            free[register] = max(free[register], start + latency)
            free[LOCK + register] = last + 1
        if d.memory:
            free[UNIT] = start + d.memory
        if d.sets_flags:
            free[FLAGS] = last + 1
        if d.taken is not None:
            free[BRANCH] = last + 1
        self.steps.append(IssueTime(start, d.issue, max(0, start - self.at), reason))
        self.at = last + 1
        free[JOIN] = self.at if joins or d.pair is DualIssuePairing.ALONE else last

    def _start(self, d: InsnDemand) -> tuple[int, str]:
        """The first possible cycle, and the resource that delays it."""
        free = self._free
        younger = d.pair is DualIssuePairing.EITHER and d.issue == 1
        start, reason = (free[JOIN], "") if younger else (self.at, "")
        operands = [(free[r] + cycles, f"r{r}") for r, cycles in d.waits]
        written = [r for r, _ in d.results]
        if d.updates is not None:
            written.append(d.updates[0])
        operands += [(free[LOCK + r], f"r{r} written") for r in written]
        if d.cond is not Condition.AL:
            operands += [(free[r], f"r{r} kept") for r in written]
        if d.reads_flags:
            operands.append((free[FLAGS] - d.flags_late, "flags"))
        if d.memory:
            operands.append((free[UNIT], "load/store unit"))
        if d.taken is not None:
            operands.append((free[BRANCH], "branch"))
        for time, name in operands:
            if time > start:
                start, reason = time, name
        return start, reason

    def after(self, at: int) -> State:
        """The state when the next instruction starts at cycle ``at`` unless it joins the last."""
        relative = [max(t - at, LONG_AGO) for t in self._free]
        relative[JOIN] = min(0, self._free[JOIN] - at) if at == self.at else 0
        return tuple(relative)

    @property
    def target_allowed(self) -> int:
        """First cycle in which the target of a taken branch may start, by the last flag setter."""
        return self._free[TARGET]
