"""The command line, and the library: ``import wcet``.

Takes the arguments of ``wcet COMMAND``, or of ``wcet.analyse``.
Gives reports on standard output and in files, all of them or none, and an exit status; or values.
Source: ``wcet --help``; docs/architecture.md, "Inputs and outputs"; docs/outputs.md.
Names: cli.main, request.requested, atomic.publish, process.prepare, numbers, library.analyse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wcet.library import BoundedLoop, EntryBounds, KernelBounds, WcetError, analyse
    from wcet.run_command import CommandResult, run

__all__ = [
    "BoundedLoop",
    "CommandResult",
    "EntryBounds",
    "KernelBounds",
    "WcetError",
    "analyse",
    "run",
]
OF_COMMANDS = ("CommandResult", "run")


def __getattr__(name: str) -> object:
    """A name of the library, imported on first use, as commands do not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wcet import library, run_command

    return getattr(run_command if name in OF_COMMANDS else library, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
