"""Versions of code that computes results (rule 31)."""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from quoll.results import versions
from quoll.results.versions import PACKAGES, ROOT, code_version, file_version, package_version

COMPUTES_NOTHING = {"shtab"}  # scripts for shells


def test_every_package_that_is_required_has_a_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {Requirement(text).name for text in project["dependencies"]}
    assert set(PACKAGES.values()) == required - COMPUTES_NOTHING
    for name, installed in PACKAGES.items():
        version, _, record = package_version(name).partition(".dist-info ")
        assert version.startswith(f"{installed}-"), version
        assert len(record) == 64


def test_no_package_is_imported_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version, other files of the same version, none, and one without a list of hashes."""
    monkeypatch.setattr(versions, "PACKAGES", {"quux": "Quux"})
    monkeypatch.syspath_prepend(tmp_path)

    def version() -> str:
        importlib.invalidate_caches()
        package_version.cache_clear()
        versions._installed.cache_clear()
        code_version.cache_clear()
        return package_version("quux")

    found = [version()]
    assert found == ["absent"]
    package = tmp_path / "quux"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    found.append(version())
    (package / "data").write_text("1")
    found.append(version())
    for number, record in (("1.0", "a"), ("1.0", "b"), ("2.0", "b")):
        for old in tmp_path.glob("*.dist-info"):
            (old / "RECORD").unlink()
            old.rmdir()
        information = tmp_path / f"Quux-{number}.dist-info"
        information.mkdir()
        (information / "RECORD").write_text(record)
        found.append(version())
    assert len(set(found)) == 6
    assert "quux" not in sys.modules


def test_the_code_version_covers_every_file(tmp_path: Path) -> None:
    """Names and contents, and nothing that Python writes by itself."""
    seen = set()

    def look() -> None:
        code_version.cache_clear()
        seen.add(code_version(tmp_path))

    look()
    (tmp_path / "rows.csv").write_text("1")
    look()
    (tmp_path / "rows.csv").write_text("2")
    look()
    (tmp_path / "rows.csv").rename(tmp_path / "other.csv")
    look()
    (tmp_path / "inner").mkdir()
    (tmp_path / "other.csv").rename(tmp_path / "inner" / "other.csv")
    look()
    assert len(seen) == 5
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("1")
    look()
    assert len(seen) == 5


def test_interpreter_and_code_are_in_all_versions() -> None:
    names = [name for name, _ in versions.versions("quoll", "wcet")]
    assert names == ["python", *PACKAGES, "quoll", "wcet"]


def test_files_are_told_apart_by_their_bytes(tmp_path: Path) -> None:
    """One that cannot be read is an answer too: who needs it says so."""
    for name, text in (("a", "1"), ("b", "2"), ("c", "1")):
        (tmp_path / name).write_text(text)
    a, b, c, absent = (file_version(tmp_path / name) for name in "abcd")
    assert a == c != b
    assert "No such file" in absent
