"""Versions, error codes, help pages, and suggestions for misspelled names."""

from __future__ import annotations

import re

import pytest

from quoll.explanations import EXPLANATIONS
from wcet.cli import COMMANDS, main
from wcet.commands.help import topics


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    try:
        found = main(arguments)
    except SystemExit as end:
        found = int(end.code or 0)
    captured = capsys.readouterr()
    assert found == status, captured.err
    return captured.err if status else captured.out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--version").startswith("wcet 0.")


@pytest.mark.parametrize("code", EXPLANATIONS)
def test_each_code_is_explained(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "explain", code.lower())
    assert all(f"\n{word} " in text for word in ("cause", "example", "cure"))
    assert code in said(capsys, "explain")


def test_what_an_error_prints_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "analyse", "missing.elf", "--quiet", status=3)
    assert text.startswith("wcet: error E102: ")
    assert "E102" in said(capsys, "explain", "E102")
    assert "there is no error code E999" in said(capsys, "explain", "E999", status=2)


@pytest.mark.parametrize("topic", topics())
def test_every_topic_is_a_page(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "help", topic).startswith("# ")
    assert f"\n{topic} " in "\n" + said(capsys, "help")


@pytest.mark.parametrize("word", ["AH", "AM", "CM", "FM", "NC", "PL"])
def test_the_words_of_reports_are_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert word in said(capsys, "help", "words")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["analyze", "kernel.elf"], "did you mean analyse?"),
        (["analyse", "kernel.elf", "--entrys=x"], "did you mean --entry?"),
        (["analyse", "kernel.elf", "--platfrom", "kzm"], "did you mean --platform?"),
        (["help", "fact"], "did you mean facts?"),
    ],
)
def test_what_was_meant(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert meant in said(capsys, *arguments, status=2)


def test_the_first_steps_are_commands_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """In the order in which a new user needs them, before the list of all."""
    with pytest.raises(SystemExit):
        main(["--help"])
    first = capsys.readouterr().out.split("positional arguments")[0]
    steps = re.findall(r"wcet ([a-z-]+)", first)
    assert steps == ["init", "analyse", "advise", "baseline", "check", "help"]
    assert set(steps) <= COMMANDS.keys()
    (page,) = re.findall(r"wcet help ([a-z-]+)", first)
    assert said(capsys, "help", page).startswith("# ")
