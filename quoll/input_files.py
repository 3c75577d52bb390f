"""Input files, read whole: only regular files of limited size.

A pipe, a device or a socket may never end, and its content may differ at the next read: a result
would not be reproducible, and no key would name it (rule 31).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

__all__ = ["Unreadable", "read_input"]

LARGEST = 1 << 30  # bytes
KINDS: Mapping[int, str] = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
STEP = 1 << 20


class Unreadable(Exception):
    """The reason why a file cannot be read, as a predicate about the file."""


def read_input(path: str | Path, largest: int = LARGEST) -> bytes:
    """The bytes of the file at ``path``; raises Unreadable.

    Files without a stated size, as in /proc, are read to their end.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as fault:
        raise Unreadable(_reason(path, fault)) from fault
    try:
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            kind = stat.S_IFMT(status.st_mode)
            if kind != stat.S_IFREG:
                raise Unreadable(f"is {KINDS.get(kind, 'no regular file')}: give a regular file")
            if status.st_size > largest:
                raise Unreadable(_too_large(largest))
            data = file.read(status.st_size) if status.st_size else b""
            while more := file.read(STEP):
                data += more
                if len(data) > largest:
                    raise Unreadable(_too_large(largest))
            return data
    except OSError as fault:
        raise Unreadable(_reason(path, fault)) from fault


def _reason(path: str | Path, fault: OSError | ValueError) -> str:
    """The reason why it was not opened or read; the system's message does not mention sockets."""
    try:
        kind = KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
    except (OSError, ValueError):
        kind = None
    if kind is not None:
        return f"is {kind}: give a regular file"
    why = fault.strerror if isinstance(fault, OSError) else None
    return f"cannot be read: {why or fault}"


def _too_large(largest: int) -> str:
    return f"is larger than {largest >> 20:,} MiB"
