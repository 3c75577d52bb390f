"""The demonstration: ``make demo``, or ``python -m bench.demo [BOARD-PRESET]``.

Three programs run on the kernel in QEMU, with this terminal as their console: a console server, a
shell, and a control loop that prints its worst observed latency. This script computes the bound
beside it, for the running kernel. The observed latency counts instructions, each of which takes at
least a cycle on the ARM1136; it includes the loop's own instructions before it reads the time. The
Cortex-A8 may execute two in a cycle. A bound that depends on parameters is not printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import wcet

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
BILBY = ROOT / "kernels" / "bilby"
DEFAULT = "kzm-after"


def _make(build: str, *arguments: str) -> None:
    board, _, preset = build.partition("-")
    command = ["make", "--silent", "--no-print-directory", "-C", str(BILBY)]
    subprocess.run(
        [*command, f"BOARD={board}", f"PRESET={preset}", *arguments],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
    )


def built(build: str, name: str) -> Path:
    """A file of a build."""
    return ROOT / "build" / "bilby" / build / name


def emulator(kernel: Path, program: Path, board: str) -> list[str]:
    """The command: an instruction takes a nanosecond, and time also passes while nothing runs."""
    return [
        "qemu-system-arm", "-M", board, "-nographic", "-no-reboot", "-icount", "shift=0,sleep=on",
        "-semihosting-config", "enable=on,target=native,userspace=on", "-kernel", str(kernel),
        "-device", "loader,file=" + str(program).replace(",", ",,"),
    ]  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Bound, build and run; returns the exit status of the emulator."""
    parser = argparse.ArgumentParser(prog="bench.demo", description=__doc__.partition("\n")[0])
    parser.add_argument("build", nargs="?", default=DEFAULT, metavar="BOARD-PRESET")
    build = parser.parse_args(arguments).build
    print("building, and computing the interrupt latency: a minute, once", file=sys.stderr)
    try:
        _make(build)
        kernel = built(build, "kernel.elf")
        bound = wcet.analyse(kernel).latency
        _make(build, f"LATENCY_BOUND={bound or 0}", "demo")
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    except wcet.WcetError as error:
        print(f"bench.demo: {error}", file=sys.stderr)
        return 2
    command = emulator(kernel, built(f"{build}-demo", "demo.elf"), build.partition("-")[0])
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
