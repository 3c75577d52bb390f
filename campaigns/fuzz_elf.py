"""Damaged ELF files: ``python -m campaigns.fuzz_elf [--count N] [--seed N]``.

Small programs are damaged (``fuzz_damage``) and each is loaded, extracted from all its functions,
verified and given to ``wcet cfg`` in a process of its own, which may use 1 GiB of address space and
LIMIT seconds of processor time. A result and a WcetError are allowed. A traceback, a hang or more
memory ends the campaign with status 1; the file is stored in ``build/fuzz``.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from campaigns.extraction import entries_of
from campaigns.fuzz_damage import damaged
from campaigns.fuzz_programs import programs
from quoll.cfg.cfg import Program
from quoll.errors import WcetError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.listing.export import program_json
from tests.testing.quoll.invariants import verify_program
from wcet.cli import INTERNAL_ERROR
from wcet.cli import main as wcet

__all__ = ["Tally", "campaign", "try_file"]

LIMIT = 30  # seconds of processor time
WAITING = 20  # seconds by the clock per second of processor time
MEMORY = 1 << 30  # bytes
KEPT = Path(__file__).resolve().parents[1] / "build/fuzz"
RESULT, REFUSED, CRASHED = 0, 64, 1
HANGS = (signal.SIGPROF, signal.SIGALRM)


@dataclass(slots=True)
class Tally:
    """The outcomes of the files tried."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0  # seconds of processor time
    largest: int = 0  # bytes resident


def analyse(path: Path) -> None:
    """Run all stages on an ELF file that need no platform."""
    image = Image.load(path)
    program = _extracted(image, [*entries_of(image), image.entry])
    verify_program(program)
    program_json(program, image)
    _command("cfg", str(path))


def _extracted(image: Image, entries: Sequence[int]) -> Program:
    """The program from all ``entries`` that extraction accepts."""
    try:
        return extract(image, entries)
    except WcetError:
        return extract(image, [e for e in entries if _accepts(image, e)] or [image.entry])


def _accepts(image: Image, entry: int) -> bool:
    try:
        extract(image, [entry])
    except WcetError:
        return False
    return True


def _command(*words: str) -> None:
    """Run ``wcet``; raises AssertionError with its message when it reports its own defect."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        status = wcet(words)
    assert status != INTERNAL_ERROR, said.getvalue()


def try_file(path: Path) -> tuple[int, resource.struct_rusage]:
    """The exit status or negative signal of a process that analyses ``path``, and its resources."""
    child = os.fork()
    if child == 0:
        _child(path)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage


def _child(path: Path) -> None:
    """Analyse ``path`` and exit with RESULT, CRASHED, or REFUSED plus the error's status."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for ends in HANGS:
        signal.signal(ends, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    signal.setitimer(signal.ITIMER_REAL, WAITING * LIMIT)
    status = CRASHED
    try:
        analyse(path)
        status = RESULT
    except WcetError as error:
        status = REFUSED + error.exit_status
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def campaign(count: int, seed: int, progress: bool = False) -> Tally:
    """Damage and try ``count`` files."""
    originals = programs()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.elf"
        _prepare(path, originals)
        for case in range(seed, seed + count):
            random = Random(case)
            path.write_bytes(damaged(random, random.choice(originals)))
            status, usage = try_file(path)
            tally.slowest = max(tally.slowest, usage.ru_utime + usage.ru_stime)
            tally.largest = max(tally.largest, usage.ru_maxrss << 10)
            outcome = _outcome(status)
            tally.outcomes[outcome] += 1
            if status != RESULT and status <= REFUSED:
                KEPT.mkdir(parents=True, exist_ok=True)
                kept = KEPT / f"{case}.elf"
                kept.write_bytes(path.read_bytes())
                tally.failures.append(f"case {case}: {outcome}: {kept}")
            if progress and case % 500 == 499:
                print(case - seed + 1, dict(tally.outcomes), flush=True)
    return tally


def _prepare(path: Path, originals: Sequence[bytes]) -> None:
    """Analyse undamaged files first, so that each child starts with decoders and p-code loaded."""
    for original in originals:
        path.write_bytes(original)
        analyse(path)


def _outcome(status: int) -> str:
    if status == RESULT:
        return "result"
    if status > REFUSED:
        classes = {c.exit_status: c.__name__ for c in WcetError.__subclasses__()}
        return classes.get(status - REFUSED, "WcetError")
    if -status in HANGS:
        return "hang"
    return "traceback" if status == CRASHED else f"status {status}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Damaged ELF files.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="first case")
    options = parser.parse_args()
    start = time.perf_counter()
    tally = campaign(options.count, options.seed, progress=True)
    for text in tally.failures:
        print(text)
    outcomes = ", ".join(f"{count} {name}" for name, count in tally.outcomes.most_common())
    print(
        f"{options.count} files: {outcomes}; slowest {tally.slowest:.1f} s, "
        f"largest {tally.largest >> 20} MiB, {time.perf_counter() - start:.0f} s"
    )
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
