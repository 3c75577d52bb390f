"""A comparison for people: as text, as Markdown, and as annotations of a forge."""

from __future__ import annotations

from collections.abc import Iterator

from quoll.printable import printable
from wcet.gate.compare import EntryChange, EntryVerdict, LineChange, RecordChange

__all__ = ["annotated", "headline", "line_text", "to_markdown", "to_text"]

SHOWN = 12  # lines of an entry
DIFFERENT = "compared although the configurations differ"


def to_text(found: RecordChange) -> str:
    """One row per entry; under changed entries, the causes."""
    rows = [f"{DIFFERENT}: {text}" for text in found.differences]
    name = max((len(e.name) for e in found.entries), default=0) + 2
    figures = [_bounds(entry) for entry in found.entries]
    old, new = (max((len(f[side]) for f in figures), default=0) for side in (0, 1))
    for entry, (before, after) in zip(found.entries, figures, strict=True):
        rows.append(
            f"{entry.name:<{name}}{before:>{old}} -> {after:>{new}}  {_delta(entry):>16}  "
            f"{_said(entry)}"
        )
        if entry.verdict is not EntryVerdict.SAME:
            rows += (f"    {line}" for line in _why(entry))
    rows += (f"new assumption: {text}" for text in found.new_assumptions)
    rows += (f"no longer assumed: {text}" for text in found.gone_assumptions)
    rows += found.notes
    failed = len(found.failed)
    rows.append(
        f"{failed} of {len(found.entries)} entries: the gate is closed" if failed else "passed"
    )
    return "".join(f"{printable(row)}\n" for row in rows)


def to_markdown(found: RecordChange) -> str:
    """The comparison as Markdown, for a comment on a pull request."""
    head = (
        "The worst-case execution time **grew**" if found.failed else "Worst-case execution times"
    )
    rows = [f"### {head}"]
    rows += (row for text in found.differences for row in ("", f"**{DIFFERENT}**: {text}"))
    rows += ["", "| entry | before | now | | |", "|---|---:|---:|---:|---|"]
    for e in found.entries:
        before, after = _bounds(e)
        verdict = f"**{_said(e)}**" if e.verdict.fails else _said(e)
        rows.append(f"| {e.name} | {before} | {after} | {_delta(e)} | {verdict} |")
    for e in found.entries:
        why = list(_why(e))
        if why and e.verdict is not EntryVerdict.SAME:
            rows += [
                "",
                f"<details><summary>{e.name}</summary>",
                "",
                "````",
                *why,
                "````",
                "",
                "</details>",
            ]
    said = (*(f"new assumption: {text}" for text in found.new_assumptions), *found.notes)
    rows += [row for text in said for row in ("", text)]
    return "".join(f"{printable(row)}\n" for row in rows)


def annotated(found: RecordChange) -> Iterator[str]:
    """Workflow commands that annotate the lines of a pull request with errors (GitHub)."""
    for entry in found.failed:
        first = entry.increases[0].line if entry.increases else None
        where = f" file={_property(first.path)},line={first.line}" if first else ""
        text = f"{entry.name}: {_said(entry)}: {_delta(entry)}".replace("%", "%25")
        yield printable(f"::error{where}::{text}")


def _property(text: str) -> str:
    """A property value of a workflow command, escaped."""
    return text.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def headline(entry: EntryChange) -> str:
    """One sentence about an entry."""
    before, after = _bounds(entry)
    return f"{entry.name}: {before} -> {after} cycles, {_said(entry)}"


def _said(entry: EntryChange) -> str:
    if entry.budget is not None and entry.verdict is EntryVerdict.OVER:
        return f"{entry.verdict.value} of {entry.budget:,} cycles"
    return entry.verdict.value


def _why(entry: EntryChange) -> Iterator[str]:
    """The changes on the path of an entry, the greatest increase first."""
    if entry.reason:
        yield entry.reason
    increases = [c for c in entry.lines if c.cycles > 0]
    decreases = [c for c in reversed(entry.lines) if c.cycles < 0]
    for changes in (increases, decreases):
        yield from map(line_text, changes[:SHOWN])
        rest = changes[SHOWN:]
        if rest:
            yield f"{sum(c.cycles for c in rest):>+12,}  {len(rest)} other lines"
    yield from entry.loops
    old, new = entry.before.causes, entry.after.causes
    causes = {c: new.get(c, 0) - old.get(c, 0) for c in dict.fromkeys((*new, *old))} if old else {}
    if any(causes.values()):
        yield "by cause: " + ", ".join(f"{name} {n:+,}" for name, n in causes.items() if n)


def line_text(change: LineChange) -> str:
    """One line of a path: added cycles, place, text, executions, misses."""
    line = change.line
    runs = "new on the path" if change.before is None else "no longer on the path"
    if change.before is not None and change.after is not None:
        runs = f"runs {change.before.runs:,} -> {change.after.runs:,}"
        runs = "" if change.before.runs == change.after.runs else runs
    missed = f"misses {change.misses:+,}" if change.misses else ""
    place = f"{line.function} {line.path}:{line.line}"
    columns = [f"{change.cycles:>+12,}  {place}", line.text, runs, missed]
    return "  ".join(column for column in columns if column)


def _bounds(entry: EntryChange) -> tuple[str, str]:
    """The old and the new bound of an entry, as text."""
    before, after = (
        (one.formula or "-") if one.cycles is None else f"{one.cycles:,}"
        for one in (entry.before, entry.after)
    )
    return before, after


def _delta(entry: EntryChange) -> str:
    if not entry.cycles:
        return ""
    assert entry.before.cycles is not None
    share = f" {100 * entry.cycles / entry.before.cycles:+.1f}%" if entry.before.cycles else ""
    return f"{entry.cycles:+,}{share}"
