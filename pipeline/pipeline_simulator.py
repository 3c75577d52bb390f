"""A cycle-accurate in-order pipeline with caches and one bus: the twin of the block times.

It reads the same core description but shares no timing logic with the abstract code: it holds a
scoreboard of absolute cycles, and issues each instruction when nothing holds it back. Decisions of
the hardware that the manual leaves open are drawn at random: how far prefetching goes, when a
victim is written back, which stores wait in the write buffer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random

from cache.cache_simulator import CacheOutcome, FetchUnit, SimulatedCache
from cache.locked import NOT_LOCKED, LockedLines
from pipeline.classes import InsnClass, classify_insn
from pipeline.core import CoreTable
from pipeline.timing_model import MemoryLatencies
from pipeline.tlb import changes_translation
from pipeline.tlb_simulator import Tlb, TlbSide, Translation
from quoll.arm.coprocessor import coprocessor_operation
from quoll.arm.insn import AccessKind, Insn
from quoll.errors import TimingError

__all__ = ["ExecutedInsn", "FetchAndCaches", "MemoryBus", "PipelineMachine"]

OUTSTANDING = 3  # data misses under way (TRM, chapter 7)
POLLUTED = 7  # of ten lines that other programs left in a cache are dirty
LONG_AGO = -1  # a cycle in which everything never used is ready


@dataclass(frozen=True, slots=True)
class ExecutedInsn:
    """One step of a trace.

    ``passed``: the condition held. ``taken``: the pc was written. ``address`` of the first byte
    accessed; None without an access, as for a failed store-exclusive or an ignored preload.
    ``cached``: its memory type is cached.
    """

    insn: Insn
    passed: bool
    taken: bool
    address: int | None = None
    cached: bool = True


class MemoryBus:
    """One bus that serves one transaction at a time, first come first served. Times are cycles.

    Without ``l2``, an enabled L2 hits on its locked lines and misses on all others. Of ten lines
    that it evicts, ``dirty`` are dirty, and are written back before (rule 9). With ``l2``, it hits
    on the lines that are in it; writes that miss allocate nothing.
    """

    def __init__(
        self,
        latencies: MemoryLatencies,
        free: int = 0,
        locked: LockedLines = NOT_LOCKED,
        dirty: int = POLLUTED,
        l2: SimulatedCache | None = None,
    ) -> None:
        self.latencies = latencies
        self.dirty = dirty if latencies.l2_hit is not None and latencies.dirty_l2_victims else 0
        self.free = free
        self.locked = locked
        self.l2 = l2
        self.random: Random | None = None  # of the machine; None: it is not part of one yet

    def _filled(self, addr: int | None) -> int:
        """Cycles to the first word of the line at ``addr``."""
        hit, cached = self.latencies.l2_hit, self.l2
        if hit is None or cached is None or addr is None or self.locked.holds(addr, addr):
            return self._missed(addr)
        outcome = cached.load(cached.geometry.line(addr))
        if outcome.hit:
            return hit
        dirty = outcome.victim is not None and self.latencies.dirty_l2_victims
        return self.latencies.access * (2 if dirty else 1)

    def _written(self, addr: int | None) -> int:
        """Cycles to write a word, or a line that L1 evicts."""
        hit, cached = self.latencies.l2_hit, self.l2
        if hit is None or cached is None or addr is None or self.locked.holds(addr, addr):
            return self._missed(addr)
        return hit if cached.store(cached.geometry.line(addr)).hit else self.latencies.access

    def _missed(self, addr: int | None) -> int:
        """Cycles of an access past L1 that misses in L2 too, except on locked lines."""
        hit = self.latencies.l2_hit
        if hit is not None and addr is not None and self.locked.holds(addr, addr):
            return hit
        return self.latencies.access + self._victim()

    def _victim(self) -> int:
        if not self.dirty or self.random is None:
            return 0
        return self.latencies.access if self.random.randrange(10) < self.dirty else 0

    def line(self, now: int, addr: int | None = None) -> tuple[int, int]:
        """Fill the line at ``addr``; returns the cycles of its first and of its last word."""
        first = max(now, self.free) + self._filled(addr)
        self.free = first + self.latencies.line_rest
        return first, self.free

    def write(self, now: int, words: int = 1, addr: int | None = None) -> int:
        """Write words or lines of cached memory one by one; returns the cycle of completion."""
        self.free = max(now, self.free) + sum(self._written(addr) for _ in range(words))
        return self.free

    def past(self, now: int, words: int) -> int:
        """Access words of uncached memory one by one; returns the cycle of completion."""
        self.free = max(now, self.free) + words * self.latencies.access
        return self.free


class FetchAndCaches:
    """Both caches and the fetch buffer."""

    def __init__(
        self, icache: SimulatedCache, dcache: SimulatedCache, prefetch_bytes: int, random: Random
    ) -> None:
        self.dcache = dcache
        self.fetch = FetchUnit(icache)
        self.prefetch_bytes = prefetch_bytes
        self.random = random


@dataclass(slots=True)
class _Scoreboard:
    """The first cycle in which each resource is free."""

    result: dict[int, int] = field(default_factory=dict)  # register usable as a normal operand
    unlocked: dict[int, int] = field(default_factory=dict)  # register may be overwritten
    flags: int = 0
    setter: int | None = None  # last cycle of the last flag setter
    unit: int = 0
    bypassed: int | None = None  # base written back by the previous instruction


class PipelineMachine:
    """Executes a trace. ``clock`` is the next issue slot."""

    buffer_words = 8

    def __init__(
        self, core: CoreTable, memory: MemoryBus, chip: FetchAndCaches, *, aligned: bool = True
    ) -> None:
        self.core, self.memory, self.chip, self.aligned = core, memory, chip, aligned
        memory.random = chip.random
        self.clock = 0
        self.board = _Scoreboard()
        self.fills: list[int] = []  # completion of data fills under way
        self.buffer: deque[int] = deque()  # completion of buffered writes
        self.line_ready: dict[int, int] = {}  # instruction line -> when it can be executed from
        self.data_ready: dict[int, int] = {}  # data line -> when its fill is complete
        self.last_fill = 0  # data line
        self.tlb: Tlb | None = None  # None: every translation is present
        self.load_misses = self.stored_words = 0  # lines; words written past the cache
        self._kinds: dict[tuple[int, bool], tuple[Insn, InsnClass]] = {}

    def start(self, addr: int) -> None:
        """Control arrives at ``addr``."""
        self.chip.fetch.redirect(addr)

    def run(self, trace: list[ExecutedInsn]) -> int:
        """Execute ``trace``; returns the cycle in which all its operations are finished."""
        for step in trace:
            self.execute(step)
        return self.finished

    @property
    def finished(self) -> int:
        """The cycle in which the last result is ready, the units are idle and memory is quiet."""
        board = self.board
        return max(
            self.clock, board.unit, board.flags, self.memory.free, *board.result.values(),
            *board.unlocked.values(), 0,
        )  # fmt: skip

    def execute(self, step: ExecutedInsn) -> None:
        """Execute one instruction and set ``clock`` to the next issue slot."""
        insn = step.insn
        kind = self._kind(step)
        self._fetch(insn.next, self.clock)
        ready = self.line_ready.get((insn.next - 1) // self._iline, 0)
        for addr in (insn.addr, insn.next - 1):
            ready = self._translated(TlbSide.CODE, addr, max(self.clock, ready))
        self._begin(step, kind, self._issue_cycle(step, kind, max(self.clock, ready)))

    def _translated(self, side: TlbSide, addr: int, now: int) -> int:
        """The cycle in which the translation of ``addr``, requested at ``now``, is ready."""
        found = Translation.SMALL if self.tlb is None else self.tlb.translate(side, addr)
        if found is Translation.SMALL or self.tlb is None:
            return now
        if found is Translation.TABLES:
            now = self.memory.write(now, self.tlb.model.reads)
        return now + self.tlb.model.refill

    def _data_translated(self, step: ExecutedInsn, now: int) -> int:
        """The cycle in which the addresses of a data access are translated."""
        memory = step.insn.memory
        if memory is not None and step.address is not None and self.tlb is not None:
            for addr in (step.address, step.address + memory.size * memory.count - 1):
                now = self._translated(TlbSide.DATA, addr, now)
        return now

    def _kind(self, step: ExecutedInsn) -> InsnClass:
        """The class of a step. Cached instructions stay alive, so their ids stay unique."""
        aligned8 = step.address is not None and step.address % 8 == 0
        key = (id(step.insn), aligned8)
        known = self._kinds.get(key)
        if known is None:
            kind = classify_insn(step.insn, aligned=self.aligned, aligned8=aligned8)
            known = self._kinds[key] = (step.insn, kind)
        return known[1]

    @property
    def _iline(self) -> int:
        return self.chip.fetch.cache.geometry.line_bytes

    def _fetch(self, until: int, now: int) -> None:
        """Fetch up to ``until``; a missing line can be executed from once it has arrived."""
        fetch = self.chip.fetch
        if until <= fetch.until:
            return
        before = set(fetch.log)
        fetch.fetch_to(until)
        for line, hit in fetch.log.items():
            if line not in before:
                self._translated(TlbSide.CODE, line * self._iline, now)
            if line not in before and not hit:
                restart = self.memory.latencies.fetch_restart
                self.line_ready[line] = self.memory.line(now, line * self._iline)[0] + restart

    def _issue_cycle(self, step: ExecutedInsn, kind: InsnClass, cycle: int) -> int:
        """The first cycle from ``cycle`` on in which the instruction can issue."""
        insn, board = step.insn, self.board
        waits = [cycle]
        if insn.conditional or insn.reads_flags:
            waits.append(board.flags)
        waits += [self._needed(r, kind) for r in self._operands(step, kind)]
        if insn.memory is not None and step.passed:
            waits.append(board.unit)
            self.fills = sorted(f for f in self.fills if f > cycle)
            if len(self.fills) >= OUTSTANDING:
                waits.append(self.fills[-OUTSTANDING])
        if step.passed:
            waits += [board.unlocked.get(r, 0) for r in kind.results]
            waits += [board.result.get(r, 0) for r in kind.results]
            if kind.updates is not None:
                waits.append(board.unlocked.get(kind.updates, 0))
        return max(waits)

    @staticmethod
    def _operands(step: ExecutedInsn, kind: InsnClass) -> frozenset[int]:
        """The registers the instruction waits for; after a failed condition only the address."""
        if not step.passed:
            return kind.address
        return step.insn.reads | frozenset(kind.held)

    def _needed(self, register: int, kind: InsnClass) -> int:
        """First cycle in which ``register`` lets the instruction start."""
        row = self.core.row(*kind.row)
        at = self.board.result.get(register, LONG_AGO)
        roles = [role for role, r in kind.roles.items() if r == register]
        if any(role in row.early for role in roles):
            direct = register == self.board.bypassed and register in kind.address
            return at if direct else at + 1
        if roles and all(role in row.late for role in roles):
            return at - min(row.late[role] for role in roles)
        return at

    def _begin(self, step: ExecutedInsn, kind: InsnClass, cycle: int) -> None:
        board = self.board
        board.bypassed = None
        issue, delay = self._effects(step, kind, cycle) if step.passed else (1, 0)
        if kind.taken is not None and step.taken:
            self._fetch(
                step.insn.next + self.chip.random.randint(0, self.chip.prefetch_bytes), cycle
            )
            self._redirect(kind, cycle + delay)
            return
        if kind.not_taken is not None:
            issue = self.core.row(*kind.not_taken).issue
        self.clock = cycle + issue
        self._fetch(step.insn.next + self.chip.random.randint(0, self.chip.prefetch_bytes), cycle)
        if step.passed:
            self._maintain(step.insn)
        if step.passed and self.tlb is not None and changes_translation(step.insn):
            self.tlb.forget()

    def _redirect(self, kind: InsnClass, cycle: int) -> None:
        """Transfer control; lines fetched behind the transfer stay in the cache.

        ``cycle`` is the issue cycle, later by the miss of a target that is loaded.
        """
        assert kind.taken is not None
        self.clock = cycle + self.core.row(*kind.taken).issue
        if kind.flag_rule and self.board.setter is not None:
            distance = self.core.row("FLAGS_TO_TARGET").latency[0]
            self.clock = max(self.clock, self.board.setter + distance)

    def _maintain(self, insn: Insn) -> None:
        """Execute a CP15 operation (TRM, chapter 3), if ``insn`` is one.

        Traces do not hold its operand: the line that an operation names by address is drawn among
        the dirty ones, and others.
        """
        found, chip = coprocessor_operation(insn), self.chip
        if found is None or found.written is None:
            return
        icache = chip.fetch.cache
        match found.written.crn, found.written.crm, found.written.opc2:
            case (7, 5, 0):
                icache.invalidate_all()
            case (7, 5, 1 | 2) | (9, 0, 0 | 1):  # locking ways may lose any line
                icache.invalidate(chip.random.choice([*chip.fetch.log]))
            case (7, 5, 4):
                self.start(insn.next)
            case (7, 6, 0):
                chip.dcache.invalidate_all()
            case (7, 7, 0):
                icache.invalidate_all()
                chip.dcache.invalidate_all()
            case (7, 10, 0):
                self._write_back(chip.dcache.clean_all())
            case (7, 10, 1 | 2) | (7, 11, 1):
                self._write_back(int(chip.dcache.clean_any()))
            case (7, 10, 4):
                self.clock = max(self.clock, self.memory.free)
            case (7, 14, 1 | 2):
                self._write_back(int(chip.dcache.clean_any()))
                chip.dcache.invalidate(self.last_fill)
            case (7, 14, 0):
                self._write_back(chip.dcache.clean_all())
                chip.dcache.invalidate_all()
            case (7, 0 | 5 | 10, 4 | 5 | 6 | 7) | (1 | 2 | 3 | 8 | 13, _, _):
                pass
            case _:
                raise TimingError(
                    "this operation has no concrete effect", where=f"{insn.addr:#x}: {insn.text}"
                )

    def _write_back(self, lines: int) -> None:
        """Write ``lines`` dirty lines out; later accesses wait for the last one."""
        if lines:
            self.board.unit = max(self.board.unit, self.memory.write(self.clock, lines))

    def _effects(self, step: ExecutedInsn, kind: InsnClass, cycle: int) -> tuple[int, int]:
        """Execute one instruction; returns its issue cycles, and its loads' delay beyond hits."""
        row, board, insn = self.core.row(*kind.row), self.board, step.insn
        later = 0
        busy = row.memory
        if kind.taken is not None and self.core.row(*kind.taken).with_list:
            later, busy = 1, busy + 1
        delay = 0
        if insn.memory is not None:
            start = self._data_translated(step, cycle)
            board.unit = start + busy
            delay = start - cycle
            if step.address is not None:
                delay += self._access(step, start)
        elif row.memory:
            board.unit = cycle + busy
        for index, register in enumerate(kind.results):
            if row.latency:
                latency = row.latency[min(index, len(row.latency) - 1)] + later
                board.result[register] = cycle + latency + delay
            elif not row.memory:
                board.result[register] = cycle + row.issue
        if kind.updates is not None:
            base = self.core.base_latency(row, last=kind.updates_last)
            now = board.result.get(kind.updates, 0)
            board.result[kind.updates] = max(now, cycle + base)
            board.bypassed = kind.updates
        for index, register in enumerate(kind.held):
            if row.latency:
                lock = cycle + row.latency[min(index, len(row.latency) - 1)]
                board.unlocked[register] = max(board.unlocked.get(register, 0), lock)
        if insn.sets_flags:
            board.flags = cycle + row.issue
            board.setter = cycle + row.issue - 1
        return row.issue, delay

    def _access(self, step: ExecutedInsn, cycle: int) -> int:
        """Perform the data access; returns the cycles by which it delays results beyond a hit."""
        memory, addr = step.insn.memory, step.address
        assert memory is not None
        assert addr is not None
        done = cycle
        cache = self.chip.dcache
        size = memory.size * memory.count
        for line in cache.geometry.lines(addr, size):
            low = max(addr, line * cache.geometry.line_bytes)
            high = min(addr + size, (line + 1) * cache.geometry.line_bytes)
            words = (high - 1) // 4 - low // 4 + 1
            if memory.access is not AccessKind.STORE:
                done = max(done, self._read(line, words, step.cached, cycle))
            if memory.access in (AccessKind.STORE, AccessKind.SWAP):
                self._write(line, words, step.cached, cycle)
        return done - cycle

    def _read(self, line: int, words: int, cached: bool, cycle: int) -> int:
        if not cached:
            done = self.memory.past(cycle, words)
            self.fills.append(done)
            return done
        outcome = self.chip.dcache.load(line)
        if outcome.hit:
            return self.data_ready.get(line, 0)
        victim = self._written_back(outcome)
        before = self.chip.random.random() < 0.5
        if victim is not None and before:
            self.memory.write(cycle, 1, victim)
        self.load_misses += 1
        addr = line * self.chip.dcache.geometry.line_bytes
        first, complete = self.memory.line(cycle, addr)
        if victim is not None and not before:
            self.memory.write(cycle, 1, victim)
        self.fills.append(complete)
        self.data_ready[line] = complete
        self.last_fill = line
        return first

    def _written_back(self, outcome: CacheOutcome) -> int | None:
        """Address of the dirty line that a load evicts, if the board has such."""
        if outcome.victim is None or not self.memory.latencies.dirty_l1_victims:
            return None
        return outcome.victim * self.chip.dcache.geometry.line_bytes

    def _write(self, line: int, words: int, cached: bool, cycle: int) -> None:
        """A store that misses goes to the write buffer; when that is full, the unit waits."""
        if cached and self.chip.dcache.store(line).hit:
            return
        self.stored_words += words
        addr = line * self.chip.dcache.geometry.line_bytes
        for _ in range(words):
            while self.buffer and self.buffer[0] <= cycle:
                self.buffer.popleft()
            if len(self.buffer) >= self.buffer_words:
                cycle = self.buffer.popleft()
                self.board.unit = max(self.board.unit, cycle + 1)
            write = self.memory.write(cycle, 1, addr) if cached else self.memory.past(cycle, 1)
            self.buffer.append(write)
