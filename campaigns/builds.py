"""Builds of one kernel under the same facts: ``make campaign-builds ARGS='FOLDER ...'``.

Every ELF in a folder is analysed at each entry by itself, with an empty results store, under the
facts of one file whose places are functions and source lines. A build lacks a place where the
compiler has inlined the function or left the line out; the fact is then not given for it. The
table has a row for each entry of each build:

    facts        lines of the file that the bound depends on
    questions    facts that ``--suggest-facts`` misses, by kind, if the entry has no bound

Seconds are of processor time, MiB of the largest process. An analysis that exceeds the limit is
stopped.

    make campaign-builds ARGS='builds --platform kzm=kzm.toml --facts kernel.facts --write NAME'
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from campaigns.documented import markdown, replace
from quoll.errors import FactsError
from quoll.facts.fact_places import find_place
from quoll.facts.read import read_lines
from quoll.image.image import Image
from wcet.platforms.platform_model import load

__all__ = ["Build", "applicable", "builds", "rows"]

DOCUMENT = "results/reach.md"
HEAD = ("build", "entry", "bound, cycles", "µs", "seconds", "MiB", "facts", "questions")
QUESTIONS = re.compile(r"^## (?P<kind>.+): (?P<count>\d+)$", re.M)


@dataclass(frozen=True, slots=True)
class Build:
    """An ELF with the platform file of its board, and the facts file of its family."""

    elf: Path
    platform: str
    facts: Path

    @property
    def name(self) -> str:
        """As in the table."""
        return self.elf.stem


@dataclass(frozen=True, slots=True)
class Run:
    """An analysis: exit status, seconds of processor time, MiB of its largest process."""

    status: int
    seconds: float
    mebibytes: float


def builds(
    elves: Iterable[Path], platforms: Sequence[str], facts: Sequence[str]
) -> Iterator[Build]:
    """Each ELF with the first platform and facts file whose word its name contains.

    Both are given as ``WORD=FILE``, or as a file for all; an ELF without a platform is left out.
    """
    for elf in sorted(elves):
        platform, file = _chosen(elf.stem, platforms), _chosen(elf.stem, facts)
        if platform and file:
            yield Build(elf, platform, Path(file))


def _chosen(name: str, options: Sequence[str]) -> str | None:
    for option in options:
        word, equals, file = option.rpartition("=")
        if not equals or word in name:
            return file
    return None


def applicable(facts: Path, image: Image) -> list[tuple[int, str]]:
    """The facts whose places the build has, each with its line of the file ``facts``."""
    found = []
    for fact in read_lines(facts.read_text("utf-8"), str(facts)):
        with suppress(FactsError):
            for name in fact.names():
                find_place(image, name, fact.source)
            found.append((fact.source.line, fact.source.text))
    return found


def rows(build: Build, entries: Sequence[str], seconds: int) -> Iterator[tuple[str, ...]]:
    """The rows of a build: for ``entries``, or for all of its platform."""
    stated = applicable(build.facts, Image.load(build.elf))
    with tempfile.TemporaryDirectory() as place:
        facts = Path(place) / "applicable.facts"
        facts.write_text("".join(f"{text}\n" for _, text in stated), "utf-8")
        analysis = BuildAnalysis(build, facts, [line for line, _ in stated], seconds)
        for entry in entries or tuple(load(build.platform).entries):
            yield analysis.row(entry)


@dataclass(frozen=True, slots=True)
class BuildAnalysis:
    """The analyses of a build; ``lines``: of the family's file, for each line of ``facts``."""

    build: Build
    facts: Path
    lines: Sequence[int]
    seconds: int

    def row(self, entry: str) -> tuple[str, ...]:
        """The row of an entry."""
        result = self.facts.with_name(f"{entry}.json")
        run = self._run(entry, "--json", result)
        spent = (f"{run.seconds:.1f}", f"{run.mebibytes:,.0f}")
        document = json.loads(result.read_text("utf-8")) if result.exists() else {"entries": {}}
        found = document["entries"].get(entry)
        if found is None:
            return self.build.name, entry, "", "", *spent, "", self._questions(entry, run)
        cycles, time = f"{found['cycles']:,}", f"{found['microseconds']:,.1f}"
        return (
            self.build.name,
            entry,
            cycles,
            time,
            *spent,
            self._used(found["assumptions"]),
            "none",
        )

    def _used(self, assumptions: Sequence[str]) -> str:
        """The number of lines that the assumptions name."""
        named = re.compile(rf"{re.escape(str(self.facts))}:(\d+)")
        used = {self.lines[int(n) - 1] for text in assumptions for n in named.findall(text)}
        return str(len(used))

    def _questions(self, entry: str, failed: Run) -> str:
        """The missing facts by kind, or the exit status of the analysis without a bound."""
        suggested = self.facts.with_name(f"{entry}.facts")
        self._run(entry, "--suggest-facts", suggested)
        text = suggested.read_text("utf-8") if suggested.exists() else ""
        found = ", ".join(f"{count} {kind}" for kind, count in QUESTIONS.findall(text))
        return found or f"exit status {failed.status}"

    def _run(self, entry: str, option: str, output: Path) -> Run:
        """``wcet analyse`` of one entry, stopped after ``seconds``."""
        command = ["timeout", str(self.seconds), str(Path(sys.executable).with_name("wcet"))]
        command += ["analyse", str(self.build.elf), "--platform", self.build.platform]
        command += ["--facts", str(self.facts), "--entry", entry, "--no-cache", "--quiet"]
        command += [option, str(output)]
        quiet = subprocess.DEVNULL
        child = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return Run(child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    """Print each row when it is known; write the table between the marks NAME of ``DOCUMENT``."""
    parser = argparse.ArgumentParser(description="Analyse all builds of a kernel.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--match", default="*.elf", help="pattern of the files")
    parser.add_argument("--platform", action="append", required=True, metavar="[WORD=]FILE")
    parser.add_argument("--facts", action="append", required=True, metavar="[WORD=]FILE")
    parser.add_argument("--entry", action="append", default=[])
    parser.add_argument("--seconds", type=int, default=600, help="limit of one analysis")
    parser.add_argument("--write", metavar="NAME")
    options = parser.parse_args()
    table = []
    for build in builds(options.folder.glob(options.match), options.platform, options.facts):
        for row in rows(build, options.entry, options.seconds):
            table.append(row)
            print(*row, sep=" | ", flush=True)
    if options.write:
        replace(DOCUMENT, options.write, markdown(HEAD, table))


if __name__ == "__main__":
    main()
