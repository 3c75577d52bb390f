"""Jump tables: the values of an index select the targets of an indirect transfer.

The code from some place up to the transfer is interpreted once for each value of a symbol with few
values; each time the written word must be one constant. So tables of addresses, of offsets, of
bytes, and computed jumps are all one case, and entries come from non-writable memory only (rule 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_state import FLAG, AbstractState
from quoll.abstract_domain.condition import decide
from quoll.abstract_domain.steps import CompiledBlock
from quoll.abstract_domain.terms import RIGID, Facts, RotatedTerm, describe, plain
from quoll.abstract_domain.transfer import BlockExit, BlockOutcome, KnownAddress, run
from quoll.arm.insn import LR, ControlFlow, Insn
from quoll.cfg.cfg import EdgeKind
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = [
    "LARGEST_TABLE",
    "PathBlock",
    "PathInterpreter",
    "TargetSelection",
    "TransferPath",
    "links",
    "one_of_few",
    "selected",
    "target_of",
]

LARGEST_TABLE = 4096  # values of an index
LARGEST_INTERVAL = 64  # most targets without a known index
LONGEST_INSTRUCTION = 4  # bytes


@dataclass(frozen=True, slots=True)
class TargetSelection:
    """One target per value of the index, in index order.

    ``table`` is the address of the first entry, and ``end`` the address after the first byte of the
    last one. ``limited``: branches on the path limit the index.
    """

    targets: tuple[int, ...]
    table: int | None
    end: int | None = None
    limited: bool = False

    @property
    def distinct(self) -> int:
        """The number of different targets."""
        return len(set(self.targets))

    @property
    def order(self) -> tuple[int, bool]:
        """Less for a selection of fewer targets, or of as many that come from a table."""
        return self.distinct, self.table is None

    @property
    def final(self) -> bool:
        """Whether no longer path is needed: branches limit the index of a table."""
        return self.limited and self.table is not None

    def reads(self, address: int) -> bool:
        """Whether the entry at ``address`` is one of the table."""
        return self.table is not None and self.end is not None and self.table <= address < self.end


@dataclass(frozen=True, slots=True)
class PathBlock:
    """Instructions of one block; ``after`` is the edge to the next block, None at the transfer.

    ``site`` names the symbols created here: no other block of the path has it.
    """

    insns: tuple[Insn, ...]
    site: int
    after: EdgeKind | None


@dataclass(frozen=True, slots=True)
class TransferPath:
    """Code from some place to the transfer, and the state at its start."""

    state: AbstractState
    blocks: tuple[PathBlock, ...]


@dataclass(frozen=True, slots=True)
class PathInterpreter:
    """The inputs for interpreting a path besides the path itself."""

    code: Callable[[tuple[Insn, ...]], CompiledBlock]
    environment: AnalysisEnvironment

    def follow(
        self,
        path: TransferPath,
        state: AbstractState,
        accesses: list[dict[int, KnownAddress]] | None = None,
    ) -> BlockExit | None:
        """Interpret ``path`` from ``state``; None if the transfer is not made.

        ``accesses`` collects the addresses of data accesses, block by block.
        """
        for path_block in path.blocks:
            noting = accesses is not None
            code = self.code(path_block.insns)
            outcome = run(code, state, self.environment, path_block.site, noting=noting)
            if accesses is not None:
                accesses.append(outcome.accesses())
            if path_block.after is None:
                return outcome.leave
            following = _along(outcome, path_block.after)
            if following is None:
                return None
            state = following
        raise AssertionError("a path ends with a transfer")


def _along(outcome: BlockOutcome, edge: EdgeKind) -> AbstractState | None:
    if edge is EdgeKind.FALLTHROUGH:
        return outcome.fall
    return None if outcome.leave is None else outcome.leave.state


def links(insn: Insn, leave: BlockExit) -> bool:
    """Whether lr holds the address after ``insn`` when it transfers control."""
    return insn.flow is ControlFlow.INDIRECT_CALL or leave.state.term(LR) in (
        insn.next,
        insn.next | 1,
    )


def target_of(leave: BlockExit, environment: AnalysisEnvironment) -> int | None:
    """The only address that ``leave`` goes to, if it is known; bit 0 is set for Thumb code."""
    words = _words(leave.target, leave.state.facts).exact
    thumb = decide(leave.thumb, leave.state.facts, environment.stacks)
    if words is None or thumb is None:
        return None
    return words | 1 if thumb else words & ~3


def _words(term: int, facts: Facts) -> ValueSet:
    return plain(describe(term, facts))


def selected(
    interpreter: PathInterpreter, paths: Iterable[tuple[TransferPath, BlockExit | None]]
) -> TargetSelection | None:
    """The fewest targets among which an index selects on one of the paths, and their table.

    Each path comes with its exit, None if the transfer is not made; a shorter one comes first. Each
    result covers all executions. A longer path may include the load of an offset, whose interval
    hides gaps between the entries, or the word that a branch limits and of which the index is a
    multiple.
    """
    best: TargetSelection | None = None
    for path, leave in paths:
        found = None if leave is None else _by_index(interpreter, path, leave)
        if found is not None and (best is None or found.order < best.order):
            best = found
        if found is not None and found.final:
            break
    return best


def _by_index(
    interpreter: PathInterpreter, path: TransferPath, leave: BlockExit
) -> TargetSelection | None:
    """Targets and table, if one symbol at the start of ``path`` selects the target."""
    for symbol in _symbols(path.state):
        if leave.target >> 32 == symbol:
            continue  # the target itself: its interval may hold words of no table
        fact = leave.state.facts.get(symbol, path.state.facts.get(symbol, ANY))
        members = fact.members if isinstance(fact, RotatedTerm) else plain(fact)
        if members.size <= LARGEST_TABLE:
            origin = fact.origin if isinstance(fact, RotatedTerm) else 0
            found = _select(interpreter, path, symbol, [origin + x for x in members])
            if found is not None:
                return replace(found, limited=fact != path.state.facts.get(symbol, ANY))
    return None


def one_of_few(
    interpreter: PathInterpreter, path: TransferPath, leave: BlockExit | None
) -> TargetSelection | None:
    """The members of the written word's interval, if they are likely to be the targets.

    For two words the interval is exact. A larger one may hide gaps, which only add targets that
    control never reaches; so its members must be few, and as far apart as whole instructions.
    """
    if leave is None or leave.target >> 32 < RIGID:
        return None
    symbol = leave.target >> 32
    members = plain(leave.state.facts.get(symbol, ANY))
    apart = members.stride > 0 and members.stride % LONGEST_INSTRUCTION == 0
    if members.size != 2 and not (apart and members.size <= LARGEST_INTERVAL):
        return None
    return _select(interpreter, path, symbol, list(members))


def _symbols(state: AbstractState) -> list[int]:
    """The existential symbols that a state mentions, registers first."""
    found: dict[int, None] = {}
    cells = [*state.frames.values(), *state.globals.values()]
    words = [c[1] if isinstance(c, tuple) else c for c in cells]
    for term in (*state.registers[:FLAG], *words):
        assert type(term) is int
        if term >> 32 >= RIGID:
            found.setdefault(term >> 32)
    return list(found)


def _select(
    interpreter: PathInterpreter, path: TransferPath, symbol: int, indices: Sequence[int]
) -> TargetSelection | None:
    """The target for each value of ``symbol``; None if one of them is not constant.

    None, too, if a target lies in the part of the table that the values reach: then nothing bounds
    the index, and code is read as entries.
    """
    targets: list[int] = []
    loads: list[list[dict[int, KnownAddress]]] = []
    for index in indices:
        facts = {**path.state.facts, symbol: ValueSet.of(index)}
        before = path.state
        chosen = AbstractState(before.registers, before.frames, before.globals, before.banks, facts)
        accesses: list[dict[int, KnownAddress]] = []
        leave = interpreter.follow(path, chosen, accesses)
        if leave is None:
            continue
        constant = target_of(leave, interpreter.environment)
        if constant is None:
            return None
        targets.append(constant)
        loads.append(accesses)
    if not targets:
        return None
    table = _table(loads)
    if table is not None and any(table.low <= target & ~1 <= table.high for target in targets):
        return None
    if table is None:
        return TargetSelection(tuple(targets), None)
    return TargetSelection(tuple(targets), table.low, table.high + 1)


def _table(loads: list[list[dict[int, KnownAddress]]]) -> ValueSet | None:
    """The range of the first load whose address depends on the index."""
    for path_block in range(len(loads[0])):
        for index in loads[0][path_block]:
            addresses = (accesses[path_block].get(index) for accesses in loads)
            facts = {address.fact for address in addresses if address is not None}
            exact = [f.exact for f in facts if isinstance(f, ValueSet)]
            addrs = [addr for addr in exact if addr is not None]
            if len(addrs) > 1:
                return ValueSet(min(addrs), max(addrs), 1)
    return None
