"""An integer program as text: LP format to read, MPS format for other solvers.

Names are those of the model; both formats allow letters, digits and ``_.!$%&()~`` in them.
Source: CPLEX LP file format and MPS file format as CBC, HiGHS, SCIP and Gurobi read them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilp.solvers.model import Model, Row

__all__ = ["to_lp", "to_mps"]

WIDTH = 100


def to_lp(model: Model) -> str:
    """CPLEX LP format, with each row's origin as a comment above it."""
    lines = ["\\ cycles on a path; the constant is written as the variable 'one' = 1", "Maximize"]
    terms = [(n, c) for n, c in zip(model.names, model.objective, strict=True) if c]
    lines += folded(" cycles:", [*terms, ("one", model.constant)])
    lines.append("Subject To")
    origin = ""
    for row in model.rows:
        if row.origin != origin:
            origin = row.origin
            lines.append(f"\\ {origin}")
        lines += row_lines(model, row)
    lines.append("Bounds")
    lines += [f" {name} <= {most}" for name, most in zip(model.names, model.upper, strict=True)]
    lines += [" one = 1", "General"]
    lines += [f" {name}" for name in model.names]
    lines += ["End", ""]
    return "\n".join(lines)


def row_lines(model: Model, row: Row) -> list[str]:
    """One row; a row without terms is written with the variable 'one', which has to cancel."""
    terms = [(model.names[j], a) for j, a in row.terms]
    lines = folded(f" {row.name}:", terms or [("one", 0)])
    lines[-1] += f" {'=' if row.equal else '<='} {row.rhs}"
    return lines


def folded(head: str, terms: list[tuple[str, int]]) -> list[str]:
    """``head + 2 x - y ...`` broken into lines of about ``WIDTH`` characters."""
    lines, line = [], head
    for name, a in terms:
        term = f" {'-' if a < 0 else '+'} {name if abs(a) == 1 else f'{abs(a)} {name}'}"
        if len(line) + len(term) > WIDTH:
            lines.append(line)
            line = " "
        line += term
    lines.append(line)
    return lines


def to_mps(model: Model, *, relaxed: bool = False) -> str:
    """Free MPS format, to be maximised; ``relaxed`` leaves out that variables are integer.

    The constant is the negated right-hand side of the objective row, as the format has it.
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
    if model.constant:
        lines.append(f" RHS cycles {-model.constant}")
    lines += [f" RHS {row.name} {row.rhs}" for row in model.rows if row.rhs]
    lines.append("BOUNDS")
    lines += [f" UP BND {name} {most}" for name, most in zip(model.names, model.upper, strict=True)]
    lines += ["ENDATA", ""]
    return "\n".join(lines)


def column_lines(model: Model) -> Iterator[str]:
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
