"""The shipped kernel at levels of optimisation that it is not shipped with: nothing is unresolved.

``make campaign-extraction ARGS=kernel`` tries all levels, and Clang; see docs/extraction.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.extract import extract
from quoll.image import Image
from quoll.verify import verify_program
from tests.campaigns.corpora_kernel import build_kernel
from tests.campaigns.extraction import entries_of


@pytest.mark.parametrize("level", ["O0", "Os"])
def test_everything_is_resolved(level: str, tmp_path: Path) -> None:
    image = Image.load(build_kernel(tmp_path, "gcc", level))
    program = extract(image, entries_of(image))
    verify_program(program)
    assert program.unresolved == ()
    assert len(program.functions) > 80
    assert len([table for table in program.jump_tables if len(table.targets) > 1]) > 4
