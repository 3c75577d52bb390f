"""Interrupts that arrive at random in preemptible kernels, against the bounds of their regions.

On the concrete machine every masked interval of a system call is measured in cycles, from random
caches. QEMU runs the whole kernel, and its timer fires at random moments: the handler counts the
instructions that ran since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from quoll.arm.decode import decode
from quoll.arm.insn import ControlFlow
from quoll.image.image import Image
from tests.testing.harness.qemu import run
from tests.testing.wcet.masked_runs import masked_times
from tests.testing.wcet.random_masks import Kernel, random_kernel
from wcet.cli import main
from wcet.platforms import platform_model as platforms

__all__ = ["Arrivals", "in_qemu", "on_the_machine"]

ARGUMENTS = 64  # of a system call
QEMU = (
    *("qemu-system-arm", "-M", "versatilepb", "-display", "none", "-serial", "null"),
    *("-monitor", "none", "-audiodev", "none,id=none", "-no-reboot"),
    *("-icount", "shift=10,sleep=off"),  # an instruction is a tick of its timer, 1 MHz
    *("-semihosting-config", "enable=on,target=native", "-kernel"),
)
CORES = {"kzm": ("arm1136", 1), "cubieboard": ("cortex-a8", 2)}  # instructions in one cycle
SAID = re.compile(r"(\d+) arrivals, at most (\d+) instructions")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """``closest``: the largest observed share of a bound; ``exceeded``: violations of bounds.

    ``unbounded``: starts of regions that are listed without a bound; arrivals in them are not
    counted, and neither are arrivals in a kernel with a partial latency.
    """

    regions: int
    unbounded: int
    arrivals: int
    closest: float
    exceeded: tuple[str, ...]


def on_the_machine(
    seed: int, style: str, build: str, folder: Path, arrivals: int, *more: str
) -> Arrivals:
    """The kernel of a seed on the concrete machine of its board."""
    kernel = random_kernel(seed, style, build, folder)
    answer = _answered(kernel, folder, *more)
    image, platform = Image.load(kernel.elf), platforms.load(kernel.platform)
    bounds: dict[int, int] = {}
    for region in answer["regions"]:
        place = int(region["start"].split()[0], 16)
        bounds[place] = max(region["cycles"], bounds.get(place, 0))
    named = (one["start"].split()[0] for one in answer["not_bounded"])
    places = (int(place, 16) for place in named if place.startswith("0x"))
    unbounded = {other for place in places for other in _in_block(image, place)}
    for place, cycles in tuple(bounds.items()):
        for other in _in_block(image, place):
            bounds.setdefault(other, cycles)
    random, done, closest = Random(f"arrivals {seed}"), 0, 0.0
    longest, exceeded = max(bounds.values(), default=0), []
    for _ in range(arrivals):
        if done >= arrivals:
            break
        argument = random.randrange(ARGUMENTS)
        for time in masked_times(image, platform, random, argument):
            if time.start in unbounded:
                continue
            done += 1
            waits = time.cycles - random.uniform(0, time.cycles)
            closest = max(closest, time.cycles / bounds.get(time.start, 1))
            if time.cycles > bounds.get(time.start, 0) or waits > longest:
                exceeded.append(f"{kernel.elf.name} {time.start:#x}: {time.cycles} cycles")
    return Arrivals(
        len(answer["regions"]), len(answer["not_bounded"]), done, closest, tuple(exceeded)
    )


def in_qemu(seed: int, style: str, build: str, folder: Path, arrivals: int) -> Arrivals:
    """The kernel of a seed in QEMU, against the latency to its handler."""
    kernel = random_kernel(seed, style, build, folder, "qemu", arrivals)
    answer = _answered(kernel, folder, "--handler", "handler")
    core, together = CORES[kernel.platform]
    done = run([*QEMU, str(kernel.elf), "-cpu", core])
    said = SAID.search(done.stdout)
    assert said is not None, done.stdout
    assert int(said[1]) == arrivals
    bound, seen = answer["latency_cycles"] * together, int(said[2])
    exceeded = (f"{kernel.elf.name}: {seen} instructions",) if seen > bound else ()
    unbounded = len(answer["not_bounded"])
    if answer["partial"]:
        return Arrivals(len(answer["regions"]), unbounded, 0, 0.0, ())
    return Arrivals(len(answer["regions"]), unbounded, arrivals, seen / bound, exceeded)


def _in_block(image: Image, start: int) -> Iterator[int]:
    """From there to the end of the block: a region that starts later in it has the same bound."""
    place, thumb = start, image.thumb_at(start) is True
    while (code := image.read(place, 4)) is not None:
        yield place
        insn = decode(code, place, thumb)
        if insn.flow is not ControlFlow.NEXT:
            return
        place += insn.size


def _answered(kernel: Kernel, folder: Path, *more: str) -> dict[str, Any]:
    """The result of ``wcet masked`` for all regions, which it must bound."""
    file = folder / f"{kernel.elf.stem}.json"
    main([
        *("masked", str(kernel.elf), "--facts", str(kernel.facts), "--json", str(file)),
        *("--platform", kernel.platform, "--no-facts", "--quiet", "--no-cache", *more),
    ])  # fmt: skip
    answer: dict[str, Any] = json.loads(file.read_text())
    return answer
