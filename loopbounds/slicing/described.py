"""What an unknown word of a model is, for people, and the fact that would bound it."""

from __future__ import annotations

from dataclasses import dataclass

from loopbounds.slicing.effects import FLAG, Load
from loopbounds.slicing.gated_ssa import Scope
from loopbounds.terms.bit_vectors import Term
from quoll.arm.insn import PC, Cond
from quoll.cfg.cfg import Block

__all__ = ["Described", "described"]


@dataclass(frozen=True, slots=True)
class Described:
    """``fact`` would say how large the word is, if it is a count; "" where no register holds it."""

    name: str
    place: str
    fact: str

    def __str__(self) -> str:
        return f"{self.name} at {self.place}"


def described(scope: Scope, symbol: Term) -> Described:
    """A symbol of ``scope``."""
    node, cell = scope.source(symbol)
    block = scope.code.graph.nodes[node].block
    where = scope.code.image.place(block.addr)
    if isinstance(cell, int):
        known = cell < PC
        name = f"r{cell}" if cell < FLAG else "a flag"
        return Described(name, where, _at_most(cell, block.addr) if known else "")
    if cell is not None:
        return Described(f"memory at {cell[0]!r}", where, "")
    load = scope.memory.load_of(node, symbol)
    if load is None:
        return Described("a word computed", where, "")
    insn = block.insns[load.insn]
    place = scope.code.image.place(insn.addr)
    return Described(f"the word that '{insn.text}' reads", place, _after(block, load))


def _after(block: Block, load: Load) -> str:
    """The fact about the register that a load has just filled."""
    insn = block.insns[load.insn]
    if load.insn + 1 == len(block.insns) or insn.cond is not Cond.AL or len(insn.transfers) != 1:
        return ""
    return _at_most(insn.transfers[0], insn.next)


def _at_most(register: int, address: int) -> str:
    return f"register r{register} at {address:#x} is at most M"
