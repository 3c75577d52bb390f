# SPDX-License-Identifier: BSD-2-Clause
"""The kernel `bilby` as tests build, run and read it: its folders, its tools, its tables."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BILBY = ROOT / "kernels" / "bilby"
BUILD = ROOT / "build" / "bilby" / "kzm-after"
RUN = BILBY / "run"
CROSS = "arm-none-eabi-"
BOARDS = ("kzm", "cubieboard")
PRESETS = sorted(path.stem for path in (BILBY / "presets").glob("*.mk"))
# Of each preset first the board that ``spread(BUILDS, 4)`` takes: both boards, every preset.
BUILDS = [
    f"{board}-{preset}"
    for preset in PRESETS
    for board in (BOARDS[::-1] if preset == "mcs" else BOARDS)
]

TEXT_LIMIT = 36 * 1024


def output(*command: str | Path, env: Mapping[str, str] | None = None) -> str:
    words = [str(part) for part in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def make(folder: Path, *arguments: str) -> str:
    return output("make", "-C", folder, *arguments)


def tables(preset: str = "after") -> list[Path]:
    """The layout tables of a preset."""
    names = output("make", "--silent", "-C", BILBY, f"PRESET={preset}", "tables").split()
    return [BILBY / name for name in names]


def symbols(elf: Path) -> dict[str, int]:
    table = {}
    for line in output(f"{CROSS}nm", elf).splitlines():
        parts = line.split()
        if len(parts) == 3:
            table[parts[2]] = int(parts[0], 16)
    return table


def run_program(
    program: str, *arguments: str, build: str = "kzm-after"
) -> subprocess.CompletedProcess[str]:
    """Run a program of a build under QEMU, for at most a minute."""
    return subprocess.run(
        [str(RUN), build, program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BILBY_TIMEOUT": "60"},
    )


EXCEPTION = re.compile(r"Taking exception \d+ \[(.+?)\] on CPU 0\n\.\.\.from EL(\d) to EL(\d)")


def check_exceptions(log: Path, idle: str) -> None:
    """Fail unless a log of ``-d int`` has every exception, and users alone raised faults.

    The idle thread, at exception level ``idle``, is interrupted too, and makes a system call.
    """
    taken: dict[str, set[str]] = {}
    for name, origin, _ in EXCEPTION.findall(log.read_text(encoding="utf-8")):
        taken.setdefault(name, set()).add(origin)
    taken.pop("Semihosting call", None)
    assert taken == {
        "SVC": {"0", idle},
        "Undefined Instruction": {"0"},
        "Prefetch Abort": {"0"},
        "Data Abort": {"0"},
        "IRQ": {"0", idle},
    }
