"""The work list of extraction: functions grow until no-return is a fixed point (rule 3).

Direct flow is followed first. Then values decide the indirect transfers whose form is inconclusive.
Claims by form are checked only when the graphs are stable: by following the frame if that suffices,
else by values. Each result may uncover more code; then all this is repeated for the functions that
grew. Undecided transfers are refused, and listed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from quoll.arm.insn import LR, SP, ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.arm.status import writes_saved_status
from quoll.assumptions import (
    EXCEPTION_RETURN,
    RETURN_BY_FORM,
    STORED_FUNCTIONS,
    TAIL_CALL_BY_FORM,
    Assumption,
)
from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind, JumpTable
from quoll.cfg.discover import FunctionBuilder
from quoll.cfg.growing_function import CalleeEntry, GrowingFunction
from quoll.cfg.link_register import holds_return_address, link_before
from quoll.cfg.transfers import TransferEffect, by_form, links
from quoll.cfg.unresolved import UnresolvedKind
from quoll.extraction.extraction_facts import ExtractionFacts
from quoll.extraction.functions import FunctionTable, ResolutionProgress
from quoll.extraction.passed_functions import passed_functions
from quoll.extraction.saved_context import saves_context
from quoll.extraction.stored_functions import StoredFunctions
from quoll.facts.contract import CallContract
from quoll.graph.closure import closure
from quoll.graph.levels import levels
from quoll.image.image import Image
from quoll.indirect.local_resolver import LocalResolver, ResolutionEvidence
from quoll.indirect.returns import (
    FunctionConfirmation,
    ReturnConfirmer,
    TransferValues,
    UnresolvedReason,
)
from quoll.indirect.stack_frames import FrameContract, FrameProofFailure, prove_frame
from quoll.processes.parallel_map import parallel_map

__all__ = ["CallGraphFixpoint"]

WORTH = 1000  # instructions whose values justify another process, or one per known function


class CallGraphFixpoint(FunctionTable):
    """Resolves the transfers of the functions under construction, up to a fixed point."""

    def __init__(
        self, image: Image, statements: ExtractionFacts, exits: frozenset[int] | None
    ) -> None:
        given = exits or frozenset()
        super().__init__(
            image, statements, given | statements.exits.keys(), statements.going_on - given
        )
        self._exits_stated = exits is not None
        self.tables: dict[int, JumpTable] = {}
        self.assumptions: dict[Assumption, None] = {}
        self._confirmer = ReturnConfirmer(image)
        self._local_resolver = LocalResolver(image)
        self._stored = StoredFunctions(image)
        self._open: set[int] = set()  # functions with transfers that their form does not decide
        # functions with transfers that the preceding code does not decide either
        self._hidden: set[int] = set()
        self._unchecked: set[int] = set()  # functions changed since the last query of values

    def run(self) -> None:
        """Grow until nothing changes."""
        while True:
            while self._waiting:
                entry, _ = self._waiting.popitem(last=False)
                self._grow(self.builders[entry])
            self._image.settle_lines()
            if self._open:
                queries, self._open = self._open, set()
                self._resolve_locally(queries)
            elif self._hidden:
                queries, self._hidden = self._hidden, set()
                self._resolve_by_values(queries)
            elif self._unchecked:
                queries, self._unchecked = self._unchecked, set()
                self._check(queries)
            elif not (self._resume() or self._pass() or self._refuse_exception_returns()):
                return

    def _pass(self) -> bool:
        """Resolve the calls through arguments by the arguments of all callers known so far.

        Returns whether a function changed. A caller found later may add targets, or pass an
        unknown word: then the call is refused.
        """
        changed = False
        for function in list(self.functions.values()):
            passed = self._progress[function.entry].passed
            for site in sorted(passed) if self._stands(function.entry) else ():
                changed |= self._pass_at(function, site, passed)
        return changed

    def _pass_at(
        self, function: GrowingFunction, site: int, passed: dict[int, Mapping[str, str]]
    ) -> bool:
        builder, insn = self.builders[function.entry], function.insns[site]
        cfg = self.cfg(function)
        block = next(block for block in cfg.blocks if block.last.addr == site)
        targets = passed_functions(self._image, cfg, block, self.calls_of)
        version = function.version
        if targets is None:
            values = passed.pop(site)
            writable = self._statements.writable(insn)
            builder.refuse_call(site, UnresolvedKind.TARGETS, values, writable)
        else:
            function.by_values.add(site)
            callees = tuple(CalleeEntry(word & ~1, bool(word & 1)) for word in sorted(targets))
            self._apply(builder, insn, TransferEffect(callees), calls=True)
        if function.version == version:
            return False
        self._waiting[function.entry] = None
        return True

    def _resume(self) -> bool:
        """Follow exception returns that values prove to continue in this program.

        Only a function that writes a saved status word, or loads one, may know it. A fact that all
        exception returns end paths has priority; the report lists it.
        """
        if self._statements.returns_end is not None:
            return False
        resumed = False
        for function in list(self.functions.values()):
            sites = function.exception_returns() - self._exits
            progress = self._progress[function.entry]
            if not sites or progress.resumed == function.version:
                continue
            if not self._stands(function.entry):
                continue
            progress.resumed = function.version
            if not any(map(_prepares_status, function.insns.values())):
                continue
            found = self._confirmer.resumed(self.cfg(function), sites)
            for site, targets in sorted(found.items()):
                goes_on = [CalleeEntry(at, False) for at in sorted(targets)]
                self.builders[function.entry].resumes_at(site, goes_on)
                self._waiting[function.entry] = None
                resumed = True
        return resumed

    def restoring(self) -> frozenset[int]:
        """The functions that are assumed to write status words of the mode in which they run."""
        return frozenset(self._confirmer.restoring)

    def entry_modes(self) -> dict[int, int]:
        """The modes in which functions are assumed to be called."""
        return dict(self._confirmer.modes)

    def _assumes_mode(self, function: GrowingFunction, doubt: UnresolvedReason) -> bool:
        """Whether values are queried again, under an assumption about the mode.

        A function that returns to its caller by an ordinary return is called in the mode of its
        return; an exception handler is not. A status word of unknown mode, such as an argument,
        has the mode in which it is written.
        """
        if doubt.mode is not None:
            self._confirmer.modes[function.entry] = doubt.mode
        elif doubt.restores and self._may_restore(function):
            self._confirmer.restoring.add(function.entry)
        else:
            return False
        self._progress[function.entry].claimed = True
        self._hidden.add(function.entry)
        return True

    def _may_restore(self, function: GrowingFunction) -> bool:
        """Whether status words are not yet assumed to have the mode in which they are written.

        Where a function saves a context, the word may be of the context that it continues.
        """
        known = function.entry in self._confirmer.restoring
        return not known and not saves_context(function.insns.values())

    def _refuse_exception_returns(self) -> bool:
        """Refuse exception returns that calls may lead to, unless a statement ends the path there.

        The restored context may belong to this kernel, so that control may return behind the call.
        If the exits are unknown, only functions that save a context themselves are refused; the
        others are listed. Returns whether one was refused.
        """
        if self._statements.returns_end is not None:
            return False
        pending = [
            callee
            for function in self.functions.values()
            for insn, callees in function.calls.items()
            if insn not in function.tails
            for callee in callees
        ]

        def jumped_to(entry: int) -> Iterator[int]:
            function = self.functions[entry]
            return (c for insn in function.tails for c in function.calls.get(insn, ()))

        called = closure(pending, jumped_to)
        refused = False
        for function in self.functions.values():
            if function.entry in self._statements.switching:
                continue
            if not self._exits_stated and not saves_context(function.insns.values()):
                continue
            sites = function.exception_returns() - self._exits
            if function.entry not in called:
                sites &= function.reached_by_calls()
            for site in sorted(sites):
                self.builders[function.entry].refuse_exit(site)
                self._waiting[function.entry] = None
                refused = True
        return refused

    def _examine(
        self, entries: Set[int], *, prove: bool
    ) -> Iterator[tuple[GrowingFunction, TransferResults]]:
        """The results for the transfers of functions that have not changed meanwhile.

        Refused transfers are not queried again: graphs only grow, and more paths to a transfer
        leave less known of its target.
        """
        functions = [self.functions[e] for e in sorted(entries) if self._stands(e)]
        versions = [function.version for function in functions]

        def examine(index: int) -> TransferResults:
            function = functions[index]
            by_form = self._progress[function.entry].by_form
            returns = function.returns - function.settled
            provable = prove and returns <= by_form
            return examined(
                self.cfg(function),
                function.sites
                - function.settled
                - (function.returns & by_form)
                - function.unresolved.keys(),
                returns if provable else None,
                self._local_resolver,
                self._confirmer,
            )

        weights = [len(function.insns) for function in functions]
        results = parallel_map(examine, weights, self._worth())
        for function, version, found in zip(functions, versions, results, strict=True):
            if self.functions[function.entry] is not function:
                continue
            if function.version == version:
                yield function, found
            else:
                self._waiting[function.entry] = None

    def _worth(self) -> int:
        """Instructions that justify another process, whose cost grows with the memory in use."""
        return max(WORTH, len(self.functions))

    def _grow(self, builder: FunctionBuilder) -> None:
        function = builder.function
        builder.explore()
        progress = self._progress[function.entry]
        for site in sorted(function.sites - progress.formed):
            self._resolve_by_form(builder, function.insns[site])
        self._call_through_tables(builder)
        for target in builder.take_new_inlined():
            self._sharers.setdefault(target, set()).add(function.entry)
        for callee in builder.take_new_callees():
            self._callers.setdefault(callee, set()).add(function.entry)
            self.require(callee)
            if callee.entry in self._fragments:
                self._open.add(callee.entry)
        self._note_return(function)
        if builder.growing:
            self._waiting[function.entry] = None
        if function.version != progress.queried:
            self._unchecked.add(function.entry)

    def _call_through_tables(self, builder: FunctionBuilder) -> None:
        """Apply facts about calls through tables, given the current code before the calls."""
        function = builder.function
        stated = {
            site: tables
            for site in sorted(function.sites & function.settled)
            if (tables := self._statements.through(function.insns[site])) is not None
        }
        progress = self._progress[function.entry]
        if not stated or progress.called == function.version:
            return
        progress.called = function.version
        cfg = self.cfg(function)
        into: dict[int, list[Edge]] = {}
        for edge in cfg.edges:
            into.setdefault(edge.dst, []).append(edge)
        for block in cfg.blocks:
            tables, insn = stated.get(block.last.addr), block.last
            if tables is None or insn.addr in function.unresolved:
                continue
            targets = tables.targets(cfg, into, block, self._image)
            calls = insn.flow is ControlFlow.INDIRECT_CALL or links(function.before(insn), insn)
            if targets:
                self._apply(builder, insn, TransferEffect(targets), calls=calls)
                continue
            writable = self._statements.writable(insn)
            builder.refuse_call(insn.addr, UnresolvedKind.NO_VTABLE, {"text": insn.text}, writable)

    def _note_return(self, function: GrowingFunction) -> None:
        entry = function.entry
        never = entry in self._statements.never
        if not function.may_return or entry in self.returning or never:
            return
        self.returning.add(entry)
        for callee in (CalleeEntry(entry, False), CalleeEntry(entry, True)):
            for caller in sorted(self._callers.get(callee, ())):
                self.builders[caller].returned(callee)
                self._waiting[caller] = None

    def _resolve_by_form(self, builder: FunctionBuilder, insn: Insn) -> None:
        """Apply the stated effect of an indirect transfer, or the effect of its form."""
        function = builder.function
        progress = self._progress[function.entry]
        progress.formed.add(insn.addr)
        before = function.before(insn)
        stated = self._statements.effect(insn)
        preserves_lr = function.keeps_lr or self._preserves_lr(function, insn)
        effect = stated or by_form(self._image, before, insn, preserves_lr=preserves_lr)
        if effect is not None and effect.returns and function.entry in self._statements.switching:
            effect = None  # values must distinguish a return from a switch
        calls = insn.flow is ControlFlow.INDIRECT_CALL or links(before, insn)
        if stated is None and self._statements.through(insn) is not None:
            function.settled.add(insn.addr)
            function.returns_not_at(insn.addr)
            return
        if effect is None:
            self._open.add(function.entry)
            return
        if stated or not (effect.returns or links(before, insn)):
            function.settled.add(insn.addr)
        else:
            progress.by_form.add(insn.addr)
        self._apply(builder, insn, effect, calls=calls)

    def _preserves_lr(self, function: GrowingFunction, insn: Insn) -> bool:
        if LR not in insn.sources or insn.memory is not None:
            return False
        cfg = self.cfg(function)
        block = next(b.index for b in cfg.blocks if b.last.addr == insn.addr)
        return holds_return_address(cfg, block)

    def _apply(
        self, builder: FunctionBuilder, insn: Insn, effect: TransferEffect, *, calls: bool
    ) -> None:
        function = builder.function
        if effect.returns:
            function.returns_at(insn.addr)
        if effect.targets:
            targets = tuple(t.entry for t in effect.targets)
            self.tables[insn.addr] = JumpTable(insn.addr, effect.table, targets)
        for target in effect.targets:
            if calls:
                builder.call(insn.addr, target, tail=False)
            else:
                builder.jump(insn.addr, target, EdgeKind.INDIRECT)

    def _resolve_locally(self, entries: Set[int]) -> None:
        """Decide open transfers by the preceding code, where it suffices."""
        for function, found in self._examine(entries, prove=False):
            builder = self.builders[function.entry]
            self._apply_local(builder, found)
            stands = self.functions[function.entry] is function
            if found.undecided and stands and not self._come_back(builder, found.undecided):
                self._hidden.add(function.entry)
            self._waiting[function.entry] = None

    def _come_back(self, builder: FunctionBuilder, sites: Set[int]) -> bool:
        """Continue behind calls that values are to decide, once values were queried of the
        function.

        Otherwise values would be queried again for each call that an earlier one uncovers. The
        callees are decided when the function stops growing.
        """
        function = builder.function
        insns = [function.insns[site] for site in sorted(sites)]
        calls = all(
            insn.flow is ControlFlow.INDIRECT_CALL or links(function.before(insn), insn)
            for insn in insns
        )
        if not calls or self._progress[function.entry].queried is None:
            return False
        for insn in insns:
            builder.continue_after(insn.addr)
        return True

    def _apply_local(self, builder: FunctionBuilder, found: TransferResults) -> None:
        """Use the results of the code just before the transfers of a function."""
        function = builder.function
        self._local_resolver.learn(found.used)
        self.assumptions.update(dict.fromkeys(sorted(found.used.assumptions)))
        progress = self._progress[function.entry]
        progress.left = function.version, found.undecided
        progress.locally_resolved = found.results.keys() - found.undecided
        for site, result in sorted(found.results.items()):
            if result is not None:
                self._decide(builder, function.insns[site], result)
            if self.functions[function.entry] is not function:
                return

    def _check(self, entries: Set[int]) -> None:
        """Check all decisions about functions, callees first, once nothing grows.

        So only mutually recursive functions are queried again.
        """
        above = closure(sorted(entries), self._calling)

        def called(entry: int) -> list[int]:
            return [c.entry for c in self.functions[entry].callees if c.entry in above]

        level = levels(sorted(above), called)
        pending: dict[int, set[int]] = {}
        self._unchecked |= entries
        while pending or self._unchecked:
            for entry in self._unchecked:
                pending.setdefault(level[entry], set()).add(entry)
            self._unchecked = set()
            self._check_level(pending.pop(min(pending)))

    def _check_level(self, entries: Set[int]) -> None:
        """Check functions whose callees are checked; recheck callers that relied on more."""
        for function, found in self._examine(entries, prove=True):
            entry, progress = function.entry, self._progress[function.entry]
            progress.queried = function.version
            progress.unproved = {}
            self._apply_local(self.builders[entry], found)
            if self.functions[entry] is not function or function.version != progress.queried:
                self._waiting[entry] = None
            elif found.frame is None:
                self._hidden.add(entry)
                progress.claimed = True
                progress.lost = found.lost
            else:
                self.assumptions.update(dict.fromkeys(sorted(found.frame.assumes)))
                self._note_left(function, found.frame.left)

    def _resolve_by_values(self, entries: Set[int]) -> None:
        """Decide open transfers by the values of functions, and check the claims of their form."""
        functions = [self.functions[e] for e in sorted(entries) if self._stands(e)]
        versions = [function.version for function in functions]
        cfgs = [self.cfg(function) for function in functions]
        weights = [len(function.insns) for function in functions]

        def values(index: int) -> FunctionConfirmation | str:
            function = functions[index]
            return self._confirmer(cfgs[index], self._progress[function.entry].undecided(function))

        for function, version, cfg, confirmed in zip(
            functions, versions, cfgs, parallel_map(values, weights, self._worth()), strict=True
        ):
            if self.functions[function.entry] is not function:
                continue
            if function.version == version:
                self._apply_values(self.builders[function.entry], cfg, confirmed)
            else:
                self._hidden.add(function.entry)

    def _apply_values(
        self, builder: FunctionBuilder, cfg: Cfg, confirmed: FunctionConfirmation | str
    ) -> None:
        """Use the values of a function."""
        function = builder.function
        entry, progress = function.entry, self._progress[function.entry]
        progress.queried = function.version
        progress.unproved = {}
        undecided, checked = progress.undecided(function), progress.claimed
        progress.claimed = False
        if not checked:
            self._unchecked.add(entry)
        if isinstance(confirmed, str):
            for site in sorted(undecided):
                self._doubt(builder, function.insns[site], UnresolvedReason(confirmed))
            return
        self.assumptions.update(dict.fromkeys(sorted(confirmed.assumptions)))
        endings = [(b, e) for b in cfg.blocks if (e := confirmed.endings.get(b.index)) is not None]
        if self._corrects_tail_calls(function, endings):
            self._restart(entry)
            return
        for block, ending in endings:
            if ending.effect is not None:
                if not isinstance(ending.effect, UnresolvedReason) and function.calls:
                    function.by_values.add(block.last.addr)
                self._decide(builder, block.last, ending.effect)
            if self.functions[entry] is not function:
                return
        if checked and function.version == progress.queried and entry not in self._hidden:
            assumed = progress.unproved.keys()
            self._note_left(function, self._confirmer.left_by(cfg, confirmed, assumed))
        self._waiting[entry] = None

    def _corrects_tail_calls(
        self, function: GrowingFunction, endings: Sequence[tuple[Block, TransferValues]]
    ) -> bool:
        """Whether jumps to functions proved to be calls, or jumps inside the function.

        A jump with an address of code in lr is a call that returns there.
        """
        inline = self._inline.setdefault(function.entry, set())
        linked = self._linked.setdefault(function.entry, {})
        found = False
        for block, ending in endings:
            at = block.last.addr
            if not (block.calls and block.comes_back):
                wrong = block.tail and self._is_no_tail_call(function, block, ending)
            else:
                wrong = ending.link is None or not ending.link <= linked.get(at, frozenset())
            if wrong and ending.link is not None:
                linked[at] = ending.link | linked.get(at, frozenset())
            elif wrong:
                linked.pop(at, None)
                inline.add(at)
            found |= wrong
        return found

    def _note_left(self, function: GrowingFunction, left: CallContract) -> None:
        """Analyse callers again that relied on a stronger contract."""
        if self._confirmer.note(function.entry, left):
            self._unchecked |= self._calling(function.entry)

    def _is_no_tail_call(
        self, function: GrowingFunction, block: Block, ending: TransferValues
    ) -> bool:
        """Whether a jump to functions that may return does not leave sp and lr for them."""
        insn = block.last
        if not block.passes and not any(callee in self.returning for callee in block.calls):
            return False
        if SP not in ending.preserved:
            return True
        if LR in ending.preserved:
            return False
        if not holds_return_address(self.cfg(function), block.index):
            return True
        self._progress[function.entry].unproved[insn.addr] = TAIL_CALL_BY_FORM.of(
            insn=insn.text, place=self._image.place(insn.addr)
        )
        return False

    def _decide(
        self,
        builder: FunctionBuilder,
        insn: Insn,
        result: tuple[TransferEffect, bool] | UnresolvedReason,
    ) -> None:
        """Apply the result for the transfer ``insn``."""
        function = builder.function
        if isinstance(result, UnresolvedReason):
            self._doubt(builder, insn, result)
            return
        effect, calls = result
        if self._overshoots(function, insn, effect):
            reason = "some targets are outside the function and start no other"
            self._doubt(builder, insn, UnresolvedReason(reason))
            return
        if not effect.returns:
            function.returns_not_at(insn.addr)
            self._progress[function.entry].by_form.discard(insn.addr)
        self._apply(builder, insn, effect, calls=calls or insn.flow is ControlFlow.INDIRECT_CALL)

    def _overshoots(self, function: GrowingFunction, insn: Insn, effect: TransferEffect) -> bool:
        """Whether a computed jump among many places leaves its function in an unlikely way.

        Following all targets would be sound, but would bury the real cause in errors about code
        that is never reached in this way.
        """
        around = [self._image.symbols.function_around(a) for a in (insn.addr, function.entry)]
        extents = [range(s.addr, s.addr + s.size) for s in around if s]
        if not extents or len(effect.targets) < 2 or effect.table is not None:
            return False
        return not all(
            any(t.entry in extent for extent in extents) or self._has_symbol(t.entry)
            for t in effect.targets
        )

    def _doubt(self, builder: FunctionBuilder, insn: Insn, doubt: UnresolvedReason) -> None:
        """Refuse ``insn``, or accept a claim of its form: values do not resolve it."""
        function = builder.function
        progress, stated = self._progress[function.entry], self._statements.returns(insn)
        calls = insn.flow is ControlFlow.INDIRECT_CALL or links(function.before(insn), insn)
        values = {"text": insn.text, "doubt": doubt.reason}
        if function.entry in self._statements.switching and not (doubt.dead or calls or stated):
            function.switches_at(insn.addr)
            return
        if stated is not None:
            function.returns_at(insn.addr)
            progress.unproved[insn.addr] = stated
            return
        if not calls and self._assumes_mode(function, doubt):
            return
        if insn.addr in progress.by_form:
            function.returns_at(insn.addr)
            if doubt.balanced:
                progress.unproved[insn.addr] = RETURN_BY_FORM.of(
                    insn=insn.text, place=self._image.place(insn.addr)
                )
            elif doubt.switches:
                self._refuse_switch(builder, insn)
            elif not doubt.dead and not self._is_fragment(function):
                lost = progress.lost
                builder.refuse(
                    insn.addr,
                    UnresolvedKind.NOT_PROVED_TO_RETURN,
                    {**values, "lost": self._lost(progress, insn)},
                    writable=self._statements.writable(insn),
                    behind=None if lost is None else function.unresolved.get(lost.addr),
                )
            return
        if doubt.dead:
            self.tables.setdefault(insn.addr, JumpTable(insn.addr, None, ()))
            return
        if doubt.switches and not calls:
            self._refuse_switch(builder, insn)
            return
        explained = not (calls or doubt.bounded) and self._is_fragment(function, own=doubt.loaded)
        if explained or self._sets_apart(function, insn):
            return
        if calls and self._is_passed(function, insn):
            progress.passed.setdefault(insn.addr, values)
            return
        if calls and self._is_stored(builder, insn):
            return
        writable = self._statements.writable(insn)
        link = None if calls else link_before(insn, function.before)
        if calls or link is not None:
            builder.refuse_call(insn.addr, UnresolvedKind.TARGETS, values, writable, link)
        else:
            returns = insn.sources == (LR,)
            kind = UnresolvedKind.RETURN_TARGETS if returns else UnresolvedKind.TARGETS
            builder.refuse(insn.addr, kind, values, writable=writable)

    def _is_passed(self, function: GrowingFunction, insn: Insn) -> bool:
        """Whether the callers known so far pass functions for the call at ``insn``."""
        cfg = self.cfg(function)
        block = next(block for block in cfg.blocks if block.last.addr == insn.addr)
        return bool(passed_functions(self._image, cfg, block, self.calls_of))

    def _is_stored(self, builder: FunctionBuilder, insn: Insn) -> bool:
        """Resolve a call through words that only constants are stored to, if it is one."""
        cfg = self.cfg(builder.function)
        block = next(block for block in cfg.blocks if block.last.addr == insn.addr)
        found = self._stored.targets(cfg, block)
        if found is None:
            return False
        symbol, words = found
        callees = tuple(CalleeEntry(word & ~1, bool(word & 1)) for word in sorted(words))
        self._apply(builder, insn, TransferEffect(callees), calls=True)
        place = self._image.place(insn.addr)
        assumed = STORED_FUNCTIONS.of(insn=insn.text, place=place, object=symbol.name)
        self._progress[builder.function.entry].unproved[insn.addr] = assumed
        return True

    def _refuse_switch(self, builder: FunctionBuilder, insn: Insn) -> None:
        """Refuse a switch to another stack, which neither returns nor ends all paths."""
        function = builder.function
        builder.refuse(
            insn.addr,
            UnresolvedKind.OTHER_STACK,
            {"text": insn.text, "lost": self._lost(self._progress[function.entry], insn)},
            writable=self._statements.writable(insn),
        )

    def _lost(self, progress: ResolutionProgress, insn: Insn) -> str:
        """The last place to which the frame was followed, for a message about ``insn``."""
        lost = progress.lost
        if lost is None or lost.addr == insn.addr:
            return ""
        place = self._image.place(lost.addr)
        return f"; its frame is not followed beyond {lost.text} at {place}"

    def left_by(self, entry: int) -> CallContract:
        """The contract of the function at ``entry`` with its callers."""
        return self._confirmer.contract(entry)

    def exits(self, entries: Sequence[int]) -> list[Assumption]:
        """The assumptions about exception returns, if the exits of paths are unknown."""
        if self._exits_stated or self._statements.returns_end is not None:
            return []
        found = [self.functions[entry] for entry in entries]
        sites = {s: f.insns[s] for f in found for s in f.exception_returns() - self._exits}
        return [
            EXCEPTION_RETURN.of(insn=insn.text, place=self._image.place(site))
            for site, insn in sorted(sites.items())
        ]

    def unproved(self, entry: int) -> list[Assumption]:
        """The assumptions about the function at ``entry`` that values did not prove."""
        return list(self._progress[entry].unproved.values())


def _prepares_status(insn: Insn) -> bool:
    """Whether ``insn`` writes the SPSR of the mode, or restores a status word from memory."""
    return writes_saved_status(insn) or insn.operation is Operation.RETURN_FROM_EXCEPTION


TransferResult = (
    tuple[TransferEffect, bool] | UnresolvedReason
)  # the effect of a transfer, and whether it is a call


@dataclass(frozen=True, slots=True)
class TransferResults:
    """``results``: for each open transfer, None if values of the whole function may decide it.

    ``used``: the evidence of the results. ``frame``: the result of the quick proof of returns; None
    if it was not requested, or failed, at the instruction ``lost`` if it failed at one.
    """

    results: Mapping[int, TransferResult | None]
    used: ResolutionEvidence
    frame: FrameContract | None
    lost: Insn | None = None

    @property
    def undecided(self) -> frozenset[int]:
        """The transfers that need the values of the whole function."""
        return frozenset(site for site, result in self.results.items() if result is None)


def examined(
    cfg: Cfg,
    open_sites: Set[int],
    returns: Set[int] | None,
    local_resolver: LocalResolver,
    confirmer: ReturnConfirmer,
) -> TransferResults:
    """The results for the transfers at ``open_sites``, and the proof that ``returns`` return.

    With ``returns`` None no proof is tried. A result depends only on the function's graph and the
    assumed contracts of its callees, and nothing is changed: functions can be distributed over
    processes, and the results do not depend on their number.
    """
    used = ResolutionEvidence()
    results = local_resolver(cfg, open_sites, used)
    frame, lost = None, None
    if returns is not None and None not in results.values():
        try:
            frame = prove_frame(cfg, returns, confirmer.contract_of_any)
        except FrameProofFailure as reason:
            lost = reason.insn
    return TransferResults(results, used, frame, lost)
