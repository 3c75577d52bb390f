"""Packages of the npm registry whose files the report in a browser embeds.

    python scripts/npm_packages.py

The exact version and the checksum of each package stand in ``wcet/page/npm/package-lock.json``,
which ``npm install --package-lock-only`` writes after a change of ``package.json``. The files come
beside it, in ``node_modules/``: from the user's cache (``$XDG_CACHE_HOME/quoll-npm``), or else from
the registry that ``npm_config_registry`` or npm's configuration names. A file is written only if
the archive has the checksum of the lock file. ``setuptools`` runs this for every wheel, too.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

__all__ = ["BuildWithScripts", "NpmError", "NpmPackage", "install", "locked"]

FOLDER = Path(__file__).resolve().parent.parent / "wcet/page/npm"
VERSIONED = "package.json"  # written last: it tells a complete package
# The embedded file of each package contains the packages on which it depends.
FILES = {"@dagrejs/dagre": ("LICENSE", "dist/dagre.min.js", VERSIONED)}
SECONDS = 30  # for one answer of the registry
TRIES = 3
PAUSE = 1.0  # seconds between tries


class NpmError(Exception):
    """A package that cannot be installed, with the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """A package of the lock file. ``integrity``: the SHA-512 of its archive, in base64."""

    name: str
    version: str
    integrity: str

    @property
    def archive(self) -> str:
        """The file name of the archive, as the registry has it."""
        return f"{self.name.rpartition('/')[2]}-{self.version}.tgz"

    def matches(self, data: bytes) -> bool:
        """Whether an archive has the checksum of the lock file."""
        return base64.b64encode(hashlib.sha512(data).digest()).decode() == self.integrity


def locked(folder: Path = FOLDER) -> Iterator[NpmPackage]:
    """The packages with embedded files. Raises NpmError for one without a SHA-512."""
    packages = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    for name in FILES:
        found = packages[f"node_modules/{name}"]
        kind, _, integrity = found["integrity"].partition("-")
        if kind != "sha512":
            raise NpmError(f"package-lock.json has no SHA-512 of {name}")
        yield NpmPackage(name, found["version"], integrity)


def install(folder: Path = FOLDER) -> None:
    """Put the files of all packages into ``folder``; present ones of the version stay.

    Raises NpmError if the registry does not give a package, or gives another file.
    """
    for package in locked(folder):
        place = folder / "node_modules" / package.name
        if not _is_installed(package, place):
            _unpack(package, _archive(package), place)


def _is_installed(package: NpmPackage, place: Path) -> bool:
    if not all((place / file).is_file() for file in FILES[package.name]):
        return False
    found = json.loads((place / VERSIONED).read_text("utf-8"))["version"]
    return bool(found == package.version)


def _archive(package: NpmPackage) -> bytes:
    """From the cache, or downloaded into it."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cached = base / "quoll-npm" / package.archive
    if cached.is_file() and package.matches(data := cached.read_bytes()):
        return data
    data = _download(package)
    if not package.matches(data):
        raise NpmError(
            f"the checksum of {package.name} {package.version} is not the one this project "
            "expects, so it was not installed. Somebody changed the file: a mirror or a proxy "
            "between you and the npm registry is the usual cause. Try again from another network."
        )
    with contextlib.suppress(OSError):  # without a writable cache it is downloaded every time
        cached.parent.mkdir(parents=True, exist_ok=True)
        _write(cached, data)
    return data


def _registry() -> str:
    """As npm: of the environment, or of npm's configuration. Raises NpmError without both."""
    for name, value in os.environ.items():
        if name.lower() == "npm_config_registry" and value:
            return value.rstrip("/")
    npm = shutil.which("npm")
    command = [npm or "npm", "config", "get", "registry"]
    done = npm and subprocess.run(command, capture_output=True, text=True, check=False)
    named = done.stdout.strip().rstrip("/") if done and done.returncode == 0 else ""
    if not named.startswith("http"):
        raise NpmError(
            "no npm registry is known, from which the script that places the graphs of reports "
            "comes. Install npm (Debian: the package npm), or set npm_config_registry, then run "
            "this again."
        )
    return named


def _download(package: NpmPackage) -> bytes:
    address = f"{_registry()}/{package.name}/-/{package.archive}"
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(address, timeout=SECONDS) as answer:
                return bytes(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or isinstance(error, ValueError) or attempt == TRIES:
                raise NpmError(
                    f"downloading {package.name} {package.version}, which places the graphs of "
                    f"reports, failed: {error} ({address}). Check the network, HTTPS_PROXY, and "
                    "npm_config_registry, then run this again; nothing half-made is kept."
                ) from error
        time.sleep(PAUSE)
    raise AssertionError("the last try returns or raises")


def _unpack(package: NpmPackage, data: bytes, place: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for name in FILES[package.name]:
            member = archive.extractfile(f"package/{name}")
            if member is None:
                raise NpmError(f"{package.archive} has no file package/{name}")
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            _write(place / name, member.read())


def _write(path: Path, data: bytes) -> None:
    """All bytes or none, also for another process that writes the same file."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(data)
    Path(part.name).chmod(0o644)
    os.replace(part.name, path)


class BuildWithScripts(build_py):
    """The modules of a wheel, with the files of the npm packages."""

    def finalize_options(self) -> None:
        """Installs before setuptools looks for files of packages. Raises SetupError."""
        try:
            install()
        except NpmError as error:
            raise SetupError(str(error)) from error
        super().finalize_options()


if __name__ == "__main__":
    try:
        install()
    except NpmError as failure:
        sys.exit(str(failure))
