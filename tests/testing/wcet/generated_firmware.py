"""Firmware by seed: vectors, a kernel in the manner of well-known ones, drivers, and services.

Each program is linked to RAM that no shipped platform describes. A kernel switches contexts in
assembly; drivers poll devices, call handlers by tables, objects and registered pointers; services
are protocols, filters, lists, text and numbers. The parts are files in ``firmware/``, whose first
lines ``//! NAME: TEXT`` have the texts that may stand for ``@NAME@``. Every choice depends on the
seed alone.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random

__all__ = ["BUILDS", "FirmwareBuild", "GeneratedFirmware", "build_generated", "firmware"]

PARTS = Path(__file__).resolve().parent / "firmware"
FREESTANDING = ("-g", "-w", "-ffreestanding", "-fno-exceptions", "-fno-rtti")
GCC = ("arm-none-eabi-gcc", "-mfloat-abi=soft", *FREESTANDING)
CLANG = ("clang", "--target=arm-none-eabi", "-mfloat-abi=soft", *FREESTANDING)
CORES = ("cortex-a8", "arm1136jf-s")
LEVELS = ("-O0", "-O2", "-Os")
STATES = ("arm", "thumb")
KERNELS = ("task_lists", "scheduler_loop", "state_machines", "messages")
BASES = ("0x80000000", "0x20000000", "0x40200000", "0x00000000")
MOST_SERVICES = 6
CHOICE = re.compile(r"^//! (\w+): (.*)\n", re.MULTILINE)
VECTORS = ("_start", "abort_entry", "svc_entry", "abort_entry", "abort_entry", "", "irq_entry")
HEAD = """\
    .syntax unified
    .arm
    .section .vectors, "ax"
    .global vectors
vectors:
"""


@dataclass(frozen=True, slots=True)
class FirmwareBuild:
    """A compiler, a core, a level of optimisation, and an instruction set."""

    compiler: tuple[str, ...]
    core: str
    level: str
    state: str

    def __str__(self) -> str:
        compiler = self.compiler[0].removeprefix("arm-none-eabi-")
        return f"{compiler} {self.level} {self.state} {self.core}"


@dataclass(frozen=True, slots=True)
class GeneratedFirmware:
    """``sources``: texts by file name; ``kernel`` and ``services``: the chosen parts."""

    seed: int
    kernel: str
    services: tuple[str, ...]
    sources: dict[str, str]


BUILDS = tuple(
    FirmwareBuild(compiler, core, level, state)
    for compiler in (GCC, CLANG)
    for core in CORES
    for level in LEVELS
    for state in STATES
)


def firmware(seed: int) -> GeneratedFirmware:
    """The firmware of that seed."""
    random = Random(seed)
    kernel = KERNELS[seed % len(KERNELS)]
    files = sorted((PARTS / "services").iterdir())
    chosen = random.sample(files, random.randint(3, MOST_SERVICES))
    services = {file.name: _read(file, random) for file in chosen}
    sources = {name: text for name, (text, _) in services.items()}
    uses = [use for _, use in services.values()]
    serving = random.choice(("served_by_switch.c", "served_by_handlers.c"))
    code = "".join(
        _read(PARTS / "kernels" / name, random)[0] for name in ("common.c", f"{kernel}.c")
    )
    code = code.replace("@SERVING@", (PARTS / "kernels" / serving).read_text(encoding="utf-8"))
    for name, key in (("@INTERRUPTS@", "interrupt"), ("@CALLS@", "call")):
        code = code.replace(name, _cases([use[key] for use in uses if key in use], random))
    sources["kernel.c"] = code.replace("@DECLARED@", "\n".join(use["declared"] for use in uses))
    switches = random.choice(sorted((PARTS / "kernels").glob(f"{kernel}*.S")))
    entries = (switches, PARTS / "kernels/start.S")
    assembly = "".join(_read(file, random)[0] for file in entries)
    sources["vectors.S"] = _vectors(random) + assembly
    link = (PARTS / "generated.ld").read_text(encoding="utf-8")
    sources["firmware.ld"] = link.replace("@BASE@", random.choice(BASES))
    names = tuple(file.stem for file in chosen)
    return GeneratedFirmware(seed, kernel, names, sources)


def _read(file: Path, random: Random) -> tuple[str, dict[str, str]]:
    """The text of a part, and its lines for the kernel: declarations, and uses of it."""
    text = file.read_text(encoding="utf-8")
    choices: dict[str, list[str]] = {}
    for name, choice in CHOICE.findall(text):
        choices.setdefault(name, []).append(choice)
    text = CHOICE.sub("", text)
    for name, several in choices.items():
        text = text.replace(f"@{name}@", random.choice(several))
    return text, {name: several[0] for name, several in choices.items() if name.islower()}


def _cases(statements: list[str], random: Random) -> str:
    """The cases of a switch, at numbers that lie close together or far apart."""
    step, first = random.choice((1, 1, 3)), random.randint(0, 40)
    cases = enumerate(statements)
    return "".join(f"case {first + step * i}: {text} break;\n" for i, text in cases)


def _vectors(random: Random) -> str:
    """A table of exception vectors, in one of the three usual forms."""
    form = random.choice(("b {}", "ldr pc, word_{}", "ldr pc, ={}"))
    rows = "".join(
        f"    {form.format(name) if name else 'nop'}\n" for name in (*VECTORS, "endless")
    )
    targets = sorted({*VECTORS, "endless"} - {""}) if "word" in form else []
    words = "".join(f"word_{name}: .word {name}\n" for name in targets)
    return f"{HEAD}{rows}{words}    .ltorg\nendless: b endless\n    .text\n    .arm\n"


def build_generated(made: GeneratedFirmware, build: FirmwareBuild, folder: Path) -> Path:
    """``firmware.elf`` in the folder."""
    objects = []
    for name, text in made.sources.items():
        (folder / name).write_text(text, encoding="utf-8")
        if not name.endswith(".ld"):
            options = () if name.endswith(".S") else (f"-m{build.state}", build.level)
            objects.append(f"{name}.o")
            compiled = ("-c", name, "-o", objects[-1])
            _run((*build.compiler, f"-mcpu={build.core}", *options, *compiled), folder)
    link = ("-nostdlib", "-Wl,--no-warn-rwx-segments", "-T", "firmware.ld")
    target = (f"-mcpu={build.core}", f"-m{build.state}", *link)
    _run((*GCC, *target, *objects, "-lgcc", "-o", "firmware.elf"), folder)
    return folder / "firmware.elf"


def _run(command: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
