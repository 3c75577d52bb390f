"""The branches that a predictor may send fetch along, before they are resolved.

The ARM1176JZF-S TRM (DDI 0301), 5.2, describes the predictor of the ARM1136JF-S, too:

- only branches with a direct target are predicted, if the return stack is off;
- the return stack predicts returns (``quoll.arm.return_stack``);
- static prediction takes unconditional branches, and conditional ones backward; conditional calls
  are not taken;
- dynamic prediction has a history of each branch, and static prediction where there is none. It may
  fold branches that are no calls: they take no slot of the pipeline.
"""

from __future__ import annotations

from enum import Enum

from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.return_stack import may_return

__all__ = ["BranchPrediction"]

SIGN = 1 << 31


class BranchPrediction(Enum):
    """The predictor in use: none, or the ARM1136's, with or without its return stack.

    With it, either the calls and returns on the path alone change it, or nothing is known of it.
    """

    OFF = "off"
    STATIC = "arm1136-static"  # the direction decides
    DYNAMIC = "arm1136-dynamic"  # any history, else the direction
    RETURNS = "arm1136-returns"  # and the return stack
    ANY_RETURNS = "arm1136-any-returns"  # and a return stack of any contents, at each return

    @property
    def by_history(self) -> bool:
        """Whether branches have histories."""
        return self not in (BranchPrediction.OFF, BranchPrediction.STATIC)

    @property
    def of_returns(self) -> bool:
        """Whether a return stack predicts returns."""
        return self in (BranchPrediction.RETURNS, BranchPrediction.ANY_RETURNS)

    def follows(self, insn: Insn) -> bool:
        """Whether fetch may go on at the target of ``insn`` before it is resolved.

        A branch whose distance from the pc operand is negative is backward. Calls are treated as
        other branches are.
        """
        if self is BranchPrediction.OFF or insn.target is None:
            return False
        backward = insn.target - insn.pc_operand & SIGN
        return self.by_history or not insn.conditional or backward != 0

    def predicts_return(self, insn: Insn) -> bool:
        """Whether the return stack may send fetch anywhere before ``insn`` is resolved."""
        return self.of_returns and may_return(insn)

    def folds(self, insn: Insn) -> bool:
        """Whether ``insn`` may take no slot of the pipeline."""
        return self.by_history and insn.flow is ControlFlow.JUMP
