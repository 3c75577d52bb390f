"""An entry analysed for proofs, and the questions about its paths that proofs ask.

A *pass* is the whole path, or an iteration of a loop. Code is not executed in a pass if the
conditions to get there contradict each other (``wcet.refinement``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ilp.constraints.constraint import UNLIMITED
from ilp.constraints.instance import CallStructure
from ilp.constraints.nest import LoopNest
from loopbounds.proof.bound import CHECKERS, PROVED, LoopBound
from loopbounds.terms.bit_vectors import Term
from quoll.assumptions import Assumption
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.preemption.segments import undivided
from wcet.analysis.entry_stages import AnalysisTarget, bounded
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


@dataclass(slots=True)
class EntryBasis:
    """An entry with values and bounds of loops; ``facts``: all facts with their places.

    The analysis applied the facts of ``entry.code.run`` only.
    """

    entry: ValuedEntry
    bounds: tuple[LoopBound, ...]
    facts: LocatedFacts
    calls: CallStructure
    noted: set[Assumption] = field(default_factory=set)  # of proofs without conditions
    _conditions: PassConditions | None = field(default=None)

    @staticmethod
    def of(run: AnalysisRun, name: str, address: int, facts: LocatedFacts) -> EntryBasis:
        """The analysis. Raises WcetError where facts are missing.

        The interrupt handler may store between any two instructions of an entry that unmasks.
        """
        entry, noted = valued(AnalysisTarget(run, name, address)), set[Assumption]()
        if entry.unmasking:
            handler = InterruptHandler(run)
            entry = handler.interrupting(entry)
            noted.update(handler.left_out(entry))
        with run.stages.stage("loop bounds", name):
            bounds = bounded(entry, [undivided(entry.graph)]).bounds
        numbers = [b.bound if b.method in PROVED and b.bound is not None else UNLIMITED
                   for b in bounds]  # fmt: skip
        nest = LoopNest.build(entry.graph, numbers)
        return EntryBasis(entry, bounds, facts, CallStructure(nest), noted)

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
        return self._conditions

    @property
    def hypotheses(self) -> Iterator[Assumption]:
        """The assumptions of all proofs that depend on it: none is about times."""
        board = self.entry.code.run.platform.assumptions
        yield from (one for one in self.entry.assumptions if one not in board)
        for bound in self.bounds:
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
        return self.conditions.code.acyclic.innermost[self.graph.entry] >= 0

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
