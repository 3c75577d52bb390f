"""Counts interrupts by interrupted code: ``python -m bench.interrupts TRACE KERNEL.ELF``.

TRACE is a recording of ``latency.elf`` (or of any program with a timer) by kernels/recorder. An
interrupt interrupts a user or the idle thread, or a system call at one of the kernel's numbered
preemption points.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quoll.errors import InputError, WcetError
from quoll.image.image import Image
from quoll.recordings.trace import Execution, Trace

__all__ = ["AT_USER", "interrupts_taken", "main"]

AT_USER = "user or idle"
POINT = "preemption_point_"
EXPIRE = "sched_expire"  # only interrupts of the kernel's own timer reach it


def interrupts_taken(trace: Trace, image: Image) -> Counter[str]:
    """The executions of the interrupt handler, by interrupted code.

    Preemption points without an interrupt have 0. Interrupts of the kernel's own timer, which no
    program raised, are left out.
    """
    points = {
        name.removeprefix(POINT): _address(image, name)
        for name in image.symbols.names()
        if name.startswith(POINT)
    }
    handler, expire = _address(image, "handle_interrupt"), _address(image, EXPIRE)
    taken = Counter({AT_USER: 0} | dict.fromkeys(sorted(points, key=int), 0))
    for execution in trace.executions:
        pcs: npt.NDArray[np.uint32] = np.frombuffer(execution.pcs, np.uint32)
        found = np.flatnonzero(pcs == handler)
        if len(found) and not (pcs[found[0] :] == expire).any():
            taken[_interrupted(execution, pcs[: found[0]], points)] += 1
    return taken


def _interrupted(execution: Execution, pcs: npt.NDArray[np.uint32], points: dict[str, int]) -> str:
    """The last preemption point before the handler; AT_USER if no system call ran."""
    last = {name: int(np.flatnonzero(pcs == address)[-1]) for name, address in points.items()
            if (pcs == address).any()}  # fmt: skip
    return max(last, key=last.__getitem__) if last else AT_USER


def _address(image: Image, name: str) -> int:
    symbol = image.symbol(name)
    if symbol is None:
        raise InputError(f"the kernel has no symbol {name}", hint="is it a build of bilby?")
    return symbol.addr


def main(arguments: Sequence[str]) -> int:
    """Prints a table: interrupts taken in user mode and at each preemption point."""
    parser = argparse.ArgumentParser(
        prog="bench.interrupts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trace", type=Path, metavar="TRACE")
    parser.add_argument("kernel", type=Path, metavar="KERNEL.ELF")
    options = parser.parse_args(arguments)
    try:
        taken = interrupts_taken(Trace.read(options.trace), Image.load(options.kernel))
    except WcetError as error:
        print(f"bench.interrupts: {error}", file=sys.stderr)
        return 2
    print(f"{'interrupted':<14}{'interrupts':>11}")
    for name, count in taken.items():
        print(f"{name if name == AT_USER else 'point ' + name:<14}{count:>11,}")
    print(f"{'all':<14}{taken.total():>11,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
