"""The cache key of a request: every input of the stages before the integer program.

One function computes it (rule 31), from the typed request, the image, the platform, the facts, and
the versions of all code involved. It covers every field except for those in ``LEFT_OUT``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ilp.solvers.cbc import Cbc
from loopbounds.nusmv.nusmv_run import find_solver
from quoll.errors import SolverError
from quoll.facts.fact import Fact, FactStage
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.results.cache_key import LeftOut, key_of
from quoll.results.versions import Version, file_version, versions
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.platforms.platform_model import Platform

__all__ = ["CODE", "LEFT_OUT", "matters", "request_key", "solutions_key"]

CODE = ("quoll", "cache", "pipeline", "loopbounds", "ilp", "wcet")
RESULTS_FOLDER = "the place of stored results does not change them"
PLATFORM = "the key covers the platform with this option applied"
READ = "the key covers the content of the file"

FACTS = "the key covers the facts that were read"


# Every field of a request that is not in its key, with the reason.
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
        "exits": "the key covers the addresses that they name",
        "parameters": "only integer programs read them; the keys of their solutions have them",
        "store": RESULTS_FOLDER,
        "programs": "their folder changes no bound, and no solution is reused then",
        "interrupts": "the latency is computed anew from the bounds of the entries",
    },
    "loopbounds.proof.options.BoundOptions": {
        "store": RESULTS_FOLDER,
        "models": "their folder changes no bound, and no cached result is used then",
        "workers": "proofs are the same in any number of processes",
    },
    "quoll.inlining.sharing.SummarySettings": {
        "preemptible": "the records tell whether it has an effect; one without it is always right"
    },
    "wcet.analysis.raw_memory.LoadedMemory": {
        "names": "the symbols in these files are part of the image"
    },
    "quoll.image.image.RawMemory": {"path": READ},
    "wcet.platforms.platform_model.Platform": {"path": READ},
    "quoll.facts.fact.FactSource": dict.fromkeys(
        ("file", "line", "text"),
        "facts are compared by their meaning; the lines in a record are updated",
    ),
}


def matters(fact: Fact) -> bool:
    """Whether a stage before the integer program reads facts of this kind."""
    return fact.stage is not FactStage.INTEGER_PROGRAM


def request_key(
    options: AnalysisOptions, image: Image, platform: Platform, facts: Facts, exits: Iterable[int]
) -> str:
    """A key that is equal for two requests only if all their entries have the same results."""
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


def solutions_key(options: AnalysisOptions, facts: Facts) -> str:
    """The key of the inputs that only integer programs read, for results that contain solutions.

    Solutions of functions with a summary name the facts that limit counts by file, line and text.
    """
    sources = [(f.source.file, f.source.line, f.source.text) for f in facts.facts]
    parameters = sorted(options.parameters.items())
    return key_of("solutions", tuple(facts.facts), sources, parameters, left_out=LEFT_OUT)


def programs() -> tuple[Version, ...]:
    """The hashes of the solvers' programs."""
    found = []
    for name, find in (("NuSMV", find_solver), ("CBC", lambda: Cbc().program)):
        try:
            path = Path(os.path.realpath(find()))
            found.append((name, file_version(path)))
        except SolverError:
            found.append((name, "absent"))
    return tuple(found)
