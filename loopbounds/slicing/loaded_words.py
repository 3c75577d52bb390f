"""Memory cells within a scope: the store that a load reads, and the stores that spare a cell.

Only cells that no one but the program's own stores changes are tracked: constant addresses in a
section of the image, and live stack frames, which may be outside of all sections. A store that may
alias a cell makes it unknown (rule 20), except that, by assumption S1 (rule 1), a store of unknown
address spares live stack frames; S1 does not apply to an address that may be computed from a stack
address. A word may have several virtual addresses (rule 34): constant addresses are replaced by its
home address, and different addresses are different words by the memory map, by their offsets in
pages, or by assumption S3. A store of unknown address spares objects of their own by assumption S8.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopbounds.budgets import table
from loopbounds.slicing.called_stores import CalledStores
from loopbounds.slicing.cell import SP, MemoryCell, cell_name
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.effects import FLAG, LoadEffect, StoreEffect
from loopbounds.slicing.memo import MemoTable
from loopbounds.slicing.pointed_words import PointedWords, differ_by_remainder
from loopbounds.slicing.scope import ScopeValues
from loopbounds.slicing.stack_taint import sources_of
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, ite, sub
from loopbounds.terms.interval import interval
from quoll.abstract_domain.abstract_memory import NEAR, S1, S3, S4
from quoll.assumptions import F1, S8, Assumption
from quoll.facts.contract import ReadArguments
from quoll.image.memory_map import Span, same_in_page
from quoll.intervals.strided_interval import ValueSet

__all__ = ["AFTER", "LoadedWords"]

WORDS = 1 << 32
DISJOINT = -2  # in place of an offset
AFTER = 1 << 30  # every event of a block
ARGUMENTS = (0, 1, 2, 3, 12)


class LoadedWords:
    """The words of memory in one scope."""

    def __init__(self, scope: ScopeValues) -> None:
        self._scope = scope
        self._code = scope.code
        self._loads = MemoTable[tuple[int, Term], Term](scope.unbounded)
        self._hands_on = MemoTable[int, bool](scope.unbounded)
        self._offsets = MemoTable[tuple[int, int, MemoryCell], int](scope.unbounded)
        self._intervals: dict[Term, tuple[int, int]] = {}
        self.addresses: dict[Term, Term] = {}  # loaded unknown word -> its address
        self.pointed = PointedWords(scope)
        self.calls = CalledStores(scope, self)

    def renewed(self, scope: ScopeValues) -> LoadedWords:
        """The memory for a scope without the values that depend on unbounded loops."""
        memory = LoadedWords(scope)
        memory._loads, memory._hands_on = self._loads.for_good(), self._hands_on.for_good()
        memory._offsets = self._offsets.for_good()
        memory._intervals, memory.addresses = self._intervals, dict(self.addresses)
        memory.pointed.read = dict(self.pointed.read)
        memory.calls = self.calls.renewed(scope, memory)
        return memory

    def loaded(self, node: int, load: LoadEffect) -> Term:
        """The word that a load of the block of ``node`` reads."""
        key = node, load.symbol
        known = self._loads.get(key)
        if known is None:
            since = self._scope.unbounded.met
            known = self._loads.keep(key, self._load(node, load), since)
        return known

    def load_of(self, node: int, symbol: Term) -> LoadEffect | None:
        """The load of the block of ``node`` whose whole word is ``symbol``, or None."""
        loads = self._code.effect(node).loads
        return next(
            (load for s, load in loads.items() if self._loads.get((node, s)) is symbol), None
        )

    def _load(self, node: int, load: LoadEffect) -> Term:
        address = self._at_home(self._scope.instance(node, load.address), load.size)
        if address.constant is not None:
            value = self._code.image.constant(address.value, load.size)
            if value is not None:
                return terms.const(value, 8 * load.size)
        elif (word := self._in_table(node, load, address)) is not None:
            return word
        if self._followed(node, address, load):
            return self._restored(node, load, MemoryCell(address, load.size))
        if (cell := self.pointed.cell(node, load, address)) is not None:
            return self._behind_a_pointer(node, load, cell)
        frame = self._scope.tainted(address)
        name = load.symbol.name
        given = not (self._code.image.as_loaded or self._code.stored_before(node))
        word = self._scope.symbols.input(node, name, 8 * load.size, frame=frame, given=given)
        self.addresses[word] = address
        return word

    def _behind_a_pointer(self, node: int, load: LoadEffect, cell: MemoryCell) -> Term:
        word = self.before(node, load.position, cell)
        if word.op == "sym":
            self.addresses.setdefault(word, cell.address)
            self.pointed.read.setdefault(word, (node, load))
        return word

    def _restored(self, node: int, load: LoadEffect, cell: MemoryCell) -> Term:
        """The word of a loaded cell; under F1 the value of a saved register at function entry."""
        read = self.before(node, load.position, cell)
        given_back = self._code.given_back(node, load)
        if given_back is None or not self._scope.contains(given_back[0]):
            return read
        saved = self._scope.at(*given_back)
        if read is saved:
            return read
        spared = self.before(node, load.position, cell._replace(saved=True))
        return saved if spared is saved else read

    def _in_table(self, node: int, load: LoadEffect, address: Term) -> Term | None:
        """A word of a constant table, as a choice by address; None without a small table.

        Value analysis gives the addresses in every execution of the node. Sorted, they form runs of
        equal words, and the start of the next run selects between them. The model may allow further
        addresses, as it is less precise than value analysis, or as other callers pass other words:
        for these the word is any word.
        """
        memory = self._code.graph.nodes[node].block.insns[load.insn].memory
        places = self._code.table(node, load.insn)
        if places is not None and self._code.tables is not None:
            places = _from_base(places, address)
        if places is None or places.size > table.TABLE_WORDS or memory is None:
            return None
        gaps = places.stride & (places.stride - 1)
        if memory.count != 1 or memory.size != load.size or gaps:
            return None
        runs: list[tuple[int, int]] = []  # first address, word
        for place in places:
            word = self._code.image.constant(place, load.size)
            if word is None:
                return None
            if not runs or runs[-1][1] != word:
                runs.append((place, word))
            if len(runs) > table.TABLE_RUNS:
                return None
        value = terms.const(runs[-1][1], 8 * load.size)
        for (first, _), (_, word) in zip(runs[:0:-1], runs[-2::-1], strict=True):
            before = terms.ult(address, terms.const(first, 32))
            value = ite(before, terms.const(word, 8 * load.size), value)
        other = self._scope.symbols.input(node, f"other_{load.symbol.name}", 8 * load.size)
        return ite(_among(address, places), value, other)

    def _followed(self, node: int, address: Term, load: LoadEffect) -> bool:
        """Whether a cell is tracked: only stores of the program change it, at one address."""
        if address.constant is not None and self._code.steady(address.value, load.size):
            return True
        if not rewrite.symbols([address]) <= self._scope.symbols.leaves.keys():
            return False
        return self._in_frame(node, address, load)

    def _in_frame(self, node: int, address: Term, access: LoadEffect | StoreEffect | None) -> bool:
        """Whether an address is in a frame live before the block, after it or at the access."""
        effect = self._code.effect(node)
        pointers = [self._scope.at(node, SP)]
        for sp in (effect.registers.get(SP), access.sp if access else None):
            # Where sp itself is loaded, its new value depends on the result.
            if sp is not None and not rewrite.symbols([sp]) & effect.loads.keys():
                pointers.append(self._scope.instance(node, sp))
        return any(self._code.is_frame(address, pointer) for pointer in pointers)

    def before(self, node: int, position: int, cell: MemoryCell) -> Term:
        """The value of a cell before event ``position`` of ``node``."""
        size = cell.size
        guarded: list[tuple[Term, Term]] = []
        found: Term | None = None
        for store in reversed(self._code.effect(node).stores):
            if store.position >= position:
                continue
            offset = self.offset(node, store, cell)
            if offset is None:
                continue
            hit = self._hit_by_address(node, store, cell) if offset < 0 else TRUE
            if hit is FALSE:
                continue
            if hit is None or offset + size > store.size:
                found = self._mixed(node, store, cell)
                break
            whole = self._scope.instance(node, store.value)
            value = terms.extract(whole, 8 * max(offset, 0), 8 * size)
            guard = terms.both(hit, self._scope.instance(node, store.guard))
            if guard is TRUE:
                found = value
                break
            guarded.append((guard, value))
        if found is None:
            found = self._scope.at(node, cell)
        for guard, value in reversed(guarded):
            found = ite(guard, value, found)
        return found

    def _hit_by_address(self, node: int, store: StoreEffect, cell: MemoryCell) -> Term | None:
        """The condition that a store hits a whole cell; None: it may hit a part, or an alias.

        By value analysis, all places of the store are the cell or apart from it.
        """
        address, memory = cell.address, self._code.image.memory
        if not self._code.by_address or address.constant is None:
            return None
        places = self.pointed.places(node, store, store.size)
        if places is None or places.high + store.size > WORDS:
            return None
        if differ_by_remainder(ValueSet.of(address.value), cell.size, places, store.size):
            return FALSE
        if store.size != cell.size:
            return None
        if places.stride % store.size or (places.low - address.value) % store.size:
            return None
        own = _span(address.value, cell.size)
        others = _around((places.low, places.high + store.size - 1), own)
        if any(memory.meets(part, own) for part in others):
            return None
        if any(memory.assumes_apart(part, own) for part in others):
            self._scope.used.add(S3)
        return terms.eq(self._scope.instance(node, store.address), address)

    def carried(self, edge: int, cell: MemoryCell) -> Term:
        """The value of a cell at the header after control returns along ``edge``.

        The cell's address is a term over registers at the header, and moves with them.
        """
        scope, address = self._scope, cell.address
        bases = {
            leaf: scope.along(edge, scope.symbols.leaves[leaf])
            for leaf in rewrite.symbols([address])
        }
        moved = rewrite.substitute(address, bases)
        node = self._code.graph.edges[edge].src
        if moved is not address:
            one_place = rewrite.symbols([moved]) <= scope.symbols.leaves.keys()
            if not one_place or not self._in_frame(node, moved, None):
                return scope.symbols.lost(node, f"moved{edge}", cell)
        return scope.along(edge, cell._replace(address=moved))

    def _mixed(self, node: int, store: StoreEffect, cell: MemoryCell) -> Term:
        """A cell that a store may hit or overlap: any word, made of the old and the new one."""
        if cell.places is not None:
            return self.pointed.unknown(node, f"after{store.position}", cell)

        def parts(scope: ScopeValues) -> tuple[Term, Term]:
            old = scope.before(node, store.position, cell)
            return old, scope.instance(node, store.value)

        name = f"after{store.position}_{cell_name(cell)}"
        frame = self._in_frame(node, cell.address, store)  # the content of dead frames is unknown
        return self._scope.symbols.input(node, name, 8 * cell.size, frame=frame, parts=parts)

    def changed(self, loop: int, cell: MemoryCell) -> bool:
        """Whether a store in a loop may hit a cell."""
        if any(self.passed(edge, cell) for edge in self._code.passed_in(loop)):
            return True
        if cell.places is not None:
            return self.pointed.changed(loop, cell)
        if self.calls.spared_by_loop(loop, cell):
            return False
        return any(
            self.offset(node, store, cell) is not None
            for node in self._code.graph.loops[loop].nodes
            for store in self._code.effect(node).stores
        )

    def stored(self, cell: MemoryCell) -> bool:
        """Whether any store of the graph may hit a cell, or a function outside of it."""
        graph = self._code.graph
        passed = (e for e in range(len(graph.edges)) if graph.passed(e))
        return any(self.passed(e, cell) for e in passed) or any(
            self.offset(node, store, cell) is not None
            for node in range(len(graph.nodes))
            for store in self._code.effect(node).stores
        )

    def passed(self, edge: int, cell: MemoryCell) -> bool:
        """Whether a function that a fact replaces may change a cell along ``edge`` (rule 2).

        Under S1 it spares live frames, unless it may receive an address in one.
        """
        passed = self._code.graph.passed(edge)
        if all(replacement.preserves for replacement in passed):
            return False
        node = self._code.graph.edges[edge].src
        if cell.places is not None:
            return True
        if any(SP not in replacement.preserved for replacement in passed):
            return True
        if any(span.base not in ARGUMENTS for callee in passed for span in callee.stores):
            return True  # a known place above sp
        if not self._code.s1 or not self._in_frame(node, cell.address, None):
            return True
        read = ReadArguments.of_any(callee.reads for callee in passed)
        if not self.hands_on(node, read):
            self._scope.used.add(S1)
            return False
        if cell.saved:
            self._scope.used.add(F1.of())
        return not cell.saved

    def hands_on(self, node: int, read: ReadArguments) -> bool:
        """Whether the callee at ``node`` may receive a stack address in a ``read`` word."""
        known = self._hands_on.get(node)
        if known is None:
            since = self._scope.unbounded.met
            self._hands_on.presume(node, value=True)
            found = any(map(self._scope.tainted, self._arguments(node, read)))
            known = self._hands_on.keep(node, found, since)
        return known

    def _arguments(self, node: int, read: ReadArguments) -> Iterator[Term]:
        """The ``read`` argument registers and words above sp after ``node``."""
        for register in ARGUMENTS:
            if register in read.registers:
                yield self._scope.after(node, register)
        sp = self._scope.after(node, SP)
        for offset in sorted(read.arguments(self._code.graph.frame_at(node))):
            address = terms.add(sp, terms.const(offset, 32))
            if rewrite.symbols([address]) <= self._scope.symbols.leaves.keys():
                yield self.before(node, AFTER, MemoryCell(address, 4))
            else:
                yield sp

    def offset(self, node: int, store: StoreEffect, cell: MemoryCell) -> int | None:
        """The offset of the cell in the stored bytes; None: disjoint; -1: unknown."""
        key = node, store.position, cell
        known = self._offsets.get(key)
        if known is None:
            since = self._scope.unbounded.met
            found = self._find_offset(node, store, cell)
            known = self._offsets.keep(key, DISJOINT if found is None else found, since)
        return None if known == DISJOINT else known

    def target(self, node: int, store: StoreEffect) -> Term:
        """The address of a store in this scope."""
        return self._at_home(self._scope.instance(node, store.address), store.size)

    def spared(self, node: int, store: StoreEffect, cell: MemoryCell) -> Assumption | None:
        """The assumption by which alone a store spares a cell; None if there is none."""
        target = self.target(node, store)
        distance = sub(cell.address, target)
        if distance.constant is not None or self._below_data(node, store, target, cell.address):
            return None
        away = self._interval(distance)
        for _ in self._ways_apart(node, store, away, cell.address, cell.size):
            return None
        return self._spared(node, store, target, cell)

    def far_apart(self, cell: MemoryCell, above: int, stored: int) -> bool:
        """Whether the distance above a store of ``stored`` bytes proves a cell apart, without S3.

        A constant address is of another word than the address of the store, by the map.
        """
        away = above, above
        if above < stored or above > WORDS - cell.size:
            return False
        return next(self._at_distance(cell.address, cell.size, away, stored), True) is False

    def _find_offset(self, node: int, store: StoreEffect, cell: MemoryCell) -> int | None:
        address, size = cell.address, cell.size
        target = self.target(node, store)
        if cell.places is not None:
            in_frame = self._in_frame(node, target, store)
            return None if in_frame else self.pointed.offset(node, store, target, cell)
        distance = sub(address, target)
        if distance.constant is None:
            away = self._interval(distance)
        elif distance.value < store.size:
            return distance.value
        else:
            away = distance.value, distance.value
        apart = False
        for assumed in self._ways_apart(node, store, away, address, size):
            if not assumed:
                return None
            apart = True
        if apart:
            self._scope.used.add(S3)
            return None
        if distance.constant is not None and store.size > WORDS - distance.value - size:
            return -1
        if self._below_data(node, store, target, address):
            return None
        by = self._spared(node, store, target, cell)
        if by is None and self._of_unknown_stack(node, store, target, address):
            by = S4
        if by is None:
            by = self._of_its_own(node, store, target, cell)
        if by is not None:
            self._scope.used.add(by)
            return None
        if self._code.spared is None or address.constant is None:
            return -1
        more = self._code.spared(node, store.insn, cell)
        self._scope.used.update(more or ())
        return -1 if more is None else None

    def _ways_apart(
        self, node: int, store: StoreEffect, away: tuple[int, int], address: Term, size: int
    ) -> Iterator[bool]:
        """The proofs that a store spares a cell, each as whether it assumes S3.

        ``away``: the least and greatest distance of the cell above the start of the store.
        """
        memory = self._code.image.memory
        if store.size <= away[0] and away[1] <= WORDS - size:
            yield from self._at_distance(address, size, away, store.size)
        if (known := self._known(node, store, address)) is None:
            return
        place, hit = known
        cell = _span(place, size)
        if hit[1] >= WORDS or cell[1] >= WORDS:
            return
        if address.constant is not None:
            if not memory.meets(hit, cell):
                yield memory.assumes_apart(hit, cell)
        elif hit[1] < cell[0] or cell[1] < hit[0]:  # both are distances from sp
            above = (place - hit[0]) % WORDS
            yield from self._distant((above, above), size, hit[1] - hit[0] + 1)

    def _at_distance(
        self, address: Term, size: int, away: tuple[int, int], stored: int
    ) -> Iterator[bool]:
        """The proof from the distance of a cell, as ``_ways_apart``."""
        memory = self._code.image.memory
        if address.constant is None:
            yield from self._distant(away, size, stored)
        elif (hit := _hit(address.value, away, stored)) is None:
            yield True
        elif not memory.meets(hit, cell := _span(address.value, size)):
            yield memory.assumes_apart(hit, cell)

    def _distant(self, away: tuple[int, int], size: int, stored: int) -> Iterator[bool]:
        """The proof from the distance alone, as ``_ways_apart``."""
        if not self._code.image.memory.meets_at(away, size, stored):
            yield same_in_page((0, stored - 1), (away[0], away[1] + size - 1))

    def _at_home(self, address: Term, size: int) -> Term:
        """The home address for a constant address: the same for all virtual addresses of a word."""
        if address.constant is None:
            return address
        return terms.const(self._code.image.home(address.value, size), 32)

    def _interval(self, term: Term) -> tuple[int, int]:
        known = self._intervals.get(term)
        if known is None:
            known = self._intervals[term] = interval(term, self._ranges(term), self._intervals)
        return known

    def _ranges(self, term: Term) -> dict[Term, tuple[int, int]]:
        """Ranges of the symbols of ``term``: by value analysis, or by the bound of a loop."""
        found: dict[Term, tuple[int, int]] = {}
        for symbol in rewrite.symbols([term]):
            node, cell = self._scope.symbols.source(symbol)
            if isinstance(cell, int) and cell < FLAG:
                values = self._code.values.register(node, cell)
                found[symbol] = values.low, values.high
            elif (most := self._scope.symbols.limit(symbol)) is not None:
                found[symbol] = 0, most
        return found

    def _known(self, node: int, store: StoreEffect, address: Term) -> tuple[int, Span] | None:
        """The place of a cell, and the bytes that a store may hit, by value analysis.

        Both are addresses, or both are distances from sp at the entry.
        """
        values = self._code.values
        if address.constant is not None:
            place: int | None = address.value
            known = values.access(node, store.insn)
        else:
            place = self._above_entry(address)
            known = values.frame_access(node, store.insn)
        memory = self._code.graph.nodes[node].block.insns[store.insn].memory
        if place is None or known is None or memory is None:
            return None
        return place, (known.low, known.high + memory.size * memory.count - 1)

    def _above_entry(self, address: Term) -> int | None:
        """The distance of a cell from sp at the entry, by value analysis; None: unknown."""
        symbols = rewrite.symbols([address])
        if len(symbols) != 1:
            return None
        [symbol] = symbols
        distance = sub(address, symbol).constant
        at, cell = self._scope.symbols.source(symbol)
        if distance is None or not isinstance(cell, int) or cell >= FLAG:
            return None
        base = self._code.values.frame_register(at, cell)
        if base is None or base.low != base.high:
            return None
        return (base.low + distance) % WORDS

    def _spared(
        self, node: int, store: StoreEffect, target: Term, cell: MemoryCell
    ) -> Assumption | None:
        """The assumption by which a store spares a cell: S1 (rule 1), S4 or F1; None: none.

        S1: a store of unknown address spares live frames. S4: a store at a known address, or into a
        known section, spares a stack of unknown place (and the reverse: ``_of_unknown_stack``).
        F1: a store through a word read from an unknown place spares saved registers. A store at an
        unknown distance from sp may hit the cell.
        """
        address = cell.address
        if not self._code.s1 or not self._in_frame(node, address, store):
            return None
        if target.constant is not None and address.constant is not None:
            return None
        if address.constant is None and self._at_known_place(node, store):
            return S4
        if self._scope.tainted(target):
            return F1.of() if cell.saved and self._was_read(target) else None
        return S1 if target.constant is None else S4

    def _at_known_place(self, node: int, store: StoreEffect) -> bool:
        """Whether value analysis places a store in a section, apart from all known stacks."""
        places = self._code.values.access(node, store.insn)
        memory = self._code.graph.nodes[node].block.insns[store.insn].memory
        if places is None or memory is None or places.high - places.low > NEAR:
            return False
        first, last = places.low, places.high + memory.size * memory.count - 1
        section = self._code.image.section_at(first)
        if section is None or last >= section.addr + section.size:
            return False
        return not self._code.stacks.may_reach(first, last)

    def _of_its_own(
        self, node: int, store: StoreEffect, target: Term, cell: MemoryCell
    ) -> Assumption | None:
        """S8, if the cell is in an object of its own, and the address of the store is unknown."""
        address, image = cell.address, self._code.image
        if not image.owns or address.constant is None or target.constant is not None:
            return None
        name = image.own_object(address.value, cell.size)
        places = self._code.values.access(node, store.insn) if name else None
        if places is None or places.high - places.low <= NEAR or self._scope.tainted(target):
            return None
        return S8.of(object=name)

    def _of_unknown_stack(self, node: int, store: StoreEffect, target: Term, address: Term) -> bool:
        """Whether S4 says that a store into a live frame spares a known address."""
        frame = self._code.values.frame_access(node, store.insn)
        if not self._code.s1 or frame is None:
            return False
        if address.constant is None or target.constant is not None:
            return False
        return _is_pushed(self._code, node, store) or self._in_frame(node, target, store)

    def _was_read(self, target: Term) -> bool:
        """Whether each possible stack address in ``target`` is read from an unknown place."""
        sources = sources_of(target)
        if sources.name_a_stack(self._code):
            return False
        symbols = (t for t in sources.parts if t.op == "sym" and t not in self.addresses)
        return not any(map(self._scope.tainted, symbols))

    def _below_data(self, node: int, store: StoreEffect, target: Term, address: Term) -> bool:
        """Whether the store goes into a stack of unknown place, and the cell is as loaded."""
        if address.constant is None or target.constant is not None:
            return False
        if self._code.image.at_start(address.value, 1) is None:
            return False
        return not self._code.near_stack(address.value) and self._in_frame(node, target, store)


def _is_pushed(code: GraphCode, node: int, store: StoreEffect) -> bool:
    """Whether the base of a store is sp."""
    memory = code.graph.nodes[node].block.insns[store.insn].memory
    return memory is not None and memory.base == SP and memory.index is None


def _from_base(places: ValueSet, address: Term) -> ValueSet:
    """``places`` and those before it from the index 0 on, which other callers may read."""
    _, base = terms.summands_of(address)
    more = ValueSet(base, places.high, places.stride) if base < places.low else places
    fits = places.stride and not (places.low - base) % places.stride
    return more if fits and more.size <= table.TABLE_WORDS else places


def _among(address: Term, places: ValueSet) -> Term:
    """The condition that an address is one of ``places``, whose stride is a power of two."""
    away = sub(address, terms.const(places.low, 32))
    within = terms.ule(away, terms.const(places.high - places.low, 32))
    between = terms.operation("and", away, terms.const(max(places.stride, 1) - 1, 32))
    return terms.both(within, terms.eq(between, terms.const(0, 32)))


def _span(first: int, size: int) -> Span:
    return first, first + size - 1


def _around(span: Span, hole: Span) -> list[Span]:
    """The parts of a span before and behind a hole."""
    parts = (span[0], min(span[1], hole[0] - 1)), (max(span[0], hole[1] + 1), span[1])
    return [part for part in parts if part[0] <= part[1]]


def _hit(address: int, away: tuple[int, int], stored: int) -> Span | None:
    """The bytes that a store ``away`` below an address may hit; None if they wrap."""
    low, high = (address - away[1]) % WORDS, (address - away[0]) % WORDS + stored - 1
    return (low, high) if low <= high < WORDS else None
