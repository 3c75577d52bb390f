"""Records on disk: damage, foreign files and folders, size, and folders that cannot be used."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quoll.results import results_store as stores
from quoll.results.results_store import (
    LIMIT_VARIABLE,
    MAGIC,
    NOWHERE,
    ResultsStore,
    begin_run,
    user_folder,
)

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture(autouse=True)
def fresh_run() -> None:
    """Every test is a run."""
    begin_run()


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every user may read."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def warnings(capsys: pytest.CaptureFixture[str]) -> str:
    """The warnings printed, at most one line."""
    text = capsys.readouterr().err
    assert text.count("\n") <= 1, text
    return text


def record(folder: Path) -> Path:
    """The only file of a store."""
    (path,) = folder.iterdir()
    return path


def test_what_was_put_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ResultsStore(tmp_path / "a" / "b")
    assert store.get("k") is None
    store.put("k", b"text\n" * 1000)
    assert store.get("k") == b"text\n" * 1000
    assert store.get("other") is None
    store.put("k", b"new")
    assert ResultsStore(tmp_path / "a" / "b").get("k") == b"new"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert not warnings(capsys)


def test_values_are_kept_by_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ResultsStore(tmp_path)
    store.save("k", (1, frozenset({"ä"})))
    assert store.load("k", tuple) == (1, frozenset({"ä"}))
    assert not warnings(capsys)
    assert store.load("k", frozenset) is None
    assert "does not hold a frozenset" in warnings(capsys)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"[", b'[["d", "os:system", "ls"]]'])
def test_content_that_is_no_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    store = ResultsStore(tmp_path)
    store.put("k", content)
    assert store.load("k", tuple) is None
    assert "computed again" in warnings(capsys)


def test_without_a_folder_nothing_is_kept() -> None:
    NOWHERE.put("k", b"text")
    assert NOWHERE.get("k") is None
    assert not NOWHERE.enabled


def test_every_damaged_byte_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One warning, however much is corrupt."""
    store = ResultsStore(tmp_path / "s")
    store.put("k", b"the bound is 1000 cycles")
    path = record(tmp_path / "s")
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert store.get("k") is None, at
        path.write_bytes(whole[:at])
        assert store.get("k") is None, at
    path.write_bytes(whole + b"\0")
    assert store.get("k") is None
    said = warnings(capsys)
    assert "is corrupt" in said
    assert "remove it" in said
    path.write_bytes(whole)
    assert store.get("k") is not None
    store.put("k", b"new")
    assert store.get("k") == b"new"


def test_content_that_was_edited_with_a_digest_of_the_content_alone(tmp_path: Path) -> None:
    """The digest is of key and content: a record of one question answers no other."""
    store = ResultsStore(tmp_path / "s")
    store.put("k", b"text")
    path = record(tmp_path / "s")
    path.rename(path.with_name("other.quoll"))
    assert store.get("other") is None
    body = zlib.compress(b"31")
    path.write_bytes(MAGIC + stores._digest("", body) + body)
    assert store.get("k") is None


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("x")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def link(path: Path) -> None:
    """To a record that is whole: it may be changed where it stands."""
    good = path.with_name("good")
    stored = ResultsStore(path.with_name("there"))
    stored.put("k", b"planted")
    record(path.with_name("there")).rename(good)
    path.symlink_to(good)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("absent"))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def writable(path: Path) -> None:
    link(path)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    path.chmod(0o666)


def nothing(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_bytes(b'{"bound": 31, "reached": 31, "relations": 1, "seconds": 0}')


@pytest.mark.parametrize(
    "make", [fifo, folder, huge, link, dangling, device, writable, nothing, text]
)
def test_what_is_no_record_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    """At once, with one warning; and it is replaced, unless it is a folder."""
    store = ResultsStore(tmp_path / "s")
    store.put("other", b"text")
    path = tmp_path / "s" / "k.quoll"
    make(path)
    assert store.get("k") is None
    assert str(path) in warnings(capsys)
    store.put("k", b"new")
    assert store.get("k") == (None if make is folder else b"new")
    assert store.get("other") == b"text"


@needs_root
def test_a_record_of_another_user_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ResultsStore(tmp_path / "s")
    store.put("k", b"text")
    os.chown(record(tmp_path / "s"), NOBODY, NOBODY)
    assert store.get("k") is None
    assert f"belongs to user {NOBODY}" in warnings(capsys)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722, 0o1777])
def test_a_folder_that_others_may_write_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int
) -> None:
    folder = tmp_path / "s"
    ResultsStore(folder).put("k", b"text")
    folder.chmod(mode)
    store = ResultsStore(folder)
    assert store.get("k") is None
    store.put("k2", b"text")
    assert "others may write to it" in warnings(capsys)
    folder.chmod(0o700)
    assert ResultsStore(folder).get("k2") is None
    assert ResultsStore(folder).get("k") == b"text"


@pytest.mark.parametrize(("mode", "used"), [(0o777, False), (0o1777, True), (0o775, False)])
def test_a_folder_that_others_may_replace_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int, used: bool
) -> None:
    """Unless the sticky bit of the folder above forbids it."""
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(mode)
    ResultsStore(above / "s").put("k", b"text")
    assert (ResultsStore(above / "s").get("k") is not None) == used
    assert ("others may write to" in warnings(capsys)) != used


@needs_root
def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ResultsStore(tmp_path / "s").put("k", b"text")
    os.chown(tmp_path / "s", NOBODY, NOBODY)
    assert ResultsStore(tmp_path / "s").get("k") is None
    assert f"belongs to user {NOBODY}" in warnings(capsys)
    assert ResultsStore(tmp_path / "s" / "inner").get("k") is None


def test_what_cannot_be_written_is_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    for place in (tmp_path / "file", tmp_path / "file" / "s", Path("/proc/quoll")):
        begin_run()
        store = ResultsStore(place)
        store.put("k", b"text")
        assert store.get("k") is None
        assert f"{place} cannot be used" in warnings(capsys)


def test_a_full_disk(tmp_path: Path) -> None:
    """Records that do not fit leave nothing behind, and stored ones stay readable."""
    ResultsStore(tmp_path / "s").put("k", b"text")

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    code = (
        "import os, sys; from pathlib import Path; from quoll.results.results_store import "
        "ResultsStore\n"
        "store = ResultsStore(Path(sys.argv[1]))\n"
        "for name in 'ab': store.put(name, os.urandom(10000))\n"
        "print(store.get('a'), store.get('k'))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=small)
    assert done.stdout == "None b'text'\n"
    assert done.stderr.count("\n") == 1
    assert "cannot be written to (File too large)" in done.stderr
    assert record(tmp_path / "s").name == "k.quoll"


@needs_root
def test_a_folder_that_may_only_be_read_answers(home: Path) -> None:
    """As another user, to whom modes apply: old records are read, new ones are not stored."""
    ResultsStore(home / "s").put("k", b"text")
    os.chown(home / "s", NOBODY, NOBODY)
    os.chown(record(home / "s"), NOBODY, NOBODY)
    record(home / "s").chmod(0o400)
    (home / "s").chmod(0o500)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        store = ResultsStore(home / "s")
        fine = store.get("k") == b"text"
        store.put("k2", b"text")
        os._exit(not (fine and store.get("k") == b"text" and store.get("k2") is None))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    for number in range(20):
        ResultsStore(tmp_path, limit=3000).put(f"k{number}", os.urandom(100).hex().encode())
        for name, back in ((f"k{number}", 100 - number), ("k0", 0)):
            path = tmp_path / f"{name}.quoll"
            if path.exists():
                os.utime(path, (1_700_000_000, 1_700_000_000 - back))
    store = ResultsStore(tmp_path, limit=3000)
    kept = {n for n in range(20) if store.get(f"k{n}") is not None}
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 3000
    assert {0, 19} <= kept
    assert 1 not in kept
    assert len(kept) >= 8


def test_one_store_stays_within_the_limit(tmp_path: Path) -> None:
    """The sizes are added up while a run goes on; files of others are left alone."""
    (tmp_path / "mine.txt").write_text("x" * 5000)
    store = ResultsStore(tmp_path, limit=2000)
    for number in range(50):
        store.put(f"k{number}", os.urandom(100))
        assert sum(p.stat().st_size for p in tmp_path.glob("*.quoll")) <= 2000
    store.put("large", os.urandom(3000))
    assert store.get("large") is None
    assert (tmp_path / "mine.txt").exists()


def test_the_user_sets_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for value, found, said in (("1", b"text", False), ("0", None, False), ("lots", b"text", True)):
        begin_run()
        monkeypatch.setenv(LIMIT_VARIABLE, value)
        store = ResultsStore(tmp_path / value)
        store.put("k", b"text")
        assert store.get("k") == found
        assert (LIMIT_VARIABLE in warnings(capsys)) == said


def test_a_writer_that_has_died_leaves_nothing_for_long(tmp_path: Path) -> None:
    for name, used in (("old", 1_700_000_000), ("new", None)):
        path = tmp_path / f"{name}.part"
        path.write_bytes(b"half")
        if used:
            os.utime(path, (used, used))
    ResultsStore(tmp_path).put("k", b"text")
    assert {p.name for p in tmp_path.iterdir()} == {"k.quoll", "new.part"}


def test_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/a")
    assert user_folder() == Path("/a/quoll")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert user_folder() == tmp_path / ".cache" / "quoll"
    assert not warnings(capsys)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_folder() == tmp_path / ".cache" / "quoll"
    assert "XDG_CACHE_HOME is 'relative'" in warnings(capsys)
    begin_run()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "")
    assert user_folder() is None
    assert "there is no home folder" in warnings(capsys)
