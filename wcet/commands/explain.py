"""``wcet explain``: meaning of an error code."""

from __future__ import annotations

import argparse
from textwrap import wrap

from quoll.errors import UsageError
from quoll.explanations import EXPLANATIONS
from quoll.printable import shortened
from wcet.process import send_output
from wcet.request import add_command, columns_of

__all__ = ["add_to"]

LABEL = 9  # columns of a label
DESCRIPTION = """\
Print the cause of an error, an example, and the cure. CODE stands in the message, as E105; without
one, all codes are listed.
"""
EXAMPLES = """\
examples:
  wcet explain E105
  wcet explain
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "cause, example and cure of an error code"
    p = add_command(commands, "explain", text, DESCRIPTION, EXAMPLES, run)
    p.add_argument("code", nargs="?", metavar="CODE", help="as in 'wcet: error E105: ...'")


def run(options: argparse.Namespace) -> int:
    """Print an explanation, or the list. Raises UsageError for an unknown code."""
    if options.code is None:
        send_output("".join(f"{code}  {one.title}\n" for code, one in EXPLANATIONS.items()))
        return 0
    found = EXPLANATIONS.get(options.code.upper())
    if found is None:
        raise UsageError(
            f"there is no error code {shortened(options.code)}", hint="'wcet explain' lists them"
        )
    columns = columns_of(options)
    for paragraph in found.paragraphs():
        lead = " " * LABEL
        lines = [paragraph] if columns is None else wrap(paragraph, columns, subsequent_indent=lead)
        send_output("".join(f"{line}\n" for line in lines))
    return 0
