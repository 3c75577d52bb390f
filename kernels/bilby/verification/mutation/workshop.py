# SPDX-License-Identifier: BSD-2-Clause
"""A copy of the sources in which faults are made, and the commands of both Makefiles."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernels.bilby.verification.fuzz.host import program
from kernels.bilby.verification.mutation.fault import Edit
from tests.testing.harness import build

BILBY = build.ROOT / "kernels" / "bilby"
SOURCE = re.compile(r"(?:\.\./)*(src/[\w.]+)$")
DROPPED = {"-g", "-Werror", "-fstack-usage", "-Wstack-usage=256", "-MMD", "-MP", "-Wall", "-Wextra"}


@dataclass(frozen=True, slots=True)
class Target:
    """A build of the kernel: its board, preset, and pinned lines."""

    board: str
    preset: str
    pin: str = ""

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.board, self.preset, self.pin) if part)


class Workshop:
    """The copy for one target, and whether a fault changes its object code."""

    def __init__(self, folder: Path, target: Target) -> None:
        self.target = target
        self.folder = folder / target.name
        self.bilby = self.folder / "kernels" / "bilby"
        self.host_folder = self.bilby / "verification" / "check"
        made = program(target.preset, "plain", target.pin).parent
        options = [f"BOARD={target.board}", f"PRESET={target.preset}", f"PIN={target.pin}"]
        build.make("kernels/bilby", *options)
        shutil.copytree(BILBY, self.bilby, copy_function=shutil.copy2)
        for built in (made, build.ROOT / "build" / "bilby" / target.name):
            to = self.folder / "build" / "bilby" / built.name
            shutil.copytree(built, to, copy_function=shutil.copy2)
        self.options = options
        self.host_commands = self._commands(
            self.host_folder,
            [f"PRESET={target.preset}", f"PIN={target.pin}", "KIND=plain"],
        )
        elf = f"../../build/bilby/{target.name}/kernel.elf"
        self._kernel = self._commands(self.bilby, [*options, elf])
        self._uses = self._dependents(self.folder / "build" / "bilby" / target.name / "obj")
        self._objects: dict[str, bytes] = {}

    def _commands(self, folder: Path, options: list[str]) -> list[list[str]]:
        done = subprocess.run(
            ["make", "-n", "-B", "--no-print-directory", "-C", str(folder), *options],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        lines = done.stdout.replace("\\\n", " ").splitlines()
        return [shlex.split(line) for line in lines if "gcc" in line.split(" ", 1)[0]]

    def _dependents(self, objects: Path) -> dict[str, list[str]]:
        """For each file, the sources that are compiled with it."""
        uses: dict[str, list[str]] = {}
        for rule in sorted(objects.glob("*.d")):
            source = f"src/{rule.name.removesuffix('.d')}"
            words = rule.read_text(encoding="utf-8").replace("\\\n", " ").split()
            for word in {word.rstrip(":") for word in words if not word.endswith(".o:")}:
                uses.setdefault(word, []).append(source)
        return {name: sorted(set(sources)) for name, sources in uses.items()}

    def uses(self, file: str) -> list[str]:
        """The sources that a fault of this file changes; none if this target has no such file."""
        return self._uses.get(file, [])

    # ---- the kernel of the target

    def compile(self, source: str) -> bool:
        """A source as it is now, into the kernel's objects; warnings are none of a fault's."""
        command = next(c for c in self._kernel if source in c and "-c" in c)
        words = [word for word in command if word not in DROPPED]
        done = subprocess.run([*words, "-w"], cwd=self.bilby, capture_output=True, check=False)
        return done.returncode == 0

    def link(self) -> None:
        """The kernel, of its objects."""
        command = next(c for c in self._kernel if c[-1].endswith("/kernel.elf"))
        subprocess.run(command, cwd=self.bilby, capture_output=True, check=True)

    # ---- the object code of the target

    def _object(self, source: str) -> bytes | None:
        """Contents and relocations of its sections, without debug information."""
        command = next(c for c in self._kernel if source in c and "-c" in c)
        made = self.folder / "object.o"
        words = [word for word in command[: command.index("-o")] if word not in DROPPED]
        done = subprocess.run(
            [*words, "-w", "-o", str(made)], cwd=self.bilby, capture_output=True, check=False
        )
        if done.returncode:
            return None
        dump = subprocess.run(
            ["arm-none-eabi-objdump", "-s", "-r", str(made)], capture_output=True, check=True
        )
        return dump.stdout

    def changes_code(self, file: str, source: bytes, edit: Edit) -> bool | None:
        """Whether a fault makes other object code; None if it cannot be compiled."""
        sources = self.uses(file)
        for name in sources:
            if name not in self._objects:
                self._objects[name] = self._object(name) or b""
        place = self.bilby / file
        place.write_bytes(edit.apply(source))
        try:
            for name in sources:
                made = self._object(name)
                if made is None:
                    return None
                if made != self._objects[name]:
                    return True
        finally:
            place.write_bytes(source)
        return False


def globalize(bilby: Path, made: Path) -> None:
    """Variables that the kernel's files keep to themselves, and the invariants read."""
    sources = bilby / "verification" / "check" / "sources.mk"
    text = sources.read_text(encoding="utf-8").replace("\\\n", " ")
    line = next(line for line in text.splitlines() if line.startswith("CHECK_PRIVATE"))
    names = [f"--globalize-symbol={name}" for name in line.partition(":=")[2].split()]
    subprocess.run(["objcopy", *names, str(made)], check=True)
