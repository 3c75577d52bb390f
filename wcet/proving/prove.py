"""Each fact of a run: proved from the binary, refuted, or assumed.

    refuted        facts that recordings, the analysis or its least counts contradict
    first stage    proofs from PREMISES and proved facts alone, until a round proves nothing new;
                   each round begins with invariants, which are assumed together at the entries
    second stage   proofs of invariants and of facts that shape nothing, from the other SHAPING
                   facts that stay assumed

A proof never depends on its own fact. In the first stage each round uses facts of earlier rounds
only, so that proofs are ordered. In the second, proofs depend on facts that are not proved, and on
none of those that they may prove: these shape neither graphs nor values, nor the proofs of bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quoll.assumptions import Assumption, stated
from quoll.errors import FactsError, UnboundedLoop, WcetError
from quoll.facts.count_facts import LoopFact, LoopParameter
from quoll.facts.entry_invariants import InvariantFact
from quoll.facts.fact import CountedFact, Fact
from quoll.facts.guidance import (
    BranchFact,
    IgnoreEdgeFact,
    IgnoreFact,
    RecursionFact,
    RequireFact,
)
from quoll.facts.invariants import ListAtMostFact, RegisterAtMostFact
from quoll.facts.located import LocatedFacts
from quoll.facts.memory_facts import (
    InitialContentsFact,
    PointsIntoFact,
    RegionFact,
    UnknownPointsIntoFact,
)
from quoll.image.image import Image
from wcet.analysis.analysis import cached_or_prepared
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.entry_stages import AnalysisTarget
from wcet.analysis.fact_evidence import FactEvidence
from wcet.analysis.integer_programs import constraints_of, start_programs
from wcet.analysis.preparation import valued
from wcet.analysis.proved_invariants import ProvedInvariants, store_invariants
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.proving.count_proofs import of_counts
from wcet.proving.cut_proofs import of_cut
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.invariant_proofs import assumed_by_invariants, not_covered, preserved
from wcet.proving.loop_proofs import of_list, of_loop, of_recursion
from wcet.proving.premises import is_premise, is_shaping, needed_for
from wcet.proving.verdict import EntryFinding, FactVerdict, FindingKind, JudgedFact
from wcet.proving.word_proofs import of_memory, of_word

__all__ = ["FactProofs", "prove_facts"]

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FactProofs:
    """The verdicts in the order of the facts, and the assumptions of the proofs."""

    image: Image
    located: LocatedFacts
    entries: tuple[str, ...]
    facts: tuple[JudgedFact, ...]
    assumptions: tuple[Assumption, ...]

    def count(self, verdict: FactVerdict) -> int:
        """The number of facts with a verdict."""
        return sum(one.verdict is verdict for one in self.facts)


def prove_facts(kernel: Path, options: AnalysisOptions, stages: StageLog) -> FactProofs:
    """Judge each fact of the entries that ``options`` requests.

    Raises as ``wcet.analysis.analysis.analyse`` does for wrong inputs, and for entries that cannot
    be analysed with all facts but the refuted ones.
    """
    options = replace(options, vivu=replace(options.vivu, unroll=False))
    run = AnalysisRun.begin(kernel, options, stages)
    refuted = refutations(run)
    proofs = _Proofs(replace(run, options=without_cycles(options)), refuted)
    proofs.first_stage()
    proofs.second_stage()
    store_invariants(run, ProvedInvariants(*proofs.invariants()))
    stages.done()
    judged = tuple(proofs.judged(fact) for fact in run.facts.facts)
    proved, assumed = set(map(stated, proofs.proved)), (*proofs.induction, *proofs.assumed)
    assumptions = tuple(dict.fromkeys(one for one in assumed if one not in proved))
    return FactProofs(run.image, run.facts, tuple(run.entries), judged, assumptions)


def without_cycles(options: AnalysisOptions) -> AnalysisOptions:
    """The options of proofs: every loop is tried, and none needs a bound."""
    settings = replace(options.summary_settings, cycles=False)
    bounds = replace(options.bounds, prove_stated=True)
    return replace(options, summary_settings=settings, bounds=bounds)


@dataclass(frozen=True, slots=True)
class Refutation:
    """A contradiction of a fact; ``given``: the sources of other facts that it depends on."""

    why: str
    given: tuple[str, ...] = ()


def refutations(run: AnalysisRun) -> dict[Key, Refutation]:
    """The facts that recordings or the analysis contradict, with the contradiction.

    The analysis has all facts first. Of those that it contradicts, the ones that it does not
    contradict with premises alone depend on the others.
    """
    evidence, facts = FactEvidence(run.options.store, run.image), run.facts.facts
    found = {
        fact.key: Refutation(violated)
        for fact in facts
        for outcome in evidence.of(fact).values()
        if (violated := outcome.violated)
    }
    while True:
        others = [fact for fact in facts if fact.key not in found]
        error = contradiction(run.stating(others))
        if error is None or error.about is None:
            return found
        given = (str(f.source) for f in others if is_shaping(f) and f.key != error.about)
        depends = () if stands_alone(run, error.about) else tuple(dict.fromkeys(given))
        found[error.about] = Refutation(error.message, depends)


def stands_alone(run: AnalysisRun, key: Key) -> bool:
    """Whether the analysis contradicts a fact also with premises alone."""
    chosen = [fact for fact in run.facts.facts if is_premise(fact) or fact.key == key]
    try:
        error = contradiction(run.stating(chosen))
    except WcetError:  # other facts are needed
        return False
    return error is not None


def contradiction(run: AnalysisRun) -> FactsError | None:
    """The first contradiction in an analysis of all entries."""
    for name, address in run.entries.items():
        try:
            follow_entry(run, name, address)
        except FactsError as error:
            if error.about is None:
                raise
            return error
    return None


def follow_entry(run: AnalysisRun, name: str, address: int) -> None:
    """Analyse an entry up to its least counts; up to its values, if a loop has no bound."""
    try:
        prepared = cached_or_prepared(run, name, address)
        start_programs(run, name, address, prepared, constraints_of(run, name, prepared))
    except UnboundedLoop:
        valued(AnalysisTarget(replace(run, options=without_cycles(run.options)), name, address))


@dataclass(slots=True)
class _Proofs:
    """The facts while they are judged; ``without``: why entries need facts that shape graphs.

    ``assumed``: the assumptions of proofs, ``induction``: of invariants.
    """

    run: AnalysisRun
    refuted: dict[Key, Refutation]
    proved: dict[Fact, JudgedFact] = field(default_factory=dict)
    open: dict[Fact, EntryFinding] = field(default_factory=dict)
    without: str = ""
    assumed: list[Assumption] = field(default_factory=list)
    induction: list[Assumption] = field(default_factory=list)

    def first_stage(self) -> None:
        """Rounds of proofs from premises and facts that earlier rounds proved."""
        while self.without == "":
            try:
                new = self._invariants()
                others = [f for f in self._left() if not isinstance(f, InvariantFact)]
                new += self._round(others, self._known(), "prove")
            except WcetError as error:
                if not any(map(is_shaping, self._left())):
                    raise
                self.without = str(error)
                return
            if not any(map(is_shaping, new)):
                return

    def _invariants(self, axioms: Sequence[Fact] = ()) -> list[Fact]:
        """Prove the invariants that every entry preserves if all of them hold at the entry.

        One that is not preserved is left out, and the others are tried again without it.
        ``axioms``: other facts that are assumed.
        """
        left = [f for f in self._left() if isinstance(f, InvariantFact)]
        why = not_covered(self.run) if left else ""
        if why:
            self.open |= {f: EntryFinding(FindingKind.OPEN, why) for f in left}
            return []
        while left:
            run = self.run.stating([*self._known(), *axioms, *left])
            bases = [EntryBasis.of(run, *entry, self.run.facts) for entry in run.entries.items()]
            tried = [one for one in run.facts.invariants if one.fact in left]  # elements, too
            found = {f: together([preserved(b, one) for b in bases for one in tried
                                  if one.fact is f]) for f in left}  # fmt: skip
            broken = [f for f in left if found[f].kind is not FindingKind.HOLDS]
            if not broken:
                self.induction += assumed_by_invariants(bases, tried)
                self.induction += (one for basis in bases for one in basis.hypotheses)
                given = tuple(dict.fromkeys(str(f.source) for f in axioms))
                for fact in left:
                    why = f"each entry preserves it: {found[fact].why}"
                    self.proved[fact] = JudgedFact(fact, FactVerdict.PROVED, why, given=given)
                return [*left]
            for fact in broken:
                self._note(fact, found[fact])
            left = [f for f in left if f not in broken]
        return []

    def invariants(self) -> tuple[frozenset[str], tuple[Assumption, ...]]:
        """The names of the proved invariants, and the assumptions of their proofs."""
        names = (f.name for f in self.proved if isinstance(f, InvariantFact))
        known = {stated(fact) for fact in self.proved}
        return frozenset(names), tuple(a for a in self.induction if a not in known)

    def _note(self, fact: Fact, found: EntryFinding) -> None:
        """Record that a fact is not proved."""
        if found.kind is FindingKind.BROKEN:
            self.refuted[fact.key] = Refutation(found.why)
        else:
            self.open[fact] = found

    def second_stage(self) -> None:
        """Proofs of invariants, and of the facts that shape nothing, from those that do."""
        others = [f for f in self._left() if is_shaping(f) and not isinstance(f, InvariantFact)]
        if others:
            self._invariants(others)
        left = [f for f in self._left() if not is_shaping(f) or self._is_new(f)]
        axioms = [f for f in self._left() if is_shaping(f)]
        if not left or not axioms:
            return
        bounds = [f for f in self._left() if isinstance(f, LoopFact | LoopParameter)]
        self._round(left, [*self._known(), *axioms, *bounds], "prove from facts", axioms)

    def _is_new(self, fact: Fact) -> bool:
        """Whether a depth was not tried before; no proof of a depth uses a stated one."""
        return isinstance(fact, RecursionFact) and fact not in self.open

    def judged(self, fact: Fact) -> JudgedFact:
        """The verdict on a fact."""
        if fact.key in self.refuted:
            found = self.refuted[fact.key]
            return JudgedFact(fact, FactVerdict.REFUTED, found.why, given=found.given)
        if fact in self.proved:
            return self.proved[fact]
        if is_premise(fact):
            return JudgedFact(fact, FactVerdict.ASSUMED, "no proof is tried", needed_for(fact))
        reason = self.open.get(fact)
        if reason is None:
            why = f"without facts of its kind an entry has no analysis: {self.without}"
            return JudgedFact(fact, FactVerdict.ASSUMED, why, needed_for(fact))
        return JudgedFact(
            fact, FactVerdict.ASSUMED, reason.why, needed_for(fact), formulas=reason.formulas
        )

    def _known(self) -> list[Fact]:
        """The premises, and the proved facts about the regions that they describe."""
        facts = [f for f in self.run.facts.facts if f.key not in self.refuted]
        regions = {f.name for f in facts if isinstance(f, RegionFact) and is_premise(f)}
        proved = (f for f in facts if f in self.proved)
        usable = (f for f in proved if not isinstance(f, PointsIntoFact) or f.region in regions)
        return [*(f for f in facts if is_premise(f)), *usable]

    def _left(self) -> list[Fact]:
        """The facts that are neither premises, nor proved, nor refuted."""
        wanted = (f for f in self.run.facts.facts if not is_premise(f))
        return [f for f in wanted if f not in self.proved and f.key not in self.refuted]

    def _round(
        self, wanted: Sequence[Fact], known: Iterable[Fact], stage: str, axioms: Sequence[Fact] = ()
    ) -> list[Fact]:
        """Analyse the entries under ``known``, and judge the facts ``wanted``; the proved ones."""
        if not wanted:
            return []
        run = self.run.stating(dict.fromkeys(known))
        findings: dict[Fact, list[EntryFinding]] = {fact: [] for fact in wanted}
        assumed: list[Assumption] = []
        for name, address in run.entries.items():
            basis = EntryBasis.of(run, name, address, self.run.facts)
            for number, fact in enumerate(findings, 1):
                self.run.stages.say(f"{stage}: {name}: {number} of {len(wanted)}: {fact}")
                findings[fact].append(finding(basis, fact))
            assumed += basis.hypotheses
        new = []
        for fact, found in findings.items():
            combined = together(found)
            if combined.kind is FindingKind.HOLDS:
                others = (str(f.source) for f in axioms if f is not fact)
                given = tuple(dict.fromkeys(others))
                self.proved[fact] = JudgedFact(fact, FactVerdict.PROVED, combined.why, given=given)
                new.append(fact)
            else:
                self.open[fact] = combined
        if new:
            self.assumed += assumed
        return new


def together(findings: Sequence[EntryFinding]) -> EntryFinding:
    """The finding about all entries."""
    for kind in (FindingKind.BROKEN, FindingKind.OPEN):
        for found in findings:
            if found.kind is kind:
                return found
    held = [found.why for found in findings if found.kind is FindingKind.HOLDS]
    if not held:
        apart = "; ".join(dict.fromkeys(found.why for found in findings))
        return EntryFinding(FindingKind.APART, f"it concerns no analysed path: {apart}")
    return EntryFinding(FindingKind.HOLDS, "; ".join(dict.fromkeys(held)))


def finding(basis: EntryBasis, fact: Fact) -> EntryFinding:
    """The finding of an entry about a fact that is no premise.

    It is open where a place cannot be counted in code that other facts leave out.
    """
    try:
        return finding_of_kind(basis, fact)
    except FactsError as error:
        return EntryFinding(FindingKind.OPEN, error.message)


def finding_of_kind(basis: EntryBasis, fact: Fact) -> EntryFinding:
    """As ``finding``; raises FactsError for a place that cannot be counted."""
    match fact:
        case LoopFact() | LoopParameter():
            return of_loop(basis, fact, basis.entry.code.run.options.parameters)
        case RequireFact() | CountedFact():
            return of_counts(basis, fact)
        case BranchFact() | IgnoreFact() | IgnoreEdgeFact():
            return of_cut(basis, fact)
        case RecursionFact():
            return of_recursion(basis, fact)
        case RegisterAtMostFact() | PointsIntoFact():
            return of_word(basis, fact)
        case ListAtMostFact():
            return of_list(basis, fact)
        case RegionFact() | InitialContentsFact():
            return of_memory(basis, fact)
        case InvariantFact():
            return EntryFinding(FindingKind.OPEN, "it is not proved from the binary alone")
        case UnknownPointsIntoFact():
            return EntryFinding(FindingKind.OPEN, "it is about the addresses that are not known")
    raise AssertionError(f"{type(fact).__name__} is a premise")
