"""Every command as a function: ``wcet.run("check", "kernel.elf", baseline="old.json")``."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

from quoll.errors import UsageError
from quoll.results.results_store import begin_run
from quoll.spelling import did_you_mean
from wcet.atomic import refuse_overwriting
from wcet.cli import COMMANDS, parser

__all__ = ["CommandResult", "run"]

OptionValue = str | float | bool | os.PathLike[str]
VALUES = (str, int, float, os.PathLike)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The exit status, and the document that ``--json`` writes; None for a command without one.

    ``text``: the report of a command without a document, else "".
    """

    status: int
    document: Any
    text: str


def run(
    command: str,
    *arguments: str | os.PathLike[str],
    **options: OptionValue | Iterable[OptionValue],
) -> CommandResult:
    """The result of ``wcet COMMAND ARGUMENTS``, with the options of the command line.

    ``at_most="350us"`` is ``--at-most 350us``; True is an option without a value, False no option,
    and several values repeat the option. Raises a WcetError where the command prints one, and for
    another command or option. Warnings are printed on standard error.
    """
    if command not in COMMANDS:
        raise UsageError(f"there is no command {command}", hint=did_you_mean(command, COMMANDS))
    parsed = _parsed([command, *(os.fspath(text) for text in arguments), *_texts(options)])
    parsed.quiet = True
    documented = hasattr(parsed, "json") and parsed.json is None
    if documented:
        parsed.json = "-"
    refuse_overwriting(parsed)
    begin_run()
    with redirect_stdout(StringIO()) as output:
        status: int = parsed.run(parsed)
    text = output.getvalue()
    if documented:
        return CommandResult(status, json.loads(text), "")
    return CommandResult(status, None, text)


def _texts(options: dict[str, OptionValue | Iterable[OptionValue]]) -> Iterator[str]:
    """The options as on a command line."""
    for name, given in options.items():
        option = f"--{name.replace('_', '-')}"
        several = [given] if isinstance(given, VALUES) else given
        for value in several:
            if value is True:
                yield option
            elif value is not False:
                yield f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}"


def _parsed(texts: list[str]) -> argparse.Namespace:
    """The parsed command line. Raises UsageError with the message of the command."""
    with redirect_stderr(StringIO()) as errors:
        try:
            return parser(texts[0]).parse_args(texts)
        except SystemExit as refused:
            message = errors.getvalue().partition(f"error {UsageError.code}: ")[2]
            raise UsageError(message.strip()) from refused
