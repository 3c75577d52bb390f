"""The invariants of programs and supergraphs. Every test that builds one runs these.

Program
    P1  functions are keyed by their entry; every entry and every callee is a function
    P2  block i has index i; block 0 starts at the entry; the others ascend by address
    P3  the instructions of a block are contiguous and of one instruction set; no two blocks of
        a function share an instruction; only the last one of a block may transfer control
    P4  each edge is once there, starts and ends at blocks, and is legal for the last instruction:
        FALLTHROUGH to the next address, TAKEN to the target (also of a bl that only jumps),
        ACROSS after a call to the next address, or to where the call comes back, INDIRECT after an
        indirect transfer; CALL and RETURN do not occur
    P5  all effects of the last instruction are there, unless a fact excludes one: a conditional one
        falls through, a direct jump has its edge or its tail call, a call has its callee, an
        indirect transfer has an effect, is unresolved, is proved never to be made in this function
        (a jump table without targets, or one that only other functions use), or is a return of a
        function stated never to return; a call to the return address is a return
    P6  ACROSS is there exactly when a callee may return or is replaced, or the call is unresolved
    P7  every block is reached from block 0
    P8  ``returns`` is there when a block returns or a tail callee does (rule 3)

Supergraph
    S1  a context's parent is below it, its call site is a call of its function in the parent
    S2  adjacency lists are exactly the edges
    S3  every node is on a path from the entry to an exit, or to a stop, from which nothing goes on
    S4  erasing contexts maps every edge to one of the program: a local edge within one context,
        ACROSS only past a function that is replaced,
        CALL from a call site to the callee's entry in its context, RETURN from a returning block
        to the end of an ACROSS edge of the calling context (through tail calls)
    S5  exits are blocks that exit, or return with no caller
    S6  the graph is reducible, the loops are all its loops, outer ones first; ``entries`` and
        ``backs`` divide the edges into the header
    S7  each call of a node has its context, and each local edge of a node is there if both ends
        are (checked for graphs from which no edge was removed)

All violations are collected, then raised together; P1, P2, S1 and S2 before the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind, Program
from quoll.cfg.discover import falls_through
from quoll.graph.natural_loops import find_loops, retreating_edges
from quoll.inlining.supergraph import SuperEdge, Supergraph

__all__ = ["InvariantError", "verify_program", "verify_supergraph"]

SHOWN = 20
TRANSFERS = frozenset(f for f in ControlFlow if f is not ControlFlow.NEXT)


class InvariantError(AssertionError):
    """A graph violates an invariant of its type: a defect of this project."""


def verify_program(program: Program) -> None:
    """Check P1 to P8. Raises InvariantError listing every violation."""
    functions = program.functions.items()
    _raise([fault for entry, cfg in functions for fault in _keys(program, entry, cfg)])
    unresolved = {u.addr for u in program.unresolved}
    unresolved |= {table.addr for table in program.jump_tables if not table.targets}
    users = _users(program)
    _raise([fault for _, cfg in functions for fault in _function(program, cfg, unresolved, users)])


def verify_supergraph(graph: Supergraph, program: Program, *, complete: bool = True) -> None:
    """Check S1 to S6, and S7 if ``complete``. Raises InvariantError listing every violation."""
    _raise([*_contexts(graph, program), *_adjacency(graph)])
    faults = [*_paths(graph), *_loop_nest(graph), *_erased(graph, program)]
    if complete:
        faults.extend(_complete(graph, program))
    _raise(faults)


def _raise(faults: list[str]) -> None:
    if faults:
        more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise InvariantError("\n".join([*faults[:SHOWN], *more]))


def _keys(program: Program, entry: int, cfg: Cfg) -> Iterator[str]:
    name = f"{cfg.name} at {entry:#x}"
    if cfg.entry != entry:
        yield f"P1 {name}: keyed by another address"
    for callee in {c for block in cfg.blocks for c in block.calls} - program.functions.keys():
        yield f"P1 {name}: calls {callee:#x}, which is no function"
    if not cfg.blocks or cfg.blocks[0].addr != entry:
        yield f"P2 {name}: block 0 is not the entry"
    addrs = [b.addr for b in cfg.blocks[1:]]
    if [b.index for b in cfg.blocks] != list(range(len(cfg.blocks))) or addrs != sorted(set(addrs)):
        yield f"P2 {name}: blocks are out of order"
    for edge in cfg.edges:
        if not (0 <= edge.src < len(cfg.blocks) and 0 <= edge.dst < len(cfg.blocks)):
            yield f"P4 {name}: {edge} does not join blocks"


def _users(program: Program) -> dict[int, set[int]]:
    """The functions in which each indirect transfer goes somewhere, by its address."""
    users: dict[int, set[int]] = {}
    for entry, cfg in program.functions.items():
        jumps = (cfg.blocks[e.src] for e in cfg.edges if e.kind is EdgeKind.INDIRECT)
        for block in chain(jumps, (block for block in cfg.blocks if block.calls)):
            users.setdefault(block.last.addr, set()).add(entry)
    return users


def _function(
    program: Program, cfg: Cfg, unresolved: set[int], users: dict[int, set[int]]
) -> Iterator[str]:
    name = f"{cfg.name} at {cfg.entry:#x}"
    seen: set[int] = set()
    for block in cfg.blocks:
        yield from _contiguous(name, block, seen)
    yield from _edges(name, cfg)
    for block in cfg.blocks:
        elsewhere = users.get(block.last.addr, set()) - {cfg.entry}
        if block.last.addr not in unresolved and not _guided(program, block):
            yield from _effects(program, name, cfg, block, used_elsewhere=bool(elsewhere))
    yield from _reach_and_return(program, name, cfg)


def _guided(program: Program, block: Block) -> bool:
    """Whether a fact took something that may happen after ``block``."""
    last = block.last
    return any(
        last.flow in (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL)
        or any(removed.explains(last.addr, target) for target in (block.end, last.target))
        for removed in program.guidance.removed
    )


def _contiguous(name: str, block: Block, seen: set[int]) -> Iterator[str]:
    for insn, after in pairwise(block.insns):
        if insn.next != after.addr or insn.thumb != after.thumb:
            yield f"P3 {name}: gap after {insn.addr:#x}"
        if insn.flow in TRANSFERS:
            yield f"P3 {name}: transfer inside a block at {insn.addr:#x}"
    for insn in block.insns:
        if insn.addr in seen:
            yield f"P3 {name}: {insn.addr:#x} is in two blocks"
        seen.add(insn.addr)


def _edges(name: str, cfg: Cfg) -> Iterator[str]:
    if len(set(cfg.edges)) != len(cfg.edges):
        yield f"P4 {name}: an edge is there twice"
    for edge in cfg.edges:
        if not _legal(cfg, edge):
            src, dst = cfg.blocks[edge.src], cfg.blocks[edge.dst]
            yield f"P4 {name}: {edge.kind.value} from {src.last.addr:#x} to {dst.addr:#x}"


def _legal(cfg: Cfg, edge: Edge) -> bool:
    block, target = cfg.blocks[edge.src], cfg.blocks[edge.dst].addr
    last = block.last
    if edge.kind is EdgeKind.FALLTHROUGH:
        return (last.flow is ControlFlow.TRAP or falls_through(last)) and target == block.end
    if edge.kind is EdgeKind.TAKEN:
        return last.flow in (ControlFlow.JUMP, ControlFlow.CALL) and target == last.target
    if edge.kind is EdgeKind.ACROSS:
        calls = block.comes_back or last.flow in (
            ControlFlow.CALL,
            ControlFlow.INDIRECT_CALL,
            ControlFlow.INDIRECT,
        )
        return bool(calls) and target in block.returned_to
    return edge.kind is EdgeKind.INDIRECT and last.flow is ControlFlow.INDIRECT


def _effects(
    program: Program, name: str, cfg: Cfg, block: Block, *, used_elsewhere: bool
) -> Iterator[str]:
    last = block.last
    reached = (*block.calls, *block.passes)
    kinds = {edge.kind for edge in cfg.successors(block.index)}
    where = f"{name}: {last.addr:#x}"
    if block.exits and last.flow is not ControlFlow.EXCEPTION_RETURN:
        return
    if falls_through(last) and EdgeKind.FALLTHROUGH not in kinds:
        yield f"P5 {where} does not fall through"
    if last.flow is ControlFlow.JUMP and EdgeKind.TAKEN not in kinds and last.target not in reached:
        yield f"P5 {where} does not reach its target"
    if last.flow is ControlFlow.CALL and last.target not in reached and EdgeKind.TAKEN not in kinds:
        yield f"P5 {where} does not call its target"
    if last.flow is ControlFlow.EXCEPTION_RETURN and not block.exits:
        yield f"P5 {where} does not exit"
    if last.flow is ControlFlow.INDIRECT_CALL and not (reached or block.returns):
        yield f"P5 {where} calls nothing"
    silent = cfg.returns and not (reached or block.returns or EdgeKind.INDIRECT in kinds)
    if last.flow is ControlFlow.INDIRECT and silent and not used_elsewhere:
        yield f"P5 {where} goes nowhere"
    comes_back = not block.tail and (
        bool(block.passes) or any(program.functions[c].returns for c in block.calls)
    )
    if comes_back != (EdgeKind.ACROSS in kinds):
        yield f"P6 {where}: its callees {'do' if comes_back else 'do not'} return"


def _reach_and_return(program: Program, name: str, cfg: Cfg) -> Iterator[str]:
    successors: list[list[int]] = [[] for _ in cfg.blocks]
    for edge in cfg.edges:
        successors[edge.src].append(edge.dst)
    for block in set(range(len(cfg.blocks))) - _reached(successors, 0):
        yield f"P7 {name}: {cfg.blocks[block].addr:#x} is not reached"
    returns = any(
        b.returns or (b.tail and any(program.functions[c].returns for c in b.calls))
        for b in cfg.blocks
    )
    if returns and not cfg.returns:
        yield f"P8 {name}: returns but is said not to"


def _reached(successors: list[list[int]], start: int) -> set[int]:
    seen: set[int] = set()
    pending = [start]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(successors[node])
    return seen


def _contexts(graph: Supergraph, program: Program) -> Iterator[str]:
    for index, context in enumerate(graph.contexts):
        if context.parent is None:
            if index or context.call_site is not None:
                yield f"S1 context {index} has no parent"
            continue
        if not 0 <= context.parent < index:
            yield f"S1 context {index} has parent {context.parent}"
            continue
        site, caller = context.call_site, program.functions[graph.contexts[context.parent].function]
        if not any(b.last.addr == site and context.function in b.calls for b in caller.blocks):
            yield f"S1 context {index}: no call at {site}"


def _adjacency(graph: Supergraph) -> Iterator[str]:
    outward: list[list[int]] = [[] for _ in graph.nodes]
    inward: list[list[int]] = [[] for _ in graph.nodes]
    for index, edge in enumerate(graph.edges):
        outward[edge.src].append(index)
        inward[edge.dst].append(index)
    if tuple(map(tuple, outward)) != graph.successors:
        yield "S2 successors are not the edges"
    if tuple(map(tuple, inward)) != graph.predecessors:
        yield "S2 predecessors are not the edges"


def _paths(graph: Supergraph) -> Iterator[str]:
    after: list[list[int]] = [[] for _ in graph.nodes]
    before: list[list[int]] = [[] for _ in graph.nodes]
    for edge in graph.edges:
        after[edge.src].append(edge.dst)
        before[edge.dst].append(edge.src)
    nodes = set(range(len(graph.nodes)))
    ends = {n for end in (*graph.exits, *graph.stops) for n in _reached(before, end)}
    yield from (f"S3 node {n} is not reached" for n in nodes - _reached(after, graph.entry))
    yield from (f"S3 node {n} reaches no exit" for n in nodes - ends)
    for stop in graph.stops:
        if stop in graph.exits or graph.successors[stop]:
            yield f"S3 node {stop} stops, but goes on"
    for halt in graph.halts:
        if halt not in graph.exits or graph.successors[halt]:
            yield f"S3 node {halt} halts, but goes on, or is no exit"


def _loop_nest(graph: Supergraph) -> Iterator[str]:
    successors = [[graph.edges[e].dst for e in out] for out in graph.successors]
    for src, dst in retreating_edges(successors, graph.entry):
        yield f"S6 the step from node {src} to {dst} is irreducible"
    found = [(o.header, frozenset(o.nodes)) for o in find_loops(successors, graph.entry)]
    if [(o.header, o.nodes) for o in graph.loops] != found:
        yield "S6 the loops are not the loops of the graph"
    for i, loop in enumerate(graph.loops):
        around = [o.index for o in graph.loops[:i] if o.nodes >= loop.nodes]
        nearest = min(around, key=lambda o: len(graph.loops[o].nodes), default=None)
        if loop.parent != nearest:
            yield f"S6 loop {i}: its parent is not the loop around it"
    for i, loop in enumerate(graph.loops):
        inward = graph.predecessors[loop.header]
        if sorted((*loop.entries, *loop.backs)) != sorted(inward) or loop.index != i:
            yield f"S6 loop {i}: its edges are not those into its header"
        if any(graph.edges[e].src not in loop.nodes for e in loop.backs) or any(
            graph.edges[e].src in loop.nodes for e in loop.entries
        ):
            yield f"S6 loop {i}: entries and backs are mixed up"
        if not loop.backs or (not loop.entries and loop.header != graph.entry):
            yield f"S6 loop {i} has no entries or no backs"


def _local(program: Program) -> dict[int, set[tuple[int, int, EdgeKind]]]:
    """Edges of each function by block addresses."""
    return {
        entry: {(cfg.blocks[e.src].addr, cfg.blocks[e.dst].addr, e.kind) for e in cfg.edges}
        for entry, cfg in program.functions.items()
    }


def _erased(graph: Supergraph, program: Program) -> Iterator[str]:
    local = _local(program)
    for i, edge in enumerate(graph.edges):
        src, dst = graph.nodes[edge.src], graph.nodes[edge.dst]
        caller, callee = graph.contexts[src.context], graph.contexts[dst.context]
        if edge.kind is EdgeKind.CALL:
            legal = (
                (src.context, src.block.last.addr) == (callee.parent, callee.call_site)
                and callee.function in src.block.calls
                and dst.block.addr == callee.function
            )
        elif edge.kind is EdgeKind.RETURN:
            legal = src.block.returns and _returns_to(graph, program, local, edge)
        else:
            step = (src.block.addr, dst.block.addr, edge.kind)
            legal = src.context == dst.context and step in local[caller.function]
            legal = legal and (edge.kind is not EdgeKind.ACROSS or bool(src.block.passes))
        if not legal:
            yield f"S4 edge {i}: {edge.kind.value} {src.block.addr:#x} to {dst.block.addr:#x}"
    for exit_ in graph.exits:
        node = graph.nodes[exit_]
        alone = _caller(graph, program, node.context) is None
        if any(r.exits for e in graph.predecessors[exit_] for r in graph.passed(e)):
            continue
        if not (node.block.exits or (node.block.returns and alone) or exit_ in graph.halts):
            yield f"S5 node {exit_} at {node.block.addr:#x} is no exit"
    if graph.nodes[graph.entry].block.addr != graph.contexts[0].function:
        yield "S5 the entry node is not the entry"


def _caller(graph: Supergraph, program: Program, context: int) -> tuple[int, Block] | None:
    """The context and block to which a return from ``context`` leads; None at the root."""
    called = graph.contexts[context]
    while called.parent is not None:
        parent, site = called.parent, called.call_site
        called = graph.contexts[parent]
        blocks = program.functions[called.function].blocks
        block = next(b for b in blocks if b.last.addr == site)
        if not block.tail:
            return parent, block
    return None


def _returns_to(
    graph: Supergraph,
    program: Program,
    local: dict[int, set[tuple[int, int, EdgeKind]]],
    edge: SuperEdge,
) -> bool:
    """Whether the return ``edge`` leads to where its caller goes on."""
    target = graph.nodes[edge.dst]
    caller = _caller(graph, program, graph.nodes[edge.src].context)
    if caller is None or target.context != caller[0]:
        return False
    step = (caller[1].addr, target.block.addr, EdgeKind.ACROSS)
    return step in local[graph.contexts[target.context].function]


def _complete(graph: Supergraph, program: Program) -> Iterator[str]:
    steps: dict[tuple[int, int], list[tuple[int, EdgeKind]]] = {}
    passing = {(e, b.addr) for e, cfg in program.functions.items() for b in cfg.blocks if b.passes}
    for entry, edges in _local(program).items():
        for src, dst, kind in edges:
            if kind is not EdgeKind.ACROSS or (entry, src) in passing:
                steps.setdefault((entry, src), []).append((dst, kind))
    present = {(node.context, node.block.addr) for node in graph.nodes}
    opened = {(c.parent, c.call_site, c.function) for c in graph.contexts}
    taken = {(r.source, r.target) for r in graph.guidance.removed}
    for n, node in enumerate(graph.nodes):
        if n in graph.stops or n in graph.halts:
            continue
        there = {
            (graph.nodes[graph.edges[e].dst].block.addr, graph.edges[e].kind)
            for e in graph.successors[n]
        }
        function = graph.contexts[node.context].function
        for dst, kind in steps.get((function, node.block.addr), ()):
            if (dst, kind) not in there and (node.context, dst) in present:
                yield f"S7 node {n}: no {kind.value} from {node.block.addr:#x} to {dst:#x}"
        for callee in node.block.calls:
            site = node.block.last.addr
            if (node.context, site, callee) not in opened and (site, callee) not in taken:
                yield f"S7 node {n}: {callee:#x} has no context here"
