"""What a result answers beside its kernel and its facts: the platform, and options that count.

Two results are of one question only if all of this is equal (rule 52). Options that only say how
hard to try, or where results are kept, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from quoll.kept.identity import LeftOut, key_of
from wcet.analysis.options import Options
from wcet.platforms import platform as platforms
from wcet.platforms.platform import Platform

__all__ = ["question"]

DIGITS = 16  # of the identity of a platform
WORDS = "words for people"
LEFT_OUT: LeftOut = {
    "wcet.platforms.platform.Platform": {
        "path": "what was read from the file is walked",
        "sources": WORDS,
        "description": WORDS,
    }
}


def question(options: Options, platform: Platform) -> Mapping[str, str]:
    """By name; ``platform`` is taken as its file says, without the image."""
    board = platforms.load(str(platform.path))
    return {
        "platform file": key_of("platform", board, left_out=LEFT_OUT)[:DIGITS],
        "--l2": str(options.l2),
        "--tlb": str(options.tlb),
        "--data-index": str(options.data_index),
        "--set": ", ".join(f"{name}={n}" for name, n in sorted(options.parameters.items())),
        "contexts": str(options.vivu),
        "shared functions": str(options.sharing),
        "--from-reset": str(options.extra.from_reset),
        "--interrupts": str(options.interrupts),
        "--prove-stated": str(options.bounds.prove_stated),
        "S1": str(options.bounds.s1),
    }
