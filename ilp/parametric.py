"""Bounds as functions of a number that no binary determines: ``loop PLACE at most NAME`` (rule 27).

Let the loops with the parameter n (each at most n + plus header executions per entry) not be nested
in each other, and let no constraint concern their nodes. A path then consists of a skeleton, which
does not depend on n, and of up to n + plus - 1 further iterations per entry of such a loop L, each
of at most W_L cycles. With A the cycles and B the sum of W_L over the entries of a skeleton,

    F(n) = max over skeletons of (A + B * n)

is convex and piecewise linear where every loop may be entered (n + plus >= 1). The pieces of a
convex function on the integers follow from its values: where the slopes at both ends of a range
agree, it is linear in between. A separate program, with costs W_L on the entries, proves its last
slope, the maximum of B; from the first n with that slope on, F stays linear.

Constraints that concern the loops are left out, which only allows more paths: the affine pieces are
then an upper bound, and labelled so. With several parameters the result is one affine upper bound,

    F(n, m, ...) <= F(least) + max B_n * n + max B_m * m + ...

A parameter t may also limit the executions of a place p on the whole path, and thereby all loops,
at any depth, in which every iteration goes through p. For any price w >= 0 of an execution of p,

    F(t) <= max over paths of (cycles - w * executions of p) + w * (t + plus)

If w is the most cycles of an iteration of these loops, no iteration gains anything, so a path
without one reaches the maximum. These loops are left out of B, and their iterations out of the W of
enclosing loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ilp.constraints.constraint import Constraint
from ilp.constraints.nest import LoopNest, checked_bounds
from ilp.constraints.parameters import LoopBoundParameter, VisitLimit, open_loops
from ilp.constraints.write_backs import ExcessWriteBacks
from ilp.cutting_planes import cycles_per_iteration, repeated_contexts
from ilp.ipet import Ipet, build_ipet
from ilp.longest_path import proved_maximum
from ilp.solvers.solver_result import Solver
from loopbounds.proof.bound import LoopBound
from pipeline.costs import CostCause, Costs
from quoll.errors import InfeasibleError, UnboundedLoop
from quoll.inlining.supergraph import Supergraph

__all__ = ["AffinePiece", "ParametricBound", "largest", "parametric_bound"]

FARTHEST = 2**24  # the last piece must begin before this n


@dataclass(frozen=True, slots=True)
class AffinePiece:
    """``constant + sum(slope * parameter)`` cycles while the first parameter is in the range."""

    first: int
    last: int | None  # None: unlimited
    constant: int
    slopes: tuple[int, ...]  # per name in ``ParametricBound.names``


@dataclass(frozen=True, slots=True)
class ParametricBound:
    """A bound in cycles as a function of the parameters, from 0 (or the first piece) upwards."""

    names: tuple[str, ...]
    pieces: tuple[AffinePiece, ...]
    exact: bool  # equal to the solution for each n; otherwise an upper bound
    reason: str  # why it is only an upper bound
    per_iteration: tuple[tuple[int, int], ...]  # (loop, most cycles of one iteration)

    def at(self, *values: int) -> int:
        """The bound in cycles for given parameters. Raises ValueError where no path is allowed."""
        for piece in self.pieces:
            if piece.first <= values[0] and (piece.last is None or values[0] <= piece.last):
                return piece.constant + sum(
                    s * n for s, n in zip(piece.slopes, values, strict=True)
                )
        raise ValueError(f"no path is allowed for {self.names[0]} = {values[0]}")

    def example(self) -> dict[str, int]:
        """The least positive parameters in the last piece, whose path shows the trend."""
        return dict.fromkeys(self.names, max(1, self.pieces[-1].first))

    def __str__(self) -> str:
        return "; ".join(
            f"cycles {'=' if self.exact else '<='} {self._text(p)}" for p in self.pieces
        )

    def _text(self, piece: AffinePiece) -> str:
        terms = [f"{s}·{n}" for s, n in zip(piece.slopes, self.names, strict=True) if s]
        text = " + ".join([str(piece.constant), *terms]).replace("+ -", "- ")
        if len(self.pieces) == 1 and not piece.first:
            return text
        n = self.names[0]
        if piece.last is None:
            return f"{text} for {n} ≥ {piece.first}"
        same = piece.first == piece.last
        return f"{text} for {n} = {piece.first}" if same else (
            f"{text} for {piece.first} ≤ {n} ≤ {piece.last}"
        )  # fmt: skip


def parametric_bound(
    graph: Supergraph,
    costs: Costs,
    bounds: Sequence[LoopBound],
    constraints: Sequence[Constraint],
    parameters: Mapping[int, LoopBoundParameter],
    limits: Sequence[VisitLimit] = (),
    *,
    solver: Solver,
    seconds: float | None = None,
    place: Callable[[int], str] = hex,
) -> ParametricBound:
    """The bound as a function of the parameters of the loops without a number.

    Raises UnboundedLoop if a loop has neither a number nor a parameter; also if two loops with
    parameters are nested in each other or the path starts inside one, as the bound is then no
    affine function.
    """
    loops = open_loops(bounds, parameters)
    refuse_nesting(graph, loops, place)
    ones = [LoopBound(loop, 1, None, "fact", None, None, 0.0) for loop in loops]
    numbers = checked_bounds(graph, [*bounds, *ones], place)
    touched = frozenset(n for loop in loops for n in graph.loops[loop].nodes)
    independent = [c for c in constraints if not counted(c, costs) & touched]
    study = ParametricSolver(
        graph, costs, numbers, tuple(independent), loops, limits, solver, seconds
    )
    names = tuple(dict.fromkeys(p.name for p in loops.values()))
    left_out = [str(c) for c in constraints if counted(c, costs) & touched]
    reason = f"left out: {'; '.join(left_out)}" if left_out else beyond(bounds, loops)
    reason = reason or beyond_pool(graph, costs, numbers, touched)
    pieces: tuple[AffinePiece, ...]
    if any(p.nodes for p in loops.values()):
        pieces = (study.affine(names),)
        reason = reason or "executions in total"
    elif len(names) == 1:
        pieces, why = study.pieces()
        reason = reason or why
    else:
        pieces = (study.affine(names),)
        reason = reason or "several parameters"
    return ParametricBound(
        names,
        pieces,
        exact=not reason,
        reason=reason,
        per_iteration=tuple(study.per_iteration().items()),
    )


def counted(constraint: Constraint, costs: Costs) -> frozenset[int]:
    """The nodes whose executions a constraint counts, calls of summarised functions included."""
    calls = (
        call.node
        for call in costs.limited
        for option in (call.charged, *call.options)
        if constraint.fact.source in dict(option.counts)
    )
    return constraint.a | constraint.b | frozenset(calls)


def beyond(bounds: Sequence[LoopBound], loops: Mapping[int, LoopBoundParameter]) -> str:
    """The values of the parameter from which a proved bound is lower, as text."""
    proved = {loops[b.loop].name: b.bound for b in bounds if b.loop in loops and b.bound}
    return "; ".join(f"a loop of {name} has the proved bound {n}" for name, n in proved.items())


def beyond_pool(graph: Supergraph, costs: Costs, numbers: Sequence[int], touched: Set[int]) -> str:
    """The reason for an upper bound if fewer lines may be dirty than write-backs are charged.

    ``touched``: the nodes in loops with a parameter. Its functions leave ``costs.pool`` out.
    """
    if costs.pool is None:
        return ""
    nest = LoopNest.build(graph, numbers)
    limited = ExcessWriteBacks.of(nest, costs.pool, 0) is not None
    return (
        "a write-back for each line cleaned or evicted"
        if limited or touched & costs.pool.charging
        else ""
    )


def largest(bounds: Sequence[tuple[ParametricBound | None, int]]) -> ParametricBound | None:
    """An upper bound of several bounds, each a function or a number; None if all are numbers.

    For several it is one affine function: F is convex with the steepest slope s, so F(n) <=
    F(first) + s * n.
    """
    functions = [function for function, _ in bounds if function is not None]
    if len(bounds) == 1 or not functions:
        return functions[0] if functions else None
    names = tuple(dict.fromkeys(name for function in functions for name in function.names))
    slopes = dict.fromkeys(names, 0)
    constants = [number for function, number in bounds if function is None]
    for function in functions:
        first = function.pieces[0]
        start = dict.fromkeys(function.names, 0) | {function.names[0]: first.first}
        constants.append(function.at(*start.values()))
        for piece in function.pieces:
            for name, slope in zip(function.names, piece.slopes, strict=True):
                slopes[name] = max(slopes[name], slope)
    piece = AffinePiece(0, None, max(constants), tuple(slopes.values()))
    return ParametricBound(
        names, (piece,), exact=False, reason="paths from several starts", per_iteration=()
    )


def refuse_nesting(
    graph: Supergraph, loops: Mapping[int, LoopBoundParameter], place: Callable[[int], str]
) -> None:
    """Raise UnboundedLoop where the bound would contain a product of parameters."""
    for loop in loops:
        if loops[loop].nodes and graph.entry not in graph.loops[loop].nodes:
            continue
        at = place(graph.nodes[graph.loops[loop].header].block.addr)
        outer = graph.loops[loop].parent
        while outer is not None and outer not in loops:
            outer = graph.loops[outer].parent
        if outer is not None:
            raise UnboundedLoop(
                f"loop {at} has a parameter and is inside of a loop with one, "
                f"{place(graph.nodes[graph.loops[outer].header].block.addr)}",
                hint="give one of them a number",
            )
        if graph.entry in graph.loops[loop].nodes:
            raise UnboundedLoop(
                f"the path starts inside of loop {at}, which has a parameter",
                hint="give it a number",
            )


class ParametricSolver:
    """Solves one program for different parameters."""

    def __init__(
        self,
        graph: Supergraph,
        costs: Costs,
        numbers: tuple[int, ...],
        constraints: tuple[Constraint, ...],
        loops: Mapping[int, LoopBoundParameter],
        limits: Sequence[VisitLimit],
        solver: Solver,
        seconds: float | None,
    ) -> None:
        self._graph, self._costs, self._numbers = graph, replace(costs, pool=None), numbers
        self._constraints, self._loops, self._limits = constraints, loops, limits
        self._solver, self._seconds = solver, seconds
        self._values: dict[int, int] = {}
        self._attained = True
        self._per_iteration: dict[int, int] | None = None
        self._least = 0 if all(p.plus or p.nodes for p in loops.values()) else 1

    def per_iteration(self) -> dict[int, int]:
        """W_L for each loop L with a parameter."""
        if self._per_iteration is None:
            numbers = dict(enumerate(self._numbers))
            self._per_iteration = {}
            for loop in self._loops:
                cycles = cycles_per_iteration(
                    self._graph, self._costs, numbers, loop, self._solver, self._seconds
                )
                assert cycles is not None, "every loop has a number here"
                self._per_iteration[loop] = cycles
        return self._per_iteration

    def value(self, n: int) -> int:
        """F(n), with n for all parameters, and priced executions for limits in total."""
        if n not in self._values:
            bounds = list(self._numbers)
            for loop, parameter in self._loops.items():
                if not parameter.nodes:
                    bounds[loop] = n + parameter.plus
            proof = proved_maximum(self._ipet(self._priced(), bounds), self._solver, self._seconds)
            self._attained &= proof.attained
            self._values[n] = proof.bound
        return self._values[n]

    def slope(self, name: str) -> int:
        """The most that F can grow per unit of a parameter: the maximum of B, and prices."""
        none = (0,) * len(CostCause)
        edges = [none] * len(self._graph.edges)
        for loop, cycles in self.per_iteration().items():
            if self._loops[loop].name == name and not self._loops[loop].nodes:
                for e in self._graph.loops[loop].entries:
                    edges[e] = (cycles, *none[1:])
        costs = Costs((none,) * len(self._graph.nodes), tuple(edges))
        most = proved_maximum(self._ipet(costs, self._numbers), self._solver, self._seconds).bound
        return most + sum(cycles for p, cycles in self._prices().items() if p.name == name)

    def _prices(self) -> dict[LoopBoundParameter, int]:
        """w: the most cycles of one iteration under each fact that limits executions in total."""
        most: dict[LoopBoundParameter, int] = {}
        for loop, cycles in self.per_iteration().items():
            parameter = self._loops[loop]
            if parameter.nodes:
                most[parameter] = max(cycles, most.get(parameter, 0))
        return most

    def _priced(self) -> Costs:
        """The costs, minus the price for each execution of a place that is limited in total."""
        nodes = list(self._costs.nodes)
        for parameter, price in self._prices().items():
            for n in parameter.nodes:
                nodes[n] = (nodes[n][0] - price, *nodes[n][1:])
        return replace(self._costs, nodes=tuple(nodes))

    def _ipet(self, costs: Costs, bounds: Sequence[int]) -> Ipet:
        return build_ipet(self._graph, costs, bounds, self._constraints, limits=self._limits)

    def affine(self, names: tuple[str, ...]) -> AffinePiece:
        """One upper bound for all parameters from 0 upwards."""
        slopes = tuple(self.slope(name) for name in names)
        fixed = sum(p.plus * cycles for p, cycles in self._prices().items())
        return AffinePiece(0, None, self.value(self._least) + fixed, slopes)

    def pieces(self) -> tuple[tuple[AffinePiece, ...], str]:
        """F for one parameter, and the reason why it is not exact, or ""."""
        (name,) = {p.name for p in self._loops.values()}
        steepest = self.slope(name)
        far = self._least + 1
        while self.value(far) - self.value(far - 1) < steepest and far < FARTHEST:
            far *= 2
        pieces = convex_pieces(self.value, self._least, far)
        if not self._attained:
            return (self.affine((name,)),), "counts that reach the solver's bound are not known"
        if pieces[-1].slopes != (steepest,):
            return (self.affine((name,)),), f"the bound changes slope beyond {name} = {FARTHEST}"
        again = repeated_contexts(self._ipet(self._costs, self._numbers), self._constraints)
        why = "there are constraints in functions that are called repeatedly" if again else ""
        return tuple(self._from_zero(pieces) if self._least else pieces), why

    def _from_zero(self, pieces: list[AffinePiece]) -> list[AffinePiece]:
        """``pieces`` with F(0) in front: for n = 0 paths may not enter a loop with plus = 0."""
        try:
            least = self.value(0)
        except InfeasibleError:
            return pieces
        if least == pieces[0].constant:
            return [replace(pieces[0], first=0), *pieces[1:]]
        return [AffinePiece(0, 0, least, (0,)), *pieces]


def convex_pieces(f: Callable[[int], int], first: int, far: int) -> list[AffinePiece]:
    """The pieces of convex ``f`` on the integers from ``first``; the last continues from ``far``.

    Eisner and Severance, "Mathematical techniques for efficient record segmentation in large shared
    databases" (1976): the next point is the intersection of the lines at both ends.
    """
    segments: list[tuple[int, int, int]] = []  # low, high, slope: linear from low to high
    pending = [(first, far)]
    while pending:
        low, high = pending.pop()
        left, right = f(low + 1) - f(low), f(high) - f(high - 1)
        if left == right:
            if segments and segments[-1][2] == left:
                low = segments.pop()[0]
            segments.append((low, high, left))
            continue
        meet = (f(low) - left * low - f(high) + right * high) // (right - left)
        middle = min(max(meet, low + 1), high - 1)
        pending += [(middle, high), (low, middle)]
    return covering(f, segments)


def covering(f: Callable[[int], int], segments: list[tuple[int, int, int]]) -> list[AffinePiece]:
    """Pieces that do not overlap, without segments whose two points others cover."""
    inner = segments[1:-1]
    long_enough = [*segments[:1], *(s for s in inner if s[1] - s[0] > 1), *segments[1:][-1:]]
    pieces: list[AffinePiece] = []
    for low, _, slope in long_enough:
        if pieces:
            start = max(low, long_enough[len(pieces) - 1][1] + 1)
            pieces[-1] = replace(pieces[-1], last=start - 1)
        else:
            start = low
        pieces.append(AffinePiece(start, None, f(low) - slope * low, (slope,)))
    return pieces
