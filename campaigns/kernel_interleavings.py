"""Calls that are preempted while others act: ``make campaign-kernel_interleavings ARGS='N SEED'``.

Arguments: number of interleavings (1,000,000 by default), seed, preset. Prints how they ended; ends
with status 1 at the first that neither order explains, or that breaks an invariant.
"""

from __future__ import annotations

import sys

from campaigns.kernel_fuzz import processor_time
from kernels.bilby.fuzz.host import CheckFailure, program, running
from kernels.bilby.fuzz.interleave import Interleaver
from kernels.bilby.spec.refinement import Mismatch


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    preset = sys.argv[3] if len(sys.argv) > 3 else "after"
    path = program(preset, "plain")
    with running(path) as host:
        try:
            statistics = Interleaver(path, host, seed, preset).run(wanted)
        except (CheckFailure, Mismatch) as failure:
            print(failure)
            return 1
        host.finish()
    ends = ", ".join(f"{count} {how}" for how, count in statistics.ends.most_common())
    print(
        f"{preset}, seed {seed}: {statistics.operations} operations, {statistics.interleaved} "
        f"interleavings, {statistics.preempted} of them made again, {statistics.acts} acts of the "
        f"urgent thread, {processor_time():.0f} s; {ends}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
