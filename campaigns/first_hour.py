"""The hour of docs/first-hour.md, and its table in docs/results, in 15 minutes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from campaigns.documented import markdown, replace
from tests.testing.wcet.first_hour import BUILDS, Hour, best, build_handler, first_hour

DOCUMENT = "first-hour.md"
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
    rows = []
    for name in BUILDS:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            if shutil.which(BUILDS[name][0]) is None:
                raise SystemExit(f"{BUILDS[name][0]} is missing: Debian has it")
            build_handler(name, place)
            hour = first_hour(place)
            least = best(place)
            if name == SHOWN:
                replace(DOCUMENT, "hour", told(hour))
        first, last = hour.bounds
        rows.append((name, f"{first:,}", f"{last:,}", f"{least:,}", f"{last / least:.2f}"))
        print(*rows[-1], flush=True)
    replace(f"results/{DOCUMENT}", "builds", markdown(HEAD, rows))


if __name__ == "__main__":
    main()
