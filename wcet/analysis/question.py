"""What a result answers beside its kernel and its facts: the platform, and options that count.

Two results are of one question only if all of this is equal (rule 52). Options that only say how
hard to try, or where results are kept, are left out.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping

from wcet.analysis.options import Options
from wcet.platforms.platform import Platform

__all__ = ["question"]

DIGITS = 16  # of the hash of a platform


def question(options: Options, platform: Platform) -> Mapping[str, str]:
    """By name; of the platform what its file says, without comments, and its own core."""
    return {
        "platform file": _said(platform),
        "--l2": str(options.l2),
        "--tlb": str(options.tlb),
        "--data-index": str(options.data_index),
        "--set": ", ".join(f"{name}={n}" for name, n in sorted(options.parameters.items())),
        "--unroll": str(options.vivu.unroll),
        "shared functions": str(options.sharing),
        "--from-reset": str(options.extra.from_reset),
        "--interrupts": str(options.interrupts),
        "--prove-stated": str(options.bounds.prove_stated),
        "S1": str(options.bounds.s1),
    }


def _said(platform: Platform) -> str:
    """A hash of it. The file was read before, so that it is there and of this form."""
    file = tomllib.loads(platform.path.read_text("utf-8"))
    said = json.dumps([file, platform.timing.own_rows], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:DIGITS]
