"""Programs that only tests need: ``scripts/setup python3 tests`` installs them."""

from __future__ import annotations

import os
import shutil

import pytest

__all__ = ["needs"]


def needs(*programs: str) -> pytest.MarkDecorator:
    """A test that is skipped without these programs, but not where all tests must run."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(
        bool(missing) and not os.environ.get("CI"),
        reason=f"there is no {', '.join(missing)}: scripts/setup python3 tests",
    )
