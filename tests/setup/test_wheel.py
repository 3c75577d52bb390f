"""The built wheel in a clean environment, outside of the repository: the first hour of a user.

pip gets the packages from where it is configured to.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.testing.bilby.build import BUILD
from tests.testing.harness.cases import spread

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")


def run(folder: Path, *command: str | Path, status: int = 0) -> str:
    """Run in ``folder`` as a user with a home of its own and none of this environment."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    keep = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_", "http", "HTTP"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**keep, "HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources, so that nothing is left in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    for name in (*PACKAGES, "docs"):
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    (sources / "scripts").mkdir()
    for name in ("pyproject.toml", "LICENSE", "scripts/npm_packages.py"):
        shutil.copy(ROOT / name, sources / name)
    pages = runpy.run_path(str(ROOT / "scripts/man.py"))
    pages["write"](sources / "build/man", pages["pages"]())
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(folder, *pip, "--wheel-dir", folder, sources)
    return next(folder.glob("*.whl"))


@pytest.mark.slow("builds and installs the wheel")
def test_the_wheel_has_every_file(wheel: Path) -> None:
    """The files beside the modules: figures of cores, boards, C sources, checksums."""
    held = set(zipfile.ZipFile(wheel).namelist())
    files = (p for name in PACKAGES for p in (ROOT / name).rglob("*") if p.is_file())
    wanted = {str(p.relative_to(ROOT)) for p in files if "__pycache__" not in p.parts}
    assert wanted <= held
    assert "wcet/page/npm/node_modules/@dagrejs/dagre/dist/dagre.min.js" in held


@pytest.mark.slow("builds and installs the wheel")
@pytest.mark.parametrize("versions", spread(["oldest", "newest"], 1))
def test_the_first_hour(wheel: Path, tmp_path: Path, versions: str) -> None:
    folder = tmp_path / "a user"
    folder.mkdir()
    for name in ("kernel.elf", "kernel.facts"):
        shutil.copy(BUILD / name, folder)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = [Requirement(text) for text in project["dependencies"]]
    oldest = [f"{r.name}=={s.version}" for r in ranges for s in r.specifier if s.operator == ">="]
    run(folder, sys.executable, "-m", "venv", "env")
    install = ["env/bin/python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    install.append("--no-compile")  # most modules are never imported here
    run(folder, *install, wheel, *(oldest if versions == "oldest" else []))
    wcet = folder / "env/bin/wcet"
    assert (folder / "env/share/man/man1/wcet-analyse.1").is_file()
    assert run(folder, wcet, "help", "facts").startswith("# ")
    assert run(folder, wcet, "--version") == f"wcet {project['version']}\n"
    assert "missing: wcet setup" in run(folder, wcet, "setup", "--list")
    library = folder / "home/.local/share/quoll/nusmv/libdependencies.so"
    assert str(library) in run(folder, wcet, "setup")
    assert library.is_file()
    assert [entry.name for entry in library.parent.iterdir()] == [library.name]
    run(folder, wcet, "init", "kernel.elf")
    entry = ("--entry", "undefined", "--quiet")
    assert " nusmv " in run(folder, wcet, "analyse", *entry)
    if versions == "oldest":
        return
    assert "written" in run(folder, wcet, "baseline", *entry)
    run(folder, wcet, "analyse", *entry, "--html", "report.html")
    assert (folder / "report.html").read_text().endswith("</html>\n")
    run(folder, wcet, "check", *entry)
    run(folder, wcet, "check", *entry, "--budget", "undefined=1us", status=1)
