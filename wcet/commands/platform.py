"""``wcet platform``: list boards, show one, start a new one, and check it."""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.core import load_core
from quoll.errors import InputError, UsageError
from quoll.image.image import Image
from quoll.printable import shortened
from wcet.atomic import publish
from wcet.platforms.commented import commented, copied, value_rows
from wcet.platforms.controller_templates import NON_ZERO, controller_keys, controllers
from wcet.platforms.platform_model import OWN_CORE, Platform, file_of, load, names
from wcet.platforms.plausible import copied_figures, implausible, unfit
from wcet.platforms.processor import check_processor
from wcet.platforms.toml_table import read_toml
from wcet.request import add_command

__all__ = ["add_to"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
OF_A_PLATFORM = "caches"  # a key that only platform files have
DESCRIPTION = """\
A platform describes a board: core, caches, latencies, memory, entries. It is one TOML file.
Shipped platforms have names; --platform also takes the path of a file of your own. 'wcet help
platform-keys' explains every key, 'wcet help your-board' how to describe a board.
"""
EXAMPLES = """\
examples:
  wcet platform list
  wcet platform show kzm
  wcet platform new myboard --from cubieboard          writes myboard.toml
  wcet platform new myboard --from kzm --controller gic@0xE0001000
  wcet platform check myboard.toml kernel.elf
"""
PLATFORM = "NAME|FILE.toml"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its actions."""
    text = "describe boards: list, show, new, check"
    p = add_command(commands, "platform", text, DESCRIPTION, EXAMPLES, run_list)
    actions = p.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(
        name: str, text: str, run: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        one = add_command(actions, name, text, f"{text[0].upper()}{text[1:]}.\n", EXAMPLES, run)
        one.set_defaults(grammar=one)
        return one

    one = action("list", "the shipped platforms, and the platforms of a folder", run_list)
    one.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="(default: this one)"
    )
    one = action("show", "every value of a platform, with its unit and source", run_show)
    one.add_argument("name", metavar=PLATFORM)
    one = action("new", "write a platform file with a comment at each key", run_new)
    one.add_argument("name", metavar="NAME", help="of the board")
    one.add_argument(
        "--from", dest="base", required=True, metavar=PLATFORM, help="the board to copy, of a core "
        "like yours"
    )  # fmt: skip
    one.add_argument(
        "--controller", metavar="NAME@BASE", help="its interrupt controller, at a virtual address: "
        f"{', '.join(controllers())}, or {NON_ZERO}@ADDRESS,... for registers of which one is not "
        "0 while an interrupt is pending (default: as in the copied board)"
    )  # fmt: skip
    one.add_argument(
        "--output", metavar="FILE", help="a file that is not there yet, or '-': standard output "
        "(default: NAME.toml)"
    )  # fmt: skip
    one = action(
        "check", "find missing, implausible and unfit values of a platform file", run_check
    )
    one.add_argument("name", metavar=PLATFORM)
    one.add_argument(
        "kernel", type=Path, nargs="?", metavar="KERNEL.ELF", help="a binary that is to fit it"
    )


def run_list(options: argparse.Namespace) -> int:
    """A line for each platform."""
    publish(options, [], lambda: _list(options.folder))
    return 0


def _list(folder: Path) -> Iterator[str]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    yield f"{'name':<16}{'core':<12}{'MHz':>6}  {'L2':<5}description"
    for name in names():
        yield _line(load(name), name)
    for path in sorted(folder.glob("*.toml")):
        try:
            if OF_A_PLATFORM not in read_toml(path):
                continue
            yield _line(load(str(path)), str(path))
        except InputError as error:
            yield f"{path}: {shortened(str(error))}"


def _line(board: Platform, name: str) -> str:
    l2 = "none" if board.l2 is None else "on" if board.l2_enabled else "off"
    mhz = board.clock_hz // 10**6
    return f"{name:<16}{board.timing.core:<12}{mhz:>6,}  {l2:<5}{board.description}"


def run_show(options: argparse.Namespace) -> int:
    """A line for each value."""
    board = load(options.name)
    rows = [("key", "value", "unit", "source"), *value_rows(read_toml(board.path))]
    first, unit = (max(len(row[i]) for row in rows) for i in (0, 2))
    second = max(len(row[1]) for row in rows if row[3])
    lines = (
        f"{key:<{first}}  {value:<{second}}  {of:<{unit}}  {source}".rstrip()
        for key, value, of, source in rows
    )
    publish(options, [], lambda: (str(board.path), *lines))
    return 0


def run_new(options: argparse.Namespace) -> int:
    """Write the file. Raises UsageError for an existing name or file."""
    name, output = options.name, options.output or f"{options.name}.toml"
    if NAME.fullmatch(name) is None:
        raise UsageError(
            f"{shortened(name)!r} is no name of a board",
            hint="letters, digits, '-' and '_', 64 at most",
        )
    if name in names():
        raise UsageError(f"{name} is a platform of the project", hint="choose another name")
    if output != "-" and Path(output).exists():
        raise UsageError(
            f"{output} is there already",
            hint="name another file with --output, or '-' to print it",
        )
    base = load(options.base)
    if base.timing.own_rows is not None and not base.path.parent.samefile(Path(output).parent):
        raise UsageError(
            f"the core of {base.name} is {base.timing.core}{OWN_CORE} beside {base.path}",
            hint="write the new file into that folder, too: --output",
        )
    content = copied(read_toml(base.path), name, base.name)
    if options.controller is not None:
        content.pop("pending", None)
        content.pop("controller", None)
        content |= controller_keys(options.controller)
    text = commented(content, base.name)
    tomllib.loads(text)  # fails only for a defect
    publish(options, [(output, lambda: text)], lambda: f"written to {output}\n")
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Load a file, and print implausible values. Raises InputError for wrong ones."""
    board = load(file_of(options.name).as_posix())
    load_core(board.timing.core, board.timing.profile, board.timing.own_rows)
    processor = board.processor
    found = list(implausible(board))
    if options.kernel is not None:
        image = Image.load(options.kernel)
        check_processor(image.attributes, board.name, processor, force=False)
        board.locking(image)
        found += unfit(board, image)
    lines = [f"{board.path}: {len(found) or 'nothing'} implausible"]
    for one in found:
        first, *to_write = one.split("\n")
        lines += [f"  {first}", *(f"      {line}" for line in to_write)]
    still = copied_figures(board)
    if still:
        lines.append(f"  not looked up yet, only copied: {', '.join(still)}")
    publish(options, [], lambda: lines)
    return 1 if found else 0
