"""A program without the branches, blocks, edges and functions that facts exclude.

Each fact that removes something is an assumption of the result, and the removed edges are recorded
(``quoll.facts.applied``): an execution along a removed edge refutes the fact (rule 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from quoll.arm.insn import ControlFlow, Insn
from quoll.assumptions import Assumption, stated
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind, Program
from quoll.cfg.discover import falls_through
from quoll.errors import FactsError
from quoll.extraction.stated_registers import decided
from quoll.facts.applied import RemovedEdge, RequiredPlace
from quoll.facts.count_facts import NeverExecutesFact
from quoll.facts.fact_places import FactPlace
from quoll.facts.guidance import BranchFact, IgnoreEdgeFact, IgnoreFact, RequireFact
from quoll.facts.located import LocatedFacts
from quoll.graph.closure import closure
from quoll.image.image import Image

__all__ = ["Cut", "cut_of", "guided", "never_runs", "require_branch"]

Removal = BranchFact | IgnoreFact | IgnoreEdgeFact | NeverExecutesFact


@dataclass(frozen=True, slots=True)
class Cut:
    """A fact with its place; ``target`` is where an edge leads, else the same place."""

    fact: Removal
    source: FactPlace
    target: FactPlace

    @property
    def stated(self) -> Assumption:
        """The fact as a listed assumption."""
        return stated(self.fact)


def guided(program: Program, image: Image, facts: LocatedFacts) -> Program:
    """``program`` without the parts that facts exclude everywhere, with required places noted.

    Facts about one function's invocations are applied later (``quoll.inlining.context_cuts``).
    Raises FactsError where there is no such branch. An ignored entry is ignored only where it is
    called.
    """
    required = tuple(
        RequiredPlace(_covered(program, facts.at(f, f.place)), stated(f))
        for f in facts.of(RequireFact)
    )
    cuts = [cut_of(facts, f) for f in facts.facts if isinstance(f, Removal) and _removes(f)]
    cuts = [cut for cut in cuts if not _contradicts(cut, required)]
    branches = decided(program, image, facts)
    if not cuts and not required and not branches:
        return program
    removed: dict[RemovedEdge, None] = {}
    used: dict[Assumption, None] = {}
    taken: set[int] = set()
    functions = dict(program.functions)
    losses = {
        entry: [
            (assumed, loss)
            for index, taken, assumed in found
            for loss in _branch(functions[entry], functions[entry].blocks[index], taken, assumed[0])
        ]
        for entry, found in branches.items()
    }
    for entry, of_registers in losses.items():
        cfg = functions[entry]
        functions[entry] = _without(cfg, [loss for _, loss in of_registers])
        for assumed, (loss, lost) in of_registers:
            taken.add(cfg.blocks[loss.block].last.addr)
            removed[lost] = None
            used.update(dict.fromkeys(assumed))
    for cut in cuts:
        if isinstance(cut.fact, BranchFact):
            _require_one_branch(functions.values(), cut, cut.fact, image)
        for entry in _concerned(program, facts, cut.fact):
            cfg = functions[entry]
            found = list(_removed(cfg, cut))
            if found:
                functions[entry] = _without(cfg, found)
                taken.update(cfg.blocks[loss.block].last.addr for loss, _ in found)
                removed.update(dict.fromkeys(r for _, r in found))
                used[cut.stated] = None
    functions = _reachable(functions, program.entries, {u.addr for u in program.unresolved})
    insns = {i.addr for cfg in functions.values() for b in cfg.blocks for i in b.insns}
    functions = {e: replace(cfg, whole=program.functions[e]) for e, cfg in functions.items()}
    return replace(
        program,
        functions=functions,
        jump_tables=tuple(t for t in program.jump_tables if t.addr in insns),
        unresolved=tuple(u for u in program.unresolved if u.addr in insns),
        assumptions=(*program.assumptions, *used),
        guidance=replace(
            program.guidance, removed=tuple(removed), required=required, cut=frozenset(taken)
        ),
    )


def _removes(fact: Removal) -> bool:
    """Whether a fact may exclude code of whole functions."""
    if isinstance(fact, NeverExecutesFact):
        return fact.caller is None
    return not (isinstance(fact, BranchFact) and fact.function is not None)


def _contradicts(cut: Cut, required: Iterable[RequiredPlace]) -> bool:
    """Whether a count of 0 is of a required place: the integer program then names both facts."""
    places = (addr for place in required for addr in place.addresses)
    return isinstance(cut.fact, NeverExecutesFact) and any(map(cut.target.covers, places))


def _concerned(program: Program, facts: LocatedFacts, fact: Removal) -> list[int]:
    """The functions that execute only where ``fact`` holds: all, or within one function."""
    within = facts.limits(fact)[0] if isinstance(fact, NeverExecutesFact) else None
    if within is None:
        return list(program.functions)

    def others(caller: int) -> Iterator[int]:
        blocks = program.functions[caller].blocks
        return (callee for block in blocks for callee in block.calls if callee != within)

    outside = closure((e for e in program.entries if e != within), others)
    return [entry for entry in program.functions if entry not in outside]


def never_runs(block: Block, cut: Cut) -> bool:
    """Whether ``block`` never executes if the instruction at the place of a count of 0 does not.

    Counts about lines, and about conditional instructions, are left to the integer program.
    """
    place = cut.target
    return place.exact and any(
        place.covers(insn.addr) and block.always_runs(insn) for insn in block.insns
    )


def cut_of(facts: LocatedFacts, fact: Removal) -> Cut:
    """``fact`` with its place."""
    places = [facts.at(fact, text) for text in fact.places()]
    return Cut(fact, places[0], places[-1])


def _covered(program: Program, place: FactPlace) -> frozenset[int]:
    insns = (i for cfg in program.functions.values() for b in cfg.blocks for i in b.insns)
    return frozenset(i.addr for i in insns if place.covers(i.addr))


def _is_branch(insn: Insn) -> bool:
    """Whether ``insn`` may transfer control, and may not."""
    ways = (ControlFlow.NEXT, ControlFlow.WAIT, ControlFlow.TRAP, ControlFlow.UNDEFINED)
    return insn.flow not in ways and falls_through(insn)


def _require_one_branch(cfgs: Iterable[Cfg], cut: Cut, fact: BranchFact, image: Image) -> None:
    """Raise FactsError where the place is reached but has no conditional branch, or several."""
    blocks = [b for cfg in cfgs for b in cfg.blocks]
    here = [b for b in blocks if any(cut.source.covers(i.addr) for i in b.insns)]
    branches = {b.last.addr for b in here if cut.source.covers(b.last.addr) and _is_branch(b.last)}
    if here and not branches:
        require_branch(here[0], cut, image)
    if len(branches) > 1:
        raise FactsError(
            f"several branches are at {fact.place}",
            where=str(fact.source),
            hint=f"choose one of {', '.join(image.place(b) for b in sorted(branches))}",
        )


def require_branch(block: Block, cut: Cut, image: Image) -> None:
    """Raise FactsError if ``block`` does not end with a conditional branch at the place."""
    if not _is_branch(block.last) or not cut.source.covers(block.last.addr):
        insn = next(i for i in block.insns if cut.source.covers(i.addr))
        raise FactsError(
            f"there is no conditional branch, but {insn.text}, at {image.place(insn.addr)}",
            where=str(cut.fact.source),
            hint=f"the branch that ends its block is {block.last.text} at "
            f"{image.place(block.last.addr)}",
        )


@dataclass(frozen=True, slots=True)
class _BlockExclusion:
    """The part that a block loses: edges, callees, or its returns and path ends."""

    block: int
    edge: Edge | None = None
    callee: int | None = None
    exits: bool = False


def _removed(cfg: Cfg, cut: Cut) -> Iterator[tuple[_BlockExclusion, RemovedEdge]]:
    fact = cut.fact
    counts = isinstance(fact, NeverExecutesFact)
    for block in cfg.blocks:
        last = block.last.addr
        if isinstance(fact, BranchFact):
            if cut.source.covers(last) and _is_branch(block.last):
                yield from _branch(cfg, block, fact.taken, cut.stated)
            continue
        source = last if isinstance(fact, IgnoreEdgeFact) else None
        if source is not None and not any(cut.source.covers(i.addr) for i in block.insns):
            continue
        for edge in cfg.successors(block.index):
            target = cfg.blocks[edge.dst]
            if _leads_to(target, cut):
                yield (
                    _BlockExclusion(block.index, edge=edge),
                    RemovedEdge(source, target.addr, cut.stated),
                )
        for callee in (*block.calls, *block.passes):
            if cut.target.covers(callee) and (cut.target.exact or not counts):
                yield (
                    _BlockExclusion(block.index, callee=callee),
                    RemovedEdge(source, callee, cut.stated),
                )


def _leads_to(target: Block, cut: Cut) -> bool:
    """Whether an edge to ``target`` is excluded."""
    if isinstance(cut.fact, NeverExecutesFact):
        return never_runs(target, cut)
    named = [target.insns[0]] if isinstance(cut.fact, IgnoreEdgeFact) else target.insns
    return any(cut.target.covers(insn.addr) for insn in named)


def _branch(
    cfg: Cfg, block: Block, taken: bool, fact: Assumption
) -> Iterator[tuple[_BlockExclusion, RemovedEdge]]:
    last = block.last.addr
    for edge in cfg.successors(block.index):
        if (edge.kind is EdgeKind.FALLTHROUGH) == taken:
            target = cfg.blocks[edge.dst].addr
            yield _BlockExclusion(block.index, edge=edge), RemovedEdge(last, target, fact)
    if taken:
        return
    for callee in (*block.calls, *block.passes):
        yield _BlockExclusion(block.index, callee=callee), RemovedEdge(last, callee, fact)
    if block.returns or block.exits:
        yield _BlockExclusion(block.index, exits=True), RemovedEdge(last, None, fact)


def _without(cfg: Cfg, losses: list[tuple[_BlockExclusion, RemovedEdge]]) -> Cfg:
    edges = {loss.edge for loss, _ in losses}
    callees = {(loss.block, loss.callee) for loss, _ in losses}
    exits = {loss.block for loss, _ in losses if loss.exits}
    blocks = tuple(
        replace(
            block,
            calls=tuple(c for c in block.calls if (block.index, c) not in callees),
            passes=tuple(c for c in block.passes if (block.index, c) not in callees),
            returns=block.returns and block.index not in exits,
            exits=block.exits and block.index not in exits,
        )
        for block in cfg.blocks
    )
    return replace(cfg, blocks=blocks, edges=tuple(e for e in cfg.edges if e not in edges))


def _reachable(
    functions: dict[int, Cfg], entries: tuple[int, ...], unresolved: set[int]
) -> dict[int, Cfg]:
    """The functions that are still called, without unreachable blocks.

    A call returns only if it has a callee that returns.
    """
    while True:
        functions = {e: _trimmed(cfg, functions, unresolved) for e, cfg in functions.items()}
        returning = {e: _returns(cfg, functions, unresolved) for e, cfg in functions.items()}
        if all(cfg.returns == returning[e] for e, cfg in functions.items()):
            break
        functions = {e: replace(cfg, returns=returning[e]) for e, cfg in functions.items()}
    reached = closure(entries, lambda entry: (c for b in functions[entry].blocks for c in b.calls))
    return {e: cfg for e, cfg in functions.items() if e in reached}


def _returns(cfg: Cfg, functions: dict[int, Cfg], unresolved: set[int]) -> bool:
    """Whether ``cfg`` may still return; an unresolved transfer may (rule 3)."""
    return cfg.returns and any(
        b.returns
        or b.last.addr in unresolved
        or (b.tail and any(functions[c].returns for c in b.calls))
        for b in cfg.blocks
    )


def _trimmed(cfg: Cfg, functions: dict[int, Cfg], unresolved: set[int]) -> Cfg:
    """``cfg`` without ACROSS edges of calls that do not return, and without unreachable blocks."""
    edges = [
        e
        for e in cfg.edges
        if e.kind is not EdgeKind.ACROSS
        or cfg.blocks[e.src].last.addr in unresolved
        or _returns_to(cfg.blocks[e.src], functions)
    ]
    reachable = sorted(closure([0], lambda at: (e.dst for e in edges if e.src == at)))
    number = {old: new for new, old in enumerate(reachable)}
    return replace(
        cfg,
        blocks=tuple(replace(cfg.blocks[old], index=number[old]) for old in reachable),
        edges=tuple(
            Edge(number[e.src], number[e.dst], e.kind)
            for e in edges
            if e.src in number and e.dst in number
        ),
    )


def _returns_to(block: Block, functions: dict[int, Cfg]) -> bool:
    """Whether control may return after the call at the end of ``block``."""
    return bool(block.passes) or any(functions[c].returns for c in block.calls)
