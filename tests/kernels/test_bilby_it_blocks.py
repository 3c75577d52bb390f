# SPDX-License-Identifier: BSD-2-Clause
"""A call that is made again in an IT block finds the block as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.testing.bilby.build import BILBY
from tests.testing.bilby.it_blocks import wrong_state


def test_the_state_before_an_svc_is_found_again(tmp_path: Path) -> None:
    """Of every block and every flags with which the SVC is executed; and a wrong bit is seen."""
    assert not wrong_state(BILBY, tmp_path)
    copy = tmp_path / "machine" / "cortex-a8"
    shutil.copytree(BILBY / "machine" / "cortex-a8", copy)
    text = (copy / "flags.h").read_text(encoding="utf-8")
    assert "(before & 0xfc)" in text
    (copy / "flags.h").write_text(text.replace("before & 0xfc", "before & 0xfd"), encoding="utf-8")
    assert wrong_state(tmp_path, tmp_path).startswith("state ")
