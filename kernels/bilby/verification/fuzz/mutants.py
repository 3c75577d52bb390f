# SPDX-License-Identifier: BSD-2-Clause
"""Faulty kernels: each mutant of ``verification/check/mutants.toml`` must be found out."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.bilby.verification.fuzz.directed import SEQUENCES
from kernels.bilby.verification.fuzz.host import folder as host_folder
from kernels.bilby.verification.fuzz.host import program, running
from kernels.bilby.verification.fuzz.run import Run, symbols
from kernels.bilby.verification.fuzz.script import Script
from tests.testing.harness import build

BILBY = build.ROOT / "kernels" / "bilby"


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    preset: str = "after"
    pin: str = ""


def read_mutants() -> list[Mutant]:
    text = (BILBY / "verification" / "check" / "mutants.toml").read_text(encoding="utf-8")
    return [Mutant(**row) for row in tomllib.loads(text)["mutant"]]


def prepare(folder: Path, preset: str, pin: str) -> Path:
    """A copy of the sources and of the plain host build, in which little is built again."""
    made = program(preset, "plain", pin).parent
    shutil.copytree(BILBY, folder / "kernels" / "bilby", copy_function=shutil.copy2)
    shutil.copytree(made, folder / "build" / "bilby" / made.name, copy_function=shutil.copy2)
    return folder


def build_mutant(folder: Path, mutant: Mutant) -> Path:
    """The host build with one fault. Raises ValueError if it does not apply or compile."""
    place = folder / "kernels" / "bilby" / mutant.file
    text = (BILBY / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: 'old' stands {text.count(mutant.old)} times")
    place.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        done = subprocess.run(
            ["make", "--silent", "-C", str(folder / "kernels/bilby/verification/check"),
             f"PRESET={mutant.preset}", f"PIN={mutant.pin}", "KIND=plain", "WERROR="],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        shutil.copy2(BILBY / mutant.file, place)
        place.touch()
    if done.returncode:
        raise ValueError(f"{mutant.name}: does not compile:\n{done.stderr[-2000:]}")
    return folder / "build" / "bilby" / host_folder(mutant.preset, "plain", mutant.pin) / "serve"


def why_killed(path: Path, operations: int, seeds: Sequence[int], preset: str) -> str | None:
    """The test that found the fault, and its failure, or None: the mutant survives."""
    for sequence in SEQUENCES:
        try:
            with running(path) as host:
                sequence(Script(host, path, preset))
        except AssertionError as failure:  # of the sequence itself, CheckFailure, or Mismatch
            return f"{first_line(failure)} [{sequence.__name__}]"
    for seed in seeds:
        try:
            with running(path) as host:
                run = Run(host, symbols(path), seed, preset)
                run.run(operations)
        except AssertionError as failure:
            done = run.statistics.operations
            return f"{first_line(failure)} [seed {seed}, operation {done}]"
    return None


def first_line(failure: AssertionError) -> str:
    """Without where it happened."""
    lines = str(failure).splitlines() or ["an expectation of the sequence"]
    return lines[1] if lines[0].startswith("seed ") and len(lines) > 1 else lines[0]
