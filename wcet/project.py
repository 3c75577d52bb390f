"""What a command takes from ``wcet.toml`` where its command line says nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from quoll.errors import UsageError
from wcet.gate.project import FILE, Project

__all__ = ["add_project", "given"]


def add_project(p: argparse.ArgumentParser) -> None:
    """Add the kernel, which ``wcet.toml`` may name, and ``--entry``; ``given`` reads them."""
    p.add_argument(
        "kernel",
        type=Path,
        nargs="?",
        metavar="KERNEL.ELF",
        help=f"the kernel, as it is run (default: as {FILE} in the current folder says, with its "
        "platform, entries and facts)",
    )
    p.add_argument(
        "--entry",
        action="append",
        default=[],
        metavar="ENTRY",
        help="a name of the platform (syscall, undefined, prefetch-abort, data-abort, interrupt), "
        "a symbol, an address, or 'all' for every entry of the platform; repeatable (default: all)",
    )


def given(options: argparse.Namespace) -> Project | None:
    """Fill in what the command line leaves out; None where it names a kernel.

    Raises UsageError if it names none and there is no project.
    """
    if options.kernel is not None:
        return None
    path = Path(FILE)
    if not path.exists():
        raise UsageError(
            f"no kernel is named, and there is no {FILE} here",
            hint=f'name an ELF file, or write {FILE}: kernel = "build/kernel.elf"',
        )
    project = Project.load(path)
    options.kernel = project.kernel
    options.platform = options.platform or project.platform
    options.entry = options.entry or list(project.entries)
    options.source_dir = options.source_dir or project.sources
    options.facts = [*project.facts, *options.facts]
    return project
