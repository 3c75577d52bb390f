"""Resolves indirect transfers by values alone: return, call or jump, and the targets.

A write of the pc is a return if the written word is the entry value of lr. It is a call if lr then
holds the address of the next instruction, unless the target is read there: a table follows, and no
code. If the word is not one constant, an index may select it (``quoll.indirect.tables``): the index
is a symbol with few values at some earlier place, on which the written word depends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from quoll.abstract_domain.abstract_state import AbstractState, entry_register
from quoll.abstract_domain.function_values import LocalValues
from quoll.abstract_domain.terms import describe, entry_symbol
from quoll.abstract_domain.transfer import BlockExit, run
from quoll.arm.insn import LR, Insn
from quoll.cfg.cfg import EdgeKind
from quoll.indirect.backward_slice import BackwardSlice
from quoll.indirect.tables import (
    LARGEST_TABLE,
    PathBlock,
    PathInterpreter,
    TransferPath,
    links,
    one_of_few,
    selected,
    target_of,
)
from quoll.intervals.strided_interval import ANY, ValueSet

__all__ = ["TransferResolution", "UnknownTarget", "resolve"]

CHAIN = 6  # blocks before the transferring one in which the index may be bounded
WORK = 10_000  # most instructions interpreted per transfer; a table jump takes a few dozen
RETURN_ADDRESS = entry_symbol(LR) << 32


@dataclass(frozen=True, slots=True)
class TransferResolution:
    """``kind`` is "return", "jump" or "call". Thumb targets have bit 0 set.

    ``targets``: one per selectable table entry, in table order, with duplicates. ``table`` is the
    address of the first entry, None for computed targets.
    """

    kind: str
    targets: tuple[int, ...] = ()
    table: int | None = None


@dataclass(frozen=True, slots=True)
class UnknownTarget:
    """The reason why a transfer is not resolved.

    ``reached`` is False if the explored code excludes the transfer: once all else is resolved it
    needs no targets. ``bounded``: the function itself limits the target to a number of words.
    ``loaded``: the target is an unknown loaded word, so it is no register of the caller's.
    ``stored``: the word was stored there, possibly by a call, or it is a number or another register
    at entry.
    """

    reason: str
    reached: bool = True
    bounded: bool = False
    loaded: bool = False
    stored: bool = False


def resolve(values: LocalValues, block: int) -> TransferResolution | UnknownTarget:
    """The effect of the pc write at the end of ``block``, in the function explored so far."""
    outcome = values.outcome(block)
    last = values.cfg.blocks[block].last
    if outcome is None:
        return UnknownTarget("the instruction is not reached", False)
    if outcome.leave is None:
        return UnknownTarget("the transfer is never made", False)
    leave = outcome.leave
    if leave.target == RETURN_ADDRESS:
        return TransferResolution("return")
    kind = "call" if links(last, leave) else "jump"
    constant = target_of(leave, values.environment)
    if constant is not None:
        return TransferResolution(kind, (constant,))
    interpreter = PathInterpreter(values.code, values.environment)
    paths = ((path, interpreter.follow(path, path.state)) for path in _paths(values, block))
    nearest = next(paths)  # the transfer alone: its block is reached
    found = selected(interpreter, chain([nearest], paths)) or one_of_few(interpreter, *nearest)
    if found is not None:
        kind = "jump" if found.reads(last.next) else kind
        return TransferResolution(kind, found.targets, found.table)
    return _unknown(values, leave)


def _paths(values: LocalValues, block: int) -> Iterator[TransferPath]:
    """Paths that end with the transfer, shortest first, from each start that may matter.

    One starts with each block too, because conditions on the way may restrict an index.
    """
    blocks, graph = values.cfg.blocks, values.graph
    transfer = blocks[block].last
    needed = BackwardSlice(transfer, memory=True)
    rest: tuple[PathBlock, ...] = ()
    edge_after: EdgeKind | None = None
    work = 0
    for _ in range(CHAIN):
        state = values.fixpoint.states[block]
        if state is None:
            return
        insns = blocks[block].insns
        if edge_after is not None:
            needed.branch(insns[-1])
        for start in range(len(insns) - 1, -1, -1):
            if start and insns[start] is not transfer and not needed.includes(insns[start]):
                continue
            if work > WORK:
                return
            work += len(insns)
            before = _before(values, block, state, insns[:start])
            if before is not None:
                path_block = _path_block(values, block, insns[start:], edge_after)
                yield TransferPath(before, (path_block, *rest))
        entering = values.entering[block]
        if len(entering) != 1 or values.kinds[entering[0]] is EdgeKind.ACROSS or block == 0:
            return
        rest = (_path_block(values, block, insns, edge_after), *rest)
        edge_after = values.kinds[entering[0]]
        block = graph.sources[entering[0]]


def _path_block(
    values: LocalValues, block: int, insns: tuple[Insn, ...], after: EdgeKind | None
) -> PathBlock:
    # symbols of the sub-path must differ from symbols of earlier instructions of the block
    site = values.order.position[block] + len(values.order.nodes) * len(insns)
    return PathBlock(insns, site, after)


def _before(
    values: LocalValues, block: int, state: AbstractState, insns: tuple[Insn, ...]
) -> AbstractState | None:
    """The state after the first instructions of a block."""
    if not insns:
        return state
    position = values.order.position[block]
    return run(values.code(insns), state, values.environment, position).fall


def _unknown(values: LocalValues, leave: BlockExit) -> UnknownTarget:
    fact = describe(leave.target, leave.state.facts)
    register = entry_register(leave.target >> 32, values.environment.names)
    if register is not None:
        reason = f"the target depends on r{register} as it was when the function was entered"
        return UnknownTarget(reason, stored=True)
    if values.may_be_stored_by_a_call(leave.target):
        reason = "a function that is called stores where the word that is loaded lies"
        return UnknownTarget(reason, loaded=True, stored=True)
    if leave.target >> 32 in values.environment.lost:
        reason = (
            "the word that is loaded may be lost before: a store hits saved words wherever "
            "it goes, or their line of the stack is invalidated"
        )
        return UnknownTarget(reason, loaded=True, stored=True)
    if isinstance(fact, ValueSet) and fact != ANY:
        bounded = fact.size <= LARGEST_TABLE
        return UnknownTarget(f"the target is one of {fact}", bounded=bounded, stored=True)
    return UnknownTarget(
        "the target does not come from constants and an index with few values",
        loaded=fact is ANY or isinstance(fact, ValueSet),
    )
