"""What an indirect transfer does: return, call or jump, and where to, by values alone.

A write of the pc is a return if the word written is lr as it was at entry. It is a call if lr
then holds the address of the next instruction. Where the word is not one constant, some index
selects it: the index is the symbol with few values on which the written word depends. The code
from where the index is bounded to the transfer is interpreted once per value of it, and must
give one constant each time. So tables of addresses, of offsets, of bytes, and computed jumps are
all one case, and entries come from non-writable memory only (rule 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from quoll.arm.insn import LR, Flow, Insn
from quoll.cfg import EdgeKind
from quoll.condition import decide
from quoll.localvalues import LocalValues
from quoll.state import FLAG, State, entry_register
from quoll.terms import RIGID, Fact, Facts, Rotated, describe, entry_symbol, plain
from quoll.transfer import Leave, Outcome, run
from quoll.valueset import ANY, ValueSet

__all__ = ["Resolution", "Unknown", "resolve"]

LARGEST_TABLE = 4096  # values of an index
CHAIN = 6  # blocks before the one that transfers, among which the index may be bounded
RETURN_ADDRESS = entry_symbol(LR) << 32


@dataclass(frozen=True, slots=True)
class Resolution:
    """``kind`` is "return", "jump" or "call". Targets have bit 0 set if they are Thumb code.

    ``targets`` are one per table entry, in table order, without those that cannot be selected;
    duplicates are kept. ``table`` is the address of the first entry, None for computed targets.
    """

    kind: str
    targets: tuple[int, ...] = ()
    table: int | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a transfer is not resolved.

    ``reached`` is False if it is never made: the code around it, as far as it is known, excludes
    that. Once all else is resolved it needs no targets.
    """

    reason: str
    reached: bool = True


def resolve(values: LocalValues, block: int) -> Resolution | Unknown:
    """What the pc write at the end of ``block`` does, as far as the function is known now."""
    outcome = values.outcome(block)
    last = values.cfg.blocks[block].last
    if outcome is None:
        return Unknown("the instruction is not reached", False)
    if outcome.leave is None:
        return Unknown("the transfer is never made", False)
    leave = outcome.leave
    if leave.target == RETURN_ADDRESS:
        return Resolution("return")
    kind = "call" if _links(last, leave) else "jump"
    target = _target(values, leave)
    if target is not None:
        return Resolution(kind, (target,))
    paths = list(_paths(values, block))
    found = _selected(values, paths) or _one_of_two(values, paths[0])
    if found is not None:
        return Resolution(kind, *found)
    return Unknown(_reason(values, leave))


def _selected(
    values: LocalValues, paths: Iterable[_Path]
) -> tuple[tuple[int, ...], int | None] | None:
    """Targets and table, from the shortest path on which something selects among them.

    An offset loaded from a table selects too, but its interval hides gaps between the entries; so
    a longer path, which includes the load, is better.
    """
    best: tuple[tuple[int, ...], int | None] | None = None
    for path in paths:
        found = _by_index(values, path)
        if found is None:
            continue
        if best is None or len(set(found[0])) < len(set(best[0])):
            best = found
        if found[1] is not None:
            break
    return best


def _links(insn: Insn, leave: Leave) -> bool:
    """Whether lr holds the address after ``insn`` when it transfers control."""
    return insn.flow is Flow.INDIRECT_CALL or leave.state.term(LR) in (insn.next, insn.next | 1)


def _target(values: LocalValues, leave: Leave) -> int | None:
    """The one address and instruction set that ``leave`` goes to, if that is known."""
    words = _words(leave.target, leave.state.facts).exact
    thumb = decide(leave.thumb, leave.state.facts, values.environment.stacks)
    if words is None or thumb is None:
        return None
    return words | 1 if thumb else words & ~3


def _words(term: int, facts: Facts) -> ValueSet:
    return plain(describe(term, facts))


@dataclass(frozen=True, slots=True)
class _Path:
    """Instructions from some place to the transfer: pieces of blocks, each entered by one edge."""

    state: State  # at the start
    pieces: tuple[tuple[int, tuple[Insn, ...], EdgeKind | None], ...]  # block, insns, edge after


def _paths(values: LocalValues, block: int) -> Iterator[_Path]:
    """Paths that end with the transfer, the shortest first."""
    blocks, graph = values.cfg.blocks, values.graph
    rest: tuple[tuple[int, tuple[Insn, ...], EdgeKind | None], ...] = ()
    edge_after: EdgeKind | None = None
    for _ in range(CHAIN):
        state = values.fixpoint.states[block]
        if state is None:
            return
        insns = blocks[block].insns
        for start in range(len(insns) - 1, -1, -1):
            before = _before(values, block, state, insns[:start])
            if before is not None:
                yield _Path(before, ((block, insns[start:], edge_after), *rest))
        entering = [e for e in range(len(graph.sources)) if graph.targets[e] == block]
        if len(entering) != 1 or values.kinds[entering[0]] is EdgeKind.ACROSS or block == 0:
            return
        rest = ((block, insns, edge_after), *rest)
        edge_after = values.kinds[entering[0]]
        block = graph.sources[entering[0]]


def _before(values: LocalValues, block: int, state: State, insns: tuple[Insn, ...]) -> State | None:
    """The state after the first instructions of a block."""
    if not insns:
        return state
    position = values.order.position[block]
    return run(values.code(insns), state, values.environment, position).fall


def _follow(
    values: LocalValues, path: _Path, state: State, accesses: list[dict[int, Fact]]
) -> Leave | None:
    """Interpret ``path`` from ``state``; None if the transfer is not made."""
    for block, insns, edge in path.pieces:
        position = values.order.position[block]
        accesses.append({})
        # symbols of the piece must not be those that an earlier part of the block has made
        site = position + len(values.order.nodes) * len(insns)
        outcome = run(values.code(insns), state, values.environment, site, accesses[-1])
        if edge is None:
            return outcome.leave
        after = _along(outcome, edge)
        if after is None:
            return None
        state = after
    raise AssertionError("a path ends with a transfer")


def _along(outcome: Outcome, edge: EdgeKind) -> State | None:
    if edge is EdgeKind.FALLTHROUGH:
        return outcome.fall
    return None if outcome.leave is None else outcome.leave.state


def _by_index(values: LocalValues, path: _Path) -> tuple[tuple[int, ...], int | None] | None:
    """Targets and table, if one symbol at the start of ``path`` selects the target."""
    leave = _follow(values, path, path.state, [])
    if leave is None:
        return None
    for symbol in _symbols(path.state):
        if leave.target >> 32 == symbol:
            continue  # the target itself: its interval may hold words that no table has
        fact = leave.state.facts.get(symbol, path.state.facts.get(symbol, ANY))
        members = fact.members if isinstance(fact, Rotated) else plain(fact)
        if members.size <= LARGEST_TABLE:
            origin = fact.origin if isinstance(fact, Rotated) else 0
            found = _select(values, path, symbol, [origin + x for x in members])
            if found is not None:
                return found
    return None


def _one_of_two(values: LocalValues, path: _Path) -> tuple[tuple[int, ...], int | None] | None:
    """The two targets, if the word written is one of two: then the interval is the set."""
    leave = _follow(values, path, path.state, [])
    if leave is None or leave.target >> 32 < RIGID:
        return None
    symbol = leave.target >> 32
    members = plain(leave.state.facts.get(symbol, ANY))
    return _select(values, path, symbol, list(members)) if members.size == 2 else None


def _symbols(state: State) -> list[int]:
    """The existential symbols that a state mentions, registers first."""
    found: dict[int, None] = {}
    cells = [*state.frames.values(), *state.globals.values()]
    words = [c if type(c) is int else c[1] for c in cells]  # type: ignore[index]
    for term in (*state.registers[:FLAG], *words):
        assert type(term) is int
        if term >> 32 >= RIGID:
            found.setdefault(term >> 32)
    return list(found)


def _select(
    values: LocalValues, path: _Path, symbol: int, indices: Sequence[int]
) -> tuple[tuple[int, ...], int | None] | None:
    """The target for each value of ``symbol``; None if one of them is not constant."""
    targets: list[int] = []
    loads: list[list[dict[int, Fact]]] = []
    for index in indices:
        facts = {**path.state.facts, symbol: ValueSet.of(index)}
        before = path.state
        chosen = State(before.registers, before.frames, before.globals, before.banks, facts)
        loads.append([])
        leave = _follow(values, path, chosen, loads[-1])
        if leave is None:
            loads.pop()
            continue
        target = _target(values, leave)
        if target is None:
            return None
        targets.append(target)
    return (tuple(targets), _table(loads)) if targets else None


def _table(loads: list[list[dict[int, Fact]]]) -> int | None:
    """The lowest address of the first load whose address depends on the index."""
    for piece in range(len(loads[0])):
        for index in loads[0][piece]:
            facts = {accesses[piece].get(index) for accesses in loads}
            exact = [f.exact for f in facts if isinstance(f, ValueSet)]
            addrs = [addr for addr in exact if addr is not None]
            if len(addrs) > 1:
                return min(addrs)
    return None


def _reason(values: LocalValues, leave: Leave) -> str:
    fact = describe(leave.target, leave.state.facts)
    register = entry_register(leave.target >> 32, values.environment.names)
    if register is not None:
        return f"the target depends on r{register} as it was when the function was entered"
    if isinstance(fact, ValueSet) and fact != ANY:
        return f"the target is one of {fact}"
    return "the target is not known: it does not come from constants and an index with few values"
