"""The pipeline with the branch predictor of the ARM1136, with or without its return stack.

128 direct-mapped entries have a history of two bits each; a branch without an entry is predicted by
its direction (ARM1176 TRM, DDI 0301, 5.2). The contents at the start are random. So is every choice
that the manual leaves open: the bits of the index, the history of a new entry, which branches are
folded, how far a wrong path is fetched, whether a call on it pushes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from pipeline.block_times import mispredicted_return
from pipeline.classes import InsnClass
from pipeline.core import CoreTable
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.return_stack_simulator import SimulatedReturnStack
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.return_stack import ReturnAddress, is_call, may_return, surely_returns

__all__ = ["PredictingMachine", "SimulatedPredictor"]

ENTRIES = 128
TAKEN, STRONGEST = 2, 3  # histories from which on a branch is predicted to be taken
STATIC_TAKEN, ISSUED = 4, 1  # cycles (DDI 0301, table 16-11)


@dataclass(slots=True)
class _Entry:
    branch: int  # address
    history: int


class SimulatedPredictor:
    """Predicts branches with a direct target. ``branches``: addresses that may have entries."""

    def __init__(
        self, prediction: BranchPrediction, random: Random, branches: Sequence[int] = ()
    ) -> None:
        self._dynamic = prediction.by_history
        self._random = random
        self._shift = random.choice([1, 2, 3])
        self._entries: dict[int, _Entry] = {}
        if self._dynamic:
            for branch in branches:
                if random.random() < 0.8:
                    self._entries[self._index(branch)] = self._new(branch)

    def _index(self, branch: int) -> int:
        return (branch >> self._shift) % ENTRIES

    def _new(self, branch: int) -> _Entry:
        return _Entry(branch, self._random.randint(0, STRONGEST))

    def _entry(self, insn: Insn) -> _Entry | None:
        entry = self._entries.get(self._index(insn.addr))
        return entry if entry is not None and entry.branch == insn.addr else None

    def remembers(self, insn: Insn) -> bool:
        """Whether a history predicts ``insn``."""
        return self._entry(insn) is not None

    def predicts_taken(self, insn: Insn) -> bool:
        """Whether fetch goes on at the target."""
        entry = self._entry(insn)
        if entry is not None:
            return entry.history >= TAKEN
        if not insn.conditional:
            return True
        assert insn.target is not None
        return insn.flow is ControlFlow.JUMP and insn.target < insn.pc_operand

    def may_fold(self, insn: Insn) -> bool:
        """Whether ``insn`` takes no slot of the pipeline; drawn where the manual allows it."""
        may = self.remembers(insn) and insn.flow is ControlFlow.JUMP
        return may and self._random.random() < 0.7

    def resolve(self, insn: Insn, *, taken: bool) -> None:
        """Remember the outcome of an executed branch."""
        if not self._dynamic:
            return
        entry = self._entry(insn)
        if entry is None:
            self._entries[self._index(insn.addr)] = self._new(insn.addr)
        elif taken:
            entry.history = min(STRONGEST, entry.history + 1)
        else:
            entry.history = max(0, entry.history - 1)


class PredictingMachine(PipelineMachine):
    """``code``: the instruction at an address, in an instruction set; None: no more is fetched.

    ``returns``: None without a return stack. ``steady``: wrong paths leave it as it was.
    """

    def __init__(
        self,
        core: CoreTable,
        memory: MemoryBus,
        chip: FetchAndCaches,
        predictor: SimulatedPredictor,
        code: Callable[[int, bool], Insn | None],
        *,
        aligned: bool = True,
        returns: SimulatedReturnStack | None = None,
        steady: bool = True,
    ) -> None:
        super().__init__(core, memory, chip, aligned=aligned)
        self.predictor, self.code = predictor, code
        self.returns, self.steady = returns, steady
        self.wrong = self.right_returns = 0  # predictions
        self._returning: tuple[Insn, ReturnAddress, int] | None = None  # predicted; issue cycle

    def start(self, addr: int) -> None:
        """Control arrives at ``addr``: a predicted return is resolved."""
        if self._returning is not None:
            insn, predicted, cycle = self._returning
            self._returning = None
            if predicted.addr == addr:
                self.right_returns += 1
                self.clock = cycle + STATIC_TAKEN
            else:
                self.wrong += 1
                self.clock = max(self.clock, cycle + mispredicted_return(insn))
                self._wrong_path(*predicted, cycle)
        super().start(addr)

    def _begin(self, step: ExecutedInsn, kind: InsnClass, cycle: int) -> None:
        """As without a predictor, except for the next issue slot, and fetches on a wrong path."""
        super()._begin(step, kind, cycle)
        insn = step.insn
        if self.returns is not None and is_call(insn) and step.taken:
            self.returns.push(ReturnAddress(insn.next, insn.thumb))
        if insn.target is None:
            if kind.taken is not None and step.taken:
                self._wrong_path(insn.next, insn.thumb, cycle)
                self._indirect(insn, cycle)
            return
        predicted = self.predictor.predicts_taken(insn)
        right = predicted == step.taken
        if predicted and not self.predictor.remembers(insn):
            self._wrong_path(insn.next, insn.thumb, cycle)  # before the branch is decoded
        if right:
            self.clock = cycle + self._predicted(insn, taken=step.taken)
        elif step.taken:
            self._wrong_path(insn.next, insn.thumb, cycle)
        else:
            self._redirect(kind, cycle)
            self._wrong_path(insn.target, insn.target_thumb, cycle)
            self.start(insn.next)
        self.wrong += not right
        self.predictor.resolve(insn, taken=step.taken)

    def _indirect(self, insn: Insn, cycle: int) -> None:
        """The return stack behind a taken branch without a direct target."""
        if self.returns is None or not may_return(insn):
            return
        if surely_returns(insn) or self.chip.random.random() < 0.5:
            predicted = self.returns.pop()
            if predicted is not None:
                self._returning = insn, predicted, cycle

    def _predicted(self, insn: Insn, *, taken: bool) -> int:
        """Cycles of a branch that is predicted right."""
        if self.predictor.may_fold(insn):
            return 0
        if self.predictor.remembers(insn) or not taken:
            return ISSUED
        return STATIC_TAKEN

    def _wrong_path(self, addr: int, thumb: bool, cycle: int) -> None:
        """Fetch from ``addr`` on, as far as drawn; branches that are met are predicted, too."""
        random, folded, before = self.chip.random, False, self.returns
        returns = None if before is None else before.copy()
        if not self.steady:
            self.returns = returns
        left = random.randint(0, self.chip.prefetch_bytes)
        while left > 0:
            insn = self.code(addr, thumb)
            if insn is None:
                return
            for line in self.chip.fetch.cache.geometry.lines(addr, min(insn.size, left)):
                self._filled(line, cycle)
            folded = insn.target is not None and not folded and self.predictor.may_fold(insn)
            left -= 0 if folded else insn.size
            addr = insn.next
            if returns is not None and is_call(insn) and random.random() < 0.5:
                returns.push(ReturnAddress(insn.next, insn.thumb))
            if insn.target is not None and self.predictor.predicts_taken(insn):
                self._decoded_late(insn, left, cycle)
                addr, thumb = insn.target, insn.target_thumb
            elif returns is not None and may_return(insn):
                predicted = returns.pop()
                if predicted is not None:
                    self._decoded_late(insn, left, cycle)
                    addr, thumb = predicted

    def _decoded_late(self, insn: Insn, left: int, cycle: int) -> None:
        """Fetch some bytes behind a branch before it is decoded, and predicted by its direction."""
        ahead = self.chip.random.randint(0, max(0, left))
        if ahead and not self.predictor.remembers(insn):
            for line in self.chip.fetch.cache.geometry.lines(insn.next, ahead):
                self._filled(line, cycle)

    def _filled(self, line: int, cycle: int) -> None:
        """Fetch a line on a wrong path."""
        chip = self.chip
        if not chip.fetch.cache.load(line).hit:
            chip.fetch.misses += 1
            restart = self.memory.latencies.fetch_restart
            self.line_ready[line] = self.memory.line(cycle, line * self._iline)[0] + restart
