"""The graph of a function under construction: its instructions cut into blocks."""

from __future__ import annotations

from quoll.arm.insn import Flow, Insn
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.cfg.discover import FunctionBuilder

__all__ = ["built"]


def built(function: FunctionBuilder, name: str, *, returns: bool) -> Cfg:
    """The function as it is known now. Blocks start at leaders; each is one run of code.

    Without ``returns`` control ends at its returns: the user said that it never returns.
    """
    starts = sorted(function.leaders & function.insns.keys())
    starts.sort(key=lambda addr: addr != function.entry)
    blocks = [
        _block(function, index, _run_of(function, start), returns=returns)
        for index, start in enumerate(starts)
    ]
    index_at = {block.addr: block.index for block in blocks}
    return Cfg(
        function.entry,
        name,
        function.thumb,
        tuple(blocks),
        _edges(function, blocks, index_at),
        returns,
    )


def _run_of(function: FunctionBuilder, leader: int) -> list[Insn]:
    """Instructions from the leader on, up to one that ends the block."""
    insns, leaders, exits = function.insns, function.leaders, function.exits
    insn = insns[leader]
    run, addr, thumb = [insn], leader, insn.thumb
    while insn.flow is Flow.NEXT and addr not in exits:
        addr += insn.size
        following = None if addr in leaders else insns.get(addr)
        if following is None or following.thumb is not thumb:
            break
        run.append(following)
        insn = following
    return run


def _block(function: FunctionBuilder, index: int, insns: list[Insn], *, returns: bool) -> Block:
    last = insns[-1].addr
    tail = last in function.tails
    returned = last in function.returns and last not in function.unresolved
    return Block(
        index,
        tuple(insns),
        calls=tuple(sorted(function.calls.get(last, ()))),
        tail=tail,
        returns=returns and (returned or (tail and last in function.passes)),
        exits=last in function.exits,
        passes=tuple(sorted(function.passes.get(last, ()))),
        comes_back=tuple(sorted(function.linked.get(last, ()))),
        by_values=last in function.by_values,
    )


def _edges(
    function: FunctionBuilder, blocks: list[Block], index_at: dict[int, int]
) -> tuple[Edge, ...]:
    last_to_block = {block.last.addr: block.index for block in blocks}
    edges = {
        (last_to_block[src], index_at[dst], kind)
        for src, dst, kind in function.edges
        if dst in index_at
    }
    for block in blocks:
        plain = block.last.flow is Flow.NEXT and block.last.addr not in function.exits
        if plain and block.end in index_at:
            edges.add((block.index, index_at[block.end], EdgeKind.FALLTHROUGH))
    return tuple(sorted(map(Edge._make, edges), key=_by_ends))


def _by_ends(edge: Edge) -> tuple[int, int, str]:
    return edge.src, edge.dst, edge.kind.value
