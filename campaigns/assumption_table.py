"""The table of assumptions in docs/soundness.md: ``make campaign-assumption_table``."""

from __future__ import annotations

import re

from campaigns.documented import markdown, replace
from quoll.assumptions import KINDS

HEAD = ("listed as", "proved by", "refuted by", "checked by")


def written() -> str:
    """A row of the table for each kind; fields in capitals."""
    return markdown(
        HEAD,
        (
            (
                f"`{re.sub(r'{(.+?)}', lambda m: m[1].upper(), kind.template + kind.promises)}`",
                kind.proved_by,
                kind.refuted_by,
                kind.checked_by,
            )
            for kind in KINDS
        ),
    )


if __name__ == "__main__":
    replace("soundness.md", "assumptions", written())
