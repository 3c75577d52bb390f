"""Random operations on the kernel's host build: ``make campaign-kernel_fuzz ARGS='N SEED PRESET'``.

Arguments: number of operations (1,000,000 by default), seed, preset, and which operations also run
preempted (by default every fourth). Prints the coverage; exits with status 1 at the first operation
that differs from the specification or breaks an invariant.
"""

from __future__ import annotations

import resource
import sys

from kernels.bilby.verification.fuzz.host import CheckFailure, program, running
from kernels.bilby.verification.fuzz.run import Run, symbols
from kernels.bilby.verification.spec.refinement import Mismatch


def processor_time() -> float:
    """Processor seconds of this process and of finished host builds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main() -> int:
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    preset = sys.argv[3] if len(sys.argv) > 3 else "after"
    every = int(sys.argv[4]) if len(sys.argv) > 4 else 4
    path = program(preset)
    with running(path) as host:
        run = Run(host, symbols(path), seed, preset)
        try:
            statistics = run.run(operations, force_every=every)
        except (CheckFailure, Mismatch) as failure:
            print(failure)
            return 1
        host.finish()
    print(
        f"{preset}, seed {seed}: {statistics.operations} operations, "
        f"{statistics.success:.1%} succeeded, "
        f"{len(statistics.errors)} kinds of error, {statistics.preemption_tests} tests for "
        f"preemption, {processor_time():.0f} s"
    )
    for name, count in statistics.by_name.most_common():
        print(f"  {count:8} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
