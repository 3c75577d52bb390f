"""Runs that are killed at random moments, and runs at the same time: ``make campaign-kills``.

Each round starts ``wcet baseline``, ``wcet analyse --json FILE`` or ``wcet analyse --html FILE``,
every other one on an empty cache, and kills it and all that it started by SIGKILL at a moment drawn
from the seed. Afterwards the output is what it was, or complete; a run with what is left of the
cache writes what a run without one wrote; and at most the file that was being written lies beside
the output.
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
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Tally", "campaign", "together"]

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ROOT / "build" / "bilby" / "kzm-after" / "kernel.elf"
OLD = '{"old": true}\n'
SEED = 21
KILLS = 50
RUNS = {
    "baseline": ("baseline", "--output"),
    "analyse": ("analyse", "--json"),
    "report": ("analyse", "--html"),
}
PAGE = "<!doctype html>"


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the runs: killed before their output was replaced, killed after, ended."""

    before: int
    after: int
    ended: int


def command(name: str, elf: Path, entry: str, cache: Path, output: Path) -> list[str]:
    """A run that writes ``output``."""
    verb, option = RUNS[name]
    words = [verb, elf, "--entry", entry, "--platform", "kzm", "--quiet", "--cache", cache]
    return [sys.executable, "-m", "wcet.cli", *map(str, [*words, option, output])]


def campaign(elf: Path, entry: str, kills: int, seed: int) -> Tally:
    """Kill ``kills`` runs; those that end before their moment do not count.

    Raises AssertionError at the first thing that is broken.
    """
    draw = random.Random(seed)
    before = after = ended = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole, seconds = {}, {}
        for name in RUNS:
            start = time.monotonic()
            whole[name] = alone(name, elf, entry, folder / f"empty-{name}", folder / f"{name}.json")
            seconds[name] = time.monotonic() - start
        cache = folder / "cache"
        number = 0
        while before + after < kills:
            number += 1
            name = draw.choice(list(RUNS))
            if draw.random() < 0.5:
                shutil.rmtree(cache, ignore_errors=True)
            output = folder / str(number) / "output.json"
            output.parent.mkdir()
            output.write_text(OLD)
            run = subprocess.Popen(
                command(name, elf, entry, cache, output),
                cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            time.sleep(draw.uniform(0, seconds[name]))
            os.killpg(run.pid, signal.SIGKILL)
            killed = run.wait() == -signal.SIGKILL
            text = output.read_text()
            assert text == OLD or comparable(text) == whole[name], f"{number}: {output} is broken"
            beside = [p for p in output.parent.iterdir() if p != output]
            assert len(beside) <= 2, f"{number}: {beside}"  # the part, and what was there before
            before += killed and text == OLD
            after += killed and text != OLD
            ended += not killed
            again = folder / "again.json"
            assert alone(name, elf, entry, cache, again) == whole[name], f"{number}: the cache"
    return Tally(before, after, ended)


def together(elf: Path, entry: str) -> None:
    """Two runs at once with one cache and one output: both succeed, and the output is whole."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wanted = alone("baseline", elf, entry, folder / "alone", folder / "alone.json")
        output = folder / "output.json"
        words = command("baseline", elf, entry, folder / "cache", output)
        runs = [subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [run.wait() for run in runs] == [0, 0]
        assert comparable(output.read_text()) == wanted
        left = {path.name for path in folder.iterdir()}
        assert left == {"alone", "alone.json", "cache", "output.json"}


def alone(name: str, elf: Path, entry: str, cache: Path, output: Path) -> object:
    """What an undisturbed run writes."""
    words = command(name, elf, entry, cache, output)
    subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return comparable(output.read_text())


def comparable(text: str) -> object:
    """A document without times, or a page, which has none. Raises AssertionError if it is half."""
    if text.startswith(PAGE):
        assert text.endswith("</html>\n"), "half a page"
        return text
    try:
        document = json.loads(text)
    except ValueError as error:
        raise AssertionError("half a document") from error
    document.pop("stages", None)
    for entry in document["entries"].values():
        for loop in entry["loops"]:
            loop.pop("seconds", None)
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--entry", default="undefined")
    options = parser.parse_args()
    tally = campaign(KERNEL, options.entry, options.kills, options.seed)
    together(KERNEL, options.entry)
    print(
        f"{options.kills} kills, seed {options.seed}: {tally.before} before the output was "
        f"replaced, {tally.after} after it, {tally.ended} more runs had ended; nothing is broken"
    )


if __name__ == "__main__":
    main()
