"""Tests that share an expensive fixture run in one process, so that it is made once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import os
from pathlib import Path

import pytest


@pytest.mark.xdist_group("shared")
@pytest.mark.parametrize("number", range(4))
def test_some(number):
    Path(__file__).with_name(f"ran-{number}").write_text(str(os.getpid()))
"""


@pytest.mark.slow("starts a run of tests")
def test_a_group_runs_in_one_process(tmp_path: Path) -> None:
    """The installed versions of pytest and xdist understand each other: they may not."""
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "-p",
        "no:cacheprovider",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert len({path.read_text() for path in tmp_path.glob("ran-*")}) == 1
