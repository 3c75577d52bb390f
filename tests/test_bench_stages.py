"""The waiting times of users are measured as in an installation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.stages import timed


def test_compiled_modules_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timed commands find compiled modules, though the caller's environment stores none."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    (tmp_path / "imported.py").write_text("value = 1\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import imported"
    timed([sys.executable, "-c", program])
    assert list(tmp_path.glob("__pycache__/imported.*.pyc"))
