"""Extraction: from entries to a ``Program``, every function that they may reach.

Control passes a call only if its callee may return, and a function may return if a return in it is
reachable: the other functions never return, which is the greatest fixed point of rule 3.
``Program.unresolved`` lists all undecided transfers.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise

from quoll.arm.operation import Operation
from quoll.assumptions import ENTRY_MODE, RESTORES_MODE, stated
from quoll.cfg.cfg import Cfg, Edge, EdgeKind, JumpTable, Program
from quoll.cfg.growing_function import CalleeEntry, GrowingFunction
from quoll.cfg.transfers import is_call
from quoll.cfg.translation_changes import refuse_moved_code, translation_changes
from quoll.cfg.unresolved import UnresolvedTransfer
from quoll.errors import ControlFlowError, MissingKind, UsageError
from quoll.extraction.contradictions import refuse_returning_exits
from quoll.extraction.cuts import guided
from quoll.extraction.endless_waits import endless_waits
from quoll.extraction.extraction_facts import ExtractionFacts
from quoll.extraction.lone_function import is_endless
from quoll.extraction.work_list import CallGraphFixpoint
from quoll.facts.anchors import anchored
from quoll.facts.contract import contract_of_any
from quoll.facts.located import NO_FACTS, LocatedFacts
from quoll.facts.memory_facts import RegionFact
from quoll.graph.closure import closure
from quoll.image.elf import SAY_WHICH
from quoll.image.image import Image
from quoll.indirect.call_candidates import Candidates
from quoll.indirect.stack_frames import call_frames
from quoll.indirect.table_candidates import table_candidates

__all__ = ["extract"]


def extract(
    image: Image,
    entries: Iterable[int],
    facts: LocatedFacts = NO_FACTS,
    exits: frozenset[int] | None = None,
) -> Program:
    """All code reachable from ``entries``, as functions.

    An entry may carry the Thumb bit; without it the symbols decide. ``exits``: instructions after
    which a path ends and control does not continue. None: the exits are unknown; then every
    exception return is assumed to end a path, and the assumption is listed. If they are known, an
    exception return that a call leads to is unresolved, because the restored context may continue
    behind that call. Memory that facts call read-only holds its loaded contents. Raises UsageError
    when an entry is not code, FactsError when the code at a place cannot be as a fact says.
    """
    roots = tuple(entries)
    program = _extracted(image, roots, facts, exits)
    moved = image.retranslated()
    if moved is image or not _changes_translations(program, image):
        return program
    return _extracted(moved, roots, facts, exits)


def _extracted(
    image: Image, entries: Iterable[int], facts: LocatedFacts, exits: frozenset[int] | None
) -> Program:
    """The program if all translations stay unchanged."""
    fixed = [fact for fact in facts.of(RegionFact) if fact.kind == "read-only"]
    image = image.holding((fact.low, fact.high) for fact in fixed)
    statements = ExtractionFacts(image, facts)
    fixpoint = CallGraphFixpoint(image, statements, exits)
    roots = [_entry(image, addr) for addr in entries]
    image.begin_lines()
    with _not_collected():
        for root in roots:
            fixpoint.start(root)
        fixpoint.run()
        program = _program(
            image,
            fixpoint,
            statements,
            tuple(dict.fromkeys(root.entry for root in roots)),
            exits or frozenset(),
        )
        fixpoint.builders.clear()  # they refer back to the fixpoint
    given = tuple(stated(fact) for fact in fixed)
    program = replace(program, assumptions=(*given, *program.assumptions))
    return guided(program, image, facts)


def _changes_translations(program: Program, image: Image) -> bool:
    """Whether code of ``program`` changes translations.

    Raises ControlFlowError if the platform does not fix the translation of the code right behind
    it.
    """
    blocks = [block for cfg in program.functions.values() for block in cfg.blocks]
    changes = translation_changes(blocks)
    places = {insn.addr for insn in changes}
    for block in blocks if changes else ():
        for change, behind in pairwise(block.insns):
            if change.addr in places:
                refuse_moved_code(image, change, (behind,))
    return bool(changes)


@contextmanager
def _not_collected() -> Iterator[None]:
    """Run without cyclic garbage collection, which would take a tenth of the time.

    Extraction makes hardly any cyclic garbage. At the end all new objects count as old, so that no
    collection scans them at once.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()
        if enabled:
            gc.enable()


def _entry(image: Image, addr: int) -> CalleeEntry:
    """The function at ``addr``, checked to be code of the instruction set that bit 0 selects."""
    thumb = bool(addr & 1) or image.thumb_at(addr) is True
    wrong = image.contradiction(addr & ~1, thumb=True) if addr & 1 else None
    addr &= ~1
    problem = _no_entry(image, addr, thumb)
    if problem:
        hint = "name a function"
        if not thumb and _no_entry(image, addr, thumb=True) is None:
            hint = f"if it is Thumb code, which nothing in the file says, write {addr | 1:#x}"
        if several := image.overlaid(addr):
            problem, hint = f"{problem}: {several}", SAY_WHICH
        raise UsageError(problem, where=image.place(addr), hint=hint)
    if wrong:
        raise UsageError(
            f"the odd address {addr | 1:#x} stands for Thumb code, but {wrong}",
            where=image.place(addr),
            hint="name the function, or give its even address",
        )
    return CalleeEntry(addr, thumb)


def _no_entry(image: Image, addr: int, thumb: bool) -> str | None:
    """The reason why no function can start at ``addr``, or None."""
    if not image.is_executable(addr):
        return "the entry is not code"
    kinds = {s.kind for s in image.symbols.at(addr)}
    if kinds == {"object"} or (image.is_marked_data(addr) and "func" not in kinds):
        return "the entry is data"
    return "the entry is not aligned" if addr % (2 if thumb else 4) else None


def _program(
    image: Image,
    fixpoint: CallGraphFixpoint,
    statements: ExtractionFacts,
    entries: tuple[int, ...],
    exits: frozenset[int],
) -> Program:
    """The program found, without functions that became part of all their callers."""
    reached = sorted(_reached(fixpoint, entries))
    built = [fixpoint.functions[entry] for entry in reached]
    if image.is_relocatable:
        _check_relocations(image, built)
    functions: dict[int, Cfg] = {f.entry: fixpoint.cfg(f) for f in built}
    refuse_returning_exits(image, functions.values(), exits - statements.exits.keys())
    unresolved = {addr: u for f in built for addr, u in f.unresolved.items()}
    for wait in endless_waits(functions, unresolved):
        del unresolved[wait]
    unresolved |= _with_candidates(image, statements, functions.values(), unresolved)
    sites = {site for f in built for site in f.sites}
    used = {addr for cfg in functions.values() for addr in _going_on(cfg)} | unresolved.keys()
    statements.check({addr: insn for f in built for addr, insn in f.insns.items()})
    assumptions = [
        *fixpoint.assumptions,
        *(text for entry in reached for text in fixpoint.unproved(entry)),
        *statements.assumptions(functions),
        *fixpoint.exits(reached),
        *(
            ENTRY_MODE.of(function=image.place(entry))
            for entry in sorted(fixpoint.entry_modes())
            if entry in functions
        ),
        *(
            RESTORES_MODE.of(function=image.place(entry))
            for entry in sorted(fixpoint.restoring() & functions.keys())
        ),
    ]
    left = {entry: fixpoint.left_by(entry) for entry in reached}
    contracts = partial(contract_of_any, left)
    return Program(
        functions,
        entries,
        tuple(
            fixpoint.tables[addr] if addr in used else JumpTable(addr, None, ())
            for addr in sorted(fixpoint.tables)
            if addr in sites
        ),
        tuple(unresolved[addr] for addr in sorted(unresolved)),
        tuple(dict.fromkeys(assumptions)),
        statements.guidance(functions),
        left,
        fixpoint.entry_modes(),
        {entry: call_frames(cfg, contracts) for entry, cfg in functions.items()},
        frozenset(fixpoint.restoring() & functions.keys()),
    )


def _check_relocations(image: Image, functions: Iterable[GrowingFunction]) -> None:
    """Raise ControlFlowError where relocations change instructions of the file."""
    for function in functions:
        for addr, insn in function.insns.items():
            if image.is_relocated(addr, insn.size):
                raise ControlFlowError(
                    f"a dynamic relocation changes {insn.text} before it runs",
                    where=image.place(addr),
                    hint="link the code for the address at which it runs",
                )


def _with_candidates(
    image: Image,
    statements: ExtractionFacts,
    functions: Iterable[Cfg],
    unresolved: Mapping[int, UnresolvedTransfer],
) -> dict[int, UnresolvedTransfer]:
    """The transfers with proposals: calls, jumps that may leave as calls do, and switches."""
    if statements.restricted_to is not None:
        return {}
    endless = partial(is_endless, image)
    candidates = Candidates(image, statements.vtables, statements.address_taken, endless)
    found = {}
    for cfg in functions:
        open_blocks = [
            block
            for block in cfg.blocks
            if block.last.addr in unresolved
            and unresolved[block.last.addr].asks is MissingKind.TARGETS
        ]
        into: dict[int, list[Edge]] = {}
        for edge in cfg.edges if open_blocks else ():
            into.setdefault(edge.dst, []).append(edge)
        for block in open_blocks:
            at = block.last.addr
            called = is_call(block) or block.last.operation is Operation.BRANCH_EXCHANGE
            propose = candidates.proposal if called else partial(table_candidates, image)
            proposal = propose(cfg, into, block)
            if proposal is not None:
                placed = replace(proposal, place=anchored(image, at) or f"{at:#x}")
                found[at] = replace(unresolved[at], proposal=placed)
    return found


def _going_on(cfg: Cfg) -> Iterator[int]:
    """The indirect jumps and calls of ``cfg`` after which control continues in it.

    A jump can be dead in one function and alive in another, which may not be part of the result.
    """
    for edge in cfg.edges:
        if edge.kind is EdgeKind.INDIRECT:
            yield cfg.blocks[edge.src].last.addr
    yield from (block.last.addr for block in cfg.blocks if block.calls)


def _reached(fixpoint: CallGraphFixpoint, entries: tuple[int, ...]) -> set[int]:
    functions = fixpoint.functions
    return closure(entries, lambda entry: (callee.entry for callee in functions[entry].callees))
