"""The papers' evaluation, our figures beside theirs: ``make paper``.

Runs the campaigns whose tables stand beside published ones, each in a process of its own, and
prints progress. They write their pages; ``campaigns.tables`` and ``campaigns.charts`` then make
CSV files and charts of these. ``--only NAME`` runs a part. A part that fails does not stop the
others; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from tests.testing.harness import build

__all__ = ["PARTS", "main"]

PARTS = {
    "frequent operations": "bench.ipc",
    "bounds by preset": "campaigns.kernel_bounds",
    "computed against observed": "campaigns.observed",
    "branch predictor": "campaigns.predicted_branches",
    "wrong paths": "campaigns.wrong_path_lines",
    "pinned cache lines": "campaigns.pinned_lines",
    "to preempt or not": "campaigns.preempt_or_not",
    "mixed criticality": "campaigns.mcs_results",
    "beside published figures": "campaigns.papers",
    "effort and factors": "campaigns.analysis_effort",
}


def run(title: str, module: str, *arguments: str) -> bool:
    """One part; returns whether it succeeded. The end of its output is printed if it did not."""
    print(f"{title} ...", flush=True)
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=build.ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    print(f"{title}: {time.monotonic() - start:,.0f} s, status {done.returncode}", flush=True)
    if done.returncode:
        print(done.stdout[-2000:], flush=True)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="all without any")
    options = parser.parse_args()
    done = [run(title, PARTS[title], "--write") for title in options.only or PARTS]
    done += [run("CSV files", "campaigns.tables"), run("charts", "campaigns.charts")]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
