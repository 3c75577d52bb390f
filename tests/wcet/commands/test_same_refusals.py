"""The other commands refuse the inputs that 'wcet analyse' refuses, with the same status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

AT = ("-Wl,-Ttext=0xf0010000", "-Wl,-Tdata=0xf0020000")
HEAD = ".syntax unified\n.arm\n.global main\n.type main, %function\nmain:\n"
TAIL = "\nmov r0, #4\n1: subs r0, r0, #1\nbne 1b\nbx lr\n.size main, .-main\n"
# One row for each class of refused inputs: the code, facts, and more options.
REFUSED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "SCTLR is written": ("mcr p15, 0, r0, c1, c0, 0", "", ()),
    "SCTLR is written below a call": (
        "push {lr}\nbl f\npop {lr}\nb 9f\n.type f, %function\nf: mcr p15, 0, r0, c1, c0, 0\n"
        "bx lr\n.size f, .-f\n9:",
        "",
        (),
    ),
    "data of the other endianness": ("setend be\nldr r1, [r0]\nsetend le", "", ()),
    "an indirect call of unknown target": ("push {lr}\nblx r0\npop {lr}", "", ()),
    "an svc of unknown effect": ("svc 0", "", ()),
    "an endless loop": ("9: b 9b", "", ()),
    "a loop that ends nowhere": ("cmp r0, #3\nbne 8f\n9: ldr r2, [r1]\nb 9b\n8:", "", ()),
    "recursion without a depth": (
        "push {lr}\nbl f\npop {lr}\nb 9f\n.type f, %function\nf: cmp r0, #0\nbxeq lr\n"
        "push {lr}\nldr r0, [r0]\nbl f\npop {pc}\n.size f, .-f\n9:",
        "",
        (),
    ),
    "a fact about no loop": ("", "loop main at most 5", ()),
    "a fact about nothing": ("", "loop nowhere at most 5", ()),
    "a contradiction of facts": ("", "loop main+0x4 at most 5\nloop main+0x4 at most 6", ()),
    "a fact that is refuted": ("", "loop main+0x4 at most 2", ()),
    "every path is ignored": ("nop", "ignore main+0x10", ()),
    "an entry that is not there": ("", "", ("--entry", "nowhere")),
    "another processor": ("", "", ("--platform", "cubieboard")),
}
COMMANDS = {
    "loops": ("loops", "ELF"),
    "cache": ("cache", "ELF"),
    "cache FUNCTION": ("cache", "ELF", "main"),
    "path": ("path", "ELF"),
    "values": ("values", "ELF", "main"),
    "timing": ("timing", "ELF", "main"),
    "masked": ("masked", "ELF"),
    "advise": ("advise", "ELF"),
    "refine": ("refine", "ELF"),
    "pin": ("pin", "ELF"),
}
# These bound no loops, and so read no fact about one.
NO_LOOPS = {"values", "timing", "cache FUNCTION"}
OF_LOOPS = {"a fact about no loop", "a fact about nothing", "a fact that is refuted"}


def status(command: tuple[str, ...], elf: Path, facts: Path, more: tuple[str, ...]) -> int:
    given = ("--facts", str(facts), "--no-facts", "--no-cache", "--quiet", "--time-limit", "5")
    entry = () if "--entry" in more else ("--entry", "main")
    platform = () if "--platform" in more else ("--platform", "kzm")
    words = [str(elf) if word == "ELF" else word for word in command]
    return main([*words, *given, *entry, *platform, *more])


@pytest.mark.slow("every command refuses every program")
@pytest.mark.parametrize("name", REFUSED)
def test_every_command_refuses_what_analyse_refuses(name: str, tmp_path: Path) -> None:
    code, facts, more = REFUSED[name]
    elf = build(HEAD + code + TAIL, language="S", link=AT)
    file = tmp_path / "my.facts"
    file.write_text(facts + "\n")
    expected = status(("analyse", "ELF"), elf, file, more)
    assert expected != 0
    found = {c: status(words, elf, file, more) for c, words in COMMANDS.items()}
    left = NO_LOOPS if name in OF_LOOPS else set()
    assert {c: s for c, s in found.items() if c not in left and s != expected} == {}
