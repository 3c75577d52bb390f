"""Whether the core executes what the analysed code holds (rule 47).

An instruction that the core lacks has no time: it is refused by name. What only later revisions of
a core execute is an assumption, and so is what ``--force-core`` says of another core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from quoll.arm.architecture import Extension, needed_extension
from quoll.arm.insn import Insn
from quoll.assumptions import CORE_HAS, Assumption
from quoll.errors import Missing, TimingError
from quoll.image.image import Image
from wcet.platforms.processor import Processor

__all__ = ["needed_of_core", "refuse_lacking"]

NAMED = 3  # places named in an error besides the first


def refuse_lacking(
    insns: Iterable[Insn],
    image: Image,
    core: Processor,
    missing: Callable[[Mapping[int, str]], Sequence[Missing]],
    *,
    force: bool,
) -> None:
    """Raise TimingError for an instruction that ``core`` lacks, unless ``force``d.

    ``missing`` gives what could be stated instead, for instructions with why each is refused.
    """
    has = core.extensions | core.revisions
    found = {
        i: needed
        for i in insns
        if (needed := needed_extension(i)) is not None and needed not in has
    }
    if not found or force:
        return
    first, needed = next(iter(found.items()))
    raise TimingError(
        f"{first.text} needs {needed.value}, which {core.title} lacks: it takes the undefined "
        f"vector there{_also(found, image)}",
        where=image.place(first.addr),
        hint="choose the board that the binary is for with --platform; if control never gets here: "
        "ignore PLACE; if the core does execute it, --force-core lists that as an assumption",
        missing=missing({i.addr: f"{i.text} needs {e.value}" for i, e in found.items()}),
    )


def needed_of_core(
    insns: Iterable[Insn], image: Image, platform: str, core: Processor
) -> Iterator[Assumption]:
    """What has to be true of the core for the code to run, once for each extension."""
    seen: set[Extension] = set()
    for insn in insns:
        needed = needed_extension(insn)
        if needed is None or needed in seen or needed in core.extensions:
            continue
        seen.add(needed)
        yield CORE_HAS.of(
            platform=platform,
            core=core.title,
            extension=needed.value,
            insn=insn.text,
            place=image.place(insn.addr),
        )


def _also(found: Iterable[Insn], image: Image) -> str:
    _, *others = found
    named = "".join(f"; also {i.text} at {image.place(i.addr)}" for i in others[:NAMED])
    return named + (f"; and {len(others) - NAMED} more" if len(others) > NAMED else "")
