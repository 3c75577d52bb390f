"""One random case: the integer program against the search over all paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ilp.ipet import build_ipet
from ilp.paths.path_check import check_path, path_cycles
from ilp.solvers.solver_result import Solver
from ilp.worst_case import WorstCase, worst_case
from quoll.errors import ControlFlowError, InfeasibleError
from tests.testing.ilp.oracle import TooManyStates, longest_allowed_path
from tests.testing.ilp.programs import FORMS, Case, random_case

__all__ = ["Tally", "judge"]


@dataclass
class Tally:
    """The coverage of a series of cases. Looseness is (bound - longest) / longest."""

    seen: Counter[str] = field(default_factory=Counter)
    looseness: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        worst = max(self.looseness, default=0.0)
        mean = sum(self.looseness) / len(self.looseness) if self.looseness else 0.0
        counts = ", ".join(f"{name} {count}" for name, count in sorted(self.seen.items()))
        return f"{counts}; where above: mean {mean:.1%}, worst {worst:.1%} too high"


def judge(seed: int, solver: Solver, tally: Tally, forms: Sequence[str] = FORMS) -> None:
    """Raise AssertionError if the result of case ``seed`` violates rules 24 and 26."""
    try:
        case = random_case(seed, forms)
        exact = is_exact(case)
        longest = longest_allowed_path(case)
    except (ControlFlowError, TooManyStates) as reason:
        tally.seen[f"skipped ({type(reason).__name__})"] += 1
        return
    kind = "exact" if exact else "repeated"
    tally.seen[kind] += 1
    start = case.graph.nodes[case.graph.entry]
    if case.graph.contexts[start.context].parent is not None:
        tally.seen["starts in a callee"] += 1
    for constraint in case.constraints:
        scope = "" if constraint.function is None else " in"
        tally.seen[f"{type(constraint.fact).__name__}{scope}"] += 1
    try:
        answer = worst_case(
            case.graph, case.costs, case.loop_bounds, case.constraints, solver=solver
        )
    except InfeasibleError:
        assert longest is None, f"a path of {longest} cycles is allowed"
        tally.seen[f"{kind}, infeasible"] += 1
        return
    if longest is None:
        assert not exact, "no path is allowed, but a bound was found"
        tally.seen[f"{kind}, infeasible but bounded"] += 1
        return
    judge_bound(case, answer, longest, exact, tally)
    judge_path(case, answer, exact)


def judge_bound(case: Case, answer: WorstCase, longest: int, exact: bool, tally: Tally) -> None:
    """Never below the longest allowed path; equal where the encoding is exact."""
    bound = answer.solution.cycles
    assert bound >= longest, f"bound {bound} is below an allowed path of {longest} cycles"
    assert bound == longest or not exact, f"bound {bound}, longest allowed path {longest}"
    if bound > longest:
        tally.seen["repeated, above"] += 1
        tally.looseness.append((bound - longest) / longest)
    if answer.path.unrealisable:
        tally.seen["repeated, not realisable"] += 1
    assert answer.model is not None
    if len(answer.model.rows) > len(build_ipet(*ipet_arguments(case)).model.rows):
        tally.seen["cut and solved again"] += 1
    if case.costs.excess(
        dict(enumerate(answer.solution.nodes)), dict(enumerate(answer.solution.edges))
    ):
        tally.seen["write-backs without a line"] += 1
    if answer.solution.calls:
        tally.seen["options of calls"] += 1
    method = answer.solution.method
    tally.seen["certified search" if method.endswith("subproblems") else method] += 1


def judge_path(case: Case, answer: WorstCase, exact: bool) -> None:
    """A path that is said to be realisable is allowed and takes as long as the bound."""
    path, solution = answer.path, answer.solution
    assert solution.optimal
    if path.unrealisable is not None:
        assert not exact, path.unrealisable
        return
    assert check_path(case.graph, case.bounds, case.constraints, path.steps) == ()
    cycles = path_cycles(case.costs, path.steps, solution.calls)
    assert cycles == path.cycles == solution.cycles
    assert Counter(s.node for s in path.steps) == +Counter(dict(enumerate(solution.nodes)))


def is_exact(case: Case) -> bool:
    """Whether every constrained instance is entered at most once (rule 24)."""
    calls = build_ipet(*ipet_arguments(case)).calls
    return all(
        instance.most <= 1
        for c in case.constraints
        if c.function is not None
        for instance in calls.instances(c.a | c.b, c.function)
    )


def ipet_arguments(case: Case):  # type: ignore[no-untyped-def]
    """The arguments of ``build_ipet``."""
    return case.graph, case.costs, case.bounds, case.constraints
