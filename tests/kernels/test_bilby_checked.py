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


def run_checked(
    folder: Path, board: str, every: int, program: str, preset: str = "after"
) -> CompletedProcess[str]:
    """Build with the invariants checked after each of so many entries, and run."""
    bilby = folder / "kernels" / "bilby"
    name = f"{board}-{preset}-check-{every}"
    goals = [f"../../build/bilby/{name}/{product}.elf" for product in ("kernel", program)]
    make(bilby, "--silent", f"BOARD={board}", f"PRESET={preset}", f"CHECK={every}", *goals)
    return subprocess.run(
        [str(bilby / "run"), name, program],
        capture_output=True, text=True, check=False, env={**os.environ, "BILBY_TIMEOUT": SECONDS},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("board", "preset"),
    spread([("cubieboard", "mcs"), ("kzm", "after"), ("kzm", "mcs"), ("cubieboard", "after")], 1),
)
def test_all_invariants_hold_while_a_program_runs(board: str, preset: str) -> None:
    """Each machine, and time as a capability; the host builds check every preset."""
    done = run_checked(ROOT, board, EVERY, "pingpong", preset)
    assert done.returncode == 0, done.stdout + done.stderr
    check_tap(done.stdout)


@pytest.mark.parametrize(
    ("name", "invariant"),
    spread(
        [
            ("the summary bit stays", "S4"),
            ("an endpoint stays sending when its queue is empty", "Q2"),
        ],
        1,
    ),
)
def test_a_fault_is_found(tmp_path: Path, name: str, invariant: str) -> None:
    """It ends with the invariant's name; the kernel is otherwise the same."""
    (mutant,) = (mutant for mutant in read_mutants() if mutant.name == name)
    shutil.copytree(BILBY, tmp_path / "kernels" / "bilby")
    source = tmp_path / "kernels" / "bilby" / mutant.file
    source.write_text(source.read_text(encoding="utf-8").replace(mutant.old, mutant.new))
    done = run_checked(tmp_path, "kzm", 10, "tests")
    assert done.returncode not in (0, TIMED_OUT)
    assert f"Bail out! invariant {invariant} " in done.stdout + done.stderr
