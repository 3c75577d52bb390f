"""A comparison with a baseline as JSON values of a page."""

from __future__ import annotations

from typing import Any

from wcet.gate.compare import EntryChange, LineChange, RecordChange

__all__ = ["comparison_document"]


def comparison_document(found: RecordChange) -> dict[str, Any]:
    """Entries with their lines, the greatest increase first, and assumptions that changed."""
    return {
        "differences": list(found.differences),
        "entries": [_entry(entry) for entry in found.entries],
        "new_assumptions": list(found.new_assumptions),
        "gone_assumptions": list(found.gone_assumptions),
    }


def _entry(entry: EntryChange) -> dict[str, Any]:
    return {
        "name": entry.name,
        "verdict": entry.verdict.value,
        "fails": entry.verdict.fails,
        "before": entry.before.formula or entry.before.cycles,
        "after": entry.after.formula or entry.after.cycles,
        "cycles": entry.cycles,
        "budget": entry.budget,
        "lines": [_line(change) for change in entry.lines],
        "loops": list(entry.loops),
        "reason": entry.reason,
    }


def _line(change: LineChange) -> dict[str, Any]:
    line, before, after = change.line, change.before, change.after
    return {
        "cycles": change.cycles,
        "function": line.function,
        "place": f"{line.path}:{line.line}" if line.line else "",
        "text": line.text,
        "runs": [before and before.runs, after and after.runs],
    }
