"""A comparison for other programs: JSON, JUnit XML and SARIF 2.1.0."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from quoll.printable import printable
from wcet.gate.compare import EntryChange, LineChange, RecordChange
from wcet.gate.text import headline, line_text

__all__ = ["to_json", "to_junit", "to_sarif"]

SCHEMA_VERSION = 1
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS = 10  # lines of an entry that are shown beside the code


def to_json(found: RecordChange) -> str:
    """Everything; the same comparison gives the same bytes."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "passed": not found.failed,
        "entries": {entry.name: _entry(entry) for entry in found.entries},
        "new_assumptions": list(found.new_assumptions),
        "gone_assumptions": list(found.gone_assumptions),
    }
    return json.dumps(document, indent=1) + "\n"


def _entry(entry: EntryChange) -> dict[str, Any]:
    return {
        "verdict": entry.verdict.name.lower(),
        "fails": entry.verdict.fails,
        "before": entry.before.cycles,
        "after": entry.after.cycles,
        "formula_before": entry.before.formula,
        "formula_after": entry.after.formula,
        "budget": entry.budget,
        "lines": [_line(change) for change in entry.lines],
        "loops": list(entry.loops),
        "reason": entry.reason,
    }


def _line(change: LineChange) -> dict[str, Any]:
    return {
        "cycles": change.cycles,
        "before": change.before and asdict(change.before),
        "after": change.after and asdict(change.after),
    }


def to_junit(found: RecordChange) -> str:
    """A test for each entry."""
    suite = ElementTree.Element(
        "testsuite",
        name="wcet",
        tests=str(len(found.entries)),
        failures=str(len(found.failed)),
    )
    for entry in found.entries:
        case = ElementTree.SubElement(
            suite, "testcase", classname="wcet", name=printable(entry.name)
        )
        if entry.verdict.fails:
            failure = ElementTree.SubElement(case, "failure", message=printable(headline(entry)))
            failure.text = "\n".join(map(printable, [*map(line_text, entry.lines), *entry.loops]))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def to_sarif(found: RecordChange) -> str:
    """The lines that take more, for the entries that fail."""
    results = [
        {
            "ruleId": "wcet",
            "level": "error" if position == 0 else "note",
            "message": {"text": f"{headline(entry)}\n{line_text(change).strip()}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": change.line.path},
                        "region": {"startLine": max(1, change.line.line)},
                    }
                }
            ],
        }
        for entry in found.failed
        for position, change in enumerate(_increases(entry)[:RESULTS])
    ]
    results += [
        {"ruleId": "wcet", "level": "error", "message": {"text": headline(entry)}}
        for entry in found.failed
        if not _increases(entry)
    ]
    rule = {
        "id": "wcet",
        "shortDescription": {"text": "the worst-case execution time grew"},
    }
    driver = {"name": "wcet", "rules": [rule]}
    document = {"$schema": SARIF, "version": "2.1.0"}
    runs = [{"tool": {"driver": driver}, "results": results}]
    return json.dumps({**document, "runs": runs}, indent=1) + "\n"


def _increases(entry: EntryChange) -> list[LineChange]:
    return [c for c in entry.lines if c.cycles > 0 and c.after is not None and c.line.line]
