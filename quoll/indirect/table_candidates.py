"""Targets of a switch without a range check, as a fact to be confirmed.

A compiler leaves the check out where the source excludes other values: an unreachable default, or a
``match`` over all values of a type. The table stands behind the jump or at a known place; its
entries lead into the function, and the code that they lead to ends it. A proposal is no part of any
result until a user states it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quoll.arm.insn import PC, ControlFlow, Insn
from quoll.cfg.cfg import Block, Cfg, Edge
from quoll.cfg.unresolved import CandidateFact
from quoll.image.image import Image
from quoll.indirect.load_origins import LoadRoot, origins

__all__ = ["table_candidates"]

WORD = 4  # bytes
HALF = 2  # bytes: the unit of offsets in a table of bytes or halfwords
MOST = 1024  # entries


def table_candidates(
    image: Image, cfg: Cfg, into: Mapping[int, Sequence[Edge]], block: Block
) -> CandidateFact | None:
    """The fact about the jump that ends ``block``; None without a table of two entries at least."""
    insn = block.last
    memory = insn.memory
    if insn.flow is not ControlFlow.INDIRECT or (memory is not None and memory.index is None):
        return None
    if memory is None or memory.size == WORD:  # without optimisation, the jump follows the load
        tables = {
            origin.constant + origin.shift
            for origin in origins(cfg, into, block, image, across=True) or ()
            if origin.root is LoadRoot.CONSTANT
            and origin.levels == 1
            and (memory is not None or origin.offsets == (0, None))
        }
    else:
        tables = {insn.addr + WORD} if memory.base == PC else set()
    if len(tables) != 1:
        return None
    (table,) = tables
    targets = list(_targets(image, insn, table))
    if len(targets) < 2:
        return None
    names = ", ".join(_name(image, target) for target in dict.fromkeys(targets))
    note = (
        f"the table at {table:#x} has {len(targets)} entries before the code that they lead to: "
        f"this assumes that the index is always below {len(targets)}"
    )
    return CandidateFact(f"targets of PLACE are {names}", len(set(targets)), note)


def _targets(image: Image, insn: Insn, table: int) -> Iterator[int]:
    """The targets of the entries; bit 0 is clear."""
    around = image.symbols.function_around(insn.addr)
    if around is None:
        return
    inside = range(around.addr, around.addr + around.size)
    size, end = WORD if insn.memory is None else insn.memory.size, table + MOST * WORD
    at = table
    while at < end:
        content = image.read(at, size)
        if content is None or image.constant(at, size) is None:
            return
        entry = int.from_bytes(content, "little")
        target = entry & ~1 if size == WORD else insn.addr + WORD + HALF * entry
        if (
            target not in inside
            or table <= target < at + size
            or (size == WORD and not insn.thumb and entry % WORD)
        ):
            return
        yield target
        if target > at:
            end = min(end, target)
        at += size


def _name(image: Image, addr: int) -> str:
    """The address by its function, which survives that others move."""
    found = image.symbol_at(addr)
    if found is None or image.only_symbol(found[0].name) != found[0]:
        return f"{addr:#x}"
    return f"{found[0].name}+{found[1]:#x}" if found[1] else found[0].name
