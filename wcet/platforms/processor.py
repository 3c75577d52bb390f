"""A check by build attributes that a binary is built for the platform's core.

A name of another processor, another architecture or profile, and extensions that the core lacks are
refused. A fitting binary may still be built for another core of the same architecture: unless the
name is the core's own, "this binary runs on that core" is an assumption (rule 37).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from quoll.arm.architecture import Extension
from quoll.assumptions import FORCED_CORE, RUNS_ON, Assumption
from quoll.errors import InputError
from quoll.image.attributes import BuildAttributes
from wcet.platforms.toml_table import TomlTable

__all__ = ["Processor", "check_processor", "check_profile"]

MICROCONTROLLER = "M"
ARCHITECTURE = re.compile(r"\d.*")  # a Tag_CPU_name that is none: 7-A, 6J, 4T


@dataclass(frozen=True, slots=True)
class Processor:
    """Build attributes of binaries that a core runs as it is described."""

    title: str
    names: tuple[str, ...]
    architectures: tuple[str, ...]
    profiles: tuple[str, ...]
    multiprocessing: bool
    division: bool
    extensions: frozenset[Extension]  # extensions besides ARMv6
    revisions: frozenset[Extension]  # extensions of later revisions only

    @property
    def version(self) -> int:
        """The version of the architecture: 6 or 7."""
        return 7 if Extension.V7 in self.extensions else 6

    @staticmethod
    def load(path: Path) -> Processor:
        """The processor that a file describes. Raises InputError if it is missing or wrong."""
        top = TomlTable.load(path)
        found = Processor(
            top.text("title"),
            top.texts("names"),
            top.texts("architectures"),
            top.texts("profiles"),
            top.flag("multiprocessing"),
            top.flag("division"),
            _extensions(top, "extensions"),
            _extensions(top, "revisions"),
        )
        top.close()
        return found

    def is_named(self, cpu: str | None) -> bool:
        """Whether ``cpu`` is a name of this processor and no other."""
        return cpu is not None and cpu.casefold() in map(str.casefold, self.names)

    def conflict(self, built: BuildAttributes) -> str | None:
        """The evidence that a binary is not built for this processor."""
        named = self.is_named(built.cpu)
        if built.cpu and not named and not ARCHITECTURE.fullmatch(built.cpu):
            return f"Tag_CPU_name is {built.cpu}"
        if built.arch is not None and built.arch not in self.architectures:
            return f"Tag_CPU_arch is {built.arch}"
        if built.profile is not None and built.profile not in self.profiles:
            return f"Tag_CPU_arch_profile is {built.profile}"
        if built.multiprocessing and not self.multiprocessing:
            return "Tag_MPextension_use: it may use the multiprocessing extension"
        if built.division and not self.division:
            return "Tag_DIV_use: it may divide by sdiv and udiv"
        return None


def _extensions(top: TomlTable, key: str) -> frozenset[Extension]:
    known = {extension.value: extension for extension in Extension}
    names = top.texts(key)
    for name in names:
        if name not in known:
            raise top.error(key, f"{name} is no extension; known are {', '.join(known)}")
    return frozenset(known[name] for name in names)


def check_profile(built: BuildAttributes, profiles: tuple[str, ...] = ()) -> None:
    """Raise InputError for a binary of the M profile, unless it is one of ``profiles``.

    The M profile has other exceptions, exception returns and status registers, so that no
    assumption makes a bound for a core of the A or R profile true.
    """
    said = built.microcontroller
    if said is not None and MICROCONTROLLER not in profiles:
        raise InputError(
            f"the binary is for the M profile of the architecture: {said}; exceptions, status "
            "registers and returns are others there than on the cores that are known",
            hint="--force-core does not change that; build it for a core of the A profile, or "
            "analyse the functions that both have in such a build",
        )


def check_processor(
    built: BuildAttributes, platform: str, processor: Processor, *, force: bool
) -> tuple[Assumption, ...]:
    """The assumption about the processor. Raises InputError for a binary built for another one.

    A binary of the M profile is refused even with ``force``.
    """
    check_profile(built, processor.profiles)
    fault = processor.conflict(built)
    if fault is not None:
        if not force:
            raise InputError(
                f"the binary is not built for {processor.title}, the core of {platform}: {fault}",
                hint="choose another board with --platform; if it does run there, --force-core "
                "bounds it so and lists that as an assumption",
            )
        return (FORCED_CORE.of(platform=platform, core=processor.title, misfit=fault),)
    if processor.is_named(built.cpu):
        return ()
    said = f"name {built.cpu or 'none'}, architecture {built.arch or 'none'}"
    return (RUNS_ON.of(platform=platform, core=processor.title, said=said),)
