"""The bound of a loop, from its proof and the user's facts, with its evidence in words."""

from __future__ import annotations

from dataclasses import replace

from loopbounds.execution.concrete import LoopExecution
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.execution.loop_replay import ExecutionReplay
from loopbounds.proof.bound import (
    EXECUTION,
    ConcreteExecution,
    LoopBound,
    NoBound,
    NoBoundKind,
    ProvedInvariant,
    StatedCount,
)
from loopbounds.proof.prove import ProofOutcome
from loopbounds.reduction.simplify import simplified
from loopbounds.sampling.runs import ModelRun, explore, longest
from loopbounds.slicing.slice import Slice
from loopbounds.strategies.sampling import long_runs
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from quoll.assumptions import Assumption, if_they_hold, stated
from quoll.errors import FactsError
from quoll.facts.anchors import anchored
from quoll.facts.count_facts import LoopFact
from quoll.facts.invariants import ListAtMostFact
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph, SuperLoop, SuperNode

__all__ = [
    "assumed",
    "better_proved",
    "is_constant",
    "judge",
    "most_executed",
    "not_tried",
    "not_useful",
    "of_execution",
    "refute",
    "refute_by_execution",
    "solver_failed",
]

SHOWN = 3  # at most so many states of a trace, and origins of values, are printed


def judge(
    graph: Supergraph,
    image: Image,
    loop: SuperLoop,
    cut: Slice,
    outcome: ProofOutcome,
    listed: ListAtMostFact | None,
    *,
    inner_end: bool,
) -> LoopBound:
    """The bound of one loop as a checker proved it, before facts that count are applied.

    ``inner_end``: all inner loops provably terminate. Raises FactsError if a fact says that the
    loop walks a list, and it does not.
    """
    if outcome.failed and outcome.bound is None:
        return replace(solver_failed(loop, outcome.failed), seconds=outcome.seconds)
    if listed is not None and not cut.walks():
        raise FactsError(
            f"the loop at {listed.place} walks no list: it follows no pointer",
            where=str(listed.source),
            hint="state how often the loop is executed: loop PLACE at most N",
        )
    if outcome.bound is not None:
        bound = _proved(loop, cut, outcome, graph.apart(loop), inner_end=inner_end)
        return bound if listed is None else replace(bound, exact=None, assumes=stated(listed))
    why, tip = _unknown(cut)
    reason = _not_proved(graph, image, loop, why, tip, walks=cut.walks())
    return LoopBound(loop.index, None, None, "", None, reason, outcome.seconds)


def of_execution(loop: SuperLoop, found: ExecutionCounts, around: int | None) -> LoopBound:
    """The bound of a loop of an entry by its executions; ``around``: header of the outer one."""
    return LoopBound(
        loop.index,
        found.most[loop.index],
        found.only or None,
        EXECUTION,
        ConcreteExecution(found.instructions, found.only),
        None,
        0.0,
        total=None if around is None else found.totals[loop.index],
        around=around,
        assumed=found.assumed,
        always=loop.index in found.always,
    )


def refute_by_execution(
    fact: LoopFact, executions: int, hypotheses: tuple[Assumption, ...]
) -> None:
    """Raise FactsError if the concrete execution under ``hypotheses`` exceeds the fact."""
    if executions > fact.bound:
        raise FactsError.contradicted(
            f"{fact.place} is executed {executions} times in the concrete execution of its entry, "
            f"not at most {fact.bound}{if_they_hold(hypotheses)}",
            about=fact.key,
            hint=f"state at least {executions}, or remove the fact",
        )


def not_useful(
    graph: Supergraph, image: Image, loop: SuperLoop, cut: Slice, bound: LoopBound
) -> LoopBound:
    """No bound, in place of a proved one that only gives the range of a word.

    A count read from memory is at most 2**32 - 1, which would give a bound of hours. A user who
    means that number states it as a fact.
    """
    why, tip = _unknown(cut)
    said = (bound.bound or 0) + graph.apart(loop)
    why = f"the proved bound, {said:,} executions per entry, is too loose: {why}"
    reason = _not_proved(graph, image, loop, why, tip, walks=cut.walks())
    return replace(
        bound, bound=None, exact=None, method="", evidence=None, reason=reason, total=None,
        around=None, assumed=(),
    )  # fmt: skip


def is_constant(cut: Slice) -> bool:
    """Whether no unknown word decides how often the loop is executed."""
    model = simplified(cut.model)
    return not model.parameters and not model.inputs


def most_executed(cut: Slice, *, entered_by_all: bool) -> int:
    """The most executions of a run of the model that may refute a fact about the loop.

    ``entered_by_all``: registers may hold any word at the entry, and the inner loops terminate.
    """
    if not cut.model.parameters and not cut.model.inputs:
        return longest(explore(cut.model))
    alone = cut.alone() if entered_by_all and not cut.assumed else None
    return longest(long_runs(alone.model)) if alone is not None and alone.registers else 0


def refute(
    fact: LoopFact,
    cut: Slice,
    entry: int,
    apart: int,
    replay: ExecutionReplay,
    *,
    entered_by_all: bool,
) -> None:
    """Raise FactsError if a run of the model exceeds the fact, and ``replay`` confirms it.

    ``entry``: address of the first block. ``apart``: iterations before the model's.
    """
    _refute(fact, cut, apart, replay)
    if entered_by_all and not cut.assumed:
        _refute_for_some(fact, cut, entry, apart, replay)


def assumed(bound: LoopBound, fact: LoopFact, apart: int, executed: int) -> LoopBound:
    """The bound of a fact for a loop with a larger proved bound, or none.

    ``executed``: the most executions in a run of the model; no execution is known to enter the
    loop.
    """
    evidence = StatedCount(
        str(fact.source),
        tried=bound.reason is None or bound.reason.kind is not NoBoundKind.NOT_TRIED,
        proved=None if bound.bound is None else bound.bound + apart,
        solver_failed=bound.failed,
        executed=executed if executed > fact.bound else None,
    )
    unanswered = str(bound.reason) if bound.failed else bound.unanswered
    known = replace(bound, bound=fact.bound - apart, exact=None, method="fact", evidence=evidence)
    return replace(known, reason=None, total=None, around=None, unanswered=unanswered)


def not_tried(loop: SuperLoop) -> LoopBound:
    """No bound, for a loop on no analysed path."""
    return LoopBound(loop.index, None, None, "", None, NoBound(NoBoundKind.NOT_TRIED), 0.0)


def solver_failed(loop: SuperLoop, why: str) -> LoopBound:
    """No bound, because the solver failed for the reason ``why``."""
    failure = NoBound(NoBoundKind.SOLVER_FAILED, why)
    return LoopBound(loop.index, None, None, "", None, failure, 0.0)


def better_proved(first: LoopBound, second: LoopBound) -> LoopBound:
    """The better one of ``first``, at which the checker failed, and ``second`` of another checker.

    The result names the failure, so that it is not cached as the first checker's.
    """
    if first.final or second.failed or (first.bound is not None and second.bound is None):
        return first
    proved = first.bound is not None and first.method != "fact"
    if proved and second.bound is not None and second.bound >= (first.bound or 0):
        return first
    failure = first.reason.why if first.reason else first.unanswered
    why = f"NuSMV failed ({failure}), so the SMT solver proved this bound"
    return replace(second, unanswered=why)


def _proved(
    loop: SuperLoop,
    cut: Slice,
    outcome: ProofOutcome,
    apart: int,
    *,
    inner_end: bool,
) -> LoopBound:
    exact = True if outcome.tight and inner_end and _faithful(cut) else None
    assert outcome.bound is not None
    unanswered = f"a lower bound: {outcome.failed}" if outcome.failed else ""
    return LoopBound(
        loop.index,
        outcome.bound,
        exact,
        outcome.by,
        ProvedInvariant(outcome.bound, outcome.relations, apart > 0),
        None,
        outcome.seconds,
        assumed=tuple(sorted(cut.assumed)),
        unanswered=unanswered,
    )


def _faithful(cut: Slice) -> bool:
    """Whether every run of the model is one of the program, for the stated initial ranges."""
    model = simplified(cut.model)
    free = not model.inputs and all(p.name in cut.given for p in model.parameters)
    return free and cut.says_all({p.name for p in model.parameters})


def _refute(fact: LoopFact, cut: Slice, apart: int, replay: ExecutionReplay) -> None:
    """Raise FactsError if the only run of a closed model exceeds the fact, and the loop is entered.

    ``apart``: iterations before the model's. Models with free initial values or inputs are left
    out: their longer runs may be impossible.
    """
    if cut.model.parameters or cut.model.inputs:
        return
    for run in explore(cut.model):
        if run.executions + apart <= fact.bound:
            continue
        shown = replay.shows(cut.loop, fact.bound - apart + 1, {})
        if shown is not None:
            executions = shown.executions + apart
            entered = "is repeated" if apart else "is entered from outside"
            raise FactsError.contradicted(
                f"{fact.place} is executed {executions} times{_or_more(run, shown)} "
                f"whenever it {entered}, not at most {fact.bound}: {_shown(run, cut, shown)}",
                about=fact.key,
                hint=f"state at least {executions}, or remove the fact",
            )


def _refute_for_some(
    fact: LoopFact, cut: Slice, entry: int, apart: int, replay: ExecutionReplay
) -> None:
    """Raise FactsError if some registers at the entry lead to an execution that exceeds the fact.

    Registers may hold any word there that the user's facts allow; the model has these facts.
    """
    alone = cut.alone()
    if alone is None or not alone.registers:
        return
    run = max(long_runs(alone.model), key=lambda r: r.executions, default=None)
    if run is None or run.executions + apart <= fact.bound:
        return
    pairs = list(zip(alone.registers, run.parameters, strict=True))
    initial = dict(zip(alone.numbers, run.parameters, strict=True))
    shown = replay.shows(cut.loop, fact.bound - apart + 1, initial)
    if shown is None:
        return
    executions = shown.executions + apart
    values = ", ".join(f"{register} = {value:#x}" for register, value in pairs)
    said = f", or limit the initial value: 'register {pairs[0][0]} at {entry:#x} is at most M'"
    raise FactsError.contradicted(
        f"{fact.place} is executed {executions} times{_or_more(run, shown)}, not at "
        f"most {fact.bound}, where the path begins with {values}: {_shown(run, cut, shown)}",
        about=fact.key,
        hint=f"state at least {executions}{said}",
    )


def _or_more(run: ModelRun, shown: LoopExecution) -> str:
    """ " or more" where the execution was cut off and does not cover the whole run; else ""."""
    whole = run.ended and run.executions == shown.executions
    return "" if shown.ended or whole else " or more"


def _shown(run: ModelRun, cut: Slice, shown: LoopExecution) -> str:
    """The execution, after the run of the model if that is as long."""
    states = f"{_trace(run, cut)}; " if run.executions == shown.executions else ""
    return f"{states}{shown}"


def _trace(run: ModelRun, cut: Slice) -> str:
    names = [cut.origins[v.symbol.name].name for v in cut.model.state]
    shown = [*range(min(SHOWN, len(run.states))), len(run.states) - 1]
    return "; ".join(
        f"execution {run.counts[i]}: "
        + ", ".join(f"{n} = {x:#x}" for n, x in zip(names, run.states[i], strict=True))
        for i in dict.fromkeys(shown)
    )


def _not_proved(
    graph: Supergraph, image: Image, loop: SuperLoop, why: str, tip: str, *, walks: bool
) -> NoBound:
    header = graph.nodes[loop.header]
    addr = header.block.addr
    place = _line_of(graph, image, header) or anchored(image, addr) or f"{addr:#010x}"
    return NoBound(NoBoundKind.NOT_PROVED, why, image.place(addr), place, walks, tip)


def _line_of(graph: Supergraph, image: Image, header: SuperNode) -> str | None:
    """The line of a loop's header as a place, if a fact about that line is about the loop."""
    line = image.line(header.block.addr)
    if line is None or len(image.lines.paths_named(line.file)) != 1:
        return None
    around = [
        headers
        for block, headers in graph.contexts[header.context].nest
        if headers and any(image.line(insn.addr) == line for insn in block.insns)
    ]
    deepest = max(map(len, around), default=0)
    named = {headers[-1] for headers in around if len(headers) == deepest}
    return f"{line.file}:{line.line}" if named == {header.block.addr} else None


def _unknown(cut: Slice) -> tuple[str, str]:
    """The unbounded values that decide the exit, and the fact that would help."""
    model = cut.model
    deciding = rewrite.symbols([model.again])
    for v in model.state:
        if v.symbol in deciding:
            deciding |= rewrite.symbols([v.initial, v.next])
    free = [s for s in (*model.inputs, *model.parameters) if s in deciding]
    if model.again is terms.TRUE:
        return "no exit of it depends on anything that is known", ""
    if not free:
        return "its exit is decided by " + _listed([str(cut.origins[s.name]) for s in deciding]), ""
    tips = [tip for s in free if (tip := cut.origins[s.name].tip)]
    tip = f", or, {tips[0]}" if tips else ""
    return "nothing bounds " + _listed([str(cut.origins[s.name]) for s in free]), tip


def _listed(origins: list[str]) -> str:
    unique = list(dict.fromkeys(origins))
    more = f" and {len(unique) - SHOWN} more" if len(unique) > SHOWN else ""
    return ", ".join(unique[:SHOWN]) + more
