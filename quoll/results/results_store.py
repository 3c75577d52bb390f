"""The results store: records in one folder, each under the key of its request.

A record is used only if nobody else can have written it, and its digest is the digest of its key
and content (rule 31). The digest finds accidents; permissions keep out all other users. So a folder
is used only if it belongs to the user, others may not write to it, and nobody else can replace it;
a record is read only if it is a regular file of the user that others may not write to. Checks apply
to the opened file, not to its name.

A faulty record or folder never stops a run: missing results are recomputed, new ones are not
stored, and one warning per run says so. Writing is atomic. When the records exceed the limit, the
least recently used ones are removed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from quoll.printable import printable
from quoll.results.serialization import CorruptRecord, from_text, to_text
from quoll.terminal import clearing

__all__ = ["LIMIT_VARIABLE", "NOWHERE", "ResultsStore", "begin_run", "user_folder", "warn_once"]

LIMIT_VARIABLE = "QUOLL_CACHE_MIB"
LIMIT = 256  # MiB
LARGEST = 1 << 28  # most bytes of one record, compressed and uncompressed
FILL_AFTER_EVICTION = 0.75  # of the limit, after the oldest have been removed
ABANDONED = 3600  # seconds after which an unfinished file counts as abandoned by its writer
MAGIC, SUFFIX, PARTIAL = b"quoll record 1\n", ".quoll", ".part"
DIGEST = 32  # bytes
OTHERS = stat.S_IWGRP | stat.S_IWOTH
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
ELSEWHERE = "or give another folder with --cache DIR"

_warned = False


class ResultsStore:
    """A folder of records; None: nothing is stored. ``limit``: bytes, default the user's limit."""

    def __init__(self, folder: Path | None, limit: int | None = None) -> None:
        self._folder = folder
        self._most = _limit() if limit is None and folder is not None else limit or 0  # bytes
        self._total: int | None = None  # bytes of all records, as far as this run knows
        self._useless = False  # nothing can be read or written
        self._full = False  # nothing can be written
        self._safe = False  # nobody else can replace the folder

    @staticmethod
    def of_user() -> ResultsStore:
        """The store in the user's cache folder."""
        return ResultsStore(user_folder())

    @property
    def enabled(self) -> bool:
        """Whether results are stored at all."""
        return self._folder is not None

    def get(self, key: str) -> bytes | None:
        """The content under ``key``, if it is present, intact, and written by this user."""
        with self._opened(make=False) as folder:
            return None if folder is None else self._read(folder, key)

    def put(self, key: str, content: bytes) -> None:
        """Store ``content`` atomically."""
        if self._folder is None or self._full or len(content) > LARGEST:
            return
        with self._opened(make=True) as folder:
            if folder is None:
                return
            body = zlib.compress(content, 1)
            data = MAGIC + _digest(key, body) + body
            try:
                if len(data) <= self._most:
                    self._write(folder, key, data)
                    self._shrink(folder, len(data))
            except OSError as fault:
                self._full = True
                self._warn(
                    f"{self._folder} cannot be written to ({_reason(fault)}): results of this run "
                    f"are not stored; make room there, {ELSEWHERE}, or --no-cache"
                )

    def load(self, key: str, kind: type) -> Any:
        """The value of class ``kind`` that ``save`` stored under ``key``; None without one."""
        content = self.get(key)
        if content is None:
            return None
        try:
            value = from_text(content.decode())
        except (CorruptRecord, ValueError):
            value = None
        if not isinstance(value, kind):
            self._warn_foreign(key, f"does not hold a {kind.__name__}")
            return None
        return value

    def save(self, key: str, value: object) -> None:
        """Store a value that ``quoll.results.serialization`` can write."""
        if self._folder is not None and not self._full:
            self.put(key, to_text(value).encode())

    @contextmanager
    def _opened(self, *, make: bool) -> Iterator[int | None]:
        """The open folder, or None if it is unusable; with ``make`` it is created."""
        opened = None if self._useless else self._open(make=make)
        try:
            yield opened
        finally:
            if opened is not None:
                os.close(opened)

    def _open(self, *, make: bool) -> int | None:
        folder = self._folder
        if folder is None:
            return None
        try:
            if make:
                _make(folder)
            opened = os.open(folder, FOLDER)
        except OSError as fault:
            if isinstance(fault, FileNotFoundError) and not make:
                return None
            self._refuse(f"cannot be used ({_reason(fault)})", "give another one with --cache DIR")
            return None
        why = _others(os.fstat(opened))
        if not why and not self._safe:
            why = _others_above(folder)
        if why:
            os.close(opened)
            self._refuse(f"is not used: {why}", f"repair that, {ELSEWHERE}")
            return None
        self._safe = True
        return opened

    def _read(self, folder: int, key: str) -> bytes | None:
        try:
            file = os.open(key + SUFFIX, READ, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as fault:
            self._warn_foreign(key, f"cannot be read ({_reason(fault)})")
            return None
        try:
            status = os.fstat(file)
            why = _unfit(status)
            body = b"" if why else _body(file, key, status.st_size)
            content = None if body is None or why else zlib.decompress(body)
            with suppress(OSError):
                os.utime(file)
        except (OSError, ValueError, zlib.error, MemoryError) as fault:
            why, content = f"cannot be read ({_reason(fault)})", None
        finally:
            os.close(file)
        if content is None:
            self._warn_foreign(key, why or "is corrupt: its digest does not match its content")
        return content

    def _write(self, folder: int, key: str, data: bytes) -> None:
        temporary = f"{os.urandom(16).hex()}{PARTIAL}"
        file = os.open(temporary, WRITE, 0o600, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            os.replace(temporary, key + SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise

    def _shrink(self, folder: int, added: int) -> None:
        """Remove the least recently used records while the limit is exceeded."""
        if self._total is not None:
            self._total += added
            if self._total <= self._most:
                return
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith((SUFFIX, PARTIAL)):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found.append((status.st_mtime, status.st_size, entry.name))
        self._total = sum(size for _, size, _ in found)
        too_much, now = self._total > self._most, time.time()
        for used, size, name in sorted(found):
            if name.endswith(PARTIAL) and now - used < ABANDONED:
                continue
            if name.endswith(PARTIAL) or (
                too_much and self._total > FILL_AFTER_EVICTION * self._most
            ):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
                self._total -= size

    def _refuse(self, what: str, remedy: str) -> None:
        """Stop using the folder for the rest of the run."""
        self._useless = True
        self._warn(f"{self._folder} {what}: this run uses no stored results; {remedy}")

    def _warn_foreign(self, key: str, what: str) -> None:
        self._warn(
            f"{self._folder}/{key}{SUFFIX} {what}: it is ignored, and its content is computed "
            f"again; remove it, {ELSEWHERE}"
        )

    def _warn(self, text: str) -> None:
        warn_once(f"results store: {text} (printed once per run)")


NOWHERE = ResultsStore(None)


def user_folder() -> Path | None:
    """``quoll`` in the user's cache folder, by the XDG base directory specification.

    None, with a warning, where there is none.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base, "quoll")
    if base:
        warn_once(
            f"XDG_CACHE_HOME is {base!r}, which is no absolute path: it is ignored, as its "
            "specification says; correct or unset it"
        )
    with suppress(RuntimeError):
        home = Path.home()
        if os.environ.get("HOME") != "" and home.is_absolute():
            return home / ".cache" / "quoll"
    warn_once(
        "there is no home folder, so no results are stored for later runs; set HOME or "
        "XDG_CACHE_HOME, "
        "or give a folder with --cache DIR"
    )
    return None


def begin_run() -> None:
    """Start a run, whose first warning is printed again."""
    global _warned
    _warned = False


def warn_once(text: str) -> None:
    """Print the first warning of a run on standard error; later ones are not printed."""
    global _warned
    if _warned:
        return
    _warned = True
    with suppress(OSError, ValueError, AttributeError):
        print(f"{clearing()}wcet: warning: {printable(text)}", file=sys.stderr, flush=True)


def _limit() -> int:
    """The user's limit, or the default one, in bytes."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text) << 20
    if text:
        warn_once(f"{LIMIT_VARIABLE} is {text!r}, which is no number of MiB: {LIMIT} is taken")
    return LIMIT << 20


def _make(folder: Path) -> None:
    """Make a folder and its parents, for the user alone."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        _make(folder.parent)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _others(status: os.stat_result) -> str:
    """The reason why somebody else could have written there; empty: nobody could."""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}"
    return "others may write to it (chmod go-w)" if status.st_mode & OTHERS else ""


def _others_above(folder: Path) -> str:
    """The reason why somebody else could replace this folder; empty: nobody could.

    In a folder with the sticky bit only the owner of a file can replace it.
    """
    for above in folder.resolve().parents:
        status = above.stat()
        if status.st_uid not in (0, os.geteuid()):
            return f"{above} above it belongs to user {status.st_uid}"
        if status.st_mode & OTHERS and not status.st_mode & stat.S_ISVTX:
            return f"others may write to {above} above it (chmod go-w)"
    return ""


def _unfit(status: os.stat_result) -> str:
    """The reason why a file is not read as a record; empty: it is read."""
    if not stat.S_ISREG(status.st_mode):
        return "is not a plain file"
    if status.st_size > LARGEST:
        return f"is larger than {LARGEST >> 20} MiB"
    why = _others(status)
    return f"may be another user's: {why}" if why else ""


def _body(file: int, key: str, size: int) -> bytes | None:
    """The compressed content of an intact record; None otherwise."""
    chunks, left = [], size
    while left > 0 and (chunk := os.read(file, left)):
        chunks.append(chunk)
        left -= len(chunk)
    data = b"".join(chunks)
    start = len(MAGIC) + DIGEST
    body = data[start:]
    whole = data[:start] == MAGIC + _digest(key, body)
    return body if whole else None


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + body).digest()


def _reason(fault: BaseException) -> str:
    text = fault.strerror if isinstance(fault, OSError) else str(fault)
    return text or type(fault).__name__
