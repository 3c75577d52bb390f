"""A small program, linked into the kernel window, bounded under a text of facts."""

from __future__ import annotations

from pathlib import Path

from loopbounds.proof.options import BoundOptions
from wcet.analysis.analyse import analyse
from wcet.analysis.options import Options
from wcet.analysis.result import Result
from wcet.analysis.stages import Stages

__all__ = ["AT", "bounded"]

AT = "-Wl,-Ttext=0xf0010000"


def bounded(
    elf: Path, folder: Path, facts: str, *entries: str, platform: str = "cubieboard"
) -> Result:
    """The entries of ``elf`` under ``facts``. Raises WcetError as ``wcet analyse`` does."""
    file = folder / "test.facts"
    file.write_text(facts)
    options = Options(
        entries=entries,
        platform=platform,
        l2=None,
        facts=(file,),
        neighbouring_facts=False,
        ends=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(workers=1),
    )
    return analyse(elf, options, Stages(verbose=False))
