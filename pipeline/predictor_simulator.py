"""The pipeline with the branch predictor of the ARM1136, without its return stack.

128 direct-mapped entries have a history of two bits each; a branch without an entry is predicted by
its direction (ARM1176 TRM, DDI 0301, 5.2). The contents at the start are random. So is every choice
that the manual leaves open: the bits of the index, the history of a new entry, which branches are
folded, how far a wrong path is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from pipeline.classes import InsnClass
from pipeline.core import CoreTable
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from quoll.arm.branch_prediction import BranchPrediction
from quoll.arm.insn import ControlFlow, Insn

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
        self._dynamic = prediction is BranchPrediction.DYNAMIC
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
    """``code``: the instruction at an address, in an instruction set; None: no more is fetched."""

    def __init__(
        self,
        core: CoreTable,
        memory: MemoryBus,
        chip: FetchAndCaches,
        predictor: SimulatedPredictor,
        code: Callable[[int, bool], Insn | None],
        *,
        aligned: bool = True,
    ) -> None:
        super().__init__(core, memory, chip, aligned=aligned)
        self.predictor, self.code = predictor, code
        self.wrong = 0  # predictions

    def _begin(self, step: ExecutedInsn, kind: InsnClass, cycle: int) -> None:
        """As without a predictor, except for the next issue slot, and fetches on a wrong path."""
        super()._begin(step, kind, cycle)
        insn = step.insn
        if insn.target is None:
            if kind.taken is not None and step.taken:
                self._wrong_path(insn.next, insn.thumb, cycle)
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

    def _predicted(self, insn: Insn, *, taken: bool) -> int:
        """Cycles of a branch that is predicted right."""
        if self.predictor.may_fold(insn):
            return 0
        if self.predictor.remembers(insn) or not taken:
            return ISSUED
        return STATIC_TAKEN

    def _wrong_path(self, addr: int, thumb: bool, cycle: int) -> None:
        """Fetch from ``addr`` on, as far as drawn; branches that are met are predicted, too."""
        random, folded = self.chip.random, False
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
            if insn.target is not None and self.predictor.predicts_taken(insn):
                self._decoded_late(insn, left, cycle)
                addr, thumb = insn.target, insn.target_thumb

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
