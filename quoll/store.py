"""Texts on disk under the hash of what they follow from (rule 30).

A store never fails a run: what cannot be written is not kept, and a file that is damaged counts
as absent. A folder that another user could write to is not used at all, as a false record would
be a false bound. When the files exceed ``limit`` bytes, those that were used least recently go.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

__all__ = ["Store", "code_version", "key_of"]

LIMIT = 256 * 2**20  # bytes
KEPT = 0.75  # of the limit, after the oldest have gone
SUFFIX = ".quoll"


class Store:
    """A folder of texts; None: nothing is kept."""

    def __init__(self, folder: Path | None, limit: int = LIMIT) -> None:
        self._folder = folder
        self._limit = limit

    def get(self, key: str) -> str | None:
        """The text under ``key``, if it is there and whole."""
        if self._folder is None or not _ours(self._folder):
            return None
        path = self._folder / (key + SUFFIX)
        try:
            data = path.read_bytes()
            digest, body = data[:32], data[32:]
            if hashlib.sha256(key.encode() + body).digest() != digest:
                return None
            text = zlib.decompress(body).decode()
            os.utime(path)
        except (OSError, ValueError, zlib.error):
            return None
        return text

    def put(self, key: str, text: str) -> None:
        """Keep a text; a reader never sees half of it."""
        if self._folder is None:
            return
        body = zlib.compress(text.encode(), 1)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _ours(self._folder):
                return
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(key.encode() + body).digest() + body)
                os.replace(name, self._folder / (key + SUFFIX))
            except BaseException:
                os.unlink(name)
                raise
            self._shrink()
        except OSError:
            return

    def _shrink(self) -> None:
        """Remove what was used least recently while there is too much."""
        assert self._folder is not None
        found = []
        for path in self._folder.iterdir():
            if path.suffix in (SUFFIX, ".part"):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in found)
        if total <= self._limit:
            return
        for _, size, path in sorted(found):
            if total <= KEPT * self._limit:
                return
            path.unlink(missing_ok=True)
            total -= size


def _ours(folder: Path) -> bool:
    """Whether nobody else can write to the folder."""
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def key_of(parts: Iterable[str]) -> str:
    """A name for what the parts say, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


@cache
def code_version(*places: Path) -> str:
    """The hash of files and of every file in folders, and of the names of what Python has
    installed."""
    digest = hashlib.sha256(sys.version.encode())
    for place in places:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and path.suffix != ".pyc":
                digest.update(str(path.relative_to(place)).encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    for folder in sys.path:
        if folder.endswith("site-packages") and os.path.isdir(folder):
            names = sorted(n for n in os.listdir(folder) if n.endswith(".dist-info"))
            digest.update("\0".join(names).encode())
    return digest.hexdigest()
