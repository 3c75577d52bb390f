# SPDX-License-Identifier: BSD-2-Clause
"""Kernels that check every invariant while they run under QEMU (`verification/check/target.c`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from kernels.bilby.verification.fuzz.mutants import read_mutants
from tests.testing.bilby.build import BILBY, ROOT, make
from tests.testing.bilby.tap import check_tap
from tests.testing.harness.cases import cases, spread

SECONDS = "500"
EVERY = max(4 - cases(1), 1)  # entries: the invariants are checked after each of so many
TIMED_OUT = 124


PROGRAM = "pingpong"
# Each machine, and time as a capability; the host builds check every preset.
BUILDS = [("cubieboard", "mcs"), ("kzm", "after"), ("kzm", "mcs"), ("cubieboard", "after")]
pytestmark = pytest.mark.xdist_group("checked")  # the faults are built into copies of a build


def name(board: str, preset: str) -> str:
    return f"{board}-{preset}-check-{EVERY}"


def built(folder: Path, board: str, preset: str) -> None:
    """The kernel with the invariants checked after each of ``EVERY`` entries, and the program."""
    bilby = folder / "kernels" / "bilby"
    goals = [f"../../build/bilby/{name(board, preset)}/{one}.elf" for one in ("kernel", PROGRAM)]
    make(bilby, "--silent", f"BOARD={board}", f"PRESET={preset}", f"CHECK={EVERY}", *goals)


def run_checked(folder: Path, board: str, preset: str) -> CompletedProcess[str]:
    """Build and run."""
    built(folder, board, preset)
    return subprocess.run(
        [str(folder / "kernels" / "bilby" / "run"), name(board, preset), PROGRAM],
        capture_output=True, text=True, check=False, env={**os.environ, "BILBY_TIMEOUT": SECONDS},
    )  # fmt: skip


@pytest.mark.parametrize(("board", "preset"), spread(BUILDS, 1))
def test_all_invariants_hold_while_a_program_runs(board: str, preset: str) -> None:
    done = run_checked(ROOT, board, preset)
    assert done.returncode == 0, done.stdout + done.stderr
    check_tap(done.stdout)


def test_a_fault_is_found(tmp_path: Path) -> None:
    """It ends with the invariant's name; the kernel is otherwise the same, and not built again."""
    fault = "an endpoint stays sending when its queue is empty"
    (mutant,) = (mutant for mutant in read_mutants() if mutant.name == fault)
    board, preset = BUILDS[0]
    built(ROOT, board, preset)
    for folder in (BILBY, ROOT / "build" / "bilby" / name(board, preset)):
        shutil.copytree(folder, tmp_path / folder.relative_to(ROOT))
    source = tmp_path / "kernels" / "bilby" / mutant.file
    source.write_text(source.read_text(encoding="utf-8").replace(mutant.old, mutant.new))
    done = run_checked(tmp_path, board, preset)
    assert done.returncode not in (0, TIMED_OUT)
    assert "Bail out! invariant Q2 " in done.stdout + done.stderr
