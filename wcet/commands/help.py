"""``wcet help``: the pages of docs/ without a browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from shutil import get_terminal_size

from quoll.errors import InputError, UsageError
from quoll.printable import shortened
from quoll.spelling import did_you_mean
from wcet.process import send_output
from wcet.reports.prose import page_filled
from wcet.request import add_command

__all__ = ["add_to", "topics"]

WORDS = "words"
GLOSSARY = "glossary"
CHECKOUT = Path(__file__).parent.parent.parent
INSTALLED = Path(sys.prefix, "share", "doc", "quoll")
DESCRIPTION = """\
Print a page of the documentation; 'words' explains the words and abbreviations of reports. Without
TOPIC, the topics are listed. 'wcet COMMAND --help' explains a command.
"""
EXAMPLES = """\
examples:
  wcet help facts
  wcet help words | less
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    p = add_command(commands, "help", "a page of the documentation", DESCRIPTION, EXAMPLES, run)
    p.add_argument("topic", nargs="?", metavar="TOPIC", help="a page, or 'words'")


def topics() -> dict[str, Path]:
    """The pages by topic. Raises InputError where they are not installed."""
    folder = CHECKOUT / "docs" if (CHECKOUT / "pyproject.toml").is_file() else INSTALLED
    pages = {page.stem: page for page in sorted(folder.glob("*.md"))}
    if GLOSSARY not in pages:
        raise InputError(f"the pages are not in {folder}", hint="install the wheel again")
    return pages | {WORDS: pages[GLOSSARY]}


def run(options: argparse.Namespace) -> int:
    """Print a page, or the list. Raises UsageError for an unknown topic."""
    known = topics()
    if options.topic is None:
        for topic, page in known.items():
            title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            send_output(f"{topic:<14} {title}\n")
        return 0
    if options.topic not in known:
        raise UsageError(
            f"there is no topic {shortened(options.topic)!r}",
            hint=did_you_mean(options.topic, known) or "'wcet help' lists them",
        )
    text = known[options.topic].read_text(encoding="utf-8")
    whole = options.wide or not sys.stdout.isatty()
    send_output(text if whole else page_filled(text, get_terminal_size().columns))
    return 0
