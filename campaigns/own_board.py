"""The outputs in docs/your-board.md: ``make campaign-own_board``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.testing.harness import build
from tests.testing.wcet.first_hour import build_handler
from tests.testing.wcet.told import retold

if __name__ == "__main__":
    document = build.ROOT / "docs" / "your-board.md"
    with tempfile.TemporaryDirectory() as folder:
        build_handler("gcc -O2 arm", Path(folder))
        document.write_text(retold(document.read_text("utf-8"), Path(folder)), "utf-8")
