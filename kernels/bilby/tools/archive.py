#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A boot archive of files, in the format of "cpio -H newc": the same bytes at any time.

archive.py NAME=FILE... > archive.cpio
"""

from __future__ import annotations

import sys
from pathlib import Path

REGULAR = 0o100444
TRAILER = "TRAILER!!!"


def padded(data: bytes) -> bytes:
    """Up to a multiple of four bytes."""
    return data + bytes(-len(data) % 4)


def entry(name: str, content: bytes, mode: int) -> bytes:
    """A header, the name and the content; times, owners and numbers of files are 0."""
    fields = [0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
    header = "070701" + "".join(f"{field:08x}" for field in fields)
    return padded(header.encode() + name.encode() + b"\0") + padded(content)


def archive(files: dict[str, bytes]) -> bytes:
    """All files in their order, and the end."""
    entries = [entry(name, content, REGULAR) for name, content in files.items()]
    return b"".join([*entries, entry(TRAILER, b"", 0)])


def main(arguments: list[str]) -> int:
    pairs = [argument.partition("=") for argument in arguments]
    if not pairs or not all(name and file for name, _, file in pairs):
        print("usage: archive.py NAME=FILE...", file=sys.stderr)
        return 2
    files = {name: Path(file).read_bytes() for name, _, file in pairs}
    sys.stdout.buffer.write(archive(files))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
