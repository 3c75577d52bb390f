"""An integer program as MPS text, which the direct path to CBC reads.

Names are those of the model; the format allows letters, digits and ``_.!$%&()~`` in them.
Source: the free MPS file format as CBC reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ilp.solvers.model import Model

__all__ = ["to_mps"]


def to_mps(model: Model, *, relaxed: bool) -> str:
    """Free MPS format, to be maximised; ``relaxed`` leaves out that variables are integer.

    The constant of the objective is left out.
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
