"""Values inside one function, for any caller: registers at entry are symbols.

The analysis does not enter callees. After a call the registers that the callee preserves are
unchanged, and so are the registers saved in our frame, except where the callee's contract stores.
``preserved`` and ``left`` compute the contract of a function, so every callee is checked and the
procedure call standard is not trusted (rules 1 and 35).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from quoll.abstract_domain.abstract_machine import AnalysisEnvironment
from quoll.abstract_domain.abstract_memory import S1, live_frames
from quoll.abstract_domain.abstract_state import (
    FLAG,
    MODE,
    AbstractState,
    entry_register,
    entry_state,
)
from quoll.abstract_domain.compiled import KnownRegisters, compile_block
from quoll.abstract_domain.havoc import SAVED, hands_on_a_stack_address
from quoll.abstract_domain.steps import CompiledBlock
from quoll.abstract_domain.terms import (
    BIAS,
    MASK,
    SIGN,
    TAINT,
    AnchoredTerm,
    Fact,
    Term,
    entry_symbol,
    on_stack,
    shift_fact,
)
from quoll.abstract_domain.transfer import BlockOutcome
from quoll.abstract_domain.value_domain import ValueDomain
from quoll.arm.insn import LR, SP, AccessKind, ControlFlow, Insn
from quoll.arm.system_registers import DISCARDED
from quoll.assumptions import F1, Assumption
from quoll.cfg.cfg import Block, Cfg, EdgeKind
from quoll.cfg.transfers import is_call
from quoll.facts.applied import CALLEE_SAVED
from quoll.facts.contract import (
    ANY_ARGUMENTS,
    STANDARD,
    UNKNOWN,
    ByteSpan,
    CallContract,
    spans,
)
from quoll.graph.fixpoint import Fixpoint, solve
from quoll.graph.weak_topological_order import FlowGraph, WeakOrder
from quoll.image.image import Image
from quoll.intervals.strided_interval import ValueSet, meet
from quoll.semantics.lift import what_decides

__all__ = ["CALLEE_SAVED", "BlockCode", "Callees", "LocalValues", "called", "environment_of"]

BLOCKS_CACHED = 1 << 13
WORD = 4  # bytes
Callees = Callable[[tuple[int, ...]], CallContract]  # the joint contract of functions, by entry

# Key of compiled code, per instruction: the target distinguishes an svc from one that counts as a
# call.
Key = tuple[tuple[object, ...], ...]

_without_facts: dict[Key, CompiledBlock] = {}


class BlockCode:
    """Compiled blocks, cached up to a limit.

    ``given`` and ``elsewhere`` as for ``compile_block``. Without them all instances share one
    cache. ``unmasked``: the functions that begin with interrupts unmasked.
    """

    def __init__(
        self,
        given: KnownRegisters | None = None,
        elsewhere: tuple[int, int] | None = None,
        unmasked: Collection[int] = (),
    ) -> None:
        self._given, self._elsewhere, self.unmasked = given, elsewhere, unmasked
        self._known = {} if given or elsewhere else _without_facts

    def __call__(self, insns: tuple[Insn, ...]) -> CompiledBlock:
        """The compiled form of ``insns``."""
        key = tuple((i.addr, i.target, *what_decides(i)) for i in insns)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= BLOCKS_CACHED:
                self._known.clear()
            known = self._known[key] = compile_block(insns, self._given, self._elsewhere)
        return known

    def stated(self, address: int, register: int, known: ValueSet) -> ValueSet:
        """``known`` of a register, restricted by facts about the instruction at ``address``."""
        for about, words in (self._given or {}).get(address, ()):
            if about == register:
                known = meet(known, words) or known
        return known


def environment_of(image: Image) -> AnalysisEnvironment:
    """The constants and the ordinary memory of ``image``."""

    def ordinary(addr: int) -> bool:
        segment = image.segment_at(addr)
        return (
            segment is not None
            and image.is_constant_range(addr, 1)
            and image.constant(addr, 1) is None
        )

    return AnalysisEnvironment(
        image.constant, ordinary, image.memory, cache_words=image.cache_words
    )


def procedure_call_standard(callees: tuple[int, ...]) -> CallContract:
    """The contract of functions that follow the standard (AAPCS 6.1.1)."""
    return STANDARD


class LocalValues:
    """States at the start of the blocks of ``cfg``, which may still be incomplete.

    ``mode`` is the processor mode at the entry, if it is known; with ``same_mode``, status words of
    unknown mode are assumed to have the current one. With ``retain_tables``, a word of
    the frame that holds the address of a constant survives calls, and stores to arrays of unknown
    end: compilers spill the address of a jump table there. The caller must list this assumption.
    Raises ControlFlowError for an instruction without semantics.
    """

    def __init__(
        self,
        cfg: Cfg,
        image: Image,
        code: BlockCode | None = None,
        callees: Callees = procedure_call_standard,
        *,
        mode: int | None = None,
        same_mode: bool = False,
        retain_tables: bool = False,
    ) -> None:
        self.cfg, self.image, self.callees, self.mode = cfg, image, callees, mode
        self.code = code or BlockCode()
        self._spilled = _Spilled(image, retain=retain_tables)
        self.stored: set[int] = set()  # symbols of frame words that calls may store
        self.environment = replace(
            environment_of(image), spilled=self._spilled, same_mode=same_mode
        )
        edges = [e for e in cfg.edges if e.kind not in (EdgeKind.CALL, EdgeKind.RETURN)]
        successors: list[list[int]] = [[] for _ in cfg.blocks]
        for index, edge in enumerate(edges):
            successors[edge.src].append(index)
        self.entering: list[list[int]] = [[] for _ in cfg.blocks]
        for index, edge in enumerate(edges):
            self.entering[edge.dst].append(index)
        self.graph = FlowGraph(0, [e.src for e in edges], [e.dst for e in edges], successors)
        self.kinds = [e.kind for e in edges]
        self.order = WeakOrder.of(self.graph)
        self.domain = ValueDomain(
            self.graph,
            self.order,
            [self.code(block.insns) for block in cfg.blocks],
            self.kinds,
            self.environment,
            {EdgeKind.ACROSS: _Calls(self)},
        )
        self.domain.noting = True
        self.fixpoint: Fixpoint[AbstractState] = solve(
            self.graph, self.order, self.domain, entry_state(self.environment.names, mode)
        )

    @property
    def spills_tables(self) -> bool:
        """Whether a cell with the address of a constant was forgotten, or assumed to survive."""
        return self._spilled.met

    @property
    def assumptions(self) -> frozenset[Assumption]:
        """The named assumptions (rule 1) that the states depend on."""
        return frozenset(self.environment.used)

    def modes(self) -> Iterator[int]:
        """The processor modes that are known where blocks transfer control."""
        for block in self.cfg.blocks:
            outcome = self.outcome(block.index)
            leave = None if outcome is None else outcome.leave
            mode = None if leave is None else leave.state.known_mode
            if mode is not None:
                yield mode

    def outcome(self, block: int) -> BlockOutcome | None:
        """The outcome of ``block``; None if it is unreachable."""
        state = self.fixpoint.states[block]
        return None if state is None else self.domain.outcome(block, state)

    def preserved(self) -> frozenset[int]:
        """The callee-saved registers that hold their entry value at every return."""
        preserved_registers = CALLEE_SAVED
        for block in self.cfg.blocks:
            if not block.returns and not (block.tail and block.calls):
                continue
            outcome = self.outcome(block.index)
            if outcome is None or outcome.leave is None:
                continue
            state = outcome.leave.state
            preserved_registers &= {
                r for r in CALLEE_SAVED if state.term(r) == entry_symbol(r) << 32
            }
            if block.tail:
                preserved_registers &= self.callees(block.calls).preserved
        return preserved_registers

    def may_be_stored_by_a_call(self, term: Term) -> bool:
        """Whether ``term`` is a word of the frame that a callee may have stored."""
        return term >> 32 in self.stored

    def left(self) -> CallContract:
        """The places that the function and its callees store to; it need not preserve registers."""
        found: list[ByteSpan] = []
        elsewhere = False
        for block in self.cfg.blocks:
            for fact, size in self._stores(block):
                span = None if fact is None else _span(fact, size)
                elsewhere |= span is None
                if span is not None:
                    found.append(span)
                elif fact is not None and on_stack(fact):
                    self.environment.used.add(F1.of())
        return CallContract(CALLEE_SAVED, spans(found), elsewhere)

    def _stores(self, block: Block) -> Iterator[tuple[Fact | None, int]]:
        """The first address and the size in bytes of each store of ``block`` and its callees."""
        outcome = self.outcome(block.index)
        if outcome is None:
            return
        for index, address in outcome.accesses().items():
            memory = block.insns[index].memory
            if memory is None or memory.access in (AccessKind.STORE, AccessKind.SWAP):
                size = DISCARDED if memory is None else memory.size * memory.count
                yield self._relative(address.fact, address.term), size
        if outcome.leave is None or not (block.calls or block.passes or is_call(block)):
            return
        state = outcome.leave.state
        contract = called(block, self.callees)
        for base, low, high in contract.stores:
            where = self._relative(state.fact(base), state.term(base))
            yield None if where is None else shift_fact(where, low & MASK), high - low
        if contract.elsewhere:
            yield None, 0

    def _relative(self, fact: Fact, term: Term | None) -> Fact | None:
        """``fact`` relative to a register at entry; None if it is not relative to one."""
        if isinstance(fact, AnchoredTerm):
            return fact
        register = None if term is None else entry_register(term >> 32, self.environment.names)
        if register is None or term is None:
            return None
        offset = (term & MASK) ^ BIAS
        return AnchoredTerm(entry_symbol(register), ValueSet(offset, offset, 0))


class _Calls:
    """The state after calls, computed from components of ``LocalValues``."""

    def __init__(self, values: LocalValues) -> None:
        self._cfg, self._callees = values.cfg, values.callees
        self._sources, self._positions = values.graph.sources, values.order.position
        self._names, self._used = values.environment.names, values.environment.used
        self._spilled, self._links = values.environment.spilled, _links(values.cfg)
        self._stored = values.stored

    def __call__(self, edge: int, outcome: BlockOutcome) -> AbstractState | None:
        """The state after the call that ``edge`` passes."""
        leave = outcome.leave
        if leave is None:
            return None
        source = self._sources[edge]
        contract = called(self._cfg.blocks[source], self._callees)
        preserved = contract.preserved
        before = leave.state
        names, position = self._names, self._positions[source]
        registers = [
            before.registers[r] if r in preserved else names.of(position, ("call", r)) << 32
            for r in range(FLAG)
        ]
        flags = [None] * (MODE - FLAG)
        self._used.add(S1)
        live = live_frames(before.frames, before.term(SP), before.facts)
        frames = {key: cell for key, cell in live.items() if self._remains(cell)}
        if contract.elsewhere and hands_on_a_stack_address(before, ANY_ARGUMENTS.arguments(None)):
            self._used.add(F1.of())
        for base, low, high in contract.stores:
            where = before.fact(base)
            if _exits_known(where):
                self._overwrite(frames, position, shift_fact(where, low & MASK), high - low)
            elif on_stack(where):
                self._used.add(F1.of())
        return AbstractState(
            (*registers, *flags, before.registers[MODE], None),
            frames,
            {},
            before.banks,
            before.facts,
        )

    def _overwrite(self, frames: dict[int, object], position: int, fact: Fact, size: int) -> None:
        """Replace the cells of ``frames`` that overlap ``size`` bytes at ``fact``."""
        assert isinstance(fact, AnchoredTerm)
        first = fact.offsets.low - BIAS - 3
        reach = fact.offsets.high - fact.offsets.low + size + 3
        for key in [k for k in frames if k >> 32 == fact.base and (k - first) & MASK < reach]:
            symbol = self._names.of(position, ("stored", key))
            self._stored.add(symbol)
            frames[key] = symbol << 32

    def _remains(self, cell: object) -> bool:
        """Whether a cell holds a callee-saved register as at entry, or a return address."""
        saved = type(cell) is int and (cell in SAVED or cell in self._links)
        return saved or (self._spilled is not None and self._spilled(cell))


def called(block: Block, callees: Callees) -> CallContract:
    """The joint contract of the callees of ``block``; unknown for callees that facts replace."""
    known = STANDARD if block.calls and not block.passes else UNKNOWN
    return CallContract.of_any((known, callees(block.calls)))


def _exits_known(fact: Fact) -> bool:
    """Whether ``fact`` is relative to a register at entry, with a known first and last offset."""
    if not isinstance(fact, AnchoredTerm) or fact.base == TAINT:
        return False
    return fact.offsets.high - fact.offsets.low < SIGN


def _span(fact: Fact, size: int) -> ByteSpan | None:
    """``size`` bytes at ``fact``, relative to a register at entry; None if not expressible."""
    if not (_exits_known(fact) and isinstance(fact, AnchoredTerm)):
        return None
    register = fact.base - entry_symbol(0)
    if not 0 <= register <= LR:
        return None
    return ByteSpan(register, fact.offsets.low - BIAS, fact.offsets.high - BIAS + size)


class _Spilled:
    """Whether a cell that holds the address of a read-only word is retained."""

    def __init__(self, image: Image, *, retain: bool) -> None:
        self._image, self._retain = image, retain
        self.met = False

    def __call__(self, cell: object) -> bool:
        """Whether ``cell`` is retained."""
        if type(cell) is not int or cell >> 32 or self._image.constant(cell, WORD) is None:
            return False
        self.met = True
        return self._retain


def _links(cfg: Cfg) -> frozenset[int]:
    """Return addresses of ``bl`` to code that counts as part of the function."""
    exits = [b.last for b in cfg.blocks if b.last.flow is ControlFlow.CALL and not b.calls]
    return frozenset(insn.next | insn.thumb for insn in exits)
