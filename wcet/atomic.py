"""Output files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from quoll.errors import UsageError

__all__ = ["write_atomically"]


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` beside ``path`` and rename it into place.

    A device or pipe (``/dev/stdout``) is written to directly. Raises UsageError if the place
    cannot be written; an existing file is then untouched.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text)
            return
        target = path.resolve()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.chmod(name, 0o666 & ~current_umask())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def current_umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
