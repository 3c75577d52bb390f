"""Each rule of the kernel has a test that fails without it: ``make campaign-kernel_rules``.

``kernel_rules.toml`` has faults that break one rule each, and the test of a program that shows the
fault. First the program passes that test as the kernel is; then a copy of the kernel is built with
the fault, and the test must not pass. Parts of names of rules, faults or builds may be given. With
``ARGS=--write`` the table in ``kernels/bilby/docs/testing.md`` is replaced. Ends with status 1 if a
fault does not apply or is not found.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from campaigns.documented import markdown, replace
from tests.testing.harness import build

__all__ = ["BILBY", "RuleFault", "main", "outcome", "read_faults"]

BILBY = build.ROOT / "kernels" / "bilby"
FAULTS = Path(__file__).with_suffix(".toml")
SECONDS = 60  # of the processor: five times the need of any program here
SLOWER = {"shares": ("-icount", "shift=3,sleep=off")}  # an instruction takes 8 ns
LINE = re.compile(r"(not ok|ok) \d+ - (.+?)\r?$")
HEAD = ("rule", "fault", "build", "program", "test that fails")


@dataclass(frozen=True, slots=True)
class RuleFault:
    """A replacement that breaks ``rule``, and the ``test`` of a program that fails with it."""

    rule: str
    what: str
    file: str
    old: str
    new: str
    builds: tuple[str, ...]
    program: str
    test: str

    def applied(self) -> str:
        """The file with the fault. Raises ValueError if the place is not there once."""
        text = (BILBY / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: {self.old!r} stands {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def read_faults() -> list[RuleFault]:
    """All faults. Raises TypeError for a key that is unknown or absent."""
    rules = tomllib.loads(FAULTS.read_text(encoding="utf-8"))["rule"]
    return [
        RuleFault(rule["name"], builds=tuple(fault.pop("builds")), **fault)
        for rule in rules
        for fault in rule["fault"]
    ]


def made(folder: Path, name: str, program: str) -> bool:
    """Build the kernel and one program of a copy; False if that fails."""
    board, preset = name.split("-")
    goals = [f"../../build/bilby/{name}/{file}.elf" for file in ("kernel", program)]
    command = ["make", "--silent", "-C", str(folder / "kernels" / "bilby")]
    done = subprocess.run(
        [*command, f"BOARD={board}", f"PRESET={preset}", *goals], capture_output=True, check=False
    )
    return done.returncode == 0


def passed(folder: Path, name: str, program: str, until: str = "") -> dict[str, bool]:
    """Whether each test passed, by its sentence, up to one; the program may end early, or hang."""
    found: dict[str, bool] = {}
    run = folder / "kernels" / "bilby" / "run"
    with subprocess.Popen(
        ["prlimit", f"--cpu={SECONDS}", run, name, program, *SLOWER.get(program, ())],
        env=os.environ | {"BILBY_TIMEOUT": str(100 * SECONDS)},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if match := LINE.match(line):
                found[match[2]] = match[1] == "ok"
            if until in found:
                process.terminate()
                break
    return found


@cache
def passed_as_it_is(name: str, program: str) -> dict[str, bool]:
    build.kernel(name, "kernel.elf", f"{program}.elf")
    return passed(build.ROOT, name, program)


def outcome(folder: Path, fault: RuleFault, name: str) -> str | None:
    """How a build with the fault fails the test; None if it passes."""
    if not passed_as_it_is(name, fault.program).get(fault.test):
        raise ValueError(f"{name} {fault.program}: {fault.test!r} does not pass as it is")
    copy = folder / "kernels" / "bilby"
    if not copy.exists():
        shutil.copytree(BILBY, copy, copy_function=shutil.copy2)
    there = folder / "build" / "bilby" / name
    if not there.exists():
        shutil.copytree(build.ROOT / "build" / "bilby" / name, there, copy_function=shutil.copy2)
    place = copy / fault.file
    place.write_text(fault.applied(), encoding="utf-8")
    try:
        if not made(folder, name, fault.program):
            if fault.file != "Makefile":
                raise ValueError(f"{name}: with {fault.what!r} the kernel cannot be built")
            return "the program cannot be linked"
        found = passed(folder, name, fault.program, fault.test)
    finally:
        shutil.rmtree(there)
        shutil.copy2(BILBY / fault.file, place)
    if found.get(fault.test):
        return None
    return "fails" if fault.test in found else f"ends or hangs after {len(found)} tests"


def rows(wanted: list[str]) -> Iterator[tuple[str, ...]]:
    """A row for each fault and build; the last cell says how the test fails."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for fault in read_faults():
            for name in fault.builds:
                if wanted and not any(w in (*name.split("-"), name) or w in fault.rule or
                                      w in fault.what for w in wanted):  # fmt: skip
                    continue
                found = outcome(folder, fault, name) or "**passes**"
                yield (
                    fault.rule,
                    fault.what,
                    f"`{name}`",
                    f"`{fault.program}`",
                    f"{fault.test}: {found}",
                )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="*", help="parts of names; all if none")
    parser.add_argument("--write", action="store_true", help="into kernels/bilby/docs/testing.md")
    options = parser.parse_args()
    table = []
    for row in rows(options.wanted):
        print(*row, sep=" | ", flush=True)
        table.append(row)
    if options.write and not options.wanted:
        replace("../kernels/bilby/docs/testing.md", "rules", markdown(HEAD, table))
    return 1 if not table or any("**passes**" in row[-1] for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
