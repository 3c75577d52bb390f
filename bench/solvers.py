"""CBC against HiGHS on integer programs of growing size: ``python -m bench.solvers [--seed N]``.

A program is a chain of loop nests of depth one to three with a diamond of two costs in each body,
as ``ilp.ipet`` would state it. Each solver proves the bound alone, within ``--limit`` seconds.
Prints a table for docs/results/performance.md; if solvers disagree, it fails.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from random import Random

from ilp.solvers.integer_program import IntegerProgram, LinearRow
from ilp.solvers.solve import maximise, solver_named
from quoll.errors import SolverError, WcetError

__all__ = ["main", "nests"]

SIZES = (1_000, 10_000, 50_000, 250_000)  # variables
SOLVERS = ("cbc", "highs")
LARGEST = 100  # bound of a loop


def nests(size: int, random: Random) -> IntegerProgram:
    """A chain of loop nests with at least ``size`` variables."""
    names: list[str] = []
    upper: list[int] = []
    costs: list[int] = []
    rows: list[LinearRow] = []

    def edge(most: int, cost: int) -> int:
        names.append(f"x{len(names)}")
        upper.append(most)
        costs.append(cost)
        return len(names) - 1

    def flow(into: Sequence[int], out: Sequence[int], given: int = 0) -> None:
        terms = (*((x, 1) for x in out), *((x, -1) for x in into))
        rows.append(LinearRow(f"flow{len(rows)}", "flow", terms, True, given))

    before: list[int] = []
    while len(names) < size:
        depth, most, entry = random.randint(1, 3), 1, edge(1, random.randrange(100))
        flow(before, [entry], 0 if before else 1)
        back: list[int] = []
        leaves: list[int] = []
        for _ in range(depth):
            bound = random.randint(2, LARGEST)
            back.append(edge(most * (bound - 1), random.randrange(10)))
            leaves.append(edge(most, random.randrange(10)))
            rows.append(LinearRow(f"loop{len(rows)}", f"loop bound {bound}",
                            ((back[-1], 1), (entry, 1 - bound)), False, 0))  # fmt: skip
            inner = edge(most * bound, random.randrange(100))
            flow([entry, back[-1]], [inner])
            most, entry = most * bound, inner
        ways = [edge(most, random.randrange(200)) for _ in range(2)]
        flow([entry], ways)
        ends = ways
        for again, leave in zip(reversed(back), reversed(leaves), strict=True):
            flow(ends, [again, leave])
            ends = [leave]
        before = ends
    return IntegerProgram(tuple(names), tuple(upper), tuple(costs), 0, tuple(rows))


def outcome(model: IntegerProgram, name: str, limit: float) -> tuple[str, int | None]:
    """The result of a solver as text, and the bound if it is the maximum."""
    solver, start = solver_named(name), time.perf_counter()
    try:
        proof = maximise(model, solver, limit)
    except WcetError as fault:
        return f"error: {fault}", None
    seconds = time.perf_counter() - start
    if not proof.attained:
        return f"no maximum within {seconds:.0f} s", None
    return f"{seconds:.2f} s", proof.bound


def main() -> None:
    parser = argparse.ArgumentParser(description="CBC against HiGHS.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="variables")
    options = parser.parse_args()
    print("| variables | rows | " + " | ".join(SOLVERS) + " |")
    print("|---|---|" + "---|" * len(SOLVERS))
    for size in options.sizes:
        model = nests(size, Random(options.seed))
        found = [outcome(model, name, options.limit) for name in SOLVERS]
        cells = (f"{len(model.names):,}", f"{len(model.rows):,}", *(text for text, _ in found))
        print(f"| {' | '.join(cells)} |", flush=True)
        if len({bound for _, bound in found if bound is not None}) > 1:
            raise SolverError("the solvers disagree")


if __name__ == "__main__":
    main()
