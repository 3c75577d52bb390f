"""The first hour with generated firmware: a table in docs/results, a row for each seed.

``make campaign-firmware ARGS='--seed 100 --count 12'``: 12 programs, each with another build.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from campaigns.documented import inside, markdown, replace
from tests.testing.wcet.generated_firmware import BUILDS, build_generated, firmware
from tests.testing.wcet.generated_hour import generated_hour

HEAD = (
    "seed", "kernel", "services", "build", "facts", "processor time (s)", "interrupt (cycles)",
    "supervisor call (cycles)",
)  # fmt: skip


DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE = "results/first-hour.md"
ENTRIES = ("irq_entry", "svc_entry")
STRIDE = 7  # of builds, so that a few seeds have all compilers, levels and states


def main() -> None:
    """Write the rows of the table; others stay."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=100)
    options.add_argument("--count", type=int, default=12)
    asked = options.parse_args()
    known = inside((DOCS / TABLE).read_text(encoding="utf-8"), "firmware").splitlines()[2:]
    rows = {int(row[0]): row for line in known if (row := line.strip("| ").split(" | "))}
    for number in range(asked.count):
        seed = asked.seed + number
        made, build = firmware(seed), BUILDS[STRIDE * seed % len(BUILDS)]
        with tempfile.TemporaryDirectory() as folder:
            build_generated(made, build, Path(folder))
            hour = generated_hour(Path(folder))
        bounds = (f"{hour.bounds[e]:,}" if e in hour.bounds else "none" for e in ENTRIES)
        services = ", ".join(made.services)
        kernel = made.kernel.replace("_", " ")
        figures = (str(len(hour.facts)), f"{hour.seconds:.0f}", *bounds)
        rows[seed] = [str(seed), kernel, services, str(build), *figures]
        print(*rows[seed], hour.errors, sep="; ", flush=True)
        replace(TABLE, "firmware", markdown(HEAD, [rows[seed] for seed in sorted(rows)]))


if __name__ == "__main__":
    main()
