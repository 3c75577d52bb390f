"""Facts about memory: named regions, and registers that point into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quoll import assumptions
from quoll.errors import FactsError
from quoll.facts.fact import (
    ADDRESS,
    NAME,
    NUMBER,
    PLACE,
    Fact,
    FactForm,
    FactSource,
    FactStage,
    FactSubject,
    PlacedFact,
    number,
)
from quoll.facts.invariants import REGISTERS

__all__ = [
    "FORMS",
    "KINDS",
    "InitialContentsFact",
    "ObjectRegionFact",
    "PointsIntoFact",
    "RegionFact",
    "UnknownPointsIntoFact",
]

KINDS = ("cached", "device", "read-only", "tcm", "uncached")


@dataclass(frozen=True, slots=True)
class RegionFact(Fact):
    """``region NAME from LOW to HIGH is KIND``: virtual addresses, both included.

    ``fixed`` (``and fixed``): the MMU is off, or every page table maps them alike for the kernel.
    """

    stage = FactStage.VALUES
    assumption = assumptions.REGION

    name: str
    low: int
    high: int
    kind: str
    fixed: bool = False

    def fields(self) -> Mapping[str, str | int]:
        kind = f"{self.kind} and fixed" if self.fixed else self.kind
        low, high = hex(self.low), hex(self.high)
        return {"name": self.name, "low": low, "high": high, "kind": kind}

    def subject(self) -> FactSubject:
        return ("region", self.name), (self.low, self.high, self.kind, self.fixed)


@dataclass(frozen=True, slots=True)
class ObjectRegionFact(PlacedFact):
    """``region SYMBOL is KIND``: the bytes of an object of the ELF; ``located`` finds them."""

    stage = FactStage.VALUES
    assumption = assumptions.OBJECT_REGION

    kind: str

    def fields(self) -> Mapping[str, str | int]:
        return {"object": self.place, "kind": self.kind}

    def subject(self) -> FactSubject:
        return ("region", self.place), self.kind

    def located(self, low: int, size: int) -> RegionFact:
        """The region at the address of the object. Raises FactsError if its size is not known."""
        if not size:
            raise FactsError(
                f"the size of {self.place} is not known",
                where=str(self.source),
                hint=f"write: region {self.place} from 0xLOW to 0xHIGH is {self.kind}",
            )
        return region(self.source, self.place, low, low + size - 1, self.kind, fixed=False)


@dataclass(frozen=True, slots=True)
class InitialContentsFact(PlacedFact):
    """``region NAME holds its initial contents at ENTRY``: no store has hit it before."""

    stage = FactStage.EXTRACTION
    assumption = assumptions.INITIAL

    region: str

    def fields(self) -> Mapping[str, str | int]:
        return {"name": self.region, "entry": self.place}

    def subject(self) -> FactSubject:
        return ("initial contents", self.region, self.place), True


@dataclass(frozen=True, slots=True)
class PointsIntoFact(PlacedFact):
    """``register rN at PLACE points into NAME``, optionally ``aligned`` to a power of two bytes.

    It holds whenever the instruction at the place is about to execute. ``register`` is None for
    ``access at PLACE points into NAME``: the address of the first accessed byte.
    """

    stage = FactStage.VALUES
    assumption = assumptions.POINTER

    register: int | None
    region: str
    aligned: int = 1

    def fields(self) -> Mapping[str, str | int]:
        tail = f" aligned {self.aligned}" if self.aligned > 1 else ""
        what = "access" if self.register is None else f"register r{self.register}"
        return {"what": what, "place": self.place, "region": f"{self.region}{tail}"}

    def subject(self) -> FactSubject:
        return ("points", self.register, self.place), (self.region, self.aligned)


@dataclass(frozen=True, slots=True)
class UnknownPointsIntoFact(Fact):
    """``accesses of unknown address point into NAME``, with all their bytes.

    An address is unknown if its possible values span more than half of the region's size, it is not
    computed from a stack pointer, and its base is not the pc.
    """

    stage = FactStage.VALUES
    assumption = assumptions.UNKNOWN_POINTER

    region: str

    def fields(self) -> Mapping[str, str | int]:
        return {"region": self.region}

    def subject(self) -> FactSubject:
        return ("unknown",), self.region


def region(
    source: FactSource, name: str, low: int, high: int, kind: str, *, fixed: bool
) -> RegionFact:
    """A region, refused if it ends before it begins or beyond the address space."""
    if not low <= high < 1 << 32:
        raise FactsError(
            f"a region is from its lowest to its highest address, not {low:#x} to {high:#x}",
            where=str(source),
        )
    if fixed and kind == "read-only":
        raise FactsError(
            "'read-only' is about contents, 'fixed' about translation: state two facts",
            where=str(source),
        )
    return RegionFact(source, name, low, high, kind, fixed)


def points(
    source: FactSource, register: str, place: str, name: str, aligned: int
) -> PointsIntoFact:
    """A pointer fact; raises FactsError for an invalid register ("": an access) or alignment."""
    if register and register not in REGISTERS:
        raise FactsError(f"there is no register {register}", where=str(source))
    if aligned < 1 or aligned & (aligned - 1):
        raise FactsError(f"{aligned} is no power of two", where=str(source))
    return PointsIntoFact(source, place, REGISTERS.get(register), name, aligned)


FORMS = (
    FactForm(
        r"region \S+ from\b",
        rf"region (?P<name>{NAME}) from (?P<low>{ADDRESS}) to (?P<high>{ADDRESS}) "
        rf"is (?P<kind>{'|'.join(KINDS)})(?P<fixed> and fixed)?",
        f"region NAME from 0xLOW to 0xHIGH is {'|'.join(KINDS)} [and fixed]",
        lambda s, m: region(
            s, m["name"], number(m["low"]), number(m["high"]), m["kind"], fixed=bool(m["fixed"])
        ),
    ),
    FactForm(
        r"region \S+ is\b",
        rf"region (?P<place>{NAME}) is (?P<kind>{'|'.join(KINDS)})",
        f"region SYMBOL is {'|'.join(KINDS)}",
        lambda s, m: ObjectRegionFact(s, m["place"], m["kind"]),
    ),
    FactForm(
        r"region \S+ holds\b",
        rf"region (?P<name>{NAME}) holds its initial contents at (?P<place>{PLACE})",
        "region NAME holds its initial contents at ENTRY",
        lambda s, m: InitialContentsFact(s, m["place"], m["name"]),
    ),
    FactForm(
        r"accesses of\b",
        rf"accesses of unknown address point into (?P<name>{NAME})",
        "accesses of unknown address point into NAME",
        lambda s, m: UnknownPointsIntoFact(s, m["name"]),
    ),
    FactForm(
        r"access at\b",
        rf"access at (?P<place>{PLACE}) points into (?P<name>{NAME})"
        rf"(?: aligned (?P<aligned>{NUMBER}))?",
        "access at PLACE points into NAME [aligned BYTES]",
        lambda s, m: points(s, "", m["place"], m["name"], number(m["aligned"] or "1")),
    ),
    FactForm(
        r"register \S+ at\b",
        rf"register (?P<register>\w+) at (?P<place>{PLACE}) points into (?P<name>{NAME})"
        rf"(?: aligned (?P<aligned>{NUMBER}))?",
        "register rN at PLACE points into NAME [aligned BYTES]",
        lambda s, m: points(s, m["register"], m["place"], m["name"], number(m["aligned"] or "1")),
    ),
)
