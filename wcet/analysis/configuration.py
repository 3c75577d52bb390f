"""The configuration of a result besides its kernel and facts: the platform and relevant options.

Two results are comparable only if their configurations are equal (rule 52). Options for effort, and
the folder of results, are excluded.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping

from wcet.analysis.analysis_options import AnalysisOptions
from wcet.platforms.platform_model import Platform

__all__ = ["configuration"]

DIGITS = 16  # of the hash of a platform


def configuration(options: AnalysisOptions, platform: Platform) -> Mapping[str, str]:
    """The settings by name; for the platform the content of its file and its own core."""
    return {
        "platform file": _said(platform),
        "--l2": str(options.l2),
        "--tlb": str(options.tlb),
        "--data-index": str(options.data_index),
        "--set": ", ".join(f"{name}={n}" for name, n in sorted(options.parameters.items())),
        "--unroll": str(options.vivu.unroll),
        "--share": str(options.summary_settings),
        "--from-reset": str(options.loaded_memory.from_reset),
        "--interrupts": str(options.interrupts),
        "--prove-stated": str(options.bounds.prove_stated),
        "S1": str(options.bounds.s1),
    }


def _said(platform: Platform) -> str:
    """A hash of the platform file, which has been read and checked before."""
    file = tomllib.loads(platform.path.read_text("utf-8"))
    said = json.dumps([file, platform.timing.own_rows], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:DIGITS]
