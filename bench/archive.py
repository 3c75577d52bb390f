"""Archives whose bytes depend on their content only."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["SUMS", "write_archive"]

SUMS = "SHA256SUMS"  # for `sha256sum -c`


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """Pack ``files`` into ``path``, a ``NAME.tar.xz`` with the one folder ``NAME``.

    ``files``: by path in the folder; their checksums are added. Order, times, owners and modes are
    fixed. The archive is written only when complete.
    """
    folder = path.name.removesuffix(".tar.xz")
    sums = "".join(f"{_sum(files[name])}  {name}\n" for name in sorted(files))
    everything = {**files, SUMS: sums.encode()}
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w:xz", format=tarfile.USTAR_FORMAT, preset=6
    ) as archive:
        for name in sorted(everything):
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(everything[name])
            info.mode = 0o755 if name.endswith(".elf") else 0o644
            archive.addfile(info, io.BytesIO(everything[name]))
    path.write_bytes(packed.getvalue())


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
