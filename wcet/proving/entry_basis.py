"""An entry analysed for proofs, and the questions about its paths that proofs ask.

A *pass* is the whole path, or an iteration of a loop. Code is not executed in a pass if the
conditions to get there contradict each other (``wcet.refinement``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from ilp.constraints.constraint import UNLIMITED
from ilp.constraints.instance import CallStructure
from ilp.constraints.nest import LoopNest
from loopbounds.proof.bound import CHECKERS, PROVED, LoopBound
from loopbounds.slicing.cell import MemoryCell
from loopbounds.terms.bit_vectors import Term
from quoll.abstract_domain.abstract_memory import S3, S4
from quoll.assumptions import NOT_MASKED, S8, Assumption
from quoll.errors import WcetError
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import undivided
from quoll.value_analysis.known_stores import WordStore, stores, word_store
from wcet.analysis.entry_stages import AnalysisTarget, Arrival, PathOrigin, bounded
from wcet.analysis.preparation import ValuedEntry, valued
from wcet.analysis.run import AnalysisRun
from wcet.masked.handler_stores import InterruptHandler
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import Pass, scopes_of
from wcet.refinement.unsatisfiable_core import as_smt_lib, connected, cores

__all__ = ["Contradiction", "EntryBasis"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Conditions that cannot hold together: places that are not reached, and the words tested."""

    places: tuple[str, ...]
    about: tuple[str, ...]

    def __str__(self) -> str:
        tested = f", which depend on {'; '.join(self.about)}" if self.about else ""
        return f"the conditions to get to {' and '.join(self.places)}{tested}, exclude each other"


@dataclass
class EntryBasis:
    """An entry with values and bounds of loops; ``facts``: all facts with their places.

    The analysis applied the facts of ``entry.code.run`` only. Loops are bounded on demand.
    """

    entry: ValuedEntry
    facts: LocatedFacts
    noted: set[Assumption] = field(default_factory=set)  # of proofs without conditions
    relied: set[int] = field(default_factory=set)  # ends at which an invariant is proved to hold
    # the assumptions under which the store at an address spares a word, in every call of this code
    apart: Callable[[int, MemoryCell], frozenset[Assumption] | None] | None = None
    _conditions: PassConditions | None = field(default=None)

    @staticmethod
    def of(run: AnalysisRun, name: str, address: int, facts: LocatedFacts) -> EntryBasis:
        """The analysis. Raises WcetError where facts are missing.

        The interrupt handler may store between any two instructions of an entry that unmasks.
        """
        return EntryBasis._of(AnalysisTarget(run, name, address), facts)

    @staticmethod
    def _of(code: AnalysisTarget, facts: LocatedFacts) -> EntryBasis:
        run, entry, noted = code.run, valued(code), set[Assumption]()
        if entry.unmasking:
            handler = InterruptHandler(run)
            entry = handler.interrupting(entry)
            noted.update(handler.left_out(entry))
        return EntryBasis(entry, facts, noted)

    @cached_property
    def bounds(self) -> tuple[LoopBound, ...]:
        """The bounds of its loops. Raises WcetError as the analysis of an entry does."""
        with self.entry.code.run.stages.stage("loop bounds", self.name):
            return bounded(self.entry, [undivided(self.graph)]).bounds

    @cached_property
    def calls(self) -> CallStructure:
        """The calls inside the loops of its graph."""
        numbers = [b.bound if b.method in PROVED and b.bound is not None else UNLIMITED
                   for b in self.bounds]  # fmt: skip
        return CallStructure(LoopNest.build(self.graph, numbers))

    def called(self, function: int) -> EntryBasis | None:
        """A function of its paths alone, called in any state; None if it cannot be analysed."""
        graph = self.graph
        calls = [n for n, one in enumerate(graph.contexts) if one.function == function]
        inside = {context for call in calls for context in graph.called_by(call)}
        first = (graph.nodes[n].block.insns[0] for call in calls for n in graph.nodes_in[call])
        thumb = any(insn.thumb for insn in first if insn.addr == function)
        found: dict[int, list[WordStore]] = {}
        for (node, _), store in self.stores.items():
            if self.graph.nodes[node].context in inside:
                found.setdefault(store.place, []).append(store)

        def apart(place: int, cell: MemoryCell) -> frozenset[Assumption] | None:
            assumed = [self.spares(store, cell) for store in found.get(place, ())]
            if None in assumed:
                return None
            return frozenset(one for by in assumed for one in by or ())

        return self._alone(self.entry.code.run, function | thumb, apart)

    def beyond(self, ends: Iterable[int]) -> EntryBasis | None:
        """The entry whose paths go on behind some of its ends, by address; None if it is not known.

        Only exits of the platform can be left out.
        """
        code = self.entry.code
        if not code.run.exits.issuperset(ends):
            return None
        try:
            return EntryBasis._of(replace(code, run=code.run.without_exits(ends)), self.facts)
        except WcetError:
            return None

    def _alone(
        self,
        run: AnalysisRun,
        address: int,
        apart: Callable[[int, MemoryCell], frozenset[Assumption] | None] | None,
    ) -> EntryBasis | None:
        # Interrupts are masked: an entry that may unmask them has no such proof.
        origin = PathOrigin(Arrival.FUNCTION, masked=True)
        target = AnalysisTarget(run, self.image.place(address & ~1), address, origin)
        try:
            return replace(EntryBasis._of(target, self.facts), apart=apart)
        except WcetError:
            return None

    @cached_property
    def stores(self) -> Mapping[tuple[int, int], WordStore]:
        """The stores of its graph, by node and instruction."""
        values = self.entry.values
        return {(one.node, one.insn): word_store(values, one) for one in stores(values)}

    def spared(self, node: int, insn: int, cell: MemoryCell) -> frozenset[Assumption] | None:
        """The assumptions under which a store of its graph spares a word; None: it may hit it."""
        assert self.apart is not None, "the code is called by an entry"
        return self.apart(self.graph.nodes[node].block.insns[insn].addr, cell)

    def spares(self, store: WordStore, cell: MemoryCell) -> frozenset[Assumption] | None:
        """As ``spared`` for a store that its graph, or a function with a summary, makes."""
        memory, at = self.image.memory, (cell.address.value, cell.address.value + cell.size - 1)
        if store.on_stack:
            return frozenset((S4,)) if self.entry.code.run.options.bounds.s1 else None
        if store.span[1] < 1 << 32 and not memory.meets(store.span, at):
            return frozenset((S3,) if memory.assumes_apart(store.span, at) else ())
        if store.unknown and (name := self.image.own_object(at[0], cell.size)):
            return frozenset((S8.of(object=name),))
        return None

    @property
    def graph(self) -> Supergraph:
        """The graph of all paths, without edges that values exclude."""
        return self.entry.graph

    @property
    def name(self) -> str:
        """The entry."""
        return self.entry.code.name

    @property
    def image(self) -> Image:
        """The image of the entry, without constants that it changes."""
        return self.entry.code.run.image

    @property
    def conditions(self) -> PassConditions:
        """The conditions of its passes."""
        if self._conditions is None:
            proved = {b.loop: b.bound for b in self.bounds
                      if b.method in CHECKERS and b.bound is not None}  # fmt: skip
            self._conditions = PassConditions.of(self.entry, proved)
            if self.apart is not None:
                self._conditions.code.spared = self.spared
        return self._conditions

    @property
    def hypotheses(self) -> Iterator[Assumption]:
        """The assumptions of all proofs that depend on it: none is about times."""
        board = self.entry.code.run.platform.assumptions
        unmasked = NOT_MASKED.name if self.entry.code.origin.masked else ""
        for one in self.entry.assumptions:
            if one not in board and one.name != unmasked:
                yield one
        for bound in self.__dict__.get("bounds", ()):  # else no proof depends on them
            yield from bound.assumed
        noted = self.noted | (self._conditions.assumed if self._conditions is not None else set())
        yield from sorted(noted)

    def place(self, node: int) -> str:
        """A node, for people."""
        return self.entry.code.run.image.place(self.graph.nodes[node].block.addr)

    def hidden(self, addresses: Iterable[int]) -> str:
        """The reason why code at ``addresses`` may run outside the graph; "": it does not.

        A function that a fact replaces is not analysed; one with a summary has a graph of its own.
        """
        guidance, image = self.graph.guidance, self.entry.code.run.image
        for function, replaced in guidance.replaced.items():
            if not replaced.settled:
                return f"{image.place(function)} is not analysed, and may execute it"
        wanted = frozenset(addresses)
        for one in self.entry.summaries:
            for paths in one.paths:
                for node in paths.graph.nodes:
                    if any(insn.addr in wanted for insn in node.block.insns):
                        return f"{image.place(one.function)} has a summary, whose calls are one"
        return ""

    # --- Passes ------------------------------------------------------------------------------

    def around(self, node: int) -> Iterator[int | None]:
        """The passes that reach a node, innermost first; None: the whole path."""
        yield from self.conditions.code.acyclic.around(node)
        yield None

    def lifted(self, node: int, loop: int | None) -> int:
        """The node once in a pass of ``loop`` by which each pass with ``node`` gets to it."""
        header = node
        for inner in self.conditions.code.acyclic.around(node):
            if inner == loop:
                break
            header = self.graph.loops[inner].header
        return header

    def excluded(self, nodes: Sequence[int], loop: int | None) -> Contradiction | None:
        """The proof that no pass of ``loop`` reaches all ``nodes``; None: there is none."""
        if loop is None and self.starts_in_loop:
            return None
        return self._contradiction(loop, self._arriving(loop, nodes))

    def not_taken(self, edge: int) -> Contradiction | None:
        """The proof that no execution takes ``edge``; None: there is none."""
        for loop in scopes_of(self.conditions.code.acyclic, edge):
            if loop is None and self.starts_in_loop:
                break
            found = self._contradiction(loop, self._taking(loop, edge), edge)
            if found is not None:
                return found
        return None

    def formulas(self, nodes: Sequence[int], loop: int | None) -> tuple[str, ...]:
        """The checks of ``excluded`` as SMT-LIB 2: one for each group with common words."""
        return self._formulas(loop, self._arriving(loop, nodes))

    def formulas_of_edge(self, edge: int) -> tuple[str, ...]:
        """The checks of ``not_taken`` in the smallest pass, as SMT-LIB 2."""
        loop = next(scopes_of(self.conditions.code.acyclic, edge))
        return self._formulas(loop, self._taking(loop, edge))

    @property
    def starts_in_loop(self) -> bool:
        """Whether paths start in a loop, so that the whole path is no pass."""
        return any(self.graph.entry in loop.nodes for loop in self.graph.loops)

    def _formulas(self, loop: int | None, reached: Mapping[int, Term]) -> tuple[str, ...]:
        ranges = partial(self.conditions.ranges, loop)
        groups = (list(group.values()) for group in connected(reached))
        texts = ((self.described(loop, group), as_smt_lib(group, ranges)) for group in groups)
        return tuple(words + check for words, check in texts if check)

    def described(self, loop: int | None, conditions: Sequence[Term]) -> str:
        """The words of a check, a comment each."""
        words = self.conditions.words(loop, conditions)
        return "".join(f"; {s.name}.{s.serial}: {text}\n" for s, text in words.items())

    def _taking(self, loop: int | None, edge: int) -> dict[int, Term]:
        """Conditions to get to an edge in a pass, and under -1 the one to take it."""
        [taken] = self.conditions.taken([Pass(loop, (edge,))])
        return {**self._arriving(loop, [self.graph.edges[edge].src]), -1: taken[edge]}

    def _arriving(self, loop: int | None, nodes: Sequence[int]) -> dict[int, Term]:
        return self.conditions.arriving(loop, [self.lifted(n, loop) for n in nodes])

    def _contradiction(
        self, loop: int | None, reached: dict[int, Term], edge: int | None = None
    ) -> Contradiction | None:
        core = next(cores(reached, partial(self.conditions.ranges, loop)), ())
        if not core:
            return None
        about = self.conditions.common_words(loop, [reached[n] for n in core])
        named = (n if n >= 0 else self.graph.edges[edge or 0].dst for n in core)
        return Contradiction(tuple(dict.fromkeys(map(self.place, named))), about)

    # --- Invocations -------------------------------------------------------------------------

    def extent(self, top: int | None) -> frozenset[int]:
        """The nodes of an invocation at a context, callees included; None: all nodes."""
        if top is None:
            return frozenset(range(len(self.graph.nodes)))
        below: list[bool] = []
        for context, one in enumerate(self.graph.contexts):  # callers come first
            below.append(context == top or (one.parent is not None and below[one.parent]))
        return frozenset(n for n, node in enumerate(self.graph.nodes) if below[node.context])

    def pass_around(self, nodes: Sequence[int], top: int | None) -> int | None:
        """The innermost loop outside of the invocation at ``top``; None: the whole path.

        Code of the invocation from which the path ends is in no loop around it: then no loop has
        all ``nodes``, and it is the whole path.
        """
        for loop in self.conditions.code.acyclic.around(nodes[0]):
            header = self.graph.nodes[self.graph.loops[loop].header]
            if top is not None and not self.calls.below(header.context, top):
                return loop if self.graph.loops[loop].nodes.issuperset(nodes) else None
        return None

    def reached_from(
        self, sources: Iterable[int], inside: frozenset[int], avoiding: frozenset[int]
    ) -> set[int]:
        """The nodes of ``inside`` on paths from the ends of ``sources``, until ``avoiding``."""
        return walk((after for n in sources for after in self._after(n)), inside, avoiding,
                    self._after)  # fmt: skip

    def from_starts(
        self, starts: Iterable[int], inside: frozenset[int], avoiding: frozenset[int]
    ) -> set[int]:
        """As ``reached_from``, with the starts themselves."""
        return walk(starts, inside, avoiding, self._after)

    def _after(self, node: int) -> Iterator[int]:
        return (self.graph.edges[e].dst for e in self.graph.successors[node])


def walk(
    starts: Iterable[int],
    inside: frozenset[int],
    avoiding: frozenset[int],
    following: Callable[[int], Iterable[int]],
) -> set[int]:
    """The nodes reached within ``inside``; a path ends at a node to be avoided, which counts."""
    found: set[int] = set()
    pending = [n for n in starts if n in inside]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        if node not in avoiding:
            pending += (n for n in following(node) if n in inside)
    return found
