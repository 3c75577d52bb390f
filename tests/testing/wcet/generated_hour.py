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

__all__ = ["COUNT", "GeneratedHour", "filled", "generated_hour", "hints_fed_back"]

ROOT = Path(__file__).resolve().parents[3]
COUNT = 8  # for every N but depths of callbacks, which call no caller of theirs
TREE = re.compile(r"\bdepth\b")  # the only recursive function
BOUND = re.compile(r"^(\w+) +([\d,]+) +[\d,.]+ ", re.MULTILINE)
ANCHOR = re.compile(r"~[0-9a-f]{8}")
QUOTED = re.compile(r"'([^']+)'")
LEFT_OPEN = re.compile(r"\b(?:PLACE|FUNCTION|NAME)\b")
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


def hints_fed_back(folder: Path, name: str) -> tuple[tuple[str, ...], str]:
    """The facts that comments of proposed facts quote, and the errors where all of them are stated.

    They are stated beside the proposed facts, about ``name``.elf in the folder.
    """
    _wcet(folder, "init", f"{name}.elf", "--quiet", succeeds=True)
    file = folder / f"{name}.facts"
    text = file.read_text(encoding="utf-8")
    comments = (line for line in text.splitlines() if line.startswith("#"))
    quoted = dict.fromkeys(_numbered(one) for line in comments for one in QUOTED.findall(line))
    hints = tuple(one for one in quoted if not LEFT_OPEN.search(one) and _is_fact(one))
    file.write_text("\n".join((filled(text), *hints, "")), encoding="utf-8")
    done = _wcet(folder, "analyse", "--quiet", "--paths", "none", succeeds=False)
    return hints, done.stderr


def filled(text: str) -> str:
    """A facts file in which all proposed facts are stated, each N as ``COUNT``."""
    return "".join(f"{_stated(line)}\n" for line in text.splitlines())


def _stated(line: str) -> str:
    """A comment that is a fact as the fact; another line as it is."""
    recursive = line.startswith("# recursion of ") and not TREE.search(line)
    fact = _numbered(line.removeprefix("# "), 1 if recursive else COUNT)
    return fact if line.startswith("# ") and _is_fact(fact) else line


def _numbered(fact: str, count: int = COUNT) -> str:
    """The fact with a number in the place that it leaves open."""
    return re.sub(r"\bat most [NM]\b", f"at most {count}", fact)


def _is_fact(text: str) -> bool:
    try:
        return bool(parse(f"{ANCHOR.sub('', text)}\n", "firmware.facts").facts)
    except WcetError:
        return False


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
