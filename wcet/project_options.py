"""Defaults of command-line options from ``wcet.toml``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from quoll.errors import BuildError, UsageError
from quoll.printable import printable, shortened
from quoll.processes.children import die_with
from wcet.gate.project_file import FILE, ProjectFile

__all__ = ["add_project", "add_project_kernel", "given", "given_for", "given_here"]

SHOWN = 20  # last lines of a failed build's output


def add_project_kernel(p: argparse.ArgumentParser) -> None:
    """Add the kernel, which ``wcet.toml`` may name; ``given`` reads it."""
    p.add_argument(
        "kernel",
        type=Path,
        nargs="?",
        metavar="KERNEL.ELF",
        help=f"the kernel, as it is run (default: as {FILE} in the current folder says, with its "
        "platform, entries and facts, after its build command)",
    )


def add_project(p: argparse.ArgumentParser) -> None:
    """Add the kernel, which ``wcet.toml`` may name, and ``--entry``; ``given`` reads them."""
    add_project_kernel(p)
    p.add_argument(
        "--entry",
        action="append",
        default=[],
        metavar="ENTRY",
        help="a name of the platform (syscall, undefined, prefetch-abort, data-abort, interrupt), "
        "a symbol, an address, or 'all' for every entry of the platform; repeatable (default: all)",
    )


def given(options: argparse.Namespace) -> ProjectFile | None:
    """The project file, after filling in missing options; None if the command line names a kernel.

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
    project = ProjectFile.load(path)
    if project.build is not None:
        build(project.build, path.parent, quiet=options.quiet)
    options.kernel = project.kernel
    fill(options, project)
    return project


def given_here(options: argparse.Namespace) -> None:
    """Fill in missing options by the project file of this folder, if there is one."""
    path = Path(FILE)
    if path.exists():
        fill(options, ProjectFile.load(path))


def given_for(options: argparse.Namespace) -> None:
    """Fill in missing options, if the project file of this folder is about ``options.kernel``."""
    path = Path(FILE)
    if not path.exists():
        return
    project = ProjectFile.load(path)
    if _is_one_file(project.kernel, options.kernel):
        fill(options, project)


def _is_one_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # missing, a loop of links, no name of a file
        return False


def fill(options: argparse.Namespace, project: ProjectFile) -> None:
    """Fill in missing options."""
    options.platform = options.platform or project.platform
    options.entry = options.entry or list(project.entries)
    options.end = [*project.exits, *options.end]
    options.source_dir = options.source_dir or project.sources
    options.facts = [*project.facts, *options.facts]


def build(command: str, folder: Path, *, quiet: bool) -> None:
    """Run the command that builds the kernel. Raises BuildError if it fails.

    Its output goes to standard error; if ``quiet``, only the last lines, on failure.
    """
    if not quiet:
        print(f"wcet: build: {printable(command)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else sys.stderr.fileno(),
        stderr=subprocess.STDOUT if quiet else None,
        preexec_fn=partial(die_with, os.getpid()),
        check=False,
    )
    if done.returncode:
        if quiet:
            printed = done.stdout.decode("utf-8", "replace").splitlines()
            sys.stderr.writelines(f"{printable(line)}\n" for line in printed[-SHOWN:])
        raise BuildError(
            f"the build of {FILE} failed, status {done.returncode}: {shortened(command)}",
            hint="its output is above; 'wcet ... KERNEL.ELF' analyses an existing kernel",
        )
