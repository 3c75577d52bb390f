"""The table of a sweep: a row for each entry of each analysis, in the order of the matrix."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields

from wcet.sweep.cluster import Outcome
from wcet.sweep.matrix import Analysis

__all__ = ["Row", "rows_of", "to_csv", "to_markdown"]


@dataclass(frozen=True, slots=True)
class Row:
    """The bound of an entry, the function of parameters that it is, or the reason for none.

    ``seconds`` and ``peak_mib`` are of the whole analysis, which may have several entries.
    """

    kernel: str
    platform: str
    options: str
    entry: str
    cycles: int | None = None
    microseconds: float | None = None
    formula: str | None = None
    error: str | None = None
    seconds: float | None = None
    peak_mib: float | None = None


def rows_of(analyses: Sequence[Analysis], outcomes: Sequence[Outcome]) -> tuple[Row, ...]:
    """All rows; an analysis without a result has one row, with its error."""
    pairs = zip(analyses, outcomes, strict=True)
    return tuple(row for analysis, outcome in pairs for row in _rows(analysis, outcome))


def _rows(analysis: Analysis, outcome: Outcome) -> Iterator[Row]:
    place = (analysis.label, analysis.platform, analysis.options)
    error = outcome.failure or outcome.result["error"]
    if error:
        yield Row(*place, ", ".join(analysis.entries), error=error)
        return
    result = outcome.result
    for row in result["rows"]:
        yield Row(
            analysis.label,
            result["platform"],
            analysis.options,
            **row,
            seconds=result["seconds"],
            peak_mib=result["peak_mib"],
        )


def to_csv(rows: Sequence[Row]) -> str:
    """A line of names, then a line a row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Row))
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue()


def to_markdown(rows: Sequence[Row]) -> str:
    """A table without times, so that equal results give equal text."""
    lines = ["| kernel | platform | options | entry | cycles | µs |", "|---|---|---|---|---:|---:|"]
    for row in rows:
        cells = (row.kernel, row.platform, row.options, row.entry, *bound_text(row))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def bound_text(row: Row) -> tuple[str, str]:
    """Cycles and microseconds, as printed."""
    if row.cycles is None:
        return row.formula or row.error or "", ""
    return f"{row.cycles:,}", "" if row.microseconds is None else f"{row.microseconds:,.1f}"
