"""A concrete in-order machine that issues two instructions in a cycle: the twin of
``dual_issue``, with the memory, caches and fetch of ``simulator``.

Time is counted in pipeline stages (Cortex-A8 TRM, DDI 0344, 16.2): a result of stage Er can be
forwarded at the end of that stage, an operand of stage En must be present at its start, and in each
cycle the older waiting instruction goes first. A memory stall replays all younger instructions, so
it shifts the whole scoreboard (16.4.2, Table 16-16). Loads wait for their whole line; stores wait
only for room in the buffer.
"""

from __future__ import annotations

from pipeline.classes import InsnClass
from pipeline.core import CoreRow, CoreTable, DualIssuePairing
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.tlb import changes_translation
from pipeline.tlb_simulator import TlbSide
from quoll.arm.insn import AccessKind
from quoll.arm.operation import Operation

__all__ = ["DualIssueMachine", "concrete_machine"]

E1, E2 = 1, 2
LONG_AGO = -9


def concrete_machine(
    core: CoreTable, memory: MemoryBus, chip: FetchAndCaches, *, aligned: bool = True
) -> PipelineMachine:
    """The concrete machine for ``core``."""
    kind = DualIssueMachine if core.dual_issue else PipelineMachine
    return kind(core, memory, chip, aligned=aligned)


class DualIssueMachine(PipelineMachine):
    """``board.result`` and ``board.flags``: the cycle at whose end a value can be forwarded."""

    second_pipe_free = False  # in the cycle before ``clock``
    branch_unit = 0

    @property
    def finished(self) -> int:
        """The cycle in which the last result is ready, the units are idle and memory is quiet."""
        board = self.board
        results = (cycle - 1 for cycle in (*board.result.values(), board.flags))
        return max(self.clock, board.unit, self.memory.free, *results, 0)

    def start(self, addr: int) -> None:
        """Control arrives at ``addr``; nothing there pairs with an earlier instruction."""
        super().start(addr)
        self.second_pipe_free = False

    def execute(self, step: ExecutedInsn) -> None:
        """Issue one instruction in the first possible cycle, and let it take effect."""
        kind, insn = self._kind(step), step.insn
        row = self.core.row(*kind.row)
        self._fetch(insn.next, self.clock)
        arrived = self.line_ready.get((insn.next - 1) // self._iline, 0)
        for addr in (insn.addr, insn.next - 1):
            arrived = self._translated(TlbSide.CODE, addr, max(self.clock - 1, arrived))
        second = self.second_pipe_free and row.pair is DualIssuePairing.EITHER and row.issue == 1
        cycle = (
            self.clock - 1
            if second and self._pair(kind, row) is not DualIssuePairing.OLDER
            else self.clock
        )
        cycle = max(cycle, arrived)
        while not self._may_issue(step, kind, row, cycle):
            cycle += 1
        joined = cycle < self.clock
        self._issue(step, kind, row, cycle)
        last = cycle + row.issue - 1
        self.clock = last + 1
        self.second_pipe_free = not joined and self._pair(kind, row) is not DualIssuePairing.ALONE
        self._fetch(insn.next + self.chip.random.randint(0, self.chip.prefetch_bytes), cycle)
        stall = 0
        if step.passed and step.address is not None:
            translated = self._data_translated(step, cycle)
            stall = translated - cycle + self._access(step, translated)
        if kind.taken is not None and step.taken:
            transfer = self.core.row(*kind.taken)
            self.clock = cycle + transfer.issue + (row.issue if transfer.after_list else 0)
        self._freeze(stall)
        if step.passed:
            self._operate(step)

    def _pair(self, kind: InsnClass, row: CoreRow) -> DualIssuePairing:
        if row.pair is DualIssuePairing.ALONE or kind.taken is None:
            return row.pair
        return self.core.row(*kind.taken).pair

    def _may_issue(self, step: ExecutedInsn, kind: InsnClass, row: CoreRow, cycle: int) -> bool:
        """Whether the instruction may issue in ``cycle``: operands ready, pipes and units free."""
        insn, board = step.insn, self.board
        written = (*kind.results, *(() if kind.updates is None else (kind.updates,)))
        reads = insn.reads | frozenset(kind.held)
        still_read = written if insn.conditional else ()
        flags = insn.conditional or insn.reads_flags
        return (
            all(board.result.get(r, LONG_AGO) < cycle + self._stage(r, kind, row) for r in reads)
            and all(board.result.get(r, LONG_AGO) < cycle + E2 for r in still_read)
            and all(board.unlocked.get(r, LONG_AGO) <= cycle for r in written)
            and (not flags or board.flags < cycle + E2 + row.late.get("flags", 0))
            and ((insn.memory is None and not row.memory) or board.unit <= cycle)
            and (kind.taken is None or self.branch_unit <= cycle)
        )

    @staticmethod
    def _stage(register: int, kind: InsnClass, row: CoreRow) -> int:
        """The stage at whose start the instruction needs ``register``."""
        roles = [role for role, r in kind.roles.items() if r == register]
        stages = [E1 if role in row.early else E2 + row.late.get(role, 0) for role in roles]
        return min(stages, default=E2)

    def _issue(self, step: ExecutedInsn, kind: InsnClass, row: CoreRow, cycle: int) -> None:
        """Record the effects on later instructions, whether or not the condition holds."""
        board, last = self.board, cycle + row.issue - 1
        extra = int(kind.taken is not None and self.core.row(*kind.taken).with_list)
        for index, register in enumerate(kind.results):
            latency = row.issue
            if row.latency:
                latency = row.latency[min(index, len(row.latency) - 1)] + extra
            if row.latency or not row.memory:
                board.result[register] = cycle + latency + E1
            board.unlocked[register] = last + 1
        if kind.updates is not None:
            latency = self.core.base_latency(row, last=kind.updates_last)
            now = board.result.get(kind.updates, LONG_AGO)
            board.result[kind.updates] = max(now, cycle + latency + E1)
            board.unlocked[kind.updates] = last + 1
        if row.memory:
            board.unit = cycle + row.memory + extra
        if step.insn.sets_flags:
            board.flags = last + E2
        if kind.taken is not None:
            self.branch_unit = last + 1

    def _freeze(self, cycles: int) -> None:
        """Stall everything for ``cycles``."""
        if not cycles:
            return
        board = self.board
        for times in (board.result, board.unlocked):
            for register in times:
                times[register] += cycles
        board.flags += cycles
        board.unit += cycles
        self.branch_unit += cycles
        self.clock += cycles

    def _operate(self, step: ExecutedInsn) -> None:
        """Barriers and CP15 operations."""
        if self.tlb is not None and changes_translation(step.insn):
            self.tlb.forget()
        match step.insn.operation:
            case Operation.INSTRUCTION_BARRIER:
                self.start(step.insn.next)
            case Operation.DATA_BARRIER:
                self.clock = max(self.clock, self.memory.free)
            case _:
                self._maintain(step.insn)

    def _access(self, step: ExecutedInsn, cycle: int) -> int:
        """Perform the data access; returns the cycles of its stall."""
        memory, addr = step.insn.memory, step.address
        assert memory is not None
        assert addr is not None
        stall = 0
        geometry, size = self.chip.dcache.geometry, memory.size * memory.count
        for line in geometry.lines(addr, size):
            low = max(addr, line * geometry.line_bytes)
            high = min(addr + size, (line + 1) * geometry.line_bytes)
            words = (high - 1) // 4 - low // 4 + 1
            if memory.access is not AccessKind.STORE:
                stall += self._load(line, words, step.cached, cycle + stall)
            if memory.access in (AccessKind.STORE, AccessKind.SWAP):
                stall += self._store(line, words, step.cached, cycle + stall)
        return stall

    def _load(self, line: int, words: int, cached: bool, now: int) -> int:
        if not cached:
            return max(self.memory.latencies.replay, self.memory.past(now, words) - now)
        outcome = self.chip.dcache.load(line)
        if outcome.hit:
            return 0
        victim = self._written_back(outcome)
        before = self.chip.random.random() < 0.5
        if victim is not None and before:
            self.memory.write(now, 1, victim)
        self.load_misses += 1
        addr = line * self.chip.dcache.geometry.line_bytes
        complete = self.memory.line(now, addr)[1]
        if victim is not None and not before:
            self.memory.write(now, 1, victim)
        self.last_fill = line
        return max(self.memory.latencies.replay, complete - now)

    def _store(self, line: int, words: int, cached: bool, now: int) -> int:
        if cached and self.chip.dcache.store(line).hit:
            return 0
        addr = line * self.chip.dcache.geometry.line_bytes
        stall = 0
        self.stored_words += words
        for _ in range(words):
            while self.buffer and self.buffer[0] <= now + stall:
                self.buffer.popleft()
            if len(self.buffer) >= self.buffer_words:
                drained = self.buffer.popleft()
                stall += self.memory.latencies.replay + max(0, drained - now - stall)
            at = now + stall
            write = self.memory.write(at, 1, addr) if cached else self.memory.past(at, 1)
            self.buffer.append(write)
        return stall
