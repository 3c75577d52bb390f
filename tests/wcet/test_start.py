"""Other distributions with names such as ``cache``: nothing is computed with their modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wcet.start import PACKAGES, clash

ROOT = Path(__file__).resolve().parents[2]
RUN = "import sys; from wcet.start import program; sys.argv = ['wcet', '--help']; program()"


def started(*path: Path) -> subprocess.CompletedProcess[str]:
    """``wcet --help``, where modules are looked for in ``path`` first."""
    return subprocess.run(
        [sys.executable, "-P", "-c", RUN],
        env={**os.environ, "PYTHONPATH": ":".join(map(str, path))},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The packages as pip leaves them: files, and a list of them with sizes."""
    folder = tmp_path / "site"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    files = [path for name in PACKAGES for path in (folder / name).rglob("*") if path.is_file()]
    lines = [f"{f.relative_to(folder)},sha256=x,{f.stat().st_size}\n" for f in files]
    (folder / "quoll-0.dist-info").mkdir()
    (folder / "quoll-0.dist-info/RECORD").write_text("".join(lines))
    return folder


@pytest.mark.slow("starts many processes")
def test_ours(installed: Path) -> None:
    assert clash(ROOT) is None
    run = started(installed)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.slow("starts many processes")
@pytest.mark.parametrize("name", ["cache", "ilp", "pipeline", "loopbounds", "quoll"])
@pytest.mark.parametrize("as_file", [True, False])
def test_another_distribution_comes_first(
    installed: Path, tmp_path: Path, name: str, as_file: bool
) -> None:
    other = tmp_path / "other"
    file = other / (f"{name}.py" if as_file else f"{name}/__init__.py")
    file.parent.mkdir(parents=True)
    file.write_text("raise SystemExit(99)\n")
    run = started(other, installed)
    assert run.returncode == 3
    assert run.stderr.startswith(
        f"wcet: error E113: {file} is found before the package {name} of quoll"
    )
    assert "pipx install quoll" in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("damage", ["another", "gone"])
def test_another_distribution_is_installed_over_ours(installed: Path, damage: str) -> None:
    file = installed / "cache" / "must.py"
    if damage == "gone":
        file.unlink()
    else:
        file.write_text("class Cache: pass\n")
    run = started(installed)
    assert run.returncode == 3
    assert f"{file} is gone, or not the file that quoll installed" in run.stderr


def test_a_package_that_was_removed_with_another_distribution(installed: Path) -> None:
    shutil.rmtree(installed / "ilp")
    run = started(installed)
    assert run.returncode == 3
    assert "ilp" in run.stderr
