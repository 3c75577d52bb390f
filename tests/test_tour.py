"""The tour of README.md: every command runs in a user's shell, and prints the shown output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from campaigns.tour import Shown, blocks, commands, difference, printed, tour, walk
from quoll.facts.read import parse
from wcet.cli import parser

ROOT = Path(__file__).resolve().parent.parent
SECTION = tour((ROOT / "README.md").read_text(encoding="utf-8"))
OUTPUT = ["set-up", "head", "  12  one", "  13  two, and more", "", "tail  7", "end"]


def test_every_block_is_of_a_kind() -> None:
    """A command that is shown without ``$`` would not be run."""
    kinds = {"command": 0, "facts": 0, "demo": 0}
    for block in blocks(SECTION):
        if block[0].startswith("$ "):
            kinds["command"] += 1
        elif block[0].startswith("shell: "):
            kinds["demo"] += 1
        else:
            assert parse("\n".join(block), "README.md").facts
            kinds["facts"] += 1
    assert kinds["command"] >= 6
    assert kinds["facts"] >= 1


def test_commands_in_sentences_are_of_the_grammar() -> None:
    """`wcet path kernel.elf --source`: the command is there, and has the options."""
    top = parser()
    grammars = {each.prog: each for each in top.get_default("commands")}
    named = re.findall(r"`wcet ([^`]+)`", SECTION)
    assert len(named) > 10
    for text in named:
        name, *words = text.split()
        if name.startswith("-"):
            assert name in ("--help", "--version")
            continue
        usage = grammars[f"wcet {name}"].format_help()
        assert not [word for word in words if word.startswith("-") and word not in usage], text


@pytest.mark.slow("runs every command of the README, kernel build and QEMU included")
@pytest.mark.xdist_group("tour")
def test_the_tour() -> None:
    """Else, if the output is as it should be: ``make campaign-tour`` writes it."""
    found = commands(SECTION)
    assert found[0].command == ". .venv/bin/activate"
    for shown, (status, output) in zip(found, walk(found, ROOT), strict=True):
        assert status == 0, (shown.command, output[-5:])
        wrong = difference(shown, output)
        assert not wrong, f"$ {shown.command}\ndoes not print\n{wrong}"


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (("head", "  12  one"), ""),
        (("head", "...", "tail  7"), ""),
        (("head", "...", "tail  7", "..."), ""),
        (("  13  two…", "", "tail  7"), ""),
        (("head", "  13  two…"), "head\n  13  two…"),
        (("tail  7", "...", "head"), "head"),
        (("tail", "end"), "tail\nend"),
        ((), ""),
    ],
)
def test_what_is_shown_is_compared(lines: tuple[str, ...], wrong: str) -> None:
    assert difference(Shown("x", lines), OUTPUT) == wrong


def test_what_is_shown_is_written_again() -> None:
    old = Shown("x", ("head", "  10  one", "...", "tail  9"))
    assert printed(old, OUTPUT) == Shown("x", ("head", "  12  one", "...", "tail  7"))
    with pytest.raises(ValueError, match="is not printed"):
        printed(Shown("x", ("other",)), OUTPUT)


def test_a_command_that_is_not_there_is_seen() -> None:
    (first, second) = walk([Shown("wcet --version", ()), Shown("echo a; echo b", ())], ROOT)
    assert first[0] == 127
    assert second == (0, ["a", "b"])


def test_commands_of_a_block() -> None:
    text = "a\n\n    $ one\n    1\n\n    2\n    $ two\n\nb\n\n    loop f at most 3\n"
    assert commands(text) == [Shown("one", ("1", "", "2")), Shown("two", ())]
    assert list(blocks(text))[1] == ["loop f at most 3"]
