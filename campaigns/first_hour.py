"""The hour of docs/first-hour.md, and its table in docs/results, in 20 minutes.

``make campaign-first_hour ARGS='--build "gcc -Os arm"'`` renews one row. A row whose compiler is
missing stays as it is.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from campaigns.documented import inside, markdown, replace
from tests.testing.wcet.first_hour import (
    BUILDS,
    Hour,
    best,
    build_handler,
    first_hour,
    missing_compiler,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"
DOCUMENT, TABLE = "first-hour.md", "results/first-hour.md"
SHOWN = "gcc -O2 arm"
LINES = 34  # of the output of a command
COLUMNS = 108
HEAD = ("build", "after the first edit", "after the second edit", "best", "ratio")


def told(hour: Hour) -> str:
    """Commands with their output, and edits with their lines, in order."""
    edits = [
        f"Edit of `{file}`, these lines:\n\n" + "".join(f"    {line}\n" for line in lines)
        for file, lines in hour.edits
    ]
    parts = []
    for number, (command, output) in enumerate(hour.commands):
        lines = [f"$ {command}", *output.splitlines()]
        more = ["..."] if len(lines) > LINES else []
        shown = [line[:COLUMNS].rstrip() for line in [*lines[:LINES], *more]]
        parts.append("".join(f"    {line}".rstrip() + "\n" for line in shown))
        parts += edits[number : number + 1]
    return "\n".join(parts)


def main() -> None:
    """Write the document and the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", action="append", choices=list(BUILDS), default=[])
    asked = options.parse_args()
    known = inside((DOCS / TABLE).read_text(encoding="utf-8"), "builds").splitlines()[2:]
    rows = {row[0]: row for line in known if (row := line.strip("| ").split(" | "))}
    for name in asked.build or BUILDS:
        if missing := missing_compiler(name):
            print(f"{name}: {missing}; the row stays as it is", flush=True)
            continue
        rows[name] = list(measured(name))
        print(*rows[name], flush=True)
        replace(TABLE, "builds", markdown(HEAD, [rows[name] for name in BUILDS if name in rows]))


def measured(name: str) -> tuple[str, ...]:
    """The row of one build; the document shows the steps of one of them."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        build_handler(name, place)
        hour = first_hour(place)
        least = best(place)
        if name == SHOWN:
            replace(DOCUMENT, "hour", told(hour))
    first, last = hour.bounds
    return name, f"{first:,}", f"{last:,}", f"{least:,}", f"{last / least:.2f}"


if __name__ == "__main__":
    main()
