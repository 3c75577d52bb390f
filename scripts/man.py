"""The manual pages wcet(1), wcet-analyse(1), ...: from the grammar of the command line.

    python scripts/man.py [FOLDER]        default: build/man, from which the wheel takes them

Pages have no date, so that the same grammar gives the same bytes. Source: man(7), groff_man(7).
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from wcet.cli import parser

__all__ = ["pages"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "man"
TAGGED = re.compile(r" {1,4}(\S+(?: \d+)?) {2,}(\S.*)")
HEADING = re.compile(r"(examples|exit status):(.*)")


def pages() -> Iterator[tuple[str, str]]:
    """File name and text of each page."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    top = parser()
    found = subparsers(top)
    assert found is not None
    helps = {action.dest: action.help or "" for action in found._choices_actions}
    names = sorted(found.choices)
    for name in ("", *names):
        page = f"wcet-{name}" if name else "wcet"
        grammar = found.choices[name] if name else top
        about = helps[name] if name else "bounds of execution times of operating-system kernels"
        lines = [
            f'.TH {page.upper()} 1 "" "quoll {version}" "Quoll"',
            ".SH NAME",
            f"{text(page)} \\- {text(about)}",
            ".SH SYNOPSIS",
            *usage(grammar),
            ".SH DESCRIPTION",
            *paragraphs(grammar.description or ""),
            *options(grammar),
        ]
        inner = subparsers(grammar)
        if not name:
            lines.append(".SH COMMANDS")
            for command in names:
                lines += [".TP", f".B {text(command)}", text(helps[command])]
        elif inner is not None:
            lines.append(".SH COMMANDS")
            about_inner = {action.dest: action.help or "" for action in inner._choices_actions}
            for command, of_command in inner.choices.items():
                lines += [f".SS {text(command)}", text(about_inner[command])]
                lines += ["", *usage(of_command), *options(of_command, headed=False)]
        lines += epilog(grammar.epilog or "")
        others = [f".BR wcet-{text(n)} (1)" for n in names] if not name else [".BR wcet (1)"]
        lines += [".SH SEE ALSO", ",\n".join(others), ".PP", "Pages of the documentation:"]
        lines.append('.BR "wcet help" .')
        yield f"{page}.1", "\n".join(lines) + "\n"


def subparsers(
    grammar: argparse.ArgumentParser,
) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    """The commands of a grammar, if it has some."""
    actions = (a for a in grammar._actions if isinstance(a, argparse._SubParsersAction))
    return next(actions, None)


def text(plain: str) -> str:
    """``plain`` as roff reads it: no control lines, and hyphens that can be copied."""
    escaped = plain.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def usage(grammar: argparse.ArgumentParser) -> Iterator[str]:
    """The command line; no word is broken."""
    line = " ".join(grammar.format_usage().removeprefix("usage: ").split())
    yield from (".ad l", ".nh")
    yield re.sub(r"^(wcet(?: [a-z]\S*)*)", r"\\fB\1\\fP", text(line))
    yield from (".hy", ".ad b")


def paragraphs(plain: str) -> Iterator[str]:
    """Text as roff; indented text becomes a list of words with explanations, or stays unchanged."""
    for block in re.split(r"\n\s*\n", plain.strip("\n")):
        yield ".PP"
        lines, at = block.split("\n"), 0
        while at < len(lines):
            tagged = TAGGED.fullmatch(lines[at])
            if tagged:
                indent = tagged.start(2)
                yield from (".TP 10", f".B {text(tagged[1])}", text(tagged[2]))
                at += 1
                while at < len(lines) and lines[at].startswith(" " * indent):
                    yield text(lines[at].strip())
                    at += 1
            elif lines[at].startswith(" "):
                yield from (".PP", ".EX")
                while at < len(lines) and lines[at].startswith(" "):
                    yield text(lines[at])
                    at += 1
                yield ".EE"
            else:
                yield text(lines[at])
                at += 1


def options(grammar: argparse.ArgumentParser, *, headed: bool = True) -> Iterator[str]:
    """Arguments, then options, each with its explanation; a page has headings for them."""
    formatter = grammar._get_formatter()
    shown = [a for a in grammar._actions if a.help != argparse.SUPPRESS]
    for heading, wanted in (("ARGUMENTS", False), ("OPTIONS", True)):
        actions = [
            a
            for a in shown
            if bool(a.option_strings) is wanted and not isinstance(a, argparse._SubParsersAction)
        ]
        if actions and headed:
            yield f".SH {heading}"
        for action in actions:
            yield from (".TP", f"\\fB{text(formatter._format_action_invocation(action))}\\fP")
            yield text(formatter._expand_help(action)) if action.help else ""


def epilog(plain: str) -> Iterator[str]:
    """Examples, unchanged, and exit statuses, each under its heading."""
    heading = ""
    parts: dict[str, list[str]] = {}
    for line in plain.split("\n"):
        if match := HEADING.match(line):
            heading, line = match[1], match[2].strip()
        parts.setdefault(heading, []).append(line)
    for heading, lines in parts.items():
        body = "\n".join(lines).strip("\n")
        if heading:
            yield f".SH {heading.upper()}"
        if heading == "examples":
            yield from (".EX", *(text(line.removeprefix("  ")) for line in body.split("\n")), ".EE")
        elif body:
            yield from paragraphs(body)


def write(folder: Path, found: Iterable[tuple[str, str]]) -> None:
    """Write the pages, and remove older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1"):
        old.unlink()
    for name, page in found:
        (folder / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, pages())
