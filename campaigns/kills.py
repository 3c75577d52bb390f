"""Runs that are killed at random moments, and runs at the same time: ``make campaign-kills``.

Each round starts ``wcet baseline``, or ``wcet analyse`` or ``wcet check`` with files to write,
every other one on an empty cache, and kills it and its children by SIGKILL at a moment drawn from
the seed, in every other round while it writes. Afterwards each output is unchanged or complete; a
run with the remaining cache writes the same as a run without one; and at most the temporary files
lie beside the outputs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outputs", "Tally", "all_runs", "campaign", "together"]

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ROOT / "build" / "bilby" / "kzm-after" / "kernel.elf"
OLD = '{"old": true}\n'
SEED = 21
KILLS = 50
PAGE = "<!doctype html>"
WRITING = 0.003  # seconds after the first file was begun


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of runs: killed before their output was replaced, killed after, finished."""

    before: int
    after: int
    ended: int


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a run, in one folder."""

    words: tuple[str, ...]  # of the command line, before the options that name outputs
    options: tuple[tuple[str, str], ...]  # option and file name

    def command(self, elf: Path, entry: str, cache: Path, folder: Path) -> list[str]:
        """A run that writes into ``folder``."""
        words = [*self.words, elf, "--entry", entry, "--platform", "kzm", "--quiet"]
        files = [part for option, name in self.options for part in (option, folder / name)]
        return [sys.executable, "-m", "wcet.cli", *map(str, [*words, "--cache", cache, *files])]

    def read(self, folder: Path) -> dict[str, object]:
        """All outputs without times. Raises AssertionError if one is broken or is not there."""
        return {name: comparable(name, (folder / name).read_text()) for _, name in self.options}


def all_runs(entry: str) -> dict[str, Outputs]:
    """The runs that are killed; the check fails nothing, as its budget is large."""
    reports = (("--markdown", "r.md"), ("--junit", "r.xml"), ("--sarif", "r.sarif"))
    return {
        "baseline": Outputs(("baseline",), (("--output", "baseline.json"),)),
        "analyse": Outputs(("analyse",), (("--json", "result.json"), ("--lp", "program.lp"))),
        "report": Outputs(("analyse",), (("--html", "report.html"),)),
        "check": Outputs(("check", "--budget", f"{entry}=1s"), (("--json", "r.json"), *reports)),
    }


def campaign(elf: Path, entry: str, known: Mapping[str, Outputs], kills: int, seed: int) -> Tally:
    """Kill ``kills`` of the ``known`` runs; one that finishes before its moment does not count.

    Raises AssertionError at the first broken output.
    """
    draw = random.Random(seed)
    before = after = ended = number = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole, seconds = {}, {}
        for name, outputs in known.items():
            start = time.monotonic()
            whole[name] = alone(outputs, elf, entry, folder / f"empty-{name}", folder / name)
            seconds[name] = time.monotonic() - start
        cache = folder / "cache"
        while before + after < kills:
            number += 1
            name = draw.choice(tuple(known))
            outputs = known[name]
            if draw.random() < 0.5:
                shutil.rmtree(cache, ignore_errors=True)
            there = folder / str(number)
            there.mkdir()
            for _, file in outputs.options:
                (there / file).write_text(OLD)
            run = subprocess.Popen(
                outputs.command(elf, entry, cache, there),
                cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            if draw.random() < 0.5:
                time.sleep(draw.uniform(0, seconds[name]))
            else:
                until_written(run, there, len(outputs.options))
                time.sleep(draw.uniform(0, WRITING))
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            killed = run.wait() == -signal.SIGKILL
            replaced = 0
            for _, file in outputs.options:
                text = (there / file).read_text()
                replaced += text != OLD
                good = text == OLD or comparable(file, text) == whole[name][file]
                assert good, f"{number}: {file} of {name} is broken"
            beside = {path.name for path in there.iterdir()} - {f for _, f in outputs.options}
            assert len(beside) <= 2 * len(outputs.options), f"{number}: {beside}"  # part and before
            before += killed and not replaced
            after += killed and replaced > 0
            ended += not killed
            again = alone(outputs, elf, entry, cache, folder / "again")
            assert again == whole[name], f"{number}: the cache"
    return Tally(before, after, ended)


def until_written(run: subprocess.Popen[bytes], folder: Path, files: int) -> None:
    """Wait until another file appears, which is then being written, or the run has finished."""
    while run.poll() is None and len(os.listdir(folder)) == files:
        time.sleep(0.0002)


def together(elf: Path, entry: str, known: Mapping[str, Outputs]) -> None:
    """Two runs of each command at once, one cache, each two with the same outputs.

    All succeed, and every output is whole.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, outputs in known.items():
            (folder / name).mkdir()
            alone(outputs, elf, entry, folder / "alone", folder / f"alone-{name}")
        started = [
            subprocess.Popen(
                outputs.command(elf, entry, folder / "cache", folder / name),
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
            )
            for name, outputs in known.items()
            for _ in range(2)
        ]
        assert [run.wait() for run in started] == [0] * len(started)
        for name, outputs in known.items():
            assert outputs.read(folder / name) == outputs.read(folder / f"alone-{name}")
            assert len(list((folder / name).iterdir())) == len(outputs.options)


def alone(outputs: Outputs, elf: Path, entry: str, cache: Path, folder: Path) -> dict[str, object]:
    """The outputs of an undisturbed run."""
    folder.mkdir(exist_ok=True)
    words = outputs.command(elf, entry, cache, folder)
    subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return outputs.read(folder)


def comparable(name: str, text: str) -> object:
    """The content of a file, without times. Raises AssertionError for an incomplete document."""
    if name.endswith(".html"):
        assert text.startswith(PAGE), "no page"
        assert text.endswith("</html>\n"), "half a page"
    if not name.endswith("json"):
        return text
    try:
        document = json.loads(text)
    except ValueError as error:
        raise AssertionError("half a document") from error
    document.pop("stages", None)
    found = document["entries"]
    for entry in found.values() if isinstance(found, dict) else ():
        for loop in entry.get("loops", ()):
            loop.pop("seconds", None)
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--entry", default="undefined")
    options = parser.parse_args()
    known = all_runs(options.entry)
    tally = campaign(KERNEL, options.entry, known, options.kills, options.seed)
    together(KERNEL, options.entry, known)
    print(
        f"{options.kills} kills, seed {options.seed}: {tally.before} before the output was "
        f"replaced, {tally.after} after it, {tally.ended} more runs had ended; nothing is broken"
    )


if __name__ == "__main__":
    main()
