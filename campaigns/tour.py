"""The tour of README.md, run in one shell as by a user: ``make campaign-tour`` writes it.

An indented line that begins with ``$`` is a command; the lines up to the next command or the end of
the block are its output. ``...`` stands for omitted lines, and a line that ends in ``…`` is cut.
Other blocks are lines of a facts file, or a conversation with ``make demo``.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Shown", "blocks", "difference", "printed", "tour", "walk"]

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN, END = "\n## A ten-minute tour\n", "\n## "
INDENT = "    "
LEFT_OUT, CUT = "...", "…"
COLUMNS = 130  # of shown lines
ENDED = "=== the status of the command before is"
SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of the tour, with its output as shown."""

    command: str
    lines: tuple[str, ...]


def tour(text: str) -> str:
    """The section of the tour."""
    _, _, rest = text.partition(BEGIN)
    return rest.partition(END)[0]


def blocks(section: str) -> Iterator[list[str]]:
    """The indented blocks of a section, without the indentation."""
    pattern = re.compile(rf"(?:^{INDENT}.*\n(?:^\n(?={INDENT}))*)+", re.MULTILINE)
    for match in pattern.finditer(section + "\n"):
        yield [line.removeprefix(INDENT).rstrip() for line in match[0].rstrip("\n").split("\n")]


def commands(section: str) -> list[Shown]:
    """All commands, in order."""
    found: list[Shown] = []
    for block in blocks(section):
        for part in re.split(r"^\$ ", "\n".join(block), flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            found.append(Shown(command, tuple(lines)))
    return found


def walk(found: Sequence[Shown], folder: Path) -> list[tuple[int, list[str]]]:
    """The exit status and the output of each command, all given to one shell in ``folder``.

    ``PATH`` has the system's folders only: the tour itself must make ``wcet`` available.
    """
    script = "".join(f"{shown.command}\nprintf '\\n{ENDED} %d\\n' $?\n" for shown in found)
    kept = ("HOME", "USER", "LANG", "XDG_CACHE_HOME", "TMPDIR")
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=folder,
        env={k: os.environ[k] for k in kept if k in os.environ} | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    *parts, _ = re.split(rf"^{re.escape(ENDED)} (\d+)\n", done.stdout, flags=re.MULTILINE)
    outputs = [part.rstrip("\n").split("\n") for part in parts[::2]]
    return list(zip(map(int, parts[1::2]), outputs, strict=True))


def runs_of(lines: Sequence[str]) -> Iterator[list[str]]:
    """The runs of shown lines between omitted ones."""
    run: list[str] = []
    for line in (*lines, LEFT_OUT):
        if line != LEFT_OUT:
            run.append(line)
        elif run:
            yield run
            run = []


def is_shown_as(line: str, shown: str) -> bool:
    """Whether ``shown`` is ``line``, or its start."""
    cut = shown.endswith(CUT)
    return line.startswith(shown.removesuffix(CUT)) if cut else line.rstrip() == shown


def difference(shown: Shown, output: Sequence[str]) -> str:
    """The first run of lines that the output lacks after the earlier runs; "" if none."""
    at = 0
    for run in runs_of(shown.lines):
        wide = range(at, len(output) - len(run) + 1)
        place = next((i for i in wide if all(map(is_shown_as, output[i:], run))), None)
        if place is None:
            return "\n".join(run)
        at = place + len(run)
    return ""


def printed(shown: Shown, output: Sequence[str]) -> Shown:
    """The same command with its present output: runs start at the same first lines.

    Raises ValueError where the first line of a run is not in the output.
    """
    lines: list[str] = []
    at = 0
    for run in runs_of(shown.lines):
        blank = next(i for i, line in enumerate(run) if line)
        first = _anchor(run[blank])
        begins = (i - blank for i in range(at + blank, len(output)) if _anchor(output[i]) == first)
        place = next(begins, None)
        if place is None:
            raise ValueError(f"{shown.command}: {run[blank]!r} is not printed")
        lines += [_fitting(line) for line in output[place : place + len(run)]]
        lines.append(LEFT_OUT)
        at = place + len(run)
    if not shown.lines or shown.lines[-1] != LEFT_OUT:
        lines = lines[:-1]
    return Shown(shown.command, tuple(lines))


def _anchor(line: str) -> str:
    """A line without its numbers."""
    return re.sub(r"[0-9a-f]{12,}|[\d,.]+| +", " ", line.removesuffix(CUT))[:60].rstrip()


def _fitting(line: str) -> str:
    line = line.rstrip()
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}{CUT}"


def main() -> None:
    """Run the tour, and write its output into the README."""
    text = README.read_text(encoding="utf-8")
    section = tour(text)
    found = commands(section)
    written = section
    for shown, (status, output) in zip(found, walk(found, ROOT), strict=True):
        if status:
            raise SystemExit(f"{shown.command}: exit status {status}")
        old, new = (_block(each) for each in (shown, printed(shown, output)))
        if old not in written:
            raise SystemExit(f"{shown.command}: a line of the block ends in a space")
        written = written.replace(old, new)
    README.write_text(text.replace(section, written), encoding="utf-8")


def _block(shown: Shown) -> str:
    lines = (f"$ {shown.command}", *shown.lines)
    return "".join(f"{INDENT}{line}".rstrip() + "\n" for line in lines)


if __name__ == "__main__":
    main()
