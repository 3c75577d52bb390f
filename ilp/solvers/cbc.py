"""CBC, the solver inside PuLP's wheel: the only file that runs it.

Its program is called directly. PuLP's own interface splits the command line at spaces in paths,
reads counts from text with eight digits, and drops the dual bound; for 50,000 variables it builds
and writes the file in 1.0 s, ``to_mps`` in a fraction of that time. Here the solution is read from
the binary file that CBC saves, which holds doubles. CBC's integer preprocessing is off: it was
observed to violate a row of a feasible program.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from struct import Struct, unpack_from
from typing import ClassVar

from ilp.solvers.integer_program import IntegerProgram
from ilp.solvers.solver_result import GRACE, SimplexBasis, SolverResult, SolverStatus
from quoll.errors import SolverError
from quoll.processes import children
from quoll.processes.children import content_of, path_of, unnamed

__all__ = ["Cbc"]

HEAD = Struct("<2i")  # head of a saved solution: rows, columns
FOLDERS = {
    ("Linux", "x86_64"): "linux/i64/cbc",
    ("Linux", "aarch64"): "linux/arm64/cbc",
    ("Darwin", "x86_64"): "osx/i64/cbc",
    ("Darwin", "arm64"): "osx/i64/cbc",
}


@dataclass(frozen=True)
class Cbc:
    """``path`` is the program; None: the one in PuLP's wheel."""

    path: Path | None = None
    preferred: ClassVar[bool] = True

    @cached_property
    def program(self) -> Path:
        """The path of the program. Raises SolverError if there is none."""
        found = self.path or bundled()
        if not os.access(found, os.X_OK):
            raise SolverError(
                f"the CBC solver is missing: {found}",
                hint="install it again with 'make setup', or use --solver highs",
            )
        return found

    @property
    def name(self) -> str:
        """Name and version."""
        return named(self.program)

    def solve(
        self,
        model: IntegerProgram,
        *,
        relaxed: bool,
        seconds: float | None,
        start: SimplexBasis | None = None,
    ) -> SolverResult:
        """See ``ilp.solvers.solver_result.Solver``."""
        content = to_mps(model, relaxed=relaxed)
        with files_in_memory(content) as (mps, text, binary):
            command = [str(self.program), path_of(mps), "-max"]
            if seconds is not None:
                command += ["-timeMode", "elapsed", "-sec", f"{seconds:.3f}"]
            if relaxed:
                command += ["-initialSolve"]
            else:
                command += ["-preprocess", "off", "-ratioGap", "0", "-allowableGap", "0", "-solve"]
            command += ["-saveSolution", path_of(binary), "-solution", path_of(text)]
            limit = None if seconds is None else seconds + GRACE
            log = run(command, timeout=limit, files=(mps, text, binary))
            if log is None:
                return SolverResult(SolverStatus.STOPPED, None, None, None)
            verdict = content_of(text).decode("ascii", "replace").partition("\n")[0]
            if "read with 0 errors" not in log or not verdict:
                raise failure(log)
            return read_result(model, verdict, log, content_of(binary), relaxed=relaxed)


@cache
def named(program: Path) -> str:
    """Name and version, as the program prints them; memoised."""
    output = run([str(program), "-quit"], timeout=GRACE)
    version = re.search(r"Version: (\S+)", output or "")
    return f"CBC {version[1]}" if version else "CBC"


def bundled() -> Path:
    """The program's path in PuLP's wheel; PuLP itself, which takes 0.2 s, is not imported."""
    spec = find_spec("pulp")
    folder = FOLDERS.get((platform.system(), platform.machine()))
    if spec is None or spec.origin is None or folder is None:
        raise SolverError(
            f"there is no CBC solver for {platform.system()} on {platform.machine()}",
            hint="install PuLP with 'make setup', or use --solver highs",
        )
    return Path(spec.origin).parent / "solverdir" / "cbc" / folder


@contextmanager
def files_in_memory(model: str) -> Iterator[tuple[int, int, int]]:
    """Open files in memory for the model and both solutions, which leave nothing behind."""
    try:
        with unnamed("model", model) as mps, unnamed("text") as text, unnamed("binary") as binary:
            yield mps, text, binary
    except OSError as error:
        raise SolverError(f"cannot write the solver's input: {error}") from error


def run(command: list[str], *, timeout: float | None, files: Sequence[int] = ()) -> str | None:
    """The output of the program; None if it was stopped. Raises SolverError if it fails."""
    try:
        done = children.run(command, seconds=timeout, most=timeout, files=files)
    except OSError as error:
        raise SolverError(f"cannot run the CBC solver {command[0]}: {error.strerror}") from error
    if done.status is None:
        return None
    if done.status < 0:
        raise SolverError(
            f"the CBC solver was killed by signal {-done.status}",
            hint="if memory ran out, analyse fewer entries at a time, or use --solver highs",
        )
    log = done.output + done.errors
    if done.status > 0:
        raise failure(log)
    return log


def failure(log: str) -> SolverError:
    """The error for a run without a result."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("Total time")]
    return SolverError(
        f"the CBC solver failed: {telling[-1] if telling else 'it printed nothing'}",
        hint="use --solver highs, and report this model (--lp FILE)",
    )


def read_result(
    model: IntegerProgram, verdict: str, log: str, binary: bytes, *, relaxed: bool
) -> SolverResult:
    """The result after the first line of CBC's solution file."""
    words = verdict.lower()
    if words.startswith(("infeasible", "integer infeasible")):
        return SolverResult(SolverStatus.INFEASIBLE, None, None, None)
    if words.startswith("optimal"):
        values, duals, objective = read_binary(model, binary)
        return SolverResult(SolverStatus.OPTIMAL, values, objective, duals if relaxed else None)
    if words.startswith("stopped"):
        if relaxed or "no integer solution" in words:
            return SolverResult(
                SolverStatus.STOPPED, None, None if relaxed else upper_bound(log), None
            )
        values, _, _ = read_binary(model, binary)
        return SolverResult(SolverStatus.STOPPED, values, upper_bound(log), None)
    raise failure(f"{log}\n{verdict or 'its solution file is empty'}")


def upper_bound(log: str) -> float | None:
    """The dual bound of an interrupted search, which CBC prints rounded to three digits."""
    printed = re.findall(r"^Upper bound: +(-?[\d.]+(?:e[+-]?\d+)?)", log, re.MULTILINE)
    return float(printed[-1]) + 0.001 if printed else None


def read_binary(
    model: IntegerProgram, data: bytes
) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Values, row duals and objective from the file of ``-saveSolution``.

    Layout (CbcSolver.cpp, saveSolution): rows and columns as 32-bit integers, then as doubles the
    objective, row activities, row duals, column values, reduced costs.
    """
    rows, columns = len(model.rows), len(model.names)
    if len(data) < HEAD.size or HEAD.unpack_from(data) != (rows, columns):
        raise SolverError("the CBC solver saved no solution", hint="is there memory left?")
    many = 1 + 2 * rows + 2 * columns
    if len(data) != HEAD.size + 8 * many:
        raise SolverError("the CBC solver's solution is cut off", hint="is there memory left?")
    figures = unpack_from(f"<{many}d", data, HEAD.size)
    duals = figures[1 + rows : 1 + 2 * rows]
    values = figures[1 + 2 * rows : 1 + 2 * rows + columns]
    return values, duals, figures[0]


def to_mps(model: IntegerProgram, *, relaxed: bool) -> str:
    """Free MPS format, to be maximised, without the objective's constant.

    ``relaxed``: without integer variables.
    """
    lines = ["NAME ipet FREE", "OBJSENSE", "    MAX", "ROWS", " N cycles"]
    lines += [f" {'E' if row.equal else 'L'} {row.name}" for row in model.rows]
    lines.append("COLUMNS")
    if not relaxed:
        lines.append(" M1 'MARKER' 'INTORG'")
    lines += column_lines(model)
    if not relaxed:
        lines.append(" M2 'MARKER' 'INTEND'")
    lines.append("RHS")
    lines += [f" RHS {row.name} {row.rhs}" for row in model.rows if row.rhs]
    lines.append("BOUNDS")
    lines += [f" UP BND {name} {most}" for name, most in zip(model.names, model.upper, strict=True)]
    lines += ["ENDATA", ""]
    return "\n".join(lines)


def column_lines(model: IntegerProgram) -> Iterator[str]:
    """The coefficients by column; a variable in no row stands with a zero cost."""
    columns: list[list[str]] = [[] for _ in model.names]
    for row in model.rows:
        for j, a in row.terms:
            columns[j].append(f"{row.name} {a}")
    for name, cycles, entries in zip(model.names, model.objective, columns, strict=True):
        if cycles or not entries:
            yield f" {name} cycles {cycles}"
        for entry in entries:
            yield f" {name} {entry}"
