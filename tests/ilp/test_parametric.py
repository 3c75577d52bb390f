"""Bounds as functions of a parameter, against plain solves with numbers (rule 27)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from ilp.constraints.constraint import Constraint
from ilp.constraints.parameters import LoopBoundParameter, loop_parameters, numbered
from ilp.cutting_planes import cycles_per_iteration
from ilp.ipet import build_ipet
from ilp.parametric import AffinePiece, ParametricBound, convex_pieces, largest, parametric_bound
from ilp.solvers.solve import maximise
from ilp.worst_case import worst_case
from loopbounds.proof.bound import LoopBound
from pipeline.costs import CallOption, LimitedCall, WriteBackPool
from quoll.errors import ControlFlowError, InfeasibleError, UnboundedLoop
from quoll.extraction.extract import extract
from quoll.facts.located import NO_FACTS, locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from tests.testing.harness.cases import cases
from tests.testing.ilp.drawn import bounded, costs, draw, most
from tests.testing.ilp.in_process import InProcess
from tests.testing.ilp.programs import Case, random_case
from tests.testing.quoll.building import build

SOLVER = InProcess()
LOOP = draw([(0, 1), (1, 2), (2, 1), (1, 3)], exits=[3])
NESTED = draw([(0, 1), (1, 2), (2, 3), (3, 2), (2, 4), (4, 1), (1, 5)], exits=[5])
# one of two loops (headers 1 and 3), or neither
CHOICE = draw(
    [(0, 1), (1, 2), (2, 1), (1, 6), (0, 3), (3, 4), (4, 3), (3, 6), (0, 5), (5, 6)], exits=[6]
)


def study(
    graph: Supergraph,
    cycles: dict[int, int],
    parameters: dict[int, LoopBoundParameter],
    bounds: tuple[LoopBound, ...] = (),
    constraints: tuple[Constraint, ...] = (),
) -> ParametricBound:
    return parametric_bound(
        graph, costs(graph, cycles), bounds, constraints, parameters, solver=SOLVER
    )


def test_one_loop_is_one_line() -> None:
    got = study(LOOP, {0: 5, 1: 1, 2: 10}, {0: LoopBoundParameter("n", 1)})
    assert str(got) == "cycles = 6 + 11·n"
    assert got.per_iteration == ((0, 11),)
    assert (got.exact, got.at(0), got.at(100)) == (True, 6, 1106)


def test_every_write_back_is_charged() -> None:
    """The number of dirty lines would make the function concave."""
    pool = WriteBackPool(5, 3, 3, {2: 1}, {}, {}, frozenset())
    charged = replace(costs(LOOP, {0: 5, 1: 1, 2: 10}), pool=pool)
    loops = {0: LoopBoundParameter("n", 1)}
    got = parametric_bound(LOOP, charged, (), (), loops, solver=SOLVER)
    assert str(got) == "cycles <= 6 + 11·n"
    plain = worst_case(LOOP, charged, bounded(LOOP, 11), solver=SOLVER)
    assert plain.solution.cycles == got.at(10) - 7 * 5


def test_a_limit_on_calls_in_the_loop_is_left_out() -> None:
    """With it the first iterations would cost more than the others."""
    limit = most(0x9000, 2)
    dear = CallOption(0x9000, 0, 20, ((limit.fact.source, 1),))
    call = LimitedCall(2, 2, dear, (CallOption(0x9000, 1, 5, ()),))
    cycles = costs(LOOP, {0: 5, 1: 1, 2: 10})
    edges = [list(causes) for causes in cycles.edges]
    edges[2][0] = 20
    limited = replace(cycles, edges=tuple(map(tuple, edges)), limited=(call,))
    constraint = replace(limit, a=frozenset())
    loops = {0: LoopBoundParameter("n", 1)}
    got = parametric_bound(LOOP, limited, (), (constraint,), loops, solver=SOLVER)
    assert str(got) == "cycles <= 6 + 31·n"
    plain = worst_case(LOOP, limited, bounded(LOOP, 11), (constraint,), solver=SOLVER)
    assert plain.solution.cycles == got.at(10) - 8 * 15


def test_a_loop_that_may_not_be_entered_at_zero() -> None:
    aside = draw([(0, 1), (1, 2), (2, 1), (1, 3), (0, 3)], exits=[3])
    got = study(aside, {0: 100, 1: 1, 2: 10}, {0: LoopBoundParameter("n", 0)})
    assert str(got) == "cycles = 100 for n = 0; cycles = 90 + 11·n for n ≥ 1"
    assert got.at(0) == 100
    must = study(LOOP, {1: 1, 2: 10}, {0: LoopBoundParameter("n", 0)})
    assert str(must) == "cycles = -10 + 11·n for n ≥ 1"
    with pytest.raises(ValueError, match="no path is allowed for n = 0"):
        must.at(0)


def test_branches_give_pieces() -> None:
    loops = {CHOICE.nodes[loop.header].block.addr: loop.index for loop in CHOICE.loops}
    first, second = loops[0x1010], loops[0x1030]
    got = study(
        CHOICE,
        {1: 50, 2: 3, 3: 1, 4: 70, 5: 200},
        {first: LoopBoundParameter("n", 1), second: LoopBoundParameter("n", 1)},
    )
    # max(200, 50 + 53 n, 1 + 71 n)
    assert str(got) == ("cycles = 200 for 0 ≤ n ≤ 2; cycles = 1 + 71·n for n ≥ 3")
    values = [max(200, 50 + 53 * n, 1 + 71 * n) for n in range(60)]
    assert [got.at(n) for n in range(60)] == values


def test_outer_numbers_multiply_the_slope() -> None:
    inner = next(loop.index for loop in NESTED.loops if loop.parent is not None)
    outer = LoopBound(1 - inner, 4, True, "nusmv", None, None, 0.0)
    got = study(NESTED, {2: 1, 3: 10}, {inner: LoopBoundParameter("n", 1)}, (outer,))
    assert str(got) == "cycles = 3 + 33·n"


def test_nested_parameters_are_refused() -> None:
    with pytest.raises(UnboundedLoop, match=r"loop 0x1020 .*inside of .*0x1010"):
        study(NESTED, {}, {0: LoopBoundParameter("n", 1), 1: LoopBoundParameter("m", 1)})


def test_a_start_inside_is_refused() -> None:
    graph = draw([(0, 1), (1, 0), (0, 2)], exits=[2])
    with pytest.raises(UnboundedLoop, match="starts inside"):
        study(graph, {}, {0: LoopBoundParameter("n", 1)})


def test_a_loop_without_number_or_parameter_is_refused() -> None:
    with pytest.raises(UnboundedLoop, match="0x1020"):
        study(NESTED, {}, {0: LoopBoundParameter("n", 1)})


def test_a_proved_number_is_used_instead_of_the_parameter() -> None:
    both = study(
        CHOICE,
        {2: 3, 4: 5},
        {0: LoopBoundParameter("n", 1), 1: LoopBoundParameter("n", 1)},
        (LoopBound(0, 4, True, "nusmv", None, None, 0.0),),
    )
    assert len(both.per_iteration) == 1


def test_a_proof_that_may_be_too_large_stands_beside_the_parameter() -> None:
    proved = LoopBound(0, 4, False, "nusmv", None, None, 0.0)
    both = study(
        CHOICE,
        {2: 3, 4: 5},
        {0: LoopBoundParameter("n", 1), 1: LoopBoundParameter("n", 1)},
        (proved,),
    )
    assert (len(both.per_iteration), both.exact) == (2, False)
    named = {0: LoopBoundParameter("n", 1)}
    assert [numbered((proved,), named, {"n": n})[0].bound for n in (1, 3, 9)] == [2, 4, 4]


def test_constraints_on_the_loop_make_it_an_upper_bound() -> None:
    limit = most(2, 7)
    got = study(LOOP, {2: 10}, {0: LoopBoundParameter("n", 1)}, constraints=(limit,))
    assert str(got) == "cycles <= 0 + 10·n"
    assert (got.exact, got.reason) == (False, "left out: my.facts:1: n2 executes at most 7 times")


@pytest.mark.slow("many integer programs are solved")
def test_several_parameters_give_an_affine_upper_bound() -> None:
    got = study(CHOICE, {1: 1, 2: 3, 3: 1, 4: 5, 5: 90},
                {0: LoopBoundParameter("n", 1), 1: LoopBoundParameter("m", 1)})  # fmt: skip
    assert not got.exact
    assert got.reason == "several parameters"
    for n in (0, 1, 7, 40):
        for m in (0, 2, 33):
            numbers = bounded(CHOICE, *((n + 1, m + 1) if got.names == ("n", "m") else ()))
            plain = worst_case(CHOICE, costs(CHOICE, {1: 1, 2: 3, 3: 1, 4: 5, 5: 90}), numbers,
                               solver=SOLVER)  # fmt: skip
            assert got.at(n, m) >= plain.solution.cycles


def test_an_unbounded_inner_loop_leaves_the_iteration_unknown() -> None:
    assert cycles_per_iteration(NESTED, costs(NESTED, {3: 1}), {}, 0, SOLVER) is None
    assert cycles_per_iteration(NESTED, costs(NESTED, {3: 2}), {1: 5}, 0, SOLVER) == 8


def random_parameters(rng: Random, case: Case) -> dict[int, LoopBoundParameter]:
    """Some loops that are not nested in each other and do not contain the start."""
    chosen: dict[int, LoopBoundParameter] = {}
    for loop in rng.sample(case.graph.loops, len(case.graph.loops)):
        nested = any(loop.nodes & case.graph.loops[other].nodes for other in chosen)
        if not nested and case.graph.entry not in loop.nodes and rng.random() < 0.7:
            chosen[loop.index] = LoopBoundParameter("n", rng.choice((0, 1, 1, 2)))
    return chosen


def plain(case: Case, parameters: dict[int, LoopBoundParameter], n: int) -> int | None:
    """The bound with numbers, without cuts; None if no path is allowed."""
    numbers = tuple(
        n + parameters[i].plus if i in parameters else b for i, b in enumerate(case.bounds)
    )
    try:
        model = build_ipet(case.graph, case.costs, numbers, case.constraints).model
        return maximise(model, SOLVER).bound
    except InfeasibleError:
        return None


@pytest.mark.slow("many random integer programs")
def test_random_programs_are_never_below_the_plain_solve() -> None:
    """At 20 values of n, 0 among them; equal where it says so."""
    seen: Counter[str] = Counter()
    for seed in range(cases(40)):
        rng = Random(seed)
        try:
            case = random_case(seed + 50_000)
            parameters = random_parameters(rng, case)
            known = tuple(b for b in case.loop_bounds if b.loop not in parameters)
            if not parameters:
                continue
            got = parametric_bound(case.graph, case.costs, known, case.constraints, parameters,
                                   solver=SOLVER)  # fmt: skip
        except (ControlFlowError, InfeasibleError):
            continue
        seen["exact" if got.exact else "above"] += 1
        seen["pieces"] += len(got.pieces) > 1
        for n in (*range(10), *(rng.randrange(10, 2000) for _ in range(10))):
            expected = plain(case, parameters, n)
            if expected is None:
                continue
            assert got.at(n) >= expected, (seed, n)
            assert got.at(n) == expected or not got.exact, (seed, n)
    assert seen["exact"] > 5, seen
    assert seen["above"] > 5, seen
    assert seen["pieces"] > 2, seen


@pytest.mark.parametrize("seed", range(30))
def test_pieces_of_any_convex_function(seed: int) -> None:
    rng = Random(seed)
    lines = [(rng.randint(-900, 900), rng.randint(0, 40)) for _ in range(rng.randint(1, 6))]
    calls: Counter[int] = Counter()

    def f(n: int) -> int:
        calls[n] += 1
        return max(a + b * n for a, b in lines)

    far = 4096
    pieces = convex_pieces(f, 0, far)
    for n in (*range(300), 5000):
        (piece,) = (p for p in pieces if p.first <= n and (p.last is None or n <= p.last))
        assert piece.constant + piece.slopes[0] * n == max(a + b * n for a, b in lines)
    assert len(calls) <= 12 * len(lines)


PROGRAM = """\
struct item { struct item *next; volatile int value; };
int main(struct item *queue) {
    int sum = 0;
    while (queue) {
        sum += queue->value;
        queue = queue->next;
    }
    return sum;
}
"""


def test_parameters_of_a_real_binary() -> None:
    image = Image.load(build(PROGRAM))
    main = image.symbol("main")
    assert main is not None
    graph = expand(extract(image, [main.addr], NO_FACTS, frozenset()), main.addr, image)
    (loop,) = graph.loops
    found = loop_parameters(
        graph, image, locate(parse("loop prog.c:5 at most waiting + 1", "k"), image)
    )
    assert {i: (p.name, p.plus) for i, p in found.items()} == {loop.index: ("waiting", 1)}
    numbered = locate(parse("loop prog.c:5 at most 4", "k"), image)
    assert loop_parameters(graph, image, numbered) == {}


def test_the_largest_of_several_functions_is_never_below_any() -> None:
    for seed in range(cases(60)):
        rng = Random(seed)
        bounds: list[tuple[ParametricBound | None, int]] = []
        for _ in range(rng.randint(1, 3)):
            slopes = sorted(rng.sample(range(30), rng.randint(1, 3)))
            pieces, first, value = [], rng.choice((0, 0, 1)), rng.randint(0, 500)
            for number, slope in enumerate(slopes):
                last = None if number == len(slopes) - 1 else first + rng.randint(0, 9)
                pieces.append(AffinePiece(first, last, value - slope * first, (slope,)))
                if last is not None:
                    value += slope * (last - first) + slopes[number + 1]
                    first = last + 1
            bounds.append((ParametricBound(("n",), tuple(pieces), True, "", ()), 0))
        if rng.random() < 0.4:
            bounds.append((None, rng.randint(0, 900)))
        got = largest(bounds)
        assert got is not None
        for n in range(1, 60):
            values = [b if f is None else f.at(n) for f, b in bounds]
            assert got.at(n) >= max(values), (seed, n)
            assert got.at(n) == max(values) or len(bounds) > 1
    assert largest([(None, 3), (None, 5)]) is None
