# SPDX-License-Identifier: BSD-2-Clause
"""The instructions of an assembly file, each of which can be left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kernels.bilby.verification.mutation.fault import Edit, Place, Site, normal

OPERATOR = "leave out an instruction"
SUFFIXES = (".S", "_asm.h", "/lock.h")
COMMENT = re.compile(rb"/\*.*?\*/", re.S)
DEFINED = re.compile(rb"^[ \t]*#(?:\\\n|[^\n])*", re.M)
BEGINS = re.compile(r"(?:\.macro\s+|function\s+)(\w+)|([\w\\]+):")
NAMES = ("function",)  # macros that only name the following code


def is_assembly(file: str) -> bool:
    return file.endswith(SUFFIXES)


def instructions(file: str, source: bytes) -> list[Site]:
    """In order. A macro that is used is one instruction, and those inside of it are others."""
    return list(_sites(file, source))


def _sites(file: str, source: bytes) -> Iterator[Site]:
    seen: Counter[tuple[str, str]] = Counter()
    function, at = "", 0
    for line in _blanked(source).splitlines(keepends=True):
        words = line.decode()
        begins = BEGINS.match(words.strip())
        if begins is not None and not (begins[2] or "").isdigit():
            function = begins[1] or begins[2]
        start = at + len(line) - len(line.lstrip())
        text = line.strip()
        at += len(line)
        if begins is not None and begins[2] is not None:
            rest = line[line.index(b":") + 1 :]
            start, text = at - len(rest.lstrip()), rest.strip()
        if not text or text.startswith(b".") or text.split()[0].decode() in NAMES:
            continue
        end = start + len(text)
        edit = Edit(OPERATOR, start, end, b"", Place("instruction", start, end))
        said = normal(text)
        yield Site(file, function, said, seen[function, said], start, end, (edit,))
        seen[function, said] += 1


def _blanked(source: bytes) -> bytes:
    """Comments and the preprocessor's lines are spaces, so that places stay."""

    def spaces(match: re.Match[bytes]) -> bytes:
        return re.sub(rb"[^\n]", b" ", match[0])

    return DEFINED.sub(spaces, COMMENT.sub(spaces, source))
