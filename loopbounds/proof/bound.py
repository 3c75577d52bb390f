"""The bound of a loop, with its method and evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from quoll.assumptions import LOOP_FACT, Assumption

if TYPE_CHECKING:
    from quoll.inlining.supergraph import Supergraph

__all__ = [
    "CHECKERS",
    "EITHER",
    "EXECUTION",
    "NUSMV",
    "PROVED",
    "SMT",
    "ConcreteExecution",
    "CountedTests",
    "Evidence",
    "LoopBound",
    "NamedCount",
    "NoBound",
    "NoBoundKind",
    "NotWhilePending",
    "ProvedInvariant",
    "StatedCount",
]

NUSMV, SMT = "nusmv", "smt"
CHECKERS = (NUSMV, SMT)  # the checkers whose proofs count
EITHER = ""  # the model checker; the SMT solver where it is missing, slow, or fails
EXECUTION = "execution"  # counted in the concrete execution of the entry
PROVED = (*CHECKERS, EXECUTION)  # methods of bounds that are proved
TESTS_ARE_NONE = (
    "that it tests for interrupts is no bound: on the interrupt path one is being handled, and "
    "once that is acknowledged the test may see none"
)


@dataclass(frozen=True, slots=True)
class ProvedInvariant:
    """``count <= most`` is an invariant; ``apart``: the count starts after the first iteration."""

    most: int
    relations: int
    apart: bool

    def __str__(self) -> str:
        relations = f"{self.relations} relation{'s' * (self.relations != 1)}"
        return f"count <= {self.most} is an invariant (k-induction with {relations})"


@dataclass(frozen=True, slots=True)
class ConcreteExecution:
    """The entry has one execution, of so many ``instructions``.

    Not ``only``: it may have several, and so many instructions follow all of them together.
    """

    instructions: int
    only: bool = True

    def __str__(self) -> str:
        if not self.only:
            followed = f"followed together in {self.instructions:,} instructions"
            return f"the most in any execution of its entry; all were {followed}"
        return f"counted in the concrete execution of its entry, {self.instructions:,} instructions"


@dataclass(frozen=True, slots=True)
class StatedCount:
    """The fact at ``source`` states a bound that is lower than any proved one.

    ``proved``: the proved bound, if any. ``executed``: the executions in a run of the model that
    exceeds the fact, if any.
    """

    source: str
    tried: bool
    proved: int | None = None
    solver_failed: bool = False
    executed: int | None = None

    def __str__(self) -> str:
        text = "not proved" if self.tried else "no proof was tried"
        if self.tried and self.proved is not None:
            text += f"; the proved bound is {self.proved}"
        if self.tried and self.solver_failed:
            text += "; the solver failed"
        if self.executed is not None:
            text += f"; if it is entered, it may be executed {self.executed} times"
        return f" (assumed, {text})"


@dataclass(frozen=True, slots=True)
class NamedCount:
    """The fact at ``source`` gives a loop a parameter; ``most`` is the bound in terms of it.

    ``number`` is the value of the parameter, as "n = 3"; "" where the bound is a function of it.
    """

    source: str
    most: str
    number: str = ""

    def __str__(self) -> str:
        return f": {self.most}, and {self.number}" if self.number else f": at most {self.most}"


@dataclass(frozen=True, slots=True)
class NotWhilePending:
    """The loop does not iterate while an interrupt is pending; its tests are at ``places``."""

    places: tuple[str, ...]

    def __str__(self) -> str:
        tested = f", which is tested at {', '.join(self.places)}" if self.places else ""
        return f"does not iterate while an interrupt is pending{tested}"


@dataclass(frozen=True, slots=True)
class CountedTests:
    """Each iteration counts in the word at ``counter``; a test is made at ``most``."""

    counter: str
    most: int

    def __str__(self) -> str:
        return (
            f"each iteration counts at {self.counter}, and every {self.most} counts a test finds "
            "that an interrupt is pending"
        )


class NoBoundKind(Enum):
    """The kind of reason why a loop has no bound."""

    NOT_TRIED = "not asked for"  # no path needs one
    SOLVER_FAILED = "solver failed"
    NOT_PROVED = "the loop has no bound"


@dataclass(frozen=True, slots=True)
class NoBound:
    """The reason why a loop has no bound, with the fact that would help.

    ``why``: the failure, or the unbounded values that decide how often it iterates. ``header``: the
    printed place of the loop; ``place``: its place in a facts file. ``walks``: the loop may walk a
    list. ``tip``: another fact that would help. ``tests``: the loop tests for interrupts, which
    does not bound it.
    """

    kind: NoBoundKind
    why: str = ""
    header: str = ""
    place: str = ""
    walks: bool = False
    tip: str = ""
    tests: bool = False

    def __str__(self) -> str:
        return self._text(f"; add 'loop {self.place} at most N'")

    @property
    def without_fact(self) -> str:
        """The same for a reader who has the fact about the loop: only other facts are named."""
        return self._text("")

    def _text(self, fact: str) -> str:
        """The reason, with ``fact`` and the other facts that would help."""
        text = f"{self.kind.value}: {self.why}" if self.why else self.kind.value
        if self.kind is NoBoundKind.NOT_PROVED:
            listed = f", or 'list at {self.place} has at most N elements'" if self.walks else ""
            text = f"{self.header}: {text}{fact}{listed}{self.tip}"
        return f"{text}; {TESTS_ARE_NONE}" if self.tests else text


Evidence = (
    ProvedInvariant | ConcreteExecution | StatedCount | NamedCount | NotWhilePending | CountedTests
)


@dataclass(frozen=True, slots=True)
class LoopBound:
    """``bound`` = most executions of the header per entry from outside (rule 18), or None.

    Where the first iteration is apart (``Supergraph.apart``), ``bound`` counts the others only.
    """

    loop: int  # index into Supergraph.loops
    bound: int | None
    exact: bool | None  # a counterexample to bound - 1 exists (rule 22); None: not known
    method: str  # one of ``PROVED``, "fact", or "" when there is no bound
    evidence: Evidence | None  # None when there is no bound
    reason: NoBound | None  # None when bounded
    seconds: float
    total: int | None = None  # executions per entry of the enclosing loop, if below the product
    around: int | None = None  # address of the enclosing loop's header
    assumes: Assumption | None = None  # a fact about data that the proof assumes
    assumed: tuple[Assumption, ...] = ()  # the named assumptions of the proof
    unanswered: str = ""  # the query at which a solver failed, for a bound
    always: bool = False  # each entry that the path does not end in executes it ``bound`` times

    def iterations(self, graph: Supergraph) -> int | None:
        """Most executions of the header per entry in ``graph``, including the first iteration."""
        return None if self.bound is None else self.bound + graph.apart(graph.loops[self.loop])

    @property
    def failed(self) -> bool:
        """Whether a solver failed, so that another run may give a bound."""
        return self.reason is not None and self.reason.kind is NoBoundKind.SOLVER_FAILED

    @property
    def final(self) -> bool:
        """Whether no query failed, so that another run gets the same result."""
        return not self.failed and not self.unanswered

    @property
    def explained(self) -> str:
        """One line with the proved property, or with the place of the fact; "" without a bound."""
        source = self.evidence.source if isinstance(self.evidence, StatedCount | NamedCount) else ""
        return f"{source}{self._but_source}"

    @property
    def _but_source(self) -> str:
        if self.evidence is None:
            return ""
        text = f"{self.evidence}"
        if isinstance(self.evidence, ProvedInvariant):
            text += "; reached" if self.exact else "; not known to be tight"
            if self.assumed:
                text += f"; assumes {', '.join(sorted(a.name for a in self.assumed))}"
            text += "; counted after the first iteration" * self.evidence.apart
            text += f"; {self.assumes}" if self.assumes else ""
        total = f"; {self.total} per entry of the loop around it"
        return text if self.total is None else text + total

    @property
    def fact(self) -> Assumption | None:
        """The fact that gives the bound, as an assumption; None for a proved bound."""
        if isinstance(self.evidence, StatedCount | NamedCount):
            return LOOP_FACT.of(self.evidence.source, evidence=self._but_source)
        return None

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of the bound."""
        facts = (fact for fact in (self.fact, self.assumes) if fact is not None)
        return *facts, *self.assumed

    def moved(self, sources: Mapping[str, str]) -> LoopBound:
        """The same bound with the facts' places replaced by ``sources``."""
        evidence, assumes = self.evidence, self.assumes and self.assumes.moved(sources)
        if isinstance(evidence, StatedCount | NamedCount):
            evidence = replace(evidence, source=sources.get(evidence.source, evidence.source))
        return replace(self, evidence=evidence, assumes=assumes)
