"""Executions of a foreign kernel: ``make campaign-executed_kernel ARGS='BUILD ...'``.

``BUILD`` is the folder where a kernel of the seL4 family was built for the KZM board: its ELF and
the headers that its build generated. A loader and a first user program of our own
(``campaigns/root_task``) are built with these headers and booted in QEMU, while the recorder
records the kernel; ``wcet replay`` then compares the recorded executions with the bounds. The
program derives, copies, revokes and deletes capabilities, fills CNodes and address spaces, lets 16
threads wait, send, fault and be cancelled, maps and flushes frames of every size, deletes a full
pool of address spaces, and draws invocations at random.

    make campaign-executed_kernel ARGS='BUILD --platform kzm.toml --facts kernel.facts --write NAME'
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from campaigns.documented import markdown, replace
from tests.testing.harness import build
from wcet.commands.replay import EXCEEDED

DOCUMENT = "real-kernels.md"
HEAD = ("entry", "executions", "paths", "most seen, cycles", "bound", "bound/seen", "exceeded")
SOURCES = Path(__file__).parent / "root_task"
RECORDER = build.ROOT / "build" / "recorder" / "librecorder.so"
PHYSICAL, PROGRAM_PHYSICAL, PROGRAM_VIRTUAL = 0x80000000, 0x81000000, 0x10000
PAGE = 4096
SHIFTS = (3, 7)
ENTRIES = ("interrupt", "undefined", "prefetch-abort", "data-abort", "syscall")
COMPILE = ("arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-marm", "-O1", "-ffreestanding", "-nostdlib")


def bootable(kernel: Path, headers: Path, rounds: int, folder: Path) -> Path:
    """An ELF in ``folder`` that loads the kernel, and the program that runs ``rounds`` times."""
    program = folder / "program.elf"
    _run(
        *COMPILE, f"-DROUNDS={rounds}", "-include", headers / "gen_config/kernel/gen_config.h",
        f"-I{headers / 'gen_headers'}", "-T", SOURCES / "program.ld", SOURCES / "start.S",
        SOURCES / "program.c", "-lgcc", "-o", program,
    )  # fmt: skip
    images = [
        _flat(elf, folder / f"{name}.bin")
        for elf, name in ((kernel, "kernel"), (program, "program"))
    ]
    blobs = folder / "blobs.S"
    blobs.write_text(
        "".join(f'.section .{image.stem}, "ax"\n.incbin "{image}"\n' for image in images), "utf-8"
    )
    size = -(-images[1].stat().st_size // PAGE) * PAGE
    numbers = {
        "KERNEL_PHYSICAL": PHYSICAL, "PROGRAM_PHYSICAL": PROGRAM_PHYSICAL,
        "PROGRAM_VIRTUAL": PROGRAM_VIRTUAL, "PROGRAM_BYTES": size, "KERNEL_ENTRY": entry_of(kernel),
    }  # fmt: skip
    result = folder / "boot.elf"
    _run(
        *COMPILE, *(f"-D{name}={value:#x}" for name, value in numbers.items()),
        *(f"-Wl,--defsym={name}={value:#x}" for name, value in numbers.items()),
        "-T", SOURCES / "loader.ld", SOURCES / "loader.S", blobs, "-o", result,
    )  # fmt: skip
    return result


def entry_of(kernel: Path) -> int:
    """The address where an ELF starts."""
    with kernel.open("rb") as file:
        return int(ELFFile(file).header.e_entry)


def recorded(boot: Path, shift: int, folder: Path, seconds: int) -> Path:
    """A recording of one run, at 2 to the power ``shift`` nanoseconds an instruction."""
    trace = folder / f"shift{shift}.trace"
    _run(
        "qemu-system-arm", "-M", "kzm", "-nographic", "-kernel", boot, "-icount", f"shift={shift}",
        "-semihosting-config", "enable=on,userspace=on", "-plugin",
        f"{RECORDER},out={trace},variants=16", timeout=seconds,
    )  # fmt: skip
    return trace


def rows(
    kernel: Path, traces: Sequence[Path], entries: Sequence[str], arguments: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """The row of each entry, over all recordings."""
    for entry in entries:
        found = [replayed(kernel, trace, entry, arguments) for trace in traces]
        most = max(one["most_cycles"] for one in found)
        bound = found[0]["bound_cycles"]
        yield (
            f"`{entry}`",
            f"{sum(one['executions'] for one in found):,}",
            f"{sum(one['paths'] for one in found):,}",
            f"{most:,}",
            f"{bound:,}",
            f"{bound / most:.2f}",
            str(sum(len(one["exceeding"]) for one in found)),
        )


def replayed(kernel: Path, trace: Path, entry: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The comparison of one entry by ``wcet replay``; its keys are in ``docs/outputs.md``."""
    result = trace.with_suffix(f".{entry}.json")
    wcet = Path(sys.executable).with_name("wcet")
    command = (wcet, "replay", trace, "--kernel", kernel, "--entry", entry, "--quiet")
    status = subprocess.run(
        [*map(str, command), *arguments, "--json", str(result)],
        check=False,
        stdout=subprocess.DEVNULL,
    ).returncode
    if status not in (0, EXCEEDED):
        raise SystemExit(f"wcet replay --entry {entry}: exit status {status}")
    found: dict[str, Any] = json.loads(result.read_text("utf-8"))["entries"][entry]
    return found


def _flat(elf: Path, to: Path) -> Path:
    _run("arm-none-eabi-objcopy", "-O", "binary", elf, to)
    return to


def _run(*command: str | Path, timeout: int | None = None) -> None:
    subprocess.run(
        [str(word) for word in command], check=True, timeout=timeout, stdin=subprocess.DEVNULL
    )


def main() -> None:
    """Build, record, replay; write the table between the marks NAME of ``DOCUMENT``."""
    parser = argparse.ArgumentParser(
        description="Executions of a foreign kernel against its bounds."
    )
    parser.add_argument(
        "build", type=Path, help="the folder of kernel.elf, gen_headers, gen_config"
    )
    parser.add_argument("--kernel", type=Path, help="the analysed ELF (default: BUILD/kernel.elf)")
    parser.add_argument("--platform", required=True, metavar="FILE")
    parser.add_argument("--facts", required=True, metavar="FILE")
    parser.add_argument("--entry", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=2, help="repetitions of the program's work")
    parser.add_argument("--shift", type=int, action="append", default=[], help="as -icount's")
    parser.add_argument("--states", type=int, default=3, help="initial states of each path")
    parser.add_argument("--seconds", type=int, default=300, help="limit of one recording")
    parser.add_argument("--write", metavar="NAME")
    options = parser.parse_args()
    kernel = options.kernel or options.build / "kernel.elf"
    arguments = ["--platform", options.platform, "--facts", options.facts]
    arguments += ["--states", str(options.states)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        boot = bootable(kernel, options.build, options.rounds, folder)
        traces = [
            recorded(boot, shift, folder, options.seconds) for shift in options.shift or SHIFTS
        ]
        table = []
        for row in rows(kernel, traces, options.entry or ENTRIES, arguments):
            table.append(row)
            print(*row, sep=" | ", flush=True)
    if options.write:
        replace(DOCUMENT, options.write, markdown(HEAD, table))


if __name__ == "__main__":
    main()
