"""The words to which an address may lead that code uses as a number, over all code of an image.

Each function is followed with the constants that its registers and the words of its frame may hold.
A constant address that only loads and stores use, at constant distances, accesses the object there:
so compilers reach the neighbours of an anchor. Any other use takes the address: a word that is
stored, handed to a function, returned, compared, or changed by anything but a sum with a constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from quoll.arm.insn import SP, Condition, ControlFlow, Insn
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.own_objects.data_symbols import DataSymbols
from quoll.own_objects.live_registers import LiveRegisters
from quoll.own_objects.numbers import (
    LIMIT,
    OTHER,
    UNKNOWN,
    Element,
    ElementKind,
    Elements,
    combined,
)
from quoll.own_objects.whole_code import WholeCode
from quoll.semantics.lift import lift
from quoll.semantics.operations import OPERATIONS, ResultSize
from quoll.semantics.ops import Op, OpCode, Space, Var

__all__ = ["AddressFlow"]

LEAVING = ControlFlow.JUMP, ControlFlow.INDIRECT, ControlFlow.EXCEPTION_RETURN
FAR = 4096  # bytes: the largest offset of a load or store
State = dict[int, Elements]  # by register, or by FRAME plus the distance of a word from sp
FRAME = 1 << 8
TRUTHS = frozenset((
    *(c for c, row in OPERATIONS.items() if row.result is ResultSize.TRUTH),
))  # fmt: skip
UNFOLDED = TRUTHS | {OpCode.UNKNOWN, OpCode.BANK}
ADDRESSED = (ElementKind.NUMBER, ElementKind.SUM)


class AddressFlow:
    """Takes the symbols to which a number may lead.

    ``literals``: words of code that only loads of this word read. ``stores``: the addresses that
    each store instruction may have.
    """

    def __init__(
        self,
        image: Image,
        code: WholeCode,
        symbols: DataSymbols,
    ) -> None:
        self._image, self._code, self._symbols = image, code, symbols
        self._near = cache(symbols.near)
        self._live = LiveRegisters(code)
        self._states: dict[int, State] = {}  # at block starts
        self._ops: dict[int, tuple[Op, ...] | None] = {}
        self.literals: set[int] = set()
        self.stores: dict[int, set[Element]] = {}
        self.tables: set[int] = set()  # addresses in code that are used as numbers
        self._leaders = self._find_leaders()
        self._starts_blocks = frozenset(self._leaders)

    def follow(self) -> None:
        """Follow all code, from the starts of functions first, until no register holds more."""
        seeds = [*self._code.starts, *self._leaders]
        for seed in dict.fromkeys(seeds):
            if seed in self._states:
                continue
            self._states[seed] = {SP: frozenset((Element(ElementKind.PLACE, 0),))}
            pending = {seed: None}
            while pending:
                addr = next(iter(pending))
                del pending[addr]
                for after, state in self._block(addr):
                    if self._joined(after, state):
                        pending[after] = None
        for places in self.stores.values():
            if len(places) > 1:  # it may go elsewhere, so that its address is not known
                self._use(places)

    def _find_leaders(self) -> list[int]:
        code, found = self._code, set(self._code.starts)
        for insn in code.insns.values():
            after = code.successors(insn)
            if after != [insn.next]:
                found.update((*after, insn.next))
        orphans = {addr for addr in code.insns if code.function(addr) == addr}
        return sorted((found | orphans) & code.insns.keys())

    def _block(self, addr: int) -> list[tuple[int, State]]:
        """Follow a block; the state behind it, by the next block."""
        state = dict(self._states[addr])
        held: tuple[Condition, State] | None = None  # where the last condition holds
        while True:
            insn, before = self._code.insns[addr], state
            if insn.conditional and insn.flow is ControlFlow.NEXT:
                known = held[1] if held is not None and held[0] is insn.cond else dict(state)
                self._step(insn, known, executed=True)
                self._into(state, known)
                held = insn.cond, known
            else:
                before = dict(state)
                self._step(insn, state, executed=insn.flow in LEAVING)
                if held is not None:
                    self._step(insn, held[1])
            if insn.sets_flags:
                held = None
            after = self._code.successors(insn)
            if after != [insn.next] or insn.next in self._starts_blocks:
                skips = insn.conditional and insn.flow in LEAVING
                return [(a, before if skips and a == insn.next else state) for a in after]
            addr = insn.next

    def _joined(self, addr: int, state: State) -> bool:
        """Whether a state adds something to the one at a block start."""
        live = self._live.before(addr)
        state = {p: known for p, known in state.items() if p in live or p == SP or p >= FRAME}
        known = self._states.get(addr)
        if known is None:
            self._states[addr] = state
            return True
        changed = False
        for place in known.keys() | state.keys():
            old, more = known.get(place, UNKNOWN), state.get(place, UNKNOWN)
            if not more <= old:
                known[place] = self._limited(old, more)
                changed |= known[place] != old
        return changed

    def _limited(self, old: Elements, more: Elements) -> Elements:
        """The elements of both, if they are few.

        The third address at one distance has moved on in a loop: the addresses become the first one
        and an unknown distance.
        """
        if more <= old:
            return old
        found = set(old)
        for one in sorted(more - old):
            near = one.kind in ADDRESSED and self._near(one.value)
            if near and (before := _in_steps(one, found)):
                if one.kind is ElementKind.NUMBER:
                    self._use((one, *before))
                    found -= set(before)
                    found.add(Element(ElementKind.SUM, before[1].value))
            elif len(found) < LIMIT:
                found.add(one)
            else:
                found.add(OTHER)
                if near:
                    self._omit(one.value)
        return frozenset(found)

    def _omit(self, value: int) -> None:
        """Take all objects that a load or store may reach from an address, in its section."""
        low, high = value - FAR, value + FAR
        section = self._image.section_at(value)
        if section is not None:
            low, high = max(low, section.addr), min(high, section.addr + section.size - 1)
        self._symbols.take(low, high)

    # --- Instructions ------------------------------------------------------------------------

    def _step(self, insn: Insn, state: State, *, executed: bool = False) -> None:
        """The state behind an instruction, and behind the call that it makes.

        ``executed``: its condition holds.
        """
        for register in self._live.handed(insn):
            self._use(state.get(register, UNKNOWN))
        ops = self._lifted(insn)
        if ops is None:
            for register in insn.reads:
                self._use(state.get(register, UNKNOWN))
            for register in insn.writes:
                state.pop(register, None)
        else:
            self._execute(insn, ops, state, executed=executed)
        if self._code.is_call(insn):
            for register in self._live.changed_by(insn):
                state.pop(register, None)

    def _lifted(self, insn: Insn) -> tuple[Op, ...] | None:
        if insn.addr not in self._ops:
            try:
                self._ops[insn.addr] = lift(insn)
            except ControlFlowError:
                self._ops[insn.addr] = None  # no semantics: a use of all that it reads
        return self._ops[insn.addr]

    def _execute(self, insn: Insn, ops: tuple[Op, ...], state: State, *, executed: bool) -> None:
        """All ways through the ops of an instruction, joined where they meet."""
        before: dict[int, tuple[State, dict[int, Elements]]] = {0: (dict(state), {})}
        ends: list[State] = []
        for at, op in enumerate(ops):
            if at not in before:
                continue
            now, temps = before.pop(at)
            targets = [at + 1]
            if op.code in (OpCode.BRANCH, OpCode.CBRANCH):
                goal = op.ins[0].offset
                skips = executed and goal == len(ops)
                targets = [goal] if op.code is OpCode.BRANCH else [goal, at + 1][skips:]
                assert goal > at, "ops branch forward"
            elif op.code in (OpCode.GOTO, OpCode.TRAP):
                ends.append(now)
                continue
            else:
                self._op(op, now, temps, insn)
            for target in targets:
                self._meet(before, target, now, temps)
        ends += [now for now, _ in before.values()]
        state.clear()
        state.update(ends[0] if ends else {})
        for other in ends[1:]:
            self._into(state, other)

    def _meet(
        self,
        before: dict[int, tuple[State, dict[int, Elements]]],
        at: int,
        now: State,
        temps: dict[int, Elements],
    ) -> None:
        if at not in before:
            before[at] = dict(now), dict(temps)
            return
        self._into(before[at][0], now)
        self._into(before[at][1], temps)

    def _into(self, state: State, other: State) -> None:
        for place in state.keys() | other.keys():
            state[place] = self._limited(state.get(place, UNKNOWN), other.get(place, UNKNOWN))

    def _op(self, op: Op, state: State, temps: dict[int, Elements], insn: Insn) -> None:
        compares = not insn.writes and insn.memory is None
        inputs = [self._read(var, state, temps) for var in op.ins]
        if op.code is OpCode.STORE:
            self._store(inputs[0], op.ins[1].size, inputs[1], state, insn)
        elif op.code is OpCode.LOAD:
            assert op.out is not None
            self._write(op.out, self._load(inputs[0], op.out.size, state), state, temps)
        elif op.out is not None:
            self._write(op.out, self._result(op, inputs, compares=compares), state, temps)

    def _result(self, op: Op, inputs: list[Elements], *, compares: bool) -> Elements:
        """The result of an operation. Flags of a sum lead to no address."""
        if op.code in UNFOLDED or len(inputs) not in (1, 2):
            if compares or op.code not in TRUTHS:
                for one in inputs:
                    self._use(one)
            return UNKNOWN
        sizes, found = [var.size for var in op.ins], set[Element]()
        size = op.out.size if op.out is not None else 0
        for a in inputs[0]:
            for b in inputs[1] if len(inputs) > 1 else UNKNOWN:
                pair = [a, b][: len(inputs)]
                found |= combined(op.code, pair, sizes, size, self._near, self._use)
        return self._limited(frozenset(), frozenset(found))

    @staticmethod
    def _read(var: Var, state: State, temps: dict[int, Elements]) -> Elements:
        if var.space is Space.CONST:
            return frozenset((Element(ElementKind.NUMBER, var.offset),))
        return (temps if var.space is Space.TEMP else state).get(var.offset, UNKNOWN)

    @staticmethod
    def _write(var: Var, value: Elements, state: State, temps: dict[int, Elements]) -> None:
        (temps if var.space is Space.TEMP else state)[var.offset] = value

    # --- Memory ------------------------------------------------------------------------------

    def _load(self, address: Elements, size: int, state: State) -> Elements:
        found: set[Element] = set()
        for one in address:
            if one.kind is ElementKind.PLACE:
                found |= state.get(FRAME + one.value, UNKNOWN) | UNKNOWN if size == 4 else UNKNOWN
            elif one.kind is ElementKind.NUMBER and (word := self._constant(one.value, size)):
                found.add(word)
            else:
                self._accessed(one, size)
                found.add(OTHER)
        return self._limited(frozenset(), frozenset(found))

    def _constant(self, addr: int, size: int) -> Element | None:
        section = self._image.section_at(addr)
        if section is None or section.writable or size > 4:
            return None
        word = self._image.constant(addr, size)
        if word is None:
            return None
        if section.executable and size == 4:
            self.literals.add(addr)
        return Element(ElementKind.NUMBER, word)

    def _store(
        self, address: Elements, size: int, value: Elements, state: State, insn: Insn
    ) -> None:
        self._use(value)
        self.stores.setdefault(insn.addr, set()).update(address)
        for one in address:
            self._accessed(one, size)
            if one.kind is ElementKind.PLACE and size == 4:
                place = FRAME + one.value
                old = state.get(place, UNKNOWN) if len(address) > 1 else frozenset[Element]()
                state[place] = self._limited(old, value)
                if not any(e.kind in ADDRESSED and self._near(e.value) for e in state[place]):
                    state.pop(place)

    def _accessed(self, one: Element, size: int) -> None:
        if one.kind is ElementKind.NUMBER:
            self._symbols.access(one.value, one.value + size - 1)
        elif one.kind is ElementKind.SUM:
            self._use((one,))

    # --- Uses --------------------------------------------------------------------------------

    def _use(self, elements: Iterable[Element]) -> None:
        """Take the objects of the addresses among elements."""
        for one in elements:
            if one.kind in ADDRESSED:
                self._symbols.take(one.value, one.value)
                section = self._image.section_at(one.value)
                if section is not None and section.executable:
                    self.tables.add(one.value)


def _in_steps(one: Element, others: set[Element]) -> tuple[Element, Element] | None:
    """Two other elements at one and two times a distance from an element, the near one first."""
    for near in others:
        far = Element(one.kind, 2 * near.value - one.value)
        if near.kind is one.kind and near != one and far in others:
            return near, far
    return None
