"""``wcet completion``: each shell reads the script, and bash completes with it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from wcet.cli import COMMANDS, main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_script(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)
    assert "platform" in script
    if shutil.which(shell) is None:
        return
    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([shell, "-n", file], check=True)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (["wcet", "anal"], {"analyse"}),
        (["wcet", "analyse", "--plat"], {"--platform"}),
        (["wcet", "check", "--sa"], {"--sarif"}),
        (["wcet", "analyse", "ker"], {"kernel.elf"}),
    ],
)
def test_bash_completes(
    line: list[str], wanted: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "kernel.elf").touch()
    words = " ".join(line)
    code = (
        f"source ./script; COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}\n"
        f"COMP_LINE='{words}'; COMP_POINT={len(words)}\n"
        "$(complete -p wcet | sed 's/.*-F \\([^ ]*\\).*/\\1/') wcet\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == wanted
