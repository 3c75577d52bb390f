"""Debian packages by name, unpacked under ``build/corpora``: nothing is installed on the machine.

Compilers and libraries that are installed already are used where they are. Packages of another
architecture are looked up in an apt root of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["CORPORA", "UNPACKED", "environment", "run", "unpack_foreign", "unpack_missing"]

CORPORA = Path(__file__).resolve().parents[1] / "build/corpora"
UNPACKED = CORPORA / "packages"
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/llvm-14/lib")
PROGRAMS = ("usr/bin", "usr/lib/llvm-14/bin")


def run(
    command: Sequence[str | Path], cwd: Path | None = None, env: dict[str, str] | None = None
) -> str:
    """Standard output of a command. Ends the campaign with its messages when it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", cwd=cwd, env=env)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def unpack_missing(packages: Sequence[str]) -> Path:
    """The folder with ``packages`` and their missing dependencies, unpacked."""
    mark = UNPACKED / ".done"
    wanted = "\n".join(packages)
    if mark.exists() and mark.read_text() == wanted:
        return UNPACKED
    plan = run(["apt-get", "install", "--no-install-recommends", "--simulate", *packages])
    missing = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    _unpack(missing, UNPACKED, [])
    mark.write_text(wanted)
    return UNPACKED


def unpack_foreign(package: str, architecture: str, release: str, folder: Path) -> Path:
    """Unpack one package, or its provider, of another architecture into ``folder``."""
    root = (folder / "apt").resolve()
    for part in ("state/lists/partial", "cache/archives/partial"):
        (root / part).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    source = f"deb [arch={architecture} signed-by={KEYRING}] {MIRROR} {release} main\n"
    (root / "sources.list").write_text(source)
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "Dir::Etc::sourcelist": str(root / "sources.list"),
        "Dir::Etc::sourceparts": "-",
        "Dir::State": str(root / "state"),
        "Dir::State::status": str(root / "status"),
        "Dir::Cache": str(root / "cache"),
        "Acquire::Languages": "none",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    run(["apt-get", *options, "update"])
    about = run(["apt-cache", *options, "show", package])
    depends = [line.split()[1] for line in about.splitlines() if line.startswith("Depends:")]
    _unpack([depends[0] if depends else package], folder, options)
    return folder


def _unpack(packages: Sequence[str], folder: Path, options: Sequence[str]) -> None:
    archives = folder / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    if packages:
        run(["apt-get", *options, "download", *packages], cwd=archives)
    for archive in sorted(archives.glob("*.deb")):
        run(["dpkg-deb", "-x", archive, folder])


def environment() -> dict[str, str]:
    """The environment for unpacked programs."""
    programs = ":".join(str(UNPACKED / part) for part in PROGRAMS)
    libraries = ":".join(str(UNPACKED / part) for part in LIBRARIES)
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": libraries,
    }
