"""One fault in each statement of the kernel: ``make campaign-automatic_mutants``.

Arguments: the highest level of effort (3 by default, which runs programs in QEMU), the seed that
chooses the faults (1), and parts of file names (all if none). Results are in
``build/mutants-SEED.jsonl``: a stopped run continues, and found faults are not tried again.
``again`` as an argument tries survivors again from level 1, after tests were added. Writes
``kernels/bilby/docs/mutants.md``. Ends with status 1 if a fault is not found and
``kernels/bilby/verification/mutation/equivalent.toml`` has no reason.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from kernels.bilby.verification.mutation.document import page
from kernels.bilby.verification.mutation.effort import TARGETS, Effort, name
from kernels.bilby.verification.mutation.journal import Journal
from kernels.bilby.verification.mutation.reasons import read_reasons, why
from kernels.bilby.verification.mutation.workshop import BILBY


def main() -> int:
    arguments = [word for word in sys.argv[1:] if word != "again"]
    numbers = [int(word) for word in arguments if word.isdigit()]
    wanted = [word for word in arguments if not word.isdigit()]
    highest, seed = (*numbers, *(3, 1)[len(numbers) :])
    journal = Journal(Path("build") / f"mutants-{seed}.jsonl")
    if "again" in sys.argv[1:]:
        journal.forget_levels()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Effort(Path(folder), journal, seed, wanted)
        for target in TARGETS:  # at once, so that the sources may change afterwards
            campaign.judge(target)
        for level in range(1, highest + 1):
            begun = time.monotonic()
            tried: Counter[bool] = Counter()
            for entry in campaign.run(level):
                journal.add(entry)
                tried[entry.is_found] += 1
            print(f"level {level}: {tried[True]} found, {tried[False]} not, "
                  f"{time.monotonic() - begun:.0f} s", flush=True)  # fmt: skip
    return conclude(campaign, journal, seed)


def conclude(campaign: Effort, journal: Journal, seed: int) -> int:
    """Write the page, and print faults that are not found and have no reason; the exit status."""
    known = [name(site) for site in campaign.every if name(site) in journal.entries]
    entries = [journal.entries[site] for site in known]
    reasons = read_reasons()
    text = page(entries, len(campaign.every), seed, reasons)
    (BILBY / "docs" / "mutants.md").write_text(text, encoding="utf-8")
    left = [
        entry.fault
        for entry in entries
        if entry.fault is not None and not entry.is_found and not why(entry.fault, reasons)
    ]
    for fault in left:
        print(f"not found: {fault}")
    print(f"{len(entries)} of {len(campaign.every)} statements, {len(left)} faults not found")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
