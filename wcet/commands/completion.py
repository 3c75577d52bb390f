"""``wcet completion``: shell completion of commands, options and files."""

from __future__ import annotations

import argparse
import re

from wcet.process import send_output
from wcet.request import add_command

__all__ = ["add_to"]

SHELLS = ("bash", "zsh", "fish")
FILES = re.compile(r"FILE|ELF|TRACE|^OLD$|^NEW$")  # metavariables that stand for a file
FOLDERS = re.compile(r"DIR")
DESCRIPTION = """\
Print a script that completes commands, options and files in a shell.
"""
EXAMPLES = """\
examples:
  wcet completion bash > ~/.local/share/bash-completion/completions/wcet
  wcet completion zsh > ~/.zfunc/_wcet             where ~/.zfunc is in fpath
  wcet completion fish > ~/.config/fish/completions/wcet.fish
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    p = add_command(commands, "completion", "completion for a shell", DESCRIPTION, EXAMPLES, run)
    p.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> int:
    """Print the script, from the grammar of all commands."""
    import shtab  # only here

    from wcet.cli import parser

    grammar = parser()
    for command in grammar.get_default("commands"):
        for action in command._actions:
            name = str(action.metavar)
            if FILES.search(name):
                action.complete = shtab.FILE
            elif FOLDERS.search(name):
                action.complete = shtab.DIRECTORY
    send_output(shtab.complete(grammar, options.shell) + "\n")
    return 0
