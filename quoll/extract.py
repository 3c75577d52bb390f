"""Extraction: from entries to a ``Program``, every function that they may reach.

Functions grow together. A call is passed only when its callee may return, and a function may
return when something in it does: functions that never return are what remains, the greatest
fixed point of rule 3. What an indirect transfer does is decided when all direct flow around it
is known, and decided again whenever more becomes known. What stays undecided is listed in
``Program.unresolved``; nothing is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quoll.arm.insn import LR, Flow, Insn
from quoll.cfg import Cfg, EdgeKind, JumpTable, Program
from quoll.discover import Callee, FunctionBuilder
from quoll.errors import FactsError, UsageError
from quoll.facts import Facts, NeverReturns, Targets
from quoll.image import Image
from quoll.linkage import holds_return_address
from quoll.places import find_place, resolve
from quoll.transfers import Effect, by_form, links

__all__ = ["extract", "function_name"]

NO_FACTS = Facts()
INDIRECT = (Flow.INDIRECT, Flow.INDIRECT_CALL)


def extract(
    image: Image,
    entries: Iterable[int],
    facts: Facts = NO_FACTS,
    ends: frozenset[int] = frozenset(),
) -> Program:
    """All code reachable from ``entries``, as functions.

    An entry may carry the Thumb bit; without it the symbols decide. A path ends after the
    instructions at ``ends``. Raises UsageError when an entry is not code, FactsError when a fact
    names a place that does not exist.
    """
    extraction = _Extraction(image, facts, ends)
    roots = [extraction.entry(addr) for addr in entries]
    for root in roots:
        extraction.require(root)
    extraction.run()
    return extraction.program(tuple(dict.fromkeys(root.entry for root in roots)))


class _Extraction:
    """The functions under construction and what is known of them."""

    def __init__(self, image: Image, facts: Facts, ends: frozenset[int]) -> None:
        self._image = image
        self._ends = ends
        self._functions: dict[int, FunctionBuilder] = {}
        self._returning: set[int] = set()
        self._callers: dict[Callee, set[int]] = {}
        self._sharers: dict[int, set[int]] = {}  # branch target -> functions holding it
        self._queue: deque[int] = deque()
        self._grown: set[int] = set()  # functions with sites to decide, again
        self._decided: dict[int, dict[int, int]] = {}  # function -> site -> version
        self._tables: dict[int, JumpTable] = {}
        self._assumptions: dict[str, None] = {}
        self._never = {
            addr: fact
            for fact in facts.of(NeverReturns)
            for addr in resolve(image, fact.function, fact.source)
        }
        self._stated = [
            (find_place(image, fact.place, fact.source), fact) for fact in facts.of(Targets)
        ]

    def entry(self, addr: int) -> Callee:
        """The function at ``addr``, checked to be code."""
        place = self._image.place(addr & ~1)
        thumb = bool(addr & 1) or self._image.thumb_at(addr) is True
        addr &= ~1
        if not self._image.is_executable(addr):
            raise UsageError("the entry is not code", where=place, hint="name a function")
        kinds = {s.kind for s in self._image.symbols.at(addr)}
        if kinds == {"object"} or (self._image.is_marked_data(addr) and "func" not in kinds):
            raise UsageError("the entry is data", where=place, hint="name a function")
        if addr % (2 if thumb else 4):
            raise UsageError("the entry is not aligned", where=place, hint="name a function")
        return Callee(addr, thumb)

    def require(self, callee: Callee) -> None:
        """Make sure that ``callee`` is a function; those that held its code call it instead."""
        known = self._functions.get(callee.entry)
        if known is not None:
            if known.thumb != callee.thumb:
                known.refuse(
                    callee.entry,
                    "the function is called as ARM and as Thumb code",
                    "one of its callers is resolved wrongly: state its targets",
                )
            return
        self._start(callee)
        for sharer in sorted(self._sharers.pop(callee.entry, set()) - {callee.entry}):
            again = self._functions[sharer]
            self._start(Callee(again.entry, again.thumb))

    def _start(self, callee: Callee) -> None:
        self._functions[callee.entry] = FunctionBuilder(
            self._image, callee, self._ends, self._is_function, self._returning
        )
        self._decided[callee.entry] = {}
        self._queue.append(callee.entry)

    def _is_function(self, addr: int) -> bool:
        return addr in self._functions or any(
            s.kind == "func" for s in self._image.symbols.at(addr)
        )

    def run(self) -> None:
        """Grow until nothing changes: direct flow first, then one round of decisions."""
        while self._queue:
            while self._queue:
                self._grow(self._functions[self._queue.popleft()])
            grown, self._grown = sorted(self._grown), set()
            for entry in grown:
                self._decide_sites(self._functions[entry])

    def _grow(self, function: FunctionBuilder) -> None:
        function.explore()
        self._grown.add(function.entry)
        for target in function.take_new_inlined():
            self._sharers.setdefault(target, set()).add(function.entry)
        for callee in function.take_new_callees():
            self._callers.setdefault(callee, set()).add(function.entry)
            self.require(callee)
        self._note_return(function)

    def _note_return(self, function: FunctionBuilder) -> None:
        entry = function.entry
        if not function.may_return or entry in self._returning or entry in self._never:
            return
        self._returning.add(entry)
        callee = Callee(entry, function.thumb)
        for caller in sorted(self._callers.get(callee, ())):
            self._functions[caller].returned(callee)
            self._queue.append(caller)

    def _decide_sites(self, function: FunctionBuilder) -> None:
        """Decide each indirect transfer that is new, or whose function has grown."""
        changed = False
        decided = self._decided[function.entry]
        for site in sorted(function.sites):
            if decided.get(site) == function.version:
                continue
            decided[site] = function.version
            self._decide(function, function.insns[site])
            changed = True
        if changed:
            self._queue.append(function.entry)

    def _decide(self, function: FunctionBuilder, insn: Insn) -> None:
        before = function.before(insn)
        keeps_lr = function.keeps_lr or self._keeps_lr(function, insn)
        effect = self._stated_effect(insn) or by_form(self._image, before, insn, keeps_lr=keeps_lr)
        calls = insn.flow is Flow.INDIRECT_CALL or links(before, insn)
        if effect is None:
            self._leave_open(function, insn, calls=calls)
            return
        if effect.returns:
            function.returns_at(insn.addr)
            if not effect.verified:
                self._assume(
                    "returns recognised by their form load the return address of their function"
                )
        self._note_table(insn, effect)
        for target in effect.targets:
            if calls:
                function.call(insn.addr, target, tail=False)
            else:
                function.jump(insn.addr, target, EdgeKind.INDIRECT)

    def _keeps_lr(self, function: FunctionBuilder, insn: Insn) -> bool:
        if LR not in insn.sources or insn.memory is not None:
            return False
        cfg = self._cfg(function)
        block = next(b.index for b in cfg.blocks if b.last.addr == insn.addr)
        return holds_return_address(cfg, block)

    def _leave_open(self, function: FunctionBuilder, insn: Insn, *, calls: bool) -> None:
        kind = "call" if calls else "jump"
        function.refuse(
            insn.addr,
            f"the targets of the indirect {kind} {insn.text} are not known",
            "state them: targets of PLACE are PLACE, ...",
        )
        if calls:
            function.continue_after(insn.addr)

    def _stated_effect(self, insn: Insn) -> Effect | None:
        """What the user said of ``insn``; every use is an assumption."""
        for place, fact in self._stated:
            if place.covers(self._image, insn.addr):
                targets = (
                    self._target(addr)
                    for text in fact.targets
                    for addr in resolve(self._image, text, fact.source)
                )
                self._assume(f"{fact.source.text} ({fact.source})")
                return Effect(tuple(targets))
        return None

    def _target(self, addr: int) -> Callee:
        return Callee(addr & ~1, bool(addr & 1) or self._image.thumb_at(addr) is True)

    def _note_table(self, insn: Insn, effect: Effect) -> None:
        if effect.targets:
            targets = tuple(t.entry for t in effect.targets)
            self._tables[insn.addr] = JumpTable(insn.addr, effect.table, targets)

    def _assume(self, text: str) -> None:
        self._assumptions.setdefault(text)

    def program(self, entries: tuple[int, ...]) -> Program:
        """What was found. Functions that became part of no caller any more are left out."""
        reached = self._reached(entries)
        functions = {entry: self._cfg(self._functions[entry]) for entry in sorted(reached)}
        places = {
            u.addr: u for e in sorted(reached) for u in self._functions[e].unresolved.values()
        }
        sites = {site for entry in reached for site in self._functions[entry].sites}
        self._check_stated(functions)
        if any(self._functions[entry].long_jumps for entry in reached):
            self._assume("Thumb bl to a place inside its own function is a long jump, not a call")
        for entry in sorted(reached & self._never.keys()):
            fact = self._never[entry]
            self._assume(f"{fact.function} never returns ({fact.source})")
        return Program(
            functions,
            entries,
            tuple(self._tables[addr] for addr in sorted(self._tables) if addr in sites),
            tuple(places[addr] for addr in sorted(places)),
            tuple(self._assumptions),
        )

    def _reached(self, entries: tuple[int, ...]) -> set[int]:
        reached: set[int] = set()
        pending = list(entries)
        while pending:
            entry = pending.pop()
            if entry not in reached:
                reached.add(entry)
                pending.extend(c.entry for c in self._functions[entry].callees)
        return reached

    def _cfg(self, function: FunctionBuilder) -> Cfg:
        return function.build(
            function_name(self._image, function.entry),
            returns=function.entry in self._returning,
        )

    def _check_stated(self, functions: dict[int, Cfg]) -> None:
        """A statement about targets that meets reached code meets an indirect transfer there."""
        insns = {i.addr: i for f in functions.values() for b in f.blocks for i in b.insns}
        for place, fact in self._stated:
            covered = [i for a, i in insns.items() if place.covers(self._image, a)]
            if covered and not any(i.flow in INDIRECT for i in covered):
                raise FactsError(
                    f"{fact.place} is no indirect jump or call",
                    where=str(fact.source),
                    hint=f"there is {covered[0].text} at {self._image.place(covered[0].addr)}",
                )


def function_name(image: Image, entry: int) -> str:
    """What the function at ``entry`` is called: its symbol, or the nearest one and an offset."""
    found = image.symbol_at(entry)
    if found is None:
        return f"0x{entry:08x}"
    symbol, offset = found
    return f"{symbol.name}+0x{offset:x}" if offset else symbol.name
