"""The cache key of a request: every input of the stages before the integer program.

One function makes it (rule 31): of the typed request, the image, the platform, the facts, and the
versions of all code that takes part. Every field is walked; ``LEFT_OUT`` names those that are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ilp.solvers.cbc import Cbc
from loopbounds.nusmv.nusmv_run import find_solver
from quoll.errors import SolverError
from quoll.facts import Fact, Facts, FactStage
from quoll.image.image import Image
from quoll.results.cache_key import LeftOut, key_of
from quoll.results.versions import Version, file_version, versions
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.platforms.platform_model import Platform

__all__ = ["CODE", "LEFT_OUT", "matters", "request_key"]

CODE = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
RESULTS_FOLDER = "where results are kept does not change them"
PLATFORM = "the platform, as it is with it, is walked"
READ = "what was read from the file is walked"

FACTS = "the facts that were read are walked"


# Every field of a request that is not in its key, and why.
LEFT_OUT: LeftOut = {
    "wcet.analysis.analysis_options.AnalysisOptions": {
        "entries": "each entry has a key of its own, of its name and address",
        "platform": PLATFORM,
        "l2": PLATFORM,
        "tlb": PLATFORM,
        "data_index": PLATFORM,
        "facts": FACTS,
        "sources": FACTS,
        "neighbouring_facts": FACTS,
        "exits": "the addresses that they name are walked",
        "parameters": "only the integer program reads them; the key of its answers has them",
        "store": RESULTS_FOLDER,
        "programs": "where they are written changes no bound, and no answer is recalled then",
        "interrupts": "the latency is computed anew from the bounds of the entries",
    },
    "loopbounds.proof.options.BoundOptions": {
        "store": RESULTS_FOLDER,
        "models": "where they are written changes no bound, and nothing is recalled then",
        "workers": "proofs are the same in any number of processes",
    },
    "wcet.analysis.raw_memory.LoadedMemory": {
        "names": "the symbols in these files are part of the image"
    },
    "quoll.image.image.RawMemory": {"path": READ},
    "wcet.platforms.platform_model.Platform": {"path": READ},
    "quoll.facts.fact.FactSource": dict.fromkeys(
        ("file", "line", "text"),
        "facts are compared by what they say; the lines in a record are brought up to date",
    ),
}


def matters(fact: Fact) -> bool:
    """Whether a stage before the integer program reads facts of this kind."""
    return fact.stage is not FactStage.INTEGER_PROGRAM


def request_key(
    options: AnalysisOptions, image: Image, platform: Platform, facts: Facts, exits: Iterable[int]
) -> str:
    """Equal for two requests only if all their entries have the same results."""
    return key_of(
        "request",
        options,
        image.identity,
        platform,
        tuple(fact for fact in facts.facts if matters(fact)),
        sorted(exits),
        versions(*CODE),
        programs(),
        left_out=LEFT_OUT,
    )


def programs() -> tuple[Version, ...]:
    """The bytes of the solvers that are run."""
    found = []
    for name, find in (("NuSMV", find_solver), ("CBC", lambda: Cbc().program)):
        try:
            path = Path(os.path.realpath(find()))
            found.append((name, file_version(path)))
        except SolverError:
            found.append((name, "absent"))
    return tuple(found)
