"""A document with commands, their output and edits of files, which can be followed again.

An indented block that begins with ``$ wcet`` is a command with its output; a block that begins with
``# in FILE:`` is an edit: in a TOML file, keys get these values, and ``[[memory]]`` tables and
entries replace the existing ones; in another file, lines replace comments with the same beginning.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path

__all__ = ["retold"]

ROOT = Path(__file__).resolve().parents[3]
INDENT = "    "
COLUMNS = 110
LINES = 14  # of the output of a command


def retold(text: str, folder: Path) -> str:
    """The document with the present output of its commands; files change in ``folder``."""
    found: list[str] = []
    for indented, group in groupby(text.splitlines(), lambda line: line.startswith(INDENT)):
        lines = [line.removeprefix(INDENT) for line in group]
        if not indented:
            found += lines
        elif lines[0].startswith("$ wcet"):
            found += (f"{INDENT}{line}" for line in [lines[0], *printed(lines[0], folder)])
        else:
            edit(folder, lines)
            found += (f"{INDENT}{line}" for line in lines)
    return "\n".join(found) + "\n"


def printed(command: str, folder: Path) -> list[str]:
    """The lines of both outputs, none of them empty, as many and as long as are shown."""
    done = subprocess.run(
        [sys.executable, "-m", "wcet.cli", *shlex.split(command.removeprefix("$ wcet"))],
        cwd=folder, capture_output=True, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "kept"), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    more = ["..."] if len(lines) > LINES else []
    return [*(line[:COLUMNS].rstrip() for line in lines[:LINES]), *more]


def edit(folder: Path, lines: list[str]) -> None:
    """Apply one edit; each of its lines has an effect."""
    match = re.fullmatch(r"# in (\S+):", lines[0])
    assert match is not None, lines[0]
    file = folder / match[1]
    text = file.read_text()
    if "[[memory]]" in lines:
        first, last = text.index("[[memory]]"), text.rindex("[[memory]]")
        end = text.index("\n\n", last)
        text = text[:first] + "\n".join(lines[1:]) + text[end:]
    elif file.suffix == ".toml":
        table = ""
        for line in lines[1:]:
            table = line if line.startswith("[") else table
            if line == "[entries]":
                text = re.sub(r"(?m)^\S+ = \{ vector = .*\n", "", text)
            elif table == "[entries]":
                text = text.replace("\n[entries]\n", f"\n[entries]\n{line}\n")
            elif line != table:
                text = with_value(text, table, line)
    else:
        for line in lines[1:]:
            opening = re.escape(" ".join(line.split()[:2]))
            text, count = re.subn(rf"(?m)^# {opening} .*$", line, text)
            assert count == 1, line
    file.write_text(text)


def with_value(text: str, table: str, line: str) -> str:
    """The file with another value of a key of one table."""
    start = text.index(f"\n{table}\n") + 1 if table else 0
    key = re.escape(line.partition(" =")[0])
    following = re.search(r"(?m)^\[", text[start + len(table) + 1 :])
    end = len(text) if following is None else start + len(table) + 1 + following.start()
    part, count = re.subn(rf"(?m)^{key} += .*$", lambda _: line, text[start:end])
    assert count == 1, line
    return text[:start] + part + text[end:]
