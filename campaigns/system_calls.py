"""Forty system calls of Linux for ARMv6, by size: ``make campaign-system_calls``, in 25 minutes.

Debian's kernel with symbols, with the running code (``campaigns.vmlinux``). ``FACTS`` hold for all
calls: where a task waits, wakes another one, warns or stops, the path ends. ``wcet analyse
--suggest-facts`` gives the missing facts. This campaign states three kinds of them: a function
returns to its caller; a store that repeats after an interrupt succeeds the second time, if at most
one interrupt comes; any other loop is executed a hundred times, which represents the length of a
list and is not checked. A call with an unknown call target has no bound. Seconds are for the last
analysis.

The figures are for an ARM1136, and the memory is the linear map alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from campaigns.documented import markdown, replace
from campaigns.vmlinux import dumped, kernel
from quoll.cfg.cfg import Program
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import load
from quoll.image.image import Image, RawMemory
from tests.testing.harness import build

DOCUMENT = "results/reach.md"
PLATFORM = build.ROOT / "wcet/platforms/kzm.toml"
MEMORY = """[[memory]]
name = "linear map"
virtual = [0xC0000000, 0xDBFFFFFF]
physical = 0x00000000
kind = "cached"
fixed = true

[[memory]]
name = "vectors, and their code"
virtual = [0xFFFF0000, 0xFFFF1FFF]
kind = "cached"
fixed = true

"""
ENDS = (
    "panic",
    "do_exit",
    "_printk",
    "warn_slowpath_fmt",
    "schedule",
    "__schedule",
    "__mutex_lock_slowpath",
    "__mutex_unlock_slowpath.constprop.0",
    "try_to_wake_up",
    "__put_task_struct",
    "queue_delayed_work_on",
    "do_DataAbort",
)
FACTS = "".join(f"path must end at {place}\n" for place in ENDS)
MOST = 6_000  # instructions: beyond, a call reaches most of the kernel
CALLS = 40
LENGTH = 100  # of a list, or depth of a tree
SECONDS = 120  # for one answer
ANSWERS = 4  # analyses until all facts of this campaign are stated
MISSING = re.compile(
    r"^# (?P<fact>(?!the )[^#\n]+ (?:returns to its caller|at most N|are .*))$", re.M
)
PLACE = re.compile(r"^# 0x[0-9a-f]+ <[^>]*> (?P<file>[^:\n]+):\d+, needed by", re.M)
ATOMIC = ("atomic.h", "cmpxchg.h", "bitops.h", "spinlock.h")
"""Headers of the kernel whose loops are taken for ones that repeat an exclusive store."""
HEAD = (
    "system call",
    "functions",
    "instructions",
    "contexts",
    "returns",
    "repeated stores",
    "other loops",
    "targets missing",
    "others missing",
    "seconds",
    "bound, cycles",
)


@dataclass(frozen=True, slots=True)
class SystemCall:
    """A system call with the numbers of reached functions and instructions."""

    name: str
    functions: int
    instructions: int


def by_size(image: Image, facts: Path) -> list[SystemCall]:
    """The system calls that reach at most ``MOST`` instructions, the smallest first."""
    entries: dict[int, str] = {}
    for name in sorted(n for n in image.symbols.names() if n.startswith("sys_")):
        named = image.symbols.named(name)
        if len(named) == 1 and named[0].kind == "func":
            entries.setdefault(named[0].addr, name)
    program = extract(image, list(entries), locate(load((facts,)), image))
    found = [_reached(program, entry, name) for entry, name in entries.items()]
    found.sort(key=lambda call: (call.instructions, call.name))
    return [call for call in found if call.instructions <= MOST]


def _reached(program: Program, entry: int, name: str) -> SystemCall:
    seen, waiting = {entry}, [entry]
    while waiting:
        called = {x for b in program.functions[waiting.pop()].blocks for x in b.calls}
        more = (called & program.functions.keys()) - seen
        seen |= more
        waiting += more
    blocks = [b for f in seen for b in program.functions[f].blocks]
    return SystemCall(name, len(seen), sum(len(b.insns) for b in blocks))


@dataclass(frozen=True, slots=True)
class SystemCallQuery:
    """The command line for system calls."""

    image: Path
    raw: tuple[RawMemory, ...]
    platform: Path
    folder: Path

    def answer(self, call: SystemCall) -> tuple[str, ...]:
        """The row of the table."""
        facts, stated = self.folder / f"{call.name}.facts", Counter[str]()
        facts.write_text(FACTS, "utf-8")
        bound, contexts = "", ""
        for _ in range(ANSWERS):
            seconds, suggested = self._asked(call, facts, "--suggest-facts")
            added, missing = _told(suggested)
            if not added:
                break
            stated += Counter(kind for kind, _ in added)
            with facts.open("a", encoding="utf-8") as file:
                file.writelines(f"{fact}\n" for _, fact in added)
        if suggested is not None and not missing:
            seconds, result = self._asked(call, facts, "--json")
            if result is not None:
                entry = json.loads(result)["entries"][call.name]
                bound, contexts = f"{entry['cycles']:,}", f"{len(entry['contexts']):,}"
        others = sum(missing.values()) - missing["targets"]
        return (
            f"`{call.name}`",
            f"{call.functions:,}",
            f"{call.instructions:,}",
            contexts,
            *(f"{stated[kind]:,}" for kind in ("returns", "stores", "loops")),
            *(f"{count:,}" for count in (missing["targets"], others)),
            f"{seconds:.1f}",
            bound,
        )

    def _asked(self, call: SystemCall, facts: Path, option: str) -> tuple[float, str | None]:
        """The seconds of an analysis, and the file of that option; None without a result."""
        output = self.folder / f"{call.name}{option}"
        output.unlink(missing_ok=True)
        raw = [f"--raw={memory.path}@{memory.addr:#x}:r" for memory in self.raw]
        command = [str(Path(sys.executable).with_name("wcet")), "analyse", str(self.image), *raw]
        command += ["--platform", str(self.platform), "--force-core", "--entry", call.name]
        command += ["--facts", str(facts), "--no-cache", "--quiet", option, str(output)]
        start = time.perf_counter()
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
        seconds = time.perf_counter() - start
        return seconds, output.read_text("utf-8") if output.exists() else None


def _told(suggested: str | None) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The missing facts that this campaign states, with their kinds, and the others by kind."""
    added: list[tuple[str, str]] = []
    missing: Counter[str] = Counter()
    for part in (suggested or "").split("\n\n"):
        fact, place = MISSING.search(part), PLACE.search(part)
        if fact is None or place is None:
            continue
        said = fact["fact"]
        if said.endswith("returns to its caller"):
            added.append(("returns", said))
        elif said.startswith("loop ") and place["file"].endswith(ATOMIC):
            added.append(("stores", said.replace("at most N", "at most 2")))
        elif said.startswith("loop "):
            added.append(("loops", said.replace("at most N", f"at most {LENGTH}")))
        else:
            missing[f"{said.partition(' ')[0].removesuffix('s')}s"] += 1
    return added, missing


def main() -> None:
    """Write the table."""
    path = kernel()
    raw = dumped(path)
    image = Image.load(path, raw)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        facts, platform = folder / "common.facts", folder / "linux.toml"
        facts.write_text(FACTS, "utf-8")
        text = PLATFORM.read_text("utf-8").replace('name = "kzm"', 'name = "linux"')
        text = re.sub(r"^pending = .*\n", "", text, flags=re.M)
        text = re.sub(r"\[\[memory\]\].*(?=\n# Analysed model)", lambda _: MEMORY, text, flags=re.S)
        platform.write_text(text, "utf-8")
        calls = by_size(image, facts)
        question, rows = SystemCallQuery(path, raw, platform, folder), []
        for number in range(CALLS):
            rows.append(question.answer(calls[number * len(calls) // CALLS]))
            print(*rows[-1], flush=True)
    replace(DOCUMENT, "system calls", markdown(HEAD, rows))


if __name__ == "__main__":
    main()
