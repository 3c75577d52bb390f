"""``wcet init``: a first ``wcet.toml``."""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path

from quoll.errors import InputError, UsageError
from quoll.image.image import Image
from wcet.atomic import publish
from wcet.gate.draft import draft
from wcet.gate.project import FILE
from wcet.platforms import platform as platforms
from wcet.request import add_command

__all__ = ["add_to"]

DESCRIPTION = f"""\
Look at an ELF and write {FILE}, with comments: the platform that its build attributes name, the
entries that it has, and sections that lie outside of the platform's memory, which would be charged
as uncached. Then 'wcet analyse', 'wcet baseline' and 'wcet check' need no options.
"""
EXAMPLES = """\
examples:
  wcet init build/kernel.elf
  wcet init build/kernel.elf --platform kzm --output -
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    p = add_command(commands, "init", f"write a first {FILE} for an ELF", DESCRIPTION, EXAMPLES)
    p.add_argument("kernel", type=Path, metavar="KERNEL.ELF", help="the kernel, as it is run")
    p.add_argument(
        "--platform",
        metavar="NAME|FILE.toml",
        help="the board (default: chosen from the ELF's build attributes)",
    )
    p.add_argument(
        "--output",
        default=FILE,
        metavar="FILE",
        help=f"a file that is not there yet, or '-': standard output (default: {FILE})",
    )
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look, and write."""
    if options.output != "-" and Path(options.output).exists():
        raise UsageError(
            f"{options.output} is there already",
            hint="name another file with --output, or '-' to see what would be written",
        )
    image = Image.load(options.kernel)
    platform = None
    try:
        if options.platform is not None:
            platform, reason = platforms.load(options.platform), "asked for"
        else:
            platform, reason = platforms.for_image(image.cpu, image.attributes.arch)
    except InputError as error:
        if options.platform is not None:
            raise
        reason = str(error)
    kernel = options.kernel
    if options.output != "-" and not kernel.is_absolute():
        kernel = Path(os.path.relpath(kernel, Path(options.output).parent))
    text = draft(image, kernel, platform, reason)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the name of {kernel} cannot stand in a TOML file") from error
    publish(options, [(options.output, lambda: text)], lambda: f"written to {options.output}\n")
    return 0
