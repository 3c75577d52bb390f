"""How many random cases a test tries."""

from __future__ import annotations

import os

__all__ = ["cases"]


def cases(few: int) -> int:
    """``few``, as often as the environment's ``CASES`` says: ``make test CASES=10``.

    ``few`` keeps a test at seconds. The campaigns that are recorded have many more.
    """
    return few * int(os.environ.get("CASES", "1"))
