"""The effect of a basic block, as terms over its entry state: the same for all contexts.

Entry values are the symbols ``register_symbol(n)``. Each loaded word and each unknown result is a
symbol, too, which is replaced where the context is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from loopbounds.slicing.op_terms import OP_TERMS
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, both, const, either, ite, negate, sym
from quoll.arm.insn import Insn
from quoll.arm.system_registers import DISCARDED, LINE
from quoll.cfg.cfg import Block
from quoll.errors import ControlFlowError
from quoll.semantics.lift import lift
from quoll.semantics.ops import UNKNOWN_CODES, Op, OpCode, Space, Var

__all__ = [
    "FLAG",
    "SP",
    "BlockEffect",
    "LoadEffect",
    "StoreEffect",
    "block_effect",
    "register_symbol",
    "stack_symbol",
]

SP = 13
STACK_POINTER = Var(Space.REG, SP, 4)
FLAG = 16  # registers from this number on are flags: one bit in a byte
WORD = 4  # bytes


@dataclass(frozen=True, slots=True)
class LoadEffect:
    """``symbol`` stands for ``size`` bytes read at ``address``."""

    position: int  # among the loads and stores of the block
    insn: int  # index in the block
    symbol: Term
    address: Term
    size: int
    sp: Term  # when its instruction begins


@dataclass(frozen=True, slots=True)
class StoreEffect:
    """``value`` is written to ``address`` where ``guard`` holds."""

    position: int
    insn: int  # index in the block
    address: Term
    value: Term
    guard: Term
    sp: Term  # when its instruction begins

    @property
    def size(self) -> int:
        """The size of the store in bytes."""
        return self.value.width // 8


@dataclass(frozen=True, slots=True)
class BlockEffect:
    """``leaves``: the condition to continue elsewhere than at the next instruction in memory.

    ``target``: the address there, with any bits below the alignment; None: it is not one term.
    """

    registers: dict[int, Term]  # written ones
    loads: dict[Term, LoadEffect]
    stores: tuple[StoreEffect, ...]
    unknown: frozenset[Term]
    leaves: Term
    target: Term | None = None

    def on_edge(self, register: int, *, falls_through: bool) -> Term | None:
        """The value of a register on one kind of edge out of the block; None: unwritten."""
        term = self.registers.get(register)
        if term is None or term.op != "ite":
            return term
        condition, yes, no = term.args
        for side, holds in ((condition, True), (negate(condition), False)):
            if side is self.leaves:
                chosen = no if falls_through is holds else yes
                return None if chosen is register_symbol(register) else chosen
        return term


@cache
def register_symbol(number: int) -> Term:
    """The value of a register at block entry; flags are one bit wide."""
    return sym(f"entry{number}", 1 if number >= FLAG else 32)


def entry_value(number: int) -> Term:
    """A register at block entry, in the width that ops use."""
    symbol = register_symbol(number)
    return terms.zext(symbol, 8) if number >= FLAG else symbol


@cache
def stack_symbol(end: int) -> Term:
    """The symbol for ``end``, the constant at the end of a stack to which sp is set."""
    return sym(f"stack{end}", 32)


def block_effect(block: Block, ends: frozenset[int] = frozenset()) -> BlockEffect:
    """The effect of ``block``, by symbolic execution; sp at one of ``ends`` becomes a symbol."""
    run = _Run(ends)
    for insn in block.insns:
        run.instruction(insn)
    return run.effect()


_Variables = dict[Var, Term]


class _Run:
    """Symbolic state within a block; states after conditional ops merge under guards."""

    def __init__(self, ends: frozenset[int]) -> None:
        self._ends = ends
        self._state: _Variables = {}
        self._loads: dict[Term, LoadEffect] = {}
        self._stores: list[StoreEffect] = []
        self._unknown: set[Term] = set()
        self._leaves = FALSE
        self._target: Term | None = None
        self._events = 0
        self._insn = -1
        self._guard = TRUE
        self._sp = entry_value(SP)

    def effect(self) -> BlockEffect:
        registers = {
            v.offset: terms.extract(t, 0, 1) if v.offset >= FLAG else t
            for v, t in self._state.items()
            if v.space is Space.REG and t is not entry_value(v.offset)
        }
        return BlockEffect(
            registers,
            self._loads,
            tuple(self._stores),
            frozenset(self._unknown),
            self._leaves,
            self._target,
        )

    def instruction(self, insn: Insn) -> None:
        self._insn += 1
        self._sp = self._in(self._state, STACK_POINTER)
        ops = lift(insn)
        arriving: dict[int, list[tuple[Term, _Variables]]] = {0: [(TRUE, self._state)]}
        self._leaves, self._target = FALSE, None
        for index, op in enumerate([*ops, None]):
            self._merge(arriving.get(index, []))
            if op is None or self._guard is FALSE:
                continue
            if op.code in (OpCode.BRANCH, OpCode.CBRANCH):
                target = op.ins[0].offset
                if target <= index:
                    raise ControlFlowError(
                        "this instruction repeats inside itself", where=f"{insn.addr:#x}"
                    )
                taken = self._bit(op.ins[1]) if op.code is OpCode.CBRANCH else TRUE
                arriving.setdefault(target, []).append(
                    (both(self._guard, taken), dict(self._state))
                )
                arriving.setdefault(index + 1, []).append(
                    (both(self._guard, negate(taken)), dict(self._state))
                )
            elif op.code in (OpCode.GOTO, OpCode.TRAP):
                self._target = self._read(op.ins[0]) if self._leaves is FALSE and op.ins else None
                self._leaves = either(self._leaves, self._guard)
                arriving.setdefault(len(ops), []).append((self._guard, dict(self._state)))
            else:
                self._one(op)
                arriving.setdefault(index + 1, []).append((self._guard, self._state))
        self._state = {v: t for v, t in self._state.items() if v.space is Space.REG}
        sp = self._in(self._state, STACK_POINTER)
        if sp.constant is not None and sp.value in self._ends:
            self._state[STACK_POINTER] = stack_symbol(sp.value)

    def _merge(self, arriving: list[tuple[Term, _Variables]]) -> None:
        """Join the states that reach an op; their guards exclude each other and cover all cases."""
        alive = [(guard, state) for guard, state in arriving if guard is not FALSE]
        if not alive:
            self._guard, self._state = FALSE, {}
            return
        self._guard, merged = alive[0]
        for guard, state in alive[1:]:
            self._guard = either(self._guard, guard)
            merged = {
                v: ite(guard, self._in(state, v), self._in(merged, v))
                for v in merged.keys() | state.keys()
                if v.space is Space.REG or (v in merged and v in state)
            }
        self._state = merged

    @staticmethod
    def _in(state: _Variables, var: Var) -> Term:
        known = state.get(var)
        return entry_value(var.offset) if known is None else known

    def _read(self, var: Var) -> Term:
        if var.space is Space.CONST:
            return const(var.offset, 8 * var.size)
        return self._where_guarded(self._in(self._state, var))

    def _where_guarded(self, term: Term) -> Term:
        """``term`` under the guard: conditional instructions may read results of earlier ones."""
        holding = terms.conjuncts(self._guard)
        while term.op == "ite":
            condition, yes, no = term.args
            if all(c in holding for c in terms.conjuncts(condition)):
                term = yes
            elif any(negate(c) in holding for c in terms.conjuncts(condition)):
                term = no
            else:
                break
        return term

    def _bit(self, var: Var) -> Term:
        return terms.extract(self._read(var), 0, 1)

    def _fresh(self, kind: str, width: int) -> Term:
        self._events += 1
        return sym(f"{kind}{self._events}", width)

    def _one(self, op: Op) -> None:
        if op.code is OpCode.STORE:
            self._events += 1
            address, value = map(self._read, op.ins)
            store = StoreEffect(self._events, self._insn, address, value, self._guard, self._sp)
            self._stores.append(store)
            return
        if op.code is OpCode.DISCARD:
            self._discard(self._read(op.ins[0]))
            return
        if op.code is OpCode.RETRANSLATE:
            return  # where it may be executed, the image tells which memory it preserves
        assert op.out is not None, op
        width = 8 * op.out.size
        if op.code is OpCode.LOAD:
            symbol = self._fresh("load", width)
            address = self._read(op.ins[0])
            self._loads[symbol] = LoadEffect(
                self._events, self._insn, symbol, address, op.out.size, self._sp
            )
            result = symbol
        else:
            inputs = [self._read(v) for v in op.ins]
            row = None if op.code in UNKNOWN_CODES else OP_TERMS[op.code]
            known = None if row is None else row(inputs[0], inputs[-1], width)
            result = self._any(op.out) if known is None else known
        self._state[op.out] = result

    def _discard(self, address: Term) -> None:
        """Store any words to every address that may be in the cache line of ``address``.

        Word by word, as NuSMV limits the width of a symbol.
        """
        first, size = terms.sub(address, const(LINE - 1, 32)), DISCARDED
        if address.constant is not None:
            first, size = const(address.value & -LINE, 32), LINE
        for offset in range(0, size, WORD):
            lost = self._fresh("any", 8 * WORD)
            self._unknown.add(lost)
            place = terms.add(first, const(offset, 32))
            self._stores.append(
                StoreEffect(self._events, self._insn, place, lost, self._guard, self._sp)
            )

    def _any(self, out: Var) -> Term:
        flag = out.space is Space.REG and out.offset >= FLAG
        symbol = self._fresh("any", 1 if flag else 8 * out.size)
        self._unknown.add(symbol)
        return terms.zext(symbol, 8 * out.size)
