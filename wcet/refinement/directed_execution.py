"""An execution from an entry that takes a wanted path as long as some state at the entry does.

The state consists of symbols (``wcet.refinement.entry_words``). Where the execution decides, the
wanted edge is demanded; if no state takes it after the decisions so far, the execution goes on as
the present state does, and takes up the wanted path again where it comes back to it. Addresses are
fixed at the first access that uses them, in the set that value analysis gives.

Only a state that the analysis covers counts: at each node, registers and addresses are in the sets
of value analysis, which include all facts about them. A final execution with fixed values checks
that. So nothing is known about a state that contradicts a fact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ilp.paths.solution import PathStep
from loopbounds.reduction.constraints import within
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, const
from quoll.arm.insn import LR, PC, SP
from quoll.cfg.cfg import EdgeKind
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.image.memory_map import PROGRAM_MEMORY
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.semantics.lift import lift
from quoll.semantics.ops import UNKNOWN_CODES, Op, OpCode, Space, Var
from wcet.refinement.entry_words import EntryWords, NotDirected, Word, chosen, computed

__all__ = ["DirectedExecution", "NodeValues"]

REGISTERS = 25  # as numbered in ``quoll.semantics.ops``
FIRST_FLAG = 16
OBJECT = 0x1000  # bytes of the memory behind an unknown pointer
STACK = 0x10000
MOST = 200_000  # instructions
TABLE = 256  # words of a jump table in which an entry is searched
WORD = 0xFFFFFFFF


class NodeValues(Protocol):
    """The results of value analysis for the nodes of a graph."""

    def register(self, node: int, register: int, /) -> ValueSet:
        """The possible words of a general register when a node begins."""

    def access(self, node: int, insn: int, /) -> ValueSet | None:
        """First addresses of the data access of an instruction; None without an access."""


@dataclass(slots=True)
class DirectedExecution:
    """One execution of ``graph``. ``steps`` and ``accesses`` are known after ``run``.

    ``fixed``: the registers at the entry that are no symbols, by their names.
    ``decisions``: by step that could have gone another way, the symbols that it depends on.
    ``accesses``: the first address of each instruction that accesses memory, by its position.
    """

    graph: Supergraph
    image: Image
    values: NodeValues
    words: EntryWords
    steps: list[PathStep] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # of each step, as a position
    accesses: dict[int, int] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)
    decisions: dict[int, frozenset[Term]] = field(default_factory=dict)
    registers: list[Word] = field(default_factory=list)
    memory: dict[int, Word] = field(default_factory=dict)  # by aligned address
    position: int = 0
    _node: int = 0
    _insn: int = 0
    _seen: int = 0  # version of the values
    _free: int = 0  # the end of the free memory
    _target_of_load: int | None = None  # the wanted address where a load may be the transfer
    _temps: dict[int, Word] = field(default_factory=dict)
    _pointed: set[Term] = field(default_factory=set)  # symbols of addresses
    _chosen: int = 0  # words that the execution has chosen

    def run(self, wanted: Sequence[int]) -> None:
        """Execute from the entry to an exit, along the edges ``wanted``. Raises NotDirected."""
        self._free = self._highest()
        self._begin()
        path = WantedPath(self.graph, wanted)
        node: int | None = self.graph.entry
        while node is not None:
            edge = self._executed(node, path.edge(node))
            self.steps.append(PathStep(node, edge))
            node = None if edge is None else self.graph.edges[edge].dst

    def _highest(self) -> int:
        """The end of the largest memory of the program alone."""
        regions = [r for r in self.image.memory.regions if r.kind in PROGRAM_MEMORY]
        if not regions:
            raise NotDirected("the platform has no memory for objects")
        largest = max(regions, key=lambda r: r.high - r.low)
        return largest.high + 1

    def _allocated(self, size: int) -> int:
        """The first address of memory that nothing else uses."""
        self._free -= size
        if self.image.read(self._free, 4) is not None:
            raise NotDirected("there is no memory for objects")
        return self._free

    def _begin(self) -> None:
        entry, thumb = self.graph.entry, self.graph.nodes[self.graph.entry].block.insns[0].thumb
        given = {SP: self._allocated(STACK) + STACK // 2, LR: self._allocated(OBJECT) | thumb}
        for register in range(PC):
            held = self.values.register(entry, register)
            known = held.exact
            if known is None and register in given:
                known = given[register]
            name = f"r{register}"
            word = self.words.symbol(name, 32) if known is None else Word(known)
            self.registers.append(word)
            if known is not None:
                self.fixed[name] = known
            if word.term is not None:
                self._require(word, held)
        self.registers.append(Word(0))  # pc is in no op
        for register in range(FIRST_FLAG, REGISTERS):
            word = self.words.symbol(f"flag{register}", 8)
            if word.term is not None:
                self.words.demand([terms.ule(word.term, const(1, 8))], holds=True)
            self.registers.append(word)

    def _require(self, word: Word, held: ValueSet) -> Word:
        """The word, which is in ``held``. Raises NotDirected if it cannot be."""
        if word.term is None or held == ANY:
            if word.value not in held:
                raise NotDirected("a word is not one that the analysis covers")
            return word
        if not self.words.demand(within(word.term, held), holds=word.value in held):
            raise NotDirected("a word cannot be one that the analysis covers")
        [word] = self._current([word])
        if word.value not in held:
            raise NotDirected("a word is not one that the analysis covers")
        return word

    def _current(self, words: Sequence[Word]) -> list[Word]:
        """``words`` after a change of the values, like all words of the execution."""
        if self._seen == self.words.version:
            return list(words)
        self._seen = self.words.version
        places = [*self.memory]
        temps = [*self._temps]
        live = [*words, *self.registers, *self.memory.values(), *self._temps.values()]
        found = self.words.present(live)
        end = len(words) + len(self.registers)
        self.registers[:] = found[len(words) : end]
        self.memory.update(zip(places, found[end : end + len(places)], strict=True))
        self._temps.update(zip(temps, found[end + len(places) :], strict=True))
        return found[: len(words)]

    def _executed(self, node: int, wanted: int | None) -> int | None:
        """The edge by which a node is left; None: the path ends."""
        block = self.graph.nodes[node].block
        if block.passes:
            raise NotDirected("a call is not followed")
        self._node = node
        self.starts.append(self.position)
        for register in range(PC):
            self.registers[register] = self._require(
                self.registers[register], self.values.register(node, register)
            )
        edge = None if wanted is None else self.graph.edges[wanted]
        target: int | None = None
        for self._insn, insn in enumerate(block.insns):
            last = self._insn == len(block.insns) - 1
            address = None if edge is None or not last else self._first(edge.dst)
            falls = edge is not None and edge.kind is EdgeKind.FALLTHROUGH
            try:
                ops = lift(insn)
            except ControlFlowError as error:
                raise NotDirected("an instruction has no semantics") from error
            target = self._ops(ops, address if last else None, falls=falls)
            self._check_access()
            self.position += 1
            if self.position > MOST:
                raise NotDirected("the execution is long")
            if target is not None and not last:
                raise NotDirected("control leaves within a block")
        return self._edge(node, block.end if target is None else target, wanted)

    def _first(self, node: int) -> int:
        return self.graph.nodes[node].block.addr

    def _edge(self, node: int, target: int, wanted: int | None) -> int | None:
        graph = self.graph
        found = [e for e in graph.successors[node] if self._first(graph.edges[e].dst) == target]
        if wanted in found:
            return wanted
        if len(found) == 1:
            return found[0]
        if found or node not in graph.exits or target in graph.left_out.get(node, ()):
            raise NotDirected("there is no edge")
        return None

    def _ops(self, ops: Sequence[Op], wanted: int | None, *, falls: bool) -> int | None:
        """Execute an instruction; the address to which control leaves, if it does not go on.

        ``wanted``: the address to which it shall lead, which it ``falls`` through to.
        """
        self._temps, self._target_of_load = {}, wanted
        at = 0
        while at < len(ops):
            op = ops[at]
            if op.code is OpCode.BRANCH:
                at = op.ins[0].offset
                continue
            if op.code is OpCode.CBRANCH:
                skipped = ops[at + 1 : op.ins[0].offset]
                condition = self._read(op.ins[1])
                if condition.term is not None and all(map(pure, skipped)):
                    self._merge(skipped, condition)
                    at = op.ins[0].offset
                    continue
                leaves = any(one.code is OpCode.GOTO for one in skipped)
                if leaves:
                    self._note_decision(condition)
                prefer = falls if leaves and wanted is not None else None
                at = op.ins[0].offset if self._decided(condition, prefer) else at + 1
                continue
            if op.code is OpCode.GOTO:
                return self._target(self._read(op.ins[0]), self._read(op.ins[1]), wanted)
            self._op(op)
            at += 1
        return None

    def _note_decision(self, word: Word) -> None:
        """A step depends on a word."""
        if word.term is not None:
            known = self.decisions.get(len(self.steps), frozenset())
            self.decisions[len(self.steps)] = known.union(rewrite.symbols_of(word.term))

    def _decided(self, condition: Word, prefer: bool | None) -> bool:
        """The value of a condition, the preferred one if possible; it is fixed."""
        if condition.term is None:
            return bool(condition.value)
        bit = terms.negate(terms.eq(condition.term, const(0, condition.term.width)))
        other = terms.negate(bit) if condition.value else bit
        flips = prefer is not None and prefer != bool(condition.value)
        if flips and self.words.demand([other], holds=False):
            self._current([])
            return not condition.value
        self.words.demand([bit if condition.value else terms.negate(bit)], holds=True)
        return bool(condition.value)

    def _fixed(self, word: Word) -> int:
        """The value of a word, which is fixed."""
        if word.term is not None:
            self.words.demand([terms.eq(word.term, const(word.value, word.term.width))], holds=True)
        return word.value

    def _target(self, target: Word, thumb: Word, wanted: int | None) -> int:
        align = ~1 if self._fixed(thumb) else ~3
        self._note_decision(target)
        if target.term is not None and wanted is not None and target.value & align != wanted:
            aligned = terms.operation("and", target.term, const(align & WORD, 32))
            if self.words.demand([terms.eq(aligned, const(wanted, 32))], holds=False):
                self._current([])
                return wanted
        return self._fixed(target) & align & WORD

    def _merge(self, ops: Sequence[Op], skip: Word) -> None:
        """Ops that write registers only, under a condition that skips them."""
        before = dict(enumerate(self.registers))
        for op in ops:
            self._op(op)
        for op in ops:
            if op.out is not None and op.out.space is Space.REG:
                number = op.out.offset
                new = self.registers[number]
                if new is not before[number]:
                    word = chosen(skip, before[number], new, op.out.size)
                    self.registers[number] = before[number] = word

    def _read(self, var: Var) -> Word:
        if var.space is Space.CONST:
            return Word(var.offset & (1 << 8 * var.size) - 1)
        return self.registers[var.offset] if var.space is Space.REG else self._temps[var.offset]

    def _write(self, var: Var, word: Word) -> None:
        if var.space is Space.REG:
            self.registers[var.offset] = word
        else:
            self._temps[var.offset] = word

    def _op(self, op: Op) -> None:
        match op.code:
            case OpCode.LOAD:
                assert op.out is not None
                address = self._address(self._read(op.ins[0]))
                word = self._loaded(address, op.out.size)
            case OpCode.STORE:
                address = self._address(self._read(op.ins[0]))
                self._stored(address, op.ins[1].size, self._read(op.ins[1]))
                return
            case OpCode.TRAP | OpCode.DISCARD:
                raise NotDirected("an effect is not followed")
            case OpCode.RETRANSLATE:
                fixed = self.image.memory.fixed
                self.memory = {at: word for at, word in self.memory.items() if fixed(at)}
                return
            case _ if op.code in UNKNOWN_CODES:
                assert op.out is not None
                word = self._any(8 * op.out.size)
            case _:
                assert op.out is not None
                inputs = [self._read(var) for var in op.ins]
                word = computed(op.code, inputs, [var.size for var in op.ins], op.out.size)
        self._write(op.out, word)

    def _any(self, width: int) -> Word:
        """A word that is no part of the state at the entry."""
        self._chosen += 1
        return self.words.symbol(f"chosen{self._chosen}", width)

    def _address(self, word: Word) -> int:
        """The address of an access, fixed.

        The analysis knows the lowest one of an instruction, which its first op may not access.
        """
        if self.position not in self.accesses and word.term is not None:
            held = self.values.access(self._node, self._insn) or ANY
            pointer = self._to_target(word, held) or self._pointing(word, held)
            word = self._require(pointer, held)
        address = self._fixed(word)
        self.accesses[self.position] = min(address, self.accesses.get(self.position, address))
        return address

    def _to_target(self, word: Word, held: ValueSet) -> Word | None:
        """The address of the entry of a jump table that is the wanted target; None: no entry."""
        assert word.term is not None
        target = self._target_of_load
        if target is None or held.size > TABLE:
            return None
        for place in held:
            entry = self.image.constant(place, 4)
            if entry is None or entry & ~1 != target:
                continue
            if self.words.demand([terms.eq(word.term, const(place, 32))], holds=False):
                [word] = self._current([word])
                return word
        return None

    def _check_access(self) -> None:
        """Raise NotDirected if the instruction made an access that the analysis excludes."""
        address = self.accesses.get(self.position)
        held = self.values.access(self._node, self._insn)
        if address is not None and (held is None or address not in held):
            raise NotDirected("an access is not one that the analysis covers")

    def _pointing(self, word: Word, held: ValueSet) -> Word:
        """A pointer with a symbol that is in no address yet: to memory that nothing else uses.

        Only if it can point there.
        So objects are apart, unless decisions make them one.
        """
        assert word.term is not None
        symbols = rewrite.symbols([word.term])
        used = symbols <= self._pointed
        self._pointed |= symbols
        place = 0 if used else nearest_above(self._allocated(OBJECT), held)
        if used or place not in held:
            return word
        if not self.words.demand([terms.eq(word.term, const(place, 32))], holds=False):
            return word
        [word] = self._current([word])
        return word

    def _cell(self, at: int) -> Word:
        """The word of memory at an aligned address."""
        if at not in self.memory:
            known = self.image.constant(at, 4)
            self.memory[at] = Word(known) if known is not None else self._initial(at)
        return self.memory[at]

    def _initial(self, at: int) -> Word:
        if any(self.image.constant(at + i, 1) is not None for i in range(4)):
            raise NotDirected("a word is partly constant")
        if not self._records(at):
            return self._any(32)
        return self.words.symbol(f"word{at:#x}", 32)

    def _records(self, at: int) -> bool:
        """Whether a word has the content that was stored; a device has any."""
        return self.image.memory.is_memory((at, at + 3))

    def _loaded(self, address: int, size: int) -> Word:
        cells = range(address & ~3, address + size, 4)
        held = [(at & WORD, self._cell(at & WORD)) for at in cells]
        for at, _ in held:
            if not self._records(at) and self.image.constant(at, 4) is None:
                del self.memory[at]
        if size == 4 and not address & 3:
            return held[0][1]
        value = int.from_bytes(b"".join(w.value.to_bytes(4, "little") for _, w in held), "little")
        value = value >> 8 * (address & 3) & (1 << 8 * size) - 1
        if all(word.term is None for _, word in held):
            return Word(value)
        whole = held[0][1].as_term(32)
        for _, word in held[1:]:
            whole = terms.concat(word.as_term(32), whole)
        return Word(value, terms.extract(whole, 8 * (address & 3), 8 * size))

    def _stored(self, address: int, size: int, word: Word) -> None:
        for i in range(size):
            at = address + i & WORD
            if self.image.constant(at, 1) is not None or self.image.is_executable(at):
                raise NotDirected("a store hits a constant or code")
        if len(self.image.memory.physical_aliases(address, address + size - 1)) > 1:
            raise NotDirected("a word has two addresses")
        if size == 4 and not address & 3:
            self.memory[address] = word
            return
        for i in range(size):
            self._store_byte(address + i & WORD, part(word, 8 * size, 8 * i))

    def _store_byte(self, at: int, byte: Word) -> None:
        cell, shift = self._cell(at & ~3), 8 * (at & 3)
        value = cell.value & ~(0xFF << shift) | byte.value << shift
        if cell.term is None and byte.term is None:
            self.memory[at & ~3] = Word(value)
            return
        whole = cell.as_term(32)
        pieces = [part(Word(0, whole), 32, 8 * i).as_term(8) for i in range(4)]
        pieces[at & 3] = byte.as_term(8)
        joined = pieces[0]
        for piece in pieces[1:]:
            joined = terms.concat(piece, joined)
        self.memory[at & ~3] = Word(value, joined)


def nearest_above(place: int, held: ValueSet) -> int:
    """The first address from ``place`` on with the remainder of the addresses in ``held``."""
    return place + (held.low - place) % (held.stride or 1)


def part(word: Word, width: int, low: int) -> Word:
    """A byte of a word of ``width`` bits."""
    if width == 8:
        return word
    term = None if word.term is None else terms.extract(word.term, low, 8)
    return Word(word.value >> low & 0xFF, term)


def pure(op: Op) -> bool:
    """Whether an op writes registers only, with a known result."""
    acts = (OpCode.LOAD, OpCode.STORE, OpCode.GOTO, OpCode.TRAP, OpCode.DISCARD)
    inner = (OpCode.BRANCH, OpCode.CBRANCH, OpCode.RETRANSLATE)
    return op.code not in (*acts, *inner, *UNKNOWN_CODES)


class WantedPath:
    """The edge that a wanted path takes next from a node, where the execution is on it."""

    def __init__(self, graph: Supergraph, edges: Sequence[int]) -> None:
        self._edges = edges
        self._graph = graph
        self._at = 0
        self._places: dict[int, list[int]] = {}
        for place, edge in enumerate(edges):
            self._places.setdefault(graph.edges[edge].src, []).append(place)

    @property
    def place(self) -> int:
        """The place on the path from which on it is followed."""
        return self._at

    def edge(self, node: int) -> int | None:
        """The edge from ``node`` at the next place of the path where it is; None: it is behind."""
        places = self._places.get(node, ())
        found = next((place for place in places if place >= self._at), None)
        if found is None:
            return None
        self._at = found + 1
        return self._edges[found]
