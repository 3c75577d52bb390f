"""``wcet setup``: install the programs outside the wheel, and list missing ones."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from loopbounds.nusmv.fetch import fetch
from loopbounds.nusmv.nusmv_library import installed
from loopbounds.nusmv.nusmv_run import any_solver
from quoll.errors import SolverError
from wcet.process import send_output
from wcet.request import add_command

__all__ = ["OPTIONAL_TOOLS", "OptionalTool", "add_to"]

DESCRIPTION = """\
Install the programs that no wheel contains, each with its checksum, into the user's data folder
(XDG_DATA_HOME), without root. Present ones stay. Then list missing programs with their use and
package.
"""
EXAMPLES = """\
examples:
  wcet setup
  wcet setup --list                     list the programs, and install nothing
"""


@dataclass(frozen=True, slots=True)
class OptionalTool:
    """A program outside the wheel. ``there`` gives its place, or None; ``get`` installs it.

    ``get`` raises a WcetError and leaves nothing behind; ``cure``: instructions for the user.
    """

    name: str
    purpose: str
    there: Callable[[], str | None]
    get: Callable[[], object] | None
    cure: str


def _program(name: str) -> Callable[[], str | None]:
    return lambda: shutil.which(name)


def _nusmv() -> str | None:
    return next((str(path) for path in (any_solver(), installed()) if path.is_file()), None)


OPTIONAL_TOOLS = (
    OptionalTool(
        "NuSMV",
        "proves the bounds of loops; without it the SMT solver does",
        _nusmv,
        fetch,
        "wcet setup",
    ),
    OptionalTool(
        "gcc",
        "replays of recordings: 'wcet replay', 'wcet check-facts'",
        _program("gcc"),
        None,
        "apt-get install gcc libc6-dev",
    ),
    OptionalTool(
        "dot", "pictures: 'wcet cfg --svg'", _program("dot"), None, "apt-get install graphviz"
    ),
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "install NuSMV, and list other missing programs"
    p = add_command(commands, "setup", text, DESCRIPTION, EXAMPLES, run)
    p.add_argument("--list", action="store_true", help="list the programs, and install nothing")


def run(options: argparse.Namespace) -> int:
    """Install the missing programs and list all. Raises SolverError at the end if one fails."""
    failed: list[SolverError] = []
    for tool in OPTIONAL_TOOLS:
        if tool.get is not None and tool.there() is None and not options.list:
            try:
                tool.get()
            except SolverError as error:
                failed.append(error)
        where = tool.there()
        state = where if where is not None else f"missing: {tool.cure}"
        send_output(f"{tool.name:<6} {state}\n       {tool.purpose}\n")
    if failed:
        raise failed[0]
    return 0
