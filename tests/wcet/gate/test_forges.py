"""The action of GitHub, the component of GitLab and the hook of pre-commit run on a repository.

A small runner replaces the inputs and runs the steps in a shell. Commands of the forge (``pipx``,
``pip``, ``gh``) are scripts that note how they are called, and ``wcet`` is the one of this folder.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.testing.harness.build import ROOT

yaml = importlib.import_module("yaml")  # it has no types

KERNEL = """
.syntax unified
.arm
.global main
.type main, %function
main:
{}
bx lr
"""
SHORT, LONG = "nop", "nop\n" * 64
BUILD = (
    "arm-none-eabi-gcc -mcpu=arm1136jf-s -g -nostdlib -Wl,-Ttext=0xf0010000,--build-id=none,-emain"
    " -o kernel.elf main.S"
)
PROJECT = 'kernel = "kernel.elf"\nplatform = "kzm"\nentries = ["main"]\n'
EXPRESSION = re.compile(r"\$\{\{ *([\w.]+) *\}\}|\$\[\[ *([\w.]+) *\]\]")


@dataclass(frozen=True)
class Repository:
    """A repository with a baseline, in ``folder``; ``tools`` is the first folder of PATH."""

    folder: Path
    tools: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(self.tools / "cache"),
            "LOG": str(self.tools / "log"),
            "GITHUB_STEP_SUMMARY": str(self.tools / "summary"),
            "CI_PROJECT_DIR": str(self.folder),
        }

    def shell(self, command: str, within: str = ".", **more: str) -> int:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            cwd=self.folder / within,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode

    def change(self, body: str) -> None:
        (self.folder / "firmware" / "main.S").write_text(KERNEL.format(body))

    def log(self) -> list[str]:
        """The calls of the tools of the forge."""
        file = self.tools / "log"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("pipx", "pip", "gh"):
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$LOG"\n')
    python = f'[ "$1" = setup ] || exec {sys.executable} -m wcet.cli "$@"'
    (tools / "wcet").write_text(f"#!/bin/sh\n{python}\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    found = Repository(tmp_path / "repository", tools)
    (found.folder / "firmware").mkdir(parents=True)
    (found.folder / "firmware" / "wcet.toml").write_text(PROJECT)
    found.change(SHORT)
    assert found.shell(f"{BUILD} && wcet baseline --quiet", "firmware") == 0
    return found


def replaced(text: str, values: dict[str, str]) -> str:
    """``text`` with the values of its expressions; an unknown one is an error, as on the forge."""
    return EXPRESSION.sub(lambda match: values[match[1] or match[2]], text)


def run_action(repository: Repository) -> dict[str, int]:
    """The exit status of each step; after a failure only steps with ``always()`` run."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    values = {
        "github.action_path": str(ROOT),
        "github.token": "secret",
        "github.sha": "1234",
        "github.repository": "some/where",
        "github.event.pull_request.number": "17",
        "runner.temp": str(repository.tools),
    }
    given = {"folder": "firmware", "build": BUILD}
    for name, one in action["inputs"].items():
        values[f"inputs.{name}"] = given.get(name, replaced(one["default"], values))
    statuses: dict[str, int] = {}
    for step in action["runs"]["steps"]:
        for text in step.get("with", {}).values():
            replaced(text, values)
        if "run" not in step or (any(statuses.values()) and step.get("if") != "always()"):
            continue
        env = {name: replaced(text, values) for name, text in step.get("env", {}).items()}
        within = replaced(step.get("working-directory", "."), values)
        assert step["shell"] == "bash"
        command = replaced(step["run"], values)
        statuses[step["name"]] = repository.shell(command, within, **env)
    return statuses


@pytest.mark.slow("analyses a kernel several times")
def test_the_action_checks_and_comments(repository: Repository) -> None:
    assert run_action(repository) == {"Install": 0, "Build": 0, "Check": 0, "Comment": 0}
    assert repository.log()[0] == f"pipx install {ROOT}"
    repository.change(LONG)
    assert run_action(repository) == {"Install": 0, "Build": 0, "Check": 1, "Comment": 0}
    posted = "gh pr comment 17 --edit-last --create-if-none --body-file"
    assert repository.log()[-1] == f"{posted} {repository.tools}/wcet.md"
    assert "main" in (repository.tools / "wcet.md").read_text()
    assert "main" in (repository.tools / "summary").read_text()
    assert json.loads((repository.tools / "wcet.sarif").read_text())["runs"][0]["results"]


@pytest.mark.slow("analyses a kernel several times")
def test_the_component_writes_its_reports(repository: Repository) -> None:
    text = (ROOT / "templates" / "wcet.yml").read_text()
    spec, _, body = text.partition("\n---\n")
    inputs = yaml.safe_load(spec)["spec"]["inputs"]
    given = {"quoll": "quoll.whl", "folder": "firmware", "build": BUILD}
    values = {f"inputs.{n}": given.get(n, one.get("default", "")) for n, one in inputs.items()}
    job: dict[str, Any] = yaml.safe_load(replaced(body, values))["wcet"]
    repository.change(LONG)
    assert repository.shell("\n".join(job["script"])) == 1
    assert repository.log() == ["pip install quoll.whl"]
    for report in job["artifacts"]["reports"].values():
        assert "main" in (repository.folder / report).read_text()


@pytest.mark.slow("analyses a kernel several times")
def test_the_hook_stops_a_commit(repository: Repository) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["pass_filenames"] is False
    assert repository.shell(hook["entry"], "firmware") == 0
    repository.change(LONG)
    assert repository.shell(f"{BUILD} && {hook['entry']}", "firmware") == 1
