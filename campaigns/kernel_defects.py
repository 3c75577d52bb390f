"""Programs that once showed a defect of the kernel: ``make campaign-kernel_defects ARGS=--write``.

They run in QEMU, with all other tests of ``tests.elf``, on each preset and board. With ``--write``
the table goes into ``kernels/bilby/docs/testing.md``. Ends with status 1 if one of them fails.
"""

from __future__ import annotations

import argparse
import re
import sys

from campaigns.documented import markdown, replace
from tests.testing.harness import qemu

PRESETS, BOARDS = ("before", "after", "latency", "mcs"), ("kzm", "cubieboard")
# Each defect, with the tests that show it. A board only lacks a test for hardware that it lacks.
DEFECTS = {
    "a thread's deletion finished the deletions of all others": (
        "a deletion does not wait for that of a less urgent thread",
    ),
    "a deletion that nobody went on with lost wake-ups": (
        "what a thread that was stopped has not deleted is deleted all the same",
        "a thread that deletes itself and others wakes those who waited",
    ),
    "abandoned deletions waited until nobody ran": (
        "an urgent thread that needs an abandoned deletion does not wait for idle time",
        "nor while those run that are more urgent than who left it",
        "nor for a deletion whose thread never runs",
    ),
    "threads of one priority starved": (
        "two threads that call each other leave time to others of their priority",
        "threads of one priority that never wait take turns",
    ),
    "moves of others kept a call from finishing": (
        "a call finishes though another thread moves its own CNode at each interrupt",
    ),
    "threads shared registers of coprocessors": (
        "registers of ThumbEE and of the counters are undefined",
        "the thread registers of the kernel cannot be used",
        "each thread has its own thread register",
        "and keeps it when its slice of time ends",
    ),
    "an answer to a fault ended an IT block": (
        "a fault handler that writes back what it read keeps the IT block",
    ),
    "code could not be published": (
        "instructions that were written and published can be executed",
    ),
    "who recycled and was stopped left an object closed": (
        "an endpoint whose recycler was stopped can be used",
        "a notification whose recycler was stopped can be used",
    ),
}
LINE = re.compile(r"^(not ok|ok) \d+ - (.+?)\r?$", re.M)


def passed(build: str) -> dict[str, bool]:
    """Whether each test passed, by its sentence."""
    output = qemu.run_bilby(build, "tests").stdout
    return {text: status == "ok" for status, text in LINE.findall(output)}


def cell(tests: tuple[str, ...], found: dict[str, bool]) -> str:
    here = [found[test] for test in tests if test in found]
    return "–" if not here else "passes" if all(here) else "FAILS"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into kernels/bilby/docs/testing.md")
    options = parser.parse_args()
    builds = [f"{board}-{preset}" for board in BOARDS for preset in PRESETS]
    results = {build: passed(build) for build in builds}
    rows = [
        (what, *(cell(tests, results[build]) for build in builds))
        for what, tests in DEFECTS.items()
    ]
    rows.append(("all tests", *(f"{sum(r.values())} of {len(r)}" for r in results.values())))
    table = markdown(("defect", *(f"`{build}`" for build in builds)), rows)
    print(table)
    if options.write:
        replace("../kernels/bilby/docs/testing.md", "defects", table)
    known = {test for found in results.values() for test in found}
    missing = {test for tests in DEFECTS.values() for test in tests} - known
    for test in sorted(missing):
        print(f"no such test: {test}")
    failed = any(not all(found.values()) for found in results.values())
    return 1 if missing or failed else 0


if __name__ == "__main__":
    sys.exit(main())
