"""The first hour with a binary of one's own: from ``wcet init`` to a bound.

Commands and edits are counted. The person knows ``kernels/handler/handler.c``, or ``handler.rs``,
and writes only lines that the tool has proposed, with true numbers and names in the places that it
left open.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from quoll.image.image import Image
from tests.testing.quoll.building import address

__all__ = ["BUILDS", "Hour", "best", "build_handler", "first_hour", "missing_compiler"]

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "kernels" / "handler"
GCC = ("arm-none-eabi-gcc", "-mcpu=cortex-a8", "-mfloat-abi=soft", "-g", "-ffreestanding")
LINK = ("-nostdlib", "-Wl,--build-id=none,--no-warn-rwx-segments", "-lgcc")
CLANG = ("clang", "--target=arm-none-eabi", "-mcpu=cortex-a8", "-mfloat-abi=soft", "-g")
RUST_TARGET = "armv7a-none-eabi"
RUST = ("rustc", "--edition", "2024", "--target", RUST_TARGET, "--crate-type", "staticlib", "-g")
BUILDS = {
    **{
        f"gcc {level} {state}": (*GCC, level, f"-m{state}")
        for level in ("-O0", "-O1", "-O2", "-Os")
        for state in ("arm", "thumb")
    },
    "clang -O2 arm": (*CLANG, "-O2", "-ffreestanding"),
    "rustc -O2 arm": (*RUST, "-C", "opt-level=2"),
    "rustc -Os thumb": (*RUST, "-C", "opt-level=s", "-C", "target-feature=+thumb-mode"),
}

# True facts about the handler. Frames in 16 bytes: the rest of a frame of 32 bytes payload, then at
# most one of 12, or three of 1; so 44 bytes are sent; the header of that loop executes twice more.
# In Rust, whose checksum is a byte longer, at most one of 11; and each table that an enumeration
# selects has an entry for each variant.
TARGETS = re.compile(
    r"# (?:calls at .* go (?:to (?:beat, sample|handler::quickly, handler::slowly)"
    r"|through any vtable)$|targets of \S+ are )"
)
TIMERS = 5  # executions of the header of a loop over four timers
SENT = 46
FRAMES = 4
ECHOED = "handler::echo executes at most 1 times in irq_entry"
PAYLOADS = re.compile(r"at most 3[234] \(\w+\) an entry, [\d,]+ times .* it 1[67] times")
TRUE = re.compile(r"region (device|advised_data|advised_stack)")
DEVICES = (0x48040000, 0x48200000, 0x49020000)
COUNTS = {
    "parse": 16, "frame_complete": FRAMES, "send": FRAMES, "ring_put": 60, "ring_get": 34,
    "handler::Parser::parse": 16, "handler::crc": FRAMES, "handler::echo": FRAMES,
    "handler::Ring::put": 60, "handler::Ring::get": 34,
}  # fmt: skip
LEVER = re.compile(r" *[\d,]+ +[\d.]+%  (.*)")
MORE = re.compile(r" {23}(?!now:|if:)(\S.*)")


@dataclass(slots=True)
class Hour:
    """The steps: each command with its output, each edit with its lines."""

    folder: Path
    commands: list[tuple[str, str]] = field(default_factory=list)
    edits: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)

    def run(self, *arguments: str) -> str:
        """One command, that must succeed."""
        output = wcet(self.folder, *arguments)
        self.commands.append((" ".join(("wcet", *arguments)), output))
        return output

    def write(self, file: str, text: str, *, lines: tuple[str, ...]) -> None:
        """One edit: the file is ``text`` then."""
        (self.folder / file).write_text(text)
        self.edits.append((file, lines))


def wcet(folder: Path, *arguments: str) -> str:
    """The output of a command, run in ``folder``."""
    done = subprocess.run(
        [sys.executable, "-m", "wcet.cli", *arguments], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "kept"), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def missing_compiler(name: str) -> str | None:
    """The missing compiler or target for the build of that name; None if it can be made."""
    compiler = BUILDS[name][0]
    if shutil.which(compiler) is None:
        return f"{compiler} is missing"
    if compiler != RUST[0]:
        return None
    command = [compiler, "--print", "target-libdir", "--target", RUST_TARGET]
    asked = subprocess.run(command, check=False, capture_output=True, text=True)
    if asked.returncode == 0 and Path(asked.stdout.strip()).is_dir():
        return None
    return f"{compiler} has no {RUST_TARGET}: rustup target add {RUST_TARGET}"


def build_handler(name: str, folder: Path) -> None:
    """``handler.elf`` in the folder, by the compiler and options of that name."""
    for file in SOURCES.iterdir():
        shutil.copy(file, folder)
    rust = BUILDS[name][0] == RUST[0]
    options, objects = GCC if rust else BUILDS[name], list[str]()
    for source in ("vectors.S",) if rust else ("vectors.S", "handler.c"):
        objects.append(f"{source}.o")
        command = [*options, f"-fdebug-prefix-map={folder}=.", "-c", source, "-o", objects[-1]]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    if rust:
        objects += ["handler.a", "-Wl,--gc-sections,--no-warn-execstack"]
        command = [*BUILDS[name], "-C", "panic=abort", f"--remap-path-prefix={folder}=."]
        command += ["handler.rs", "-o", "handler.a"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    link = [*GCC, "-T", "handler.ld", *objects, *LINK, "-o", "handler.elf"]
    subprocess.run(link, cwd=folder, check=True, capture_output=True)


def first_hour(folder: Path) -> Hour:
    """Three commands and two edits."""
    hour = Hour(folder)
    hour.run("init", "handler.elf", "--quiet")
    proposed = (folder / "handler.facts").read_text()
    filled = [fill(line) for line in proposed.splitlines()]
    written = tuple(new for new in filled if not new.startswith("#") and new)
    hour.write("handler.facts", "".join(f"{line}\n" for line in filled), lines=written)
    output = hour.run("advise", "--quiet")
    hour.bounds.append(number(re.findall(r"irq_entry: ([\d,]+) cycles", output)[0]))
    lines, unroll = chosen(output)
    before = (folder / "handler.facts").read_text()
    hour.write("handler.facts", "\n".join((before, *lines, "")), lines=lines)
    output = hour.run("analyse", "--quiet", *unroll)
    hour.bounds.append(number(re.findall(r"^irq_entry +([\d,]+)", output, re.MULTILINE)[0]))
    return hour


def fill(line: str) -> str:
    """A proposed line as a person who knows the handler writes it."""
    if re.match(r"# region .* is cached and fixed", line):
        return line.removeprefix("# ")
    if TARGETS.match(line):
        return line.removeprefix("# ")
    if re.match(r"# loop \S+ at most N", line):
        return line.removeprefix("# ").replace("at most N", f"at most {TIMERS}")
    return line


def chosen(advice: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The true suggestions, with true numbers: lines of facts, and options."""
    lines: dict[str, None] = {}
    options: list[str] = []
    for lever in re.split(r"(?m)^(?= *[\d,]+ +[\d.]+%  )", advice)[1:]:
        shown = lever.splitlines()
        first = LEVER.match(shown[0])
        assert first is not None
        text = [first[1], *(more[1] for line in shown[1:] if (more := MORE.match(line)))]
        if text == ["--unroll"]:
            options = text
        elif PAYLOADS.search(lever):
            lines[re.sub(r"at most \d+", f"at most {SENT}", text[0])] = None
        elif text == [ECHOED]:
            lines[ECHOED.replace("at most 1 ", f"at most {FRAMES} ")] = None
        elif TRUE.match(text[0]) and ("advised_stack" not in text[0] or "irq_stack" in lever):
            lines |= dict.fromkeys(text)
    return tuple(lines), tuple(options)


def best(folder: Path) -> int:
    """The least bound with every fact that is known to be true, and every finer analysis.

    The places of memory, stack and objects come from the binary, not from the proposed facts.
    """
    image = Image.load(folder / "handler.elf")
    top = address(image, "irq_stack_top")
    objects = [s for s in image.symbols.symbols if s.size and _is_data(image, s.addr)]
    first, last = min(s.addr for s in objects), max(s.addr + s.size for s in objects) - 1
    proposed = (folder / "handler.facts").read_text().splitlines()
    known = [
        *(line for line in proposed if not TRUE.match(line) and "advised" not in line),
        f"region objects from {first:#x} to {last:#x} is cached",
        "accesses of unknown address point into objects",
        f"region top from {top:#x} to {top:#x} is cached",
        "register r13 at irq_entry points into top",
        *(f"region d{page:x} from {page:#x} to {page + 4095:#x} is device" for page in DEVICES),
    ]
    for name in (name for name in COUNTS if image.symbol(name)):
        for where in ("", " in irq_entry"):
            known.append(f"{name} executes at most {COUNTS[name]} times{where}")
    found = []
    for options in (("--unroll",), ()):
        (folder / "more.facts").write_text("\n".join([*known, ""]))
        wcet(folder, "analyse", *NEW, *options, "--facts", "more.facts", "--json", "best.json")
        document = json.loads((folder / "best.json").read_text())
        found.append(int(document["entries"]["irq_entry"]["cycles"]))
    return min(found)


def _is_data(image: Image, addr: int) -> bool:
    section = image.section_at(addr)
    return section is not None and section.writable


NEW = ("handler.elf", "--entry", "irq_entry", "--no-facts", "--quiet", "--platform", "cubieboard")


def number(text: str) -> int:
    """``12,345``."""
    return int(text.replace(",", ""))
