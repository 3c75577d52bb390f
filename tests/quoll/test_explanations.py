"""Every error that can be printed has a code of its own, and every code an explanation."""

from __future__ import annotations

from collections.abc import Iterator

from quoll.errors import WcetError
from quoll.explanations import EXPLANATIONS
from quoll.recordings.follow import MissingEdge, RefutedFact
from scripts.reference import error_codes

OF_THE_START = "E113"  # wcet/start.py, which cannot import an error


def classes(base: type[WcetError] = WcetError) -> Iterator[type[WcetError]]:
    for kind in base.__subclasses__():
        if kind.__module__.partition(".")[0] in ("quoll", "wcet", "loopbounds", "ilp", "pipeline"):
            yield kind
            yield from classes(kind)


def test_every_class_has_a_code_of_its_own() -> None:
    codes = {kind: vars(kind)["code"] for kind in set(classes())}
    assert len(codes) >= 12
    assert {MissingEdge, RefutedFact} <= codes.keys(), "errors outside quoll/errors.py count, too"
    assert sorted(codes.values()) == sorted(EXPLANATIONS.keys() - {OF_THE_START})
    assert all(EXPLANATIONS[code].status == kind.exit_status for kind, code in codes.items())


def test_the_page_has_every_code() -> None:
    page = error_codes()
    for code, one in EXPLANATIONS.items():
        assert f"\n## {code}: {one.title}\n" in page
        assert one.cause in page
        assert one.cure in page
