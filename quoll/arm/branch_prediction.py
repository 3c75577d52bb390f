"""The branches that a predictor may send fetch along, before they are resolved.

The ARM1176JZF-S TRM (DDI 0301), 5.2, describes the predictor of the ARM1136JF-S, too:

- only branches with a direct target are predicted, if the return stack is off;
- static prediction takes unconditional branches, and conditional ones backward; conditional calls
  are not taken;
- dynamic prediction has a history of each branch, and static prediction where there is none. It may
  fold branches that are no calls: they take no slot of the pipeline.
"""

from __future__ import annotations

from enum import Enum

from quoll.arm.insn import ControlFlow, Insn

__all__ = ["BranchPrediction"]

SIGN = 1 << 31


class BranchPrediction(Enum):
    """The predictor in use: none, or the ARM1136's without its return stack."""

    OFF = "off"
    STATIC = "arm1136-static"  # the direction decides
    DYNAMIC = "arm1136-dynamic"  # any history, else the direction

    def follows(self, insn: Insn) -> bool:
        """Whether fetch may go on at the target of ``insn`` before it is resolved.

        A branch whose distance from the pc operand is negative is backward. Calls are treated as
        other branches are.
        """
        if self is BranchPrediction.OFF or insn.target is None:
            return False
        backward = insn.target - insn.pc_operand & SIGN
        return self is BranchPrediction.DYNAMIC or not insn.conditional or backward != 0

    def folds(self, insn: Insn) -> bool:
        """Whether ``insn`` may take no slot of the pipeline."""
        return self is BranchPrediction.DYNAMIC and insn.flow is ControlFlow.JUMP
