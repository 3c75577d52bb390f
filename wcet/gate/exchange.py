"""A comparison for other programs: JSON, JUnit XML, SARIF 2.1.0, and a report of code quality."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from quoll.printable import printable
from wcet.gate.change_text import headline, line_text
from wcet.gate.compare import EntryChange, LineChange, RecordChange
from wcet.gate.project_file import FILE

__all__ = ["to_code_quality", "to_json", "to_junit", "to_sarif"]

SCHEMA_VERSION = 1
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS = 10  # lines of an entry that annotate the code


def to_json(found: RecordChange) -> str:
    """The whole comparison as JSON; equal comparisons give equal bytes."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "passed": not found.failed,
        "entries": {entry.name: _entry(entry) for entry in found.entries},
        "new_assumptions": list(found.new_assumptions),
        "gone_assumptions": list(found.gone_assumptions),
        "notes": list(found.notes),
        "differences": list(found.differences),
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
    """The comparison as JUnit XML: a test for each entry."""
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
    """The comparison as SARIF: the lines with more cycles, for failed entries."""
    results = [
        {
            "ruleId": "wcet",
            "level": "note" if position else "error",
            "message": {"text": text},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(path)},
                        "region": {"startLine": line},
                    }
                }
            ],
        }
        for _, position, path, line, text in _shown(found)
    ]
    rule = {
        "id": "wcet",
        "shortDescription": {"text": "the worst-case execution time grew"},
    }
    driver = {"name": "wcet", "rules": [rule]}
    document = {"$schema": SARIF, "version": "2.1.0"}
    runs = [{"tool": {"driver": driver}, "results": results}]
    return json.dumps({**document, "runs": runs}, indent=1) + "\n"


def to_code_quality(found: RecordChange) -> str:
    """The comparison as a report of code quality, which GitLab shows beside the lines.

    A fingerprint distinguishes results, and stays the same if a line moves.
    """
    issues = [
        {
            "description": text.replace("\n", "; "),
            "check_name": "wcet",
            "fingerprint": sha256(
                "\0".join((entry.name, str(position), path)).encode()
            ).hexdigest(),
            "severity": "minor" if position else "major",
            "location": {"path": path, "lines": {"begin": line}},
        }
        for entry, position, path, line, text in _shown(found)
    ]
    return json.dumps(issues, indent=1) + "\n"


def _shown(found: RecordChange) -> Iterator[tuple[EntryChange, int, str, int, str]]:
    """Each failed entry with the lines to show: position, path, line, text.

    Forges refuse results without a place: an entry without such lines is shown at ``wcet.toml``.
    """
    for entry in found.failed:
        if not entry.increases:
            yield entry, 0, FILE, 1, printable(headline(entry))
        for position, change in enumerate(entry.increases[:RESULTS]):
            text = f"{printable(headline(entry))}\n{printable(line_text(change).strip())}"
            yield entry, position, change.line.path, change.line.line, text
