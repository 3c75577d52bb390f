"""OTAWA's flow facts as XML (``.ffx``), read and written.

Numbers have the meaning of the text format (``quoll.exchange.otawa_text``): ``maxcount`` bounds
back edges. A loop inside of ``function`` holds in invocations of that function only; it is read if
its label is that function's own, so that it cannot belong to another one. Entity declarations are
refused, because their expansion has no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from xml.parsers import expat

from quoll.errors import FactsError
from quoll.exchange.stated import (
    ABOVE,
    ImportedFact,
    ImportedFacts,
    label_place,
    line_place,
    number,
    refused,
)
from quoll.printable import shortened

__all__ = ["read_ffx", "write_ffx"]

LOCATION = {"address", "label", "offset", "source", "line"}
COUNTS = {"maxcount", "totalcount", "mincount"}
# Attributes that only describe the origin of the numbers.
OF_A_LOOP = {"loopId", "exact", "executed", "expmaxcount", "exptotalcount"}
UNKNOWN = ("NOCOMP", "NOCMP", "")
TARGETS = ("multibranch", "multicall")
DEEPEST = 200
UTF_8 = "utf-8"
OF_ASCII = (
    "ascii",
    "us-ascii",
    "iso-8859-1",
    "latin1",
    "windows-1252",
)  # these agree with UTF-8 on ASCII


def read_ffx(data: bytes, file: str) -> ImportedFacts:
    """The facts of a file; raises FactsError for text that is not XML, or not supported."""
    reader = _Reader(file)
    reader.read(data)
    return ImportedFacts(tuple(reader.facts), tuple(reader.remarks))


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[tuple[str, Mapping[str, str]]] = []
        self._branch: tuple[int, str, str] | None = None  # line, element, place
        self._targets: list[str] = []
        self._ascii = False
        self._parser = expat.ParserCreate(UTF_8)  # overrides the encoding declared in the file
        self._parser.XmlDeclHandler = self._declared
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self.facts: list[ImportedFact] = []
        self.remarks: list[str] = []

    def read(self, data: bytes) -> None:
        """Read the whole file."""
        self._ascii = data.isascii()
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise FactsError(
                f"is not XML: {expat.errors.messages[error.code]}",
                where=f"{self._file}:{error.lineno}",
            ) from error

    def _declared(self, _: str, encoding: str | None, __: int) -> None:
        name = (encoding or UTF_8).lower()
        if name != UTF_8 and not (self._ascii and name in OF_ASCII):
            raise self._refused(f"encoding {shortened(name)}", "a file is UTF-8 text")

    def _doctype(self, name: str, *_: object) -> None:
        raise self._refused(f"<!DOCTYPE {name}>", "declarations of a document type are refused")

    def _text(self, data: str) -> None:
        if data.strip():
            raise self._refused(shortened(data.strip()), "facts are elements, not text")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEEPEST:
            raise self._refused(name, f"elements are nested more than {DEEPEST} deep")
        around = self._open[-1][0] if self._open else ""
        match name:
            case "flowfacts" if not around:
                pass
            case "function" if around == "flowfacts":
                self._known(name, attributes, LOCATION)
            case "loop" if around in ("flowfacts", "function", "loop"):
                self._loop(attributes)
            case "noreturn" if around == "flowfacts":
                self._fact(f"{self._place(name, attributes)} never returns")
            case "return" if around == "flowfacts":
                self._fact(f"{self._place(name, attributes)} returns to its caller")
            case "multibranch" | "multicall" if around == "flowfacts":
                line = self._parser.CurrentLineNumber
                self._branch = line, name, self._place(name, attributes)
                self._targets = []
            case "target" if around in TARGETS:
                self._targets.append(self._place(name, attributes))
            case "call":
                raise self._refused(name, "it holds in one calling context only")
            case _:
                why = f"no fact means the same inside of '{around}'" if around else "it is no root"
                raise self._refused(name, why)
        self._open.append((name, attributes))

    def _end(self, name: str) -> None:
        self._open.pop()
        if name in TARGETS and self._branch is not None:
            line, _, place = self._branch
            if not self._targets:
                raise refused(self._file, line, name, "it has no target")
            text = f"targets of {place} are {', '.join(self._targets)}"
            self.facts.append(ImportedFact(line, text))

    def _loop(self, attributes: Mapping[str, str]) -> None:
        self._known("loop", attributes, LOCATION | COUNTS | OF_A_LOOP)
        functions = [of for name, of in self._open if name == "function"]
        owner = functions[-1].get("label") if functions else None
        if functions and owner is None:
            raise self._refused("loop", "it holds in a function that has no label")
        if owner is not None and attributes.get("label", owner) != owner:
            raise self._refused("loop", f"it holds only where it is called from {owner}")
        if owner is not None and not attributes.keys() & {"label", "offset"}:
            raise self._refused("loop", f"it holds in {owner} only, and has no label of that")
        place = self._place("loop", {"label": owner, **attributes} if owner else attributes)
        count = attributes.get("maxcount", "")
        line = self._parser.CurrentLineNumber
        if count in UNKNOWN:
            self.remarks.append(f"{self._file}:{line}: the loop has no maximum, and is left out")
            return
        least = attributes.get("mincount", "")
        if least not in UNKNOWN and self._number("loop", least) > self._number("loop", count):
            raise self._refused("loop", ABOVE)
        if attributes.get("totalcount", "") not in UNKNOWN:
            self.remarks.append(f"{self._file}:{line}: the total is ignored, the maximum is used")
        self._fact(f"loop {place} at most {self._number('loop', count) + 1}")

    def _place(self, name: str, attributes: Mapping[str, str]) -> str:
        """The place of an element, by the first attribute that OTAWA reads."""
        allowed = LOCATION | (COUNTS | OF_A_LOOP if name == "loop" else set())
        self._known(name, attributes, allowed)
        place: str | None = None
        if "address" in attributes:
            place = f"{self._number(name, attributes['address']):#x}"
        elif "label" in attributes:
            offset = attributes.get("offset", "0")
            if offset.startswith("-") and number(offset[1:]) != 0:
                raise self._refused(name, "a place before a label")
            place = label_place(attributes["label"], self._number(name, offset.lstrip("-")))
        elif "source" in attributes and "line" in attributes:
            place = line_place(attributes["source"], self._number(name, attributes["line"]))
        if place is None:
            raise self._refused(name, "it has no place that can be read")
        return place

    def _known(self, name: str, attributes: Mapping[str, str], allowed: set[str]) -> None:
        for attribute in attributes:
            if attribute not in allowed and not attribute.startswith("xmlns"):
                raise self._refused(name, f"the attribute '{attribute}' is not known")

    def _number(self, name: str, text: str) -> int:
        value = number(text)
        if value is None:
            raise self._refused(name, f"'{text[:80]}' is no number")
        return value

    def _fact(self, text: str) -> None:
        self.facts.append(ImportedFact(self._parser.CurrentLineNumber, text))

    def _refused(self, what: str, why: str) -> FactsError:
        return refused(self._file, self._parser.CurrentLineNumber, what, why)


def write_ffx(loops: Iterable[tuple[int, int, str]], about: str) -> str:
    """A file with loops: header address, most executions of it per entry, and a remark."""
    rows = [
        f'  <loop address="{address:#x}" maxcount="{most - 1}"/>  <!-- {_comment(text)} -->'
        for address, most, text in loops
    ]
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f"<!-- {_comment(about)} -->"]
    return "\n".join([*head, "<flowfacts>", *rows, "</flowfacts>"]) + "\n"


def _comment(text: str) -> str:
    """``text`` without the end mark of a comment."""
    return escape(text, quote=False).replace("--", "- -")
