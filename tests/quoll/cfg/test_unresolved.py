"""Open transfers are records of a table: their kinds say which fact would tell."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.cfg.unresolved import CandidateFact, UnresolvedKind, UnresolvedTransfer, WritableSection
from quoll.errors import MissingKind
from quoll.facts.read import parse

WORDS = st.from_regex(r"[a-z]{3}[0-9]{3}", fullmatch=True)
CANDIDATES = CandidateFact("calls at PLACE go to f, g", 2, "others are left out")


@st.composite
def unresolved(draw: st.DrawFn) -> UnresolvedTransfer:
    """An open transfer of any kind."""
    kind = draw(st.sampled_from(UnresolvedKind))
    values = tuple((name, draw(WORDS)) for name in sorted(kind.value.fields))
    unclear = draw(st.sampled_from([(), (0x8000,), (0x8000, 0x8100)]))
    writable = draw(st.sampled_from([None, WritableSection(".text", 0x8000, 0x8FFF)]))
    calls = draw(st.booleans())
    return UnresolvedTransfer(0x8000, "0x8000 <f> a.c:7", kind, values, calls, unclear, writable)


@given(unresolved())
def test_a_record_survives_pickling_and_prints_all_its_values(found: UnresolvedTransfer) -> None:
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert (again.kind, again.reason, again.hint) == (found.kind, found.reason, found.hint)
    assert all(value in found.reason for _, value in found.values)
    assert "{" not in found.reason + found.hint


@given(unresolved())
def test_what_is_missing_is_a_fact_of_its_kind(found: UnresolvedTransfer) -> None:
    missing = found.missing
    assert missing.kind is found.asks
    assert missing.key[0] == (0 if missing.kind is MissingKind.SUPERVISOR_CALLS else found.addr)
    lines = missing.provisional.replace("PLACE", f"{found.addr:#x}")
    assert parse(lines, "meanwhile.facts").facts


@given(unresolved(), unresolved())
def test_the_hint_is_about_what_to_resolve_first(
    found: UnresolvedTransfer, other: UnresolvedTransfer
) -> None:
    behind = replace(found, behind=replace(found, behind=other))
    assert (behind.hint, behind.asks) == (other.hint, other.asks)
    assert behind.reason == found.reason
    proposed = replace(found, proposal=CANDIDATES)
    assert proposed.hint.startswith(f"state it, if that is so: {CANDIDATES.fact}; or ")
    assert proposed.missing.several


def test_no_two_kinds_print_the_same() -> None:
    texts = {(kind.value.reason, kind.value.advice) for kind in UnresolvedKind}
    assert len(texts) == len(UnresolvedKind)


@pytest.mark.parametrize("values", [(), (("text", "bx r0"),), (("doubt", "a"), ("other", "b"))])
def test_every_field_has_a_value(values: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(AssertionError, match="TARGETS"):
        UnresolvedTransfer(0, "0x0", UnresolvedKind.TARGETS, values)
