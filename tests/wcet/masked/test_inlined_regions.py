"""``wcet masked`` inlines every function: the same regions as ``wcet analyse --share never``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

KERNEL = """
#define PENDING (*(volatile unsigned *)0xf8000058u | *(volatile unsigned *)0xf800005cu)
#define FAR __attribute__((noinline))
unsigned done, sums[64];
FAR unsigned add(unsigned word, unsigned start) { return start + word * start; }
FAR unsigned sum(const unsigned *at, unsigned start) {
    for (int i = 0; i < 16; i++) start = add(at[i], start);
    return start;
}
FAR void chunk(unsigned *at) { for (int i = 0; i < 64; i++) at[i] = sum(sums, sum(at, i)); }
int vector_svc(unsigned *at, unsigned *end) {
    while (at != end) {
        chunk(at);
        at += 64;
        done += sum(sums, done);
        if (PENDING) return sum(sums, 1);
    }
    return 0;
}
"""


def document(command: str, elf: Path, folder: Path, share: str) -> dict[str, Any]:
    file = folder / f"{command}-{share}.json"
    options = ["--entry", "syscall", "--platform", "kzm", "--no-facts", "--no-cache", "--quiet"]
    options += ["--share", share, "--json", str(file)]
    assert main([command, str(elf), *options]) == 0
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@pytest.mark.slow("several whole analyses")
def test_masked_regions_are_the_paths_of_an_analysis_without_summaries(tmp_path: Path) -> None:
    """A function summary joins calls, so it may add cycles; it never takes cycles away."""
    elf = build(KERNEL, link=("-Wl,-Ttext=0xf0010000",))
    regions = document("masked", elf, tmp_path, "always")["regions"]
    cycles = sorted(region["cycles"] for region in regions)
    inlined = document("analyse", elf, tmp_path, "never")["entries"]["syscall"]
    summarised = document("analyse", elf, tmp_path, "always")["entries"]["syscall"]
    assert cycles == sorted(start["cycles"] for start in inlined["starts"])
    assert len(cycles) == len(summarised["starts"]) >= 2
    assert cycles[-1] < summarised["cycles"]
