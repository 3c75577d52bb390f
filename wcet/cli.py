"""``wcet``: the command line. It parses, calls, prints, and maps errors to exit statuses."""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from quoll.errors import UsageError, WcetError
from quoll.printable import printable, shortened
from quoll.processes.children import Stopped, stoppable
from quoll.spelling import did_you_mean
from quoll.terminal import clearing
from wcet import process
from wcet.atomic import refuse_overwriting
from wcet.reports.prose import HelpText

if TYPE_CHECKING:
    from _typeshed import SupportsWrite
from quoll.results.results_store import begin_run

__all__ = ["main"]

# The module of each command; only the given command's module is imported.
COMMANDS = {
    "advise": "wcet.commands.advise",
    "analyse": "wcet.commands.analyse",
    "baseline": "wcet.commands.check",
    "cache": "wcet.commands.cache",
    "cfg": "wcet.commands.listing",
    "explain": "wcet.commands.explain",
    "help": "wcet.commands.help",
    "init": "wcet.commands.init",
    "check": "wcet.commands.check",
    "check-facts": "wcet.commands.check_facts",
    "completion": "wcet.commands.completion",
    "diff": "wcet.commands.diff",
    "disasm": "wcet.commands.listing",
    "callgraph": "wcet.commands.listing",
    "latency": "wcet.commands.latency",
    "loops": "wcet.commands.loops",
    "masked": "wcet.commands.masked",
    "path": "wcet.commands.path",
    "pin": "wcet.commands.pin",
    "platform": "wcet.commands.platform",
    "prove": "wcet.commands.prove",
    "refine": "wcet.commands.refine",
    "replay": "wcet.commands.replay",
    "setup": "wcet.commands.setup",
    "sweep": "wcet.commands.sweep",
    "timing": "wcet.commands.timing",
    "values": "wcet.commands.values",
}
# Exit statuses for a wrong command line.
BAD_USE: dict[str | None, int] = {"check": 3, "diff": 3, "latency": 3}
COLLECT_AFTER = (4_000_000, 20, 100)  # objects: nearly all of them live until the exit
INTERNAL_ERROR = 70
NO_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)$")
SIGNALLED = 128  # plus the number of the signal
INTERRUPTED = SIGNALLED + signal.SIGINT

DESCRIPTION = """\
Sound worst-case execution times of operating-system kernels, from the ELF.

first steps, in this order:
  wcet init FIRMWARE.ELF   entries, and missing facts to fill in
  wcet analyse             bounds of the entries
  wcet advise              facts that lower a bound most
  wcet baseline            records the bounds; 'wcet check' compares

'wcet COMMAND --help' has examples, and 'wcet help first-hour' the whole way.
"""
EPILOG = """\
exit status:
   0  a bound (or listing) was printed
   1  replay: an execution took longer than its bound; check-facts: one violates a fact; check,
      diff: an entry became slower, latency: it is higher than declared or not known (of these, 2:
      an entry is not analysed; 3: the command line or a file is wrong);
      platform check: a value is implausible; prove: a fact is not proved; sweep: an entry has
      no bound
   2  the command line is wrong, or names an entry that does not exist or is no code
   3  a file is unsuitable: not an ELF, wrong machine, big-endian, unknown board
   4  a facts file is malformed, or names a place that does not exist
   5  control flow is unresolved: a branch, recursion without a depth
   6  a loop has no bound; other entries, which do not reach it, are printed
   7  the core or board description lacks a figure
   8  NuSMV, CBC or HiGHS is missing, was killed, or proved nothing
   9  the facts exclude every path
  10  the system gives no more memory, open files, processes, disk space or processor time
  11  the 'build' command of wcet.toml failed
  12  an execution takes longer than a bound, which is not valid; check: 1
  70  a defect in this program (set WCET_DEBUG=1 to see the traceback)
 128  and the number of a signal: ended by it (130: Ctrl-C)

No output file is touched unless the run succeeds, or at least one of several entries has a bound.
Several outputs of one run are written together or not at all, and never onto an input.
"""


class _Parser(argparse.ArgumentParser):
    """The parser, for which help that cannot be printed is an error, unlike in argparse."""

    def error(self, message: str) -> NoReturn:
        """Exit as argparse does, with the command's status for wrong use (``BAD_USE``).

        For an invalid choice the message proposes a similar one.
        """
        self.print_usage(sys.stderr)
        choice = NO_CHOICE.search(message)
        if choice is not None:
            message += near(choice[1], re.findall(r"'([^']+)'", choice[2]))
        self.exit(
            self.get_default("bad_use") or UsageError.exit_status,
            f"{self.prog}: error {UsageError.code}: {message}\n",
        )

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if message and file is sys.stdout:
            process.send_output(message)
        elif message:
            (file or sys.stderr).write(message)


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """The command-line grammar, of one command or of all."""
    top = _Parser(
        prog="wcet",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=HelpText,
    )
    top.set_defaults(bad_use=BAD_USE.get(command, UsageError.exit_status))
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    top.add_argument("--version", action="store_true", help="print the version, and end")
    modules = [COMMANDS[command]] if command in COMMANDS else COMMANDS.values()
    for module in dict.fromkeys(modules):
        import_module(module).add_to(commands)
    top.set_defaults(commands=tuple(commands.choices.values()))
    for each in commands.choices.values():
        each.set_defaults(grammar=each, bad_use=top.get_default("bad_use"))
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (see ``EPILOG``)."""
    given = sys.argv[1:] if arguments is None else arguments
    gc.set_threshold(*COLLECT_AFTER)
    begin_run()
    try:
        with stoppable():
            if arguments is None:
                process.prepare()
            process.encodable()
            return run(given)
    except BrokenPipeError:  # the reader is gone, as after '| head'
        process.discard_output()
        return 0
    except KeyboardInterrupt:
        return fail("wcet: interrupted; no output was written", status=INTERRUPTED)
    except Stopped as stop:
        name = signal.Signals(stop.number).name
        status = SIGNALLED + stop.number
        return fail(f"wcet: ended by {name}; no output was written", status=status)
    except Exception as error:  # a defect: status 70; WCET_DEBUG=1 shows the trace
        if os.environ.get("WCET_DEBUG"):
            traceback.print_exc()
        known = error if isinstance(error, WcetError) else process.resource_error(error)
        if known is not None:
            if arguments is None:
                process.discard_output()
            return fail(*(f"wcet: {text}" for text in known.coded), status=known.exit_status)
        place = traceback.extract_tb(error.__traceback__)[-1]
        return fail(
            f"wcet: defect in this program: {type(error).__name__}: {error} "
            f"({os.path.basename(place.filename)}:{place.lineno}); please report it with the "
            "input; WCET_DEBUG=1 shows the traceback",
            status=INTERNAL_ERROR,
        )


def program() -> NoReturn:
    """The command ``wcet``: run ``main`` and exit."""
    process.leave(main())


def run(given: Sequence[str]) -> int:
    """Parse and run one command."""
    if list(given[:1]) == ["--version"]:
        from importlib.metadata import version  # loading takes 15 ms

        process.send_output(f"wcet {version('quoll')}\n")
        return 0
    grammar = parser(given[0] if given else None)
    if given and given[0] not in COMMANDS and not given[0].startswith("-"):
        grammar.error(f"there is no command {shortened(given[0])!r}{near(given[0], COMMANDS)}")
    options, unknown = grammar.parse_known_args(given)
    if unknown:
        known = re.findall(r"--[a-z][a-z0-9-]*", options.grammar.format_help())
        first = unknown[0].partition("=")[0]
        options.grammar.error(
            f"unrecognized arguments: {shortened(' '.join(unknown))}{near(first, known)}"
        )
    refuse_overwriting(options)
    status: int = options.run(options)
    return status


def near(word: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" with a similar known word, else ""."""
    found = did_you_mean(word, known)
    return f"; {found}" if found else ""


def fail(*messages: str, status: int) -> int:
    """``status``, after printing each message on standard error as a paragraph."""
    lead = clearing()
    for message in messages:
        words = (shortened(printable(word)) for word in message.split())
        print(lead + " ".join(words), file=sys.stderr)
    return status


if __name__ == "__main__":
    program()
