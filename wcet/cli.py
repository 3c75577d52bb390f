"""``wcet``: the command line. It parses, calls, prints, and maps errors to exit statuses."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from quoll.children import Stopped, stoppable
from quoll.errors import WcetError

__all__ = ["main"]

# The module of each command; only that of the command given is imported.
COMMANDS = {
    "analyse": "wcet.analyse_command",
    "cache": "wcet.cache_command",
    "cfg": "wcet.listing_command",
    "check-facts": "wcet.check_facts_command",
    "disasm": "wcet.listing_command",
    "callgraph": "wcet.listing_command",
    "loops": "wcet.loops_command",
    "path": "wcet.path_command",
    "replay": "wcet.replay_command",
    "timing": "wcet.timing_command",
    "values": "wcet.values_command",
}
COLLECT_AFTER = (1_000_000, 20, 100)  # objects: nearly all that are made live to the end
INTERNAL_ERROR = 70
SIGNALLED = 128  # and the number of the signal
INTERRUPTED = SIGNALLED + signal.SIGINT

EPILOG = """\
exit status:
   0  a bound (or listing) was printed
   1  replay: an execution took longer than its bound; check-facts: one violates a fact
   2  the command line is wrong, or names an entry that does not exist or is not code
   3  a file is not what it should be: not an ELF, wrong machine, big-endian, unknown board
   4  a facts file is wrong, or names a place that does not exist
   5  control flow is not understood: an unresolved branch, recursion
   6  a loop has no bound; of several entries, those that do not reach it are printed
   7  the core or board description lacks a figure
   8  NuSMV, CBC or HiGHS is missing, was killed, or proved nothing
   9  the facts exclude every path
  70  a defect in this program (set WCET_DEBUG=1 to see the traceback)
 128  and the number of a signal: ended by it (130: Ctrl-C)

No output file is touched unless the run succeeds, or at least one of several entries has a bound.
"""


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """The command-line grammar, of one command or of all."""
    top = argparse.ArgumentParser(
        prog="wcet",
        description="Sound worst-case execution times of operating-system kernels, from the ELF.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = [COMMANDS[command]] if command in COMMANDS else COMMANDS.values()
    for module in dict.fromkeys(modules):
        import_module(module).add_to(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (see ``EPILOG``)."""
    given = sys.argv[1:] if arguments is None else arguments
    gc.set_threshold(*COLLECT_AFTER)
    try:
        with stoppable():
            options = parser(given[0] if given else None).parse_args(given)
            status: int = options.run(options)
            sys.stdout.flush()
            return status
    except WcetError as error:
        return fail(f"wcet: error: {error}", error.exit_status)
    except KeyboardInterrupt:
        return fail("wcet: interrupted; no output was written", INTERRUPTED)
    except Stopped as stop:
        name = signal.Signals(stop.number).name
        return fail(f"wcet: ended by {name}; no output was written", SIGNALLED + stop.number)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("WCET_DEBUG"):
            traceback.print_exc()
        place = traceback.extract_tb(error.__traceback__)[-1]
        return fail(
            f"wcet: defect in this program: {type(error).__name__}: {error} "
            f"({os.path.basename(place.filename)}:{place.lineno}); please report it with the "
            "input; WCET_DEBUG=1 shows the traceback",
            INTERNAL_ERROR,
        )


def fail(message: str, status: int) -> int:
    """Print ``message`` on standard error, one paragraph, and return ``status``."""
    lead = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(lead + " ".join(message.split()), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
