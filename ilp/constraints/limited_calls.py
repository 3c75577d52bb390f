"""Options of calls of summarised functions, as variables of the integer program.

A call that is executed n times is charged its most cycles. For each option o of it, a variable y_o
counts the executions that take it, with the cycles that it saves in the objective, and

    sum(y_o) <= n

If a fact limits a place to k executions on the whole path, each execution of the call adds the
least count of its option to the sum, where c is the count of an execution as charged:

    sum(x_n : n at the place) + c * n - sum((c - c_o) * y_o) <= k

Let no pass execute the call as one of some options O and then take an edge of E. With N passes, and
n - sum(y_o) executions as charged, the number of executions as one of O satisfies

    sum(x_e : e in E) + sum(y_o : o in O) <= N
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilp.constraints.flowfacts import FlowCounts, LinearSum
from ilp.constraints.nest import LoopNest
from ilp.solvers.integer_program import LinearRow
from pipeline.costs import CallOption, LimitedCall, OptionCount
from quoll.facts.fact import FactSource

__all__ = ["OptionVariables"]


@dataclass(frozen=True, slots=True)
class _Option:
    """Variable ``variable``: executions of ``call`` that take its option ``option``."""

    variable: int
    call: int
    option: int


@dataclass(frozen=True, slots=True)
class OptionVariables:
    """The variables of all limited calls of a graph, from variable ``first`` on."""

    nest: LoopNest
    limited: tuple[LimitedCall, ...]
    first: int

    def _options(self) -> Iterator[_Option]:
        variable = self.first
        for number, call in enumerate(self.limited):
            for option in range(len(call.options)):
                yield _Option(variable, number, option)
                variable += 1

    @property
    def names(self) -> tuple[str, ...]:
        """One for each variable."""
        return tuple(f"call{one.call}.option{one.option}" for one in self._options())

    @property
    def upper(self) -> tuple[int, ...]:
        """The most executions of each call."""
        return tuple(self._most(self.limited[one.call]) for one in self._options())

    @property
    def objective(self) -> tuple[int, ...]:
        """Less cycles."""
        calls = ((self.limited[one.call], one.option) for one in self._options())
        return tuple(call.options[at].cycles - call.charged.cycles for call, at in calls)

    def rows(self) -> tuple[LinearRow, ...]:
        """Each execution takes at most one option of its call, and no edge that this excludes."""
        return (*self._single(), *self._exclusions())

    def _exclusions(self) -> Iterator[LinearRow]:
        variable = self.first
        for number, call in enumerate(self.limited):
            counts = self._by_option(call, variable) if call.excluded else {}
            variable += len(call.options)
            for position, one in enumerate(call.excluded):
                taken = LinearSum(tuple((e, 1) for e in sorted(one.edges)), 0)
                passes = LinearSum(tuple((e, 1) for e in sorted(one.passes)), one.first)
                chosen = (count for option, count in counts.items() if option in one.options)
                total = taken.plus(*chosen).minus(passes)
                yield LinearRow(
                    f"call{number}.excluded{position}",
                    f"results of {call.charged.function:#x} exclude branches",
                    total.terms,
                    equal=False,
                    rhs=-total.constant,
                )

    def _by_option(self, call: LimitedCall, variable: int) -> dict[CallOption, LinearSum]:
        """The executions of a call by option, the charged one included."""
        variables = range(variable, variable + len(call.options))
        counts = [LinearSum(((v, 1),), 0) for v in variables]
        charged = self._executions(call).plus(*(count.times(-1) for count in counts))
        return dict(zip((call.charged, *call.options), (charged, *counts), strict=True))

    def _single(self) -> tuple[LinearRow, ...]:
        terms: list[list[tuple[int, int]]] = [[] for _ in self.limited]
        for one in self._options():
            terms[one.call].append((one.variable, 1))
        found: list[LinearRow] = []
        for number, call in enumerate(self.limited):
            total = LinearSum(tuple(terms[number]), 0).minus(self._executions(call))
            origin = f"options of a call of {call.charged.function:#x}"
            found.append(
                LinearRow(f"call{number}", origin, total.terms, equal=False, rhs=-total.constant)
            )
        return tuple(found)

    def counted(self, fact: FactSource) -> LinearSum:
        """The executions, in all calls, of the place that ``fact`` limits."""
        charged = (
            self._executions(call).times(dict(call.charged.counts).get(fact, 0))
            for call in self.limited
        )
        options = (
            LinearSum(((one.variable, self._difference(one, fact)),), 0) for one in self._options()
        )
        return LinearSum((), 0).plus(*charged, *options)

    def taken(self, values: Sequence[int]) -> tuple[OptionCount, ...]:
        """The options that a solution takes."""
        return tuple(
            OptionCount(one.call, one.option, values[one.variable])
            for one in self._options()
            if values[one.variable]
        )

    def _executions(self, call: LimitedCall) -> LinearSum:
        if call.edge is None:
            return FlowCounts(self.nest.graph).executions([call.node])
        return LinearSum(((call.edge, 1),), 0)

    def _most(self, call: LimitedCall) -> int:
        if call.edge is None:
            return self.nest.most_node(call.node)
        return self.nest.most_edge(call.edge)

    def _difference(self, one: _Option, fact: FactSource) -> int:
        call = self.limited[one.call]
        counts = (call.options[one.option].counts, call.charged.counts)
        taken, charged = (dict(of).get(fact, 0) for of in counts)
        return taken - charged
