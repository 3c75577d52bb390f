# SPDX-License-Identifier: BSD-2-Clause
"""Programs of a boot archive: the loader, the console server, and the demonstration."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench import demo
from tests.testing.bilby.build import BILBY, BUILDS, ROOT, RUN, output
from tests.testing.bilby.tap import check_tap
from tests.testing.harness import build as products
from tests.testing.harness.cases import spread

REPORT = re.compile(r"control: (\d+) wake-ups, worst latency (\d+) instructions; bound (.+)\n")
DONE = "shell: 1500 rounds: each 34 objects made, 16 badges revoked, all deleted\n"
SCRIPT = "help\nstress\nstress 1500\nno such\nexit\n"
SECONDS = 120
SOME = spread(BUILDS[-2:] + BUILDS[:-2], 2)  # both boards, with and without contexts of time


@pytest.mark.parametrize("build", SOME)
def test_programs_are_loaded_and_damaged_ones_refused(build: str) -> None:
    products.kernel(build, "kernel.elf", "loading.elf")
    assert len(check_tap(output(RUN, build, "loading")).lines) == 5


def run(command: list[str]) -> tuple[int, str]:
    """With the script as its input; end of line as a file has it."""
    done = subprocess.run(
        command, input=SCRIPT, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    return done.returncode, done.stdout.replace("\r", "")


@pytest.mark.parametrize("build", SOME)
def test_the_shell_works_while_the_loop_is_on_time(build: str) -> None:
    kernel = products.kernel(build, "kernel.elf", "demo.elf")
    command = demo.emulator(kernel, demo.built(build, "demo.elf"), build.partition("-")[0])
    status, text = run(command)
    assert status == 0, text
    assert "end the emulation" in text
    assert "shell: stress needs the number of rounds\n" in text
    assert "shell: no such command; help lists them\n" in text
    assert DONE in text
    reports = REPORT.findall(text)
    assert {bound for _, _, bound in reports} == {"not computed"}
    worst = [int(latency) for _, latency, _ in reports]
    assert worst == sorted(worst)
    assert 100 < worst[-1] < 1_000_000, "less than the period"


def test_the_worst_latency_is_below_the_bound_that_was_computed() -> None:
    status, text = run([sys.executable, "-m", "bench.demo"])
    assert status == 0, text
    reports = REPORT.findall(text)
    bounds = {int(bound.removesuffix(" cycles")) for _, _, bound in reports}
    assert len(bounds) == 1
    assert 100_000 < bounds.pop() < 300_000
    assert all(int(latency) < int(bound.split()[0]) for _, latency, bound in reports)


def test_the_make_target_runs_it() -> None:
    assert "python -m bench.demo kzm-after" in output("make", "-C", ROOT, "--dry-run", "demo")


def test_an_archive_has_the_format_of_cpio() -> None:
    products.kernel()
    listed = subprocess.run(
        [
            "python3",
            str(BILBY / "tools" / "archive.py"),
            f"a={demo.built('kzm-after', 'bound')}",
            "b=/dev/null",
        ],
        capture_output=True,
        check=True,
    ).stdout
    assert listed.startswith(b"070701")
    assert len(listed) % 4 == 0
    assert listed.count(b"070701") == 3
    assert listed.endswith(b"TRAILER!!!\0\0\0\0")
    failed = subprocess.run(
        ["python3", str(BILBY / "tools" / "archive.py"), "nothing"],
        capture_output=True,
        check=False,
    )
    assert failed.returncode == 2
