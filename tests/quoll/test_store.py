"""Texts on disk: damage, foreign folders, size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quoll.store import Store, code_version, key_of


def record(folder: Path) -> Path:
    """The only file of a store."""
    (path,) = folder.iterdir()
    return path


def test_what_was_put_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "b")
    assert store.get("k") is None
    store.put("k", "täxt\n" * 1000)
    assert store.get("k") == "täxt\n" * 1000
    assert store.get("other") is None
    store.put("k", "new")
    assert Store(tmp_path / "a" / "b").get("k") == "new"


def test_without_a_folder_nothing_is_kept() -> None:
    store = Store(None)
    store.put("k", "text")
    assert store.get("k") is None


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put("k", "the bound is 1000 cycles")
    path = record(tmp_path / "s")
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert store.get("k") is None, at
        path.write_bytes(whole[:at])
        assert store.get("k") is None, at
    path.write_bytes(whole)
    assert store.get("k") is not None


def test_a_record_under_another_name_is_not_believed(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put("k", "text")
    path = record(tmp_path / "s")
    path.rename(path.with_name("other.quoll"))
    assert store.get("other") is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "s"
    store = Store(folder)
    store.put("k", "text")
    folder.chmod(mode)
    assert store.get("k") is None
    store.put("k2", "text")
    folder.chmod(0o700)
    assert store.get("k2") is None
    assert store.get("k") == "text"


def test_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    store = Store(tmp_path / "file" / "s")
    store.put("k", "text")
    assert store.get("k") is None


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path, limit=2000)
    for number in range(20):
        store.put(f"k{number}", os.urandom(100).hex())
        for name, back in ((f"k{number}", 100 - number), ("k0", 0)):
            path = tmp_path / f"{name}.quoll"
            status = path.stat()
            os.utime(path, (status.st_atime, 1_700_000_000 - back))
    kept = {n for n in range(20) if store.get(f"k{n}") is not None}
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 2000
    assert {0, 19} <= kept
    assert 1 not in kept
    assert len(kept) >= 8


def test_keys_tell_parts_apart() -> None:
    assert key_of(["ab", "c"]) != key_of(["a", "bc"])
    assert key_of(["a"]) != key_of(["a", ""])


def test_the_code_version_covers_every_file(tmp_path: Path) -> None:
    folders = [tmp_path / "x", tmp_path / "y"]
    for folder in folders:
        folder.mkdir()
        (folder / "rows.csv").write_text("1")
    first = code_version(folders[0])
    assert first == code_version(folders[1])
    (folders[1] / "rows.csv").write_text("2")
    code_version.cache_clear()
    assert code_version(folders[1]) != first
