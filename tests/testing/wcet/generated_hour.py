"""The first hour with a generated firmware: ``wcet init``, facts filled in, ``wcet analyse``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from quoll.errors import WcetError
from quoll.facts.read import parse

__all__ = ["COUNT", "GeneratedHour", "filled", "generated_hour"]

ROOT = Path(__file__).resolve().parents[3]
COUNT = 8  # for every N but depths of callbacks, which call no caller of theirs
TREE = re.compile(r"\bdepth\b")  # the only recursive function
BOUND = re.compile(r"^(\w+) +([\d,]+) +[\d,.]+ ", re.MULTILINE)
ANCHOR = re.compile(r"~[0-9a-f]{8}")
LONGEST = 600  # seconds of a command


@dataclass(frozen=True, slots=True)
class GeneratedHour:
    """``facts``: the statements that were proposed; ``bounds``: cycles by entry.

    ``seconds``: processor time of both commands; ``errors``: the end of an analysis without bounds.
    """

    facts: tuple[str, ...]
    bounds: dict[str, int]
    seconds: float
    errors: str


def generated_hour(folder: Path) -> GeneratedHour:
    """Two commands and one edit, about ``firmware.elf`` in the folder."""
    start = _children()
    _wcet(folder, "init", "firmware.elf", "--quiet", succeeds=True)
    facts = folder / "firmware.facts"
    text = filled(facts.read_text(encoding="utf-8"))
    facts.write_text(text, encoding="utf-8")
    done = _wcet(folder, "analyse", "--quiet", "--paths", "none", succeeds=False)
    bounds = {entry: int(cycles.replace(",", "")) for entry, cycles in BOUND.findall(done.stdout)}
    stated = tuple(line for line in text.splitlines() if line and not line.startswith("#"))
    return GeneratedHour(stated, bounds, _children() - start, done.stderr)


def filled(text: str) -> str:
    """A facts file in which all proposed facts are stated, each N as ``COUNT``."""
    return "".join(f"{_stated(line)}\n" for line in text.splitlines())


def _stated(line: str) -> str:
    """A comment that is a fact as the fact; another line as it is."""
    recursive = line.startswith("# recursion of ") and not TREE.search(line)
    fact = line.removeprefix("# ").replace("at most N", f"at most {1 if recursive else COUNT}")
    plain = ANCHOR.sub("", fact)
    try:
        return fact if line.startswith("# ") and parse(f"{plain}\n", "firmware.facts") else line
    except WcetError:
        return line


def _wcet(folder: Path, *arguments: str, succeeds: bool) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "wcet.cli", *arguments], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "kept"), "PYTHONPATH": str(ROOT)},
        timeout=LONGEST, check=False,
    )  # fmt: skip
    assert not succeeds or done.returncode == 0, done.stderr
    return done


def _children() -> float:
    """Processor time of ended children, in seconds."""
    used = os.times()
    return used.children_user + used.children_system
