"""Branches that facts about registers decide in every calling context.

Code behind such a branch is removed first: dead code needs no targets, no bounds and no depths.
Values in contexts find more dead edges later (rule 4), but only in a complete graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from quoll.abstract_domain.compiled import KnownRegisters
from quoll.abstract_domain.function_values import BlockCode, LocalValues
from quoll.assumptions import Assumption, stated
from quoll.cfg.cfg import Cfg, Program
from quoll.errors import WcetError
from quoll.facts.contract import contract_of_any
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet

__all__ = ["Decided", "decided"]

Decided = tuple[int, bool, tuple[Assumption, ...]]  # block, always taken, deciding assumptions


def decided(program: Program, image: Image, facts: LocatedFacts) -> dict[int, list[Decided]]:
    """By function, the branches that go one way only under facts about registers in it.

    Branches that go one way without facts are omitted: no execution of them refutes a fact. A fact
    is listed where it decides together with the facts before it.
    """
    pointers = facts.regions.pointers
    found: dict[int, list[Decided]] = {}
    for entry, cfg in program.functions.items() if pointers else ():
        here = {i.addr for b in cfg.blocks for i in b.insns} & pointers.keys()
        registers: dict[int, tuple[tuple[int | None, ValueSet], ...]] = {}
        known = dict(_one_way(program, cfg, image, registers)) if here else {}
        for at in sorted(here):
            for pointer in pointers[at]:
                registers[at] = (*registers.get(at, ()), (pointer.register, pointer.known))
                for (block, taken), assumptions in _one_way(program, cfg, image, registers):
                    if (block, taken) not in known:
                        known[block, taken] = assumptions
                        assumed = (stated(pointer.fact), *sorted(assumptions))
                        found.setdefault(entry, []).append((block, taken, assumed))
    return found


def _one_way(
    program: Program, cfg: Cfg, image: Image, given: KnownRegisters
) -> Iterator[tuple[tuple[int, bool], frozenset[Assumption]]]:
    """The reached blocks with a one-way last instruction, and whether it transfers control.

    Empty for a function that has an instruction without semantics.
    """

    contracts = partial(contract_of_any, program.left)
    try:
        values = LocalValues(cfg, image, BlockCode(given), contracts)
    except WcetError:
        return
    for block in cfg.blocks:
        outcome = values.outcome(block.index)
        if outcome is not None and (outcome.leave is None) != (outcome.fall is None):
            yield (block.index, outcome.fall is None), values.assumptions
