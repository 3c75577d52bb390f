"""Invariants of entries, proved by induction over the entries of an execution.

    base   it holds when the first exception is taken: an assumption, compared with the loaded image
    step   each entry of the platform begins where all invariants hold; at each end of its paths
           this one holds, too

The step is sound if nothing else writes the words. So every entry of the platform is analysed, no
exception is taken on the paths of an entry that may store to the words, and no path ends in code
that is not in the graph. The rest is listed: code behind ends of paths, user programs, fast
interrupts, start-up code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from loopbounds.slicing.cell import MemoryCell
from loopbounds.slicing.code import is_steady
from loopbounds.slicing.stated_words import invariant_term, words_of
from loopbounds.terms.bit_vectors import Term, negate
from quoll.arm.exception_table import EXCEPTIONS, exception_tables
from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.supervisor import SUPERVISOR_VECTOR
from quoll.assumptions import BEHIND_END, BETWEEN_ENTRIES, FIRST_ENTRY, Assumption
from quoll.facts.entry_invariants import LocatedInvariant
from quoll.facts.predicate import MemoryWord
from quoll.image.memory_map import Cacheability
from wcet.analysis.entries import platform_entry
from wcet.analysis.run import AnalysisRun
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.established_words import established
from wcet.proving.invariant_counterexample import counterexample, holds_when_loaded
from wcet.proving.preserved_words import stores_preserve
from wcet.proving.verdict import EntryFinding, FindingKind
from wcet.refinement.passes import Pass
from wcet.refinement.unsatisfiable_core import as_smt_lib, contradictory

__all__ = ["assumed_by_invariants", "not_covered", "preserved"]

WAYS = 200  # nodes of a function that are tried
NOT_TAKEN = ("reset", "unused vector", "fast interrupt")


def not_covered(run: AnalysisRun) -> str:
    """The reason why other entries may write words of invariants; "": all are analysed."""
    analysed = {address & ~1 for address in run.entries.values()}
    for name, point in run.platform.entries.items():
        address = platform_entry(run.image, point)
        if address is None:
            return f"the entry {name} of the platform is not in the ELF"
        if address & ~1 not in analysed:
            return f"the entry {name} is not analysed"
    for table in exception_tables(run.image):
        for number, (name, handler) in enumerate(zip(EXCEPTIONS, table.handlers, strict=True)):
            if handler is None or name in NOT_TAKEN:
                continue
            if not {handler & ~1, table.addr + 4 * number} & analysed:
                return f"the vector of the {name} at {table.addr:#x} leads to code that is no entry"
    return ""


def assumed_by_invariants(
    bases: Sequence[EntryBasis], invariants: Sequence[LocatedInvariant]
) -> Iterator[Assumption]:
    """The assumptions of the induction about code that is on no path of an entry."""
    yield BETWEEN_ENTRIES.of()
    for name in dict.fromkeys(one.fact.name for one in invariants):
        found = {
            holds_when_loaded(one, bases[0].image) for one in invariants if one.fact.name == name
        }
        known = "does not hold" if False in found else "is not known" if None in found else "holds"
        yield FIRST_ENTRY.of(name=name, holds=known)
    for basis in bases:
        for last in sorted(basis.relied):
            yield BEHIND_END.of(place=basis.image.place(last))


def ends(basis: EntryBasis) -> Iterator[Insn]:
    """The last instructions of paths that neither return from an exception nor halt."""
    summarised = (paths.graph for one in basis.entry.summaries for paths in one.paths)
    for graph in (basis.graph, *summarised):
        for node in sorted(set(graph.exits) - graph.halts.keys()):
            block = graph.nodes[node].block
            returns = graph is not basis.graph and not block.exits  # to its callers
            if not returns and block.last.flow is not ControlFlow.EXCEPTION_RETURN:
                yield block.last


def preserved(basis: EntryBasis, invariant: LocatedInvariant) -> EntryFinding:
    """Whether ``invariant`` holds at each end of the entry's paths, if all hold at the entry."""
    proof = _Preservation(basis, invariant, words_of(invariant, basis.image))
    if (why := proof.not_in_memory()) is not None:
        return EntryFinding(FindingKind.OPEN, f"{basis.name}: {why}")
    if (found := stores_preserve(basis, invariant, proof.words)) is not None:
        basis.noted |= found.assumed
        proof.rely_on_ends()
        why = "it holds at each point: every store preserves it, by values"
        return EntryFinding(
            FindingKind.HOLDS, f"{basis.name}: {why if found.stored else 'no store hits its words'}"
        )
    if why := proof.not_followed():
        return EntryFinding(FindingKind.OPEN, f"{basis.name}: {why}")
    interrupted = proof.interrupted()
    if not interrupted and proof.established():
        why = "it holds at each end of its paths, by the functions that establish it"
        return EntryFinding(FindingKind.HOLDS, f"{basis.name}: {why}")
    proof.rely_on_ends()
    if not basis.conditions.stored(proof.cells):
        return EntryFinding(FindingKind.HOLDS, f"{basis.name}: no store hits its words")
    if interrupted:
        return EntryFinding(FindingKind.OPEN, f"{basis.name}: {interrupted}")
    for node in sorted(basis.graph.exits):
        if (broken := proof.at_end(node)) is not None:
            return broken
    return EntryFinding(FindingKind.HOLDS, f"{basis.name}: it holds at each end of its paths")


@dataclass(frozen=True, slots=True)
class _OtherEnds:
    """Ends of paths that are no exception returns: where an invariant holds, and the others."""

    held: frozenset[int]
    open: frozenset[int]
    assumed: frozenset[Assumption]


@dataclass(frozen=True, slots=True)
class _Preservation:
    """The proof for one entry; ``words``: the cells of the words of the invariant."""

    basis: EntryBasis
    invariant: LocatedInvariant
    words: dict[MemoryWord, MemoryCell]

    @property
    def cells(self) -> list[MemoryCell]:
        return list(self.words.values())

    def not_in_memory(self) -> str | None:
        """The reason why a word of the invariant may change without a store; None: none."""
        image = self.basis.image
        for word, cell in self.words.items():
            first, last = cell.address.value, cell.address.value + cell.size - 1
            kinds = Cacheability.ALWAYS, Cacheability.ON_CHIP
            if image.memory.cacheability(first, last) not in kinds:
                return f"{word.place} is not known to be in ordinary memory"
            if not is_steady(image, first, cell.size):
                return f"{word.place} may be in other memory after a change of translation"
        return None

    def not_followed(self) -> str:
        """The reason why the graph lacks ends of paths, or their starts; "" if none."""
        basis = self.basis
        if basis.starts_in_loop:
            return "its paths start in a loop"
        for function, replaced in basis.graph.guidance.replaced.items():
            unknown = replaced.cycles is None and not replaced.settled
            if replaced.exits or replaced.handler is not None or unknown:
                return f"paths end in {basis.image.place(function)}, which is not in its graph"
        return ""

    def interrupted(self) -> str:
        """The reason why another entry may begin on a path of this one."""
        basis = self.basis
        for address in basis.entry.unmasking:
            return f"interrupts may be unmasked at {basis.image.place(address)}"
        for n, node in enumerate(basis.graph.nodes):
            last = node.block.last
            trap = last.flow is ControlFlow.TRAP or SUPERVISOR_VECTOR in node.block.passes
            if trap and basis.graph.successors[n]:
                return f"{last.text} at {basis.image.place(last.addr)} enters the kernel"
        return ""

    def rely_on_ends(self) -> None:
        """Note that no code behind an end of paths is followed."""
        self.basis.relied |= {last.addr for last in ends(self.basis)}

    def established(self) -> bool:
        """Whether it is known to hold at each exception return that ends a path.

        Where it may not hold at another end, the entry is analysed again with the code behind.
        """
        found = self._ends()
        if found is None:
            return False
        if found.open:
            basis = self.basis.beyond(found.open)
            if basis is None:
                return False
            proof = _Preservation(basis, self.invariant, words_of(self.invariant, basis.image))
            if proof.not_in_memory() is not None or proof.not_followed() or proof.interrupted():
                return False
            found = proof._ends()
            if found is None or found.open:
                return False
            self.basis.noted |= set(basis.hypotheses)
        self.basis.noted |= found.assumed
        self.basis.relied |= found.held
        return True

    def _ends(self) -> _OtherEnds | None:
        """The ends that are no exception returns; None: it may not hold at an exception return."""
        graph = self.basis.graph
        found = established(self.basis, self.invariant, self.words, self.established_by)
        if found is None:
            return None
        held, left = set[int](), set[int]()
        for node in sorted(set(graph.exits) - graph.halts.keys()):
            last = graph.nodes[node].block.last
            if last.flow is not ControlFlow.EXCEPTION_RETURN:
                (held if node in found.after else left).add(last.addr)
            elif node not in found.after:
                return None
        return _OtherEnds(frozenset(held - left), frozenset(left), found.assumed)

    def established_by(self, function: EntryBasis) -> bool:
        """Whether it holds at each end of a function, however it is called."""
        proof = _Preservation(function, self.invariant, words_of(self.invariant, function.image))
        if proof.not_in_memory() is not None or proof.not_followed():
            return False
        return all(map(proof.holds_by_every_way, function.graph.exits))

    def holds_by_every_way(self, node: int) -> bool:
        """Whether it holds behind a node, however control gets there.

        The conditions of a node do not tell by which way. So each way is tried, back to where the
        conditions decide. Those of a node in a loop are about one of its iterations.
        """
        basis, graph = self.basis, self.basis.graph
        tried, pending = {node}, [node]
        while pending:
            at = pending.pop()
            if basis.conditions.code.acyclic.innermost[at] >= 0 or len(tried) > WAYS:
                return False
            if contradictory(*self.broken_at(at)):
                continue
            stores = (insn for n, insn in basis.stores if n == at)
            apart = [basis.spared(at, insn, cell) for insn in stores for cell in self.cells]
            passed = any(map(graph.passed, graph.predecessors[at]))  # its stores are not followed
            if at == graph.entry or None in apart or passed:
                return False
            edges = (edge for edge in graph.predecessors[at] if self.broken_along(edge))
            new = {graph.edges[edge].src for edge in edges} - tried
            tried |= new
            pending += new
        return True

    def broken_along(self, edge: int) -> bool:
        """Whether it may not hold when a path takes ``edge``."""
        basis, src = self.basis, self.basis.graph.edges[edge].src
        conditions, ranges = self.broken_at(src)
        [taken] = basis.conditions.taken([Pass(None, (edge,))])
        return not contradictory([*conditions, taken[edge]], ranges)

    def broken_at(self, node: int) -> tuple[list[Term], Callable[[Sequence[Term]], Sequence[Term]]]:
        """The conditions under which it does not hold after ``node``, and their ranges."""
        basis = self.basis
        reached, words = basis.conditions.at_end(node, basis.lifted(node, None), self.cells)
        after = dict(zip(self.words, words, strict=True))
        broken = negate(invariant_term(self.invariant, after.__getitem__))
        return [*reached.values(), broken], partial(basis.conditions.ranges, None)

    def at_end(self, node: int) -> EntryFinding | None:
        """The reason why it may not hold after ``node``; None: it holds."""
        basis = self.basis
        conditions, ranges = self.broken_at(node)
        if contradictory(conditions, ranges):
            return None
        held = [*conditions, *ranges(conditions)]
        found = counterexample(basis, self.invariant, held)
        check = as_smt_lib(conditions, ranges)
        formulas = (basis.described(None, held) + check,) if check else ()
        why = f"{basis.name}: {found} ({basis.place(node)})"
        return EntryFinding(
            FindingKind.BROKEN if found.refutes else FindingKind.OPEN, why, formulas
        )
