"""Written integer programs, read and solved by HiGHS itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import highspy

__all__ = ["maximum"]


def maximum(path: Path) -> float | None:
    """The optimum of the program in an LP or MPS file; None if it has none."""
    make: Callable[[], highspy.Highs] = highspy.Highs
    highs = make()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) != highspy.HighsStatus.kError, path.read_text()
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return float(highs.getInfo().objective_function_value)
