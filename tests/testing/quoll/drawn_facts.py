"""Facts of every kind, with every kind of place."""

from __future__ import annotations

from hypothesis import strategies as st

from quoll.facts.control_flow_facts import NeverReturnsFact, ReturnsFact, TargetsFact
from quoll.facts.count_facts import (
    AtMostFact,
    ConflictFact,
    ConsistentFact,
    LoopFact,
    LoopParameter,
)
from quoll.facts.fact import Fact, FactSource
from quoll.facts.guidance import (
    BranchFact,
    IgnoreEdgeFact,
    IgnoreFact,
    PathEndFact,
    PathStartFact,
    RecursionFact,
    ReplacedFact,
    RequireFact,
    ReturnsEndFact,
)
from quoll.facts.linear import LinearFact
from quoll.facts.memory_facts import (
    InitialContentsFact,
    PointsIntoFact,
    RegionFact,
    UnknownPointsIntoFact,
)

NOWHERE = FactSource("-", 0, "")
SYMBOLS = st.from_regex(r"[A-Za-z_$.][A-Za-z0-9_$.]{0,8}", fullmatch=True)
ADDRESSES = st.integers(0, 2**32 - 1).map(hex)
PLACES = st.one_of(
    SYMBOLS,
    ADDRESSES,
    st.builds("{}+{:#x}".format, SYMBOLS, st.integers(0, 4096)),
    st.builds("{}.c:{}".format, st.from_regex(r"[a-z][a-z0-9_/-]{0,8}", fullmatch=True),
              st.integers(1, 9999)),
)  # fmt: skip
FUNCTIONS = st.one_of(SYMBOLS, ADDRESSES)
SCOPES = st.one_of(st.tuples(FUNCTIONS, st.none()), st.tuples(FUNCTIONS, FUNCTIONS))
FACTORS = st.integers(-9, 9).filter(bool)
COUNTS = st.integers(0, 2**40)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)


def facts() -> st.SearchStrategy[Fact]:
    """Every form, with every kind of place."""
    return st.one_of(
        st.builds(
            RegionFact,
            st.just(NOWHERE),
            NAMES,
            st.integers(0, 1000),
            st.integers(1000, 2**32 - 1),
            st.sampled_from(["cached", "device", "read-only", "tcm", "uncached"]),
        ),
        st.builds(
            PointsIntoFact,
            st.just(NOWHERE),
            PLACES,
            st.none() | st.integers(0, 14),
            NAMES,
            st.sampled_from([1, 4, 256]),
        ),
        st.builds(UnknownPointsIntoFact, st.just(NOWHERE), NAMES),
        st.builds(InitialContentsFact, st.just(NOWHERE), PLACES, NAMES),
        st.builds(LoopFact, st.just(NOWHERE), PLACES, st.integers(1, 2**40)),
        st.builds(
            LoopParameter,
            st.just(NOWHERE),
            PLACES,
            st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
            st.integers(0, 99),
            st.booleans(),
        ),
        st.builds(lambda a, b, s: ConflictFact(NOWHERE, a, b, *s), PLACES, PLACES, SCOPES),
        st.builds(lambda a, b, s: ConsistentFact(NOWHERE, a, b, *s), PLACES, PLACES, SCOPES),
        st.builds(
            lambda p, n, s: AtMostFact(NOWHERE, p, n, *s),
            PLACES,
            COUNTS,
            st.one_of(SCOPES, st.just((None, None))),
        ),
        st.builds(
            lambda p, t: TargetsFact(NOWHERE, p, tuple(t)), PLACES, st.lists(PLACES, min_size=1)
        ),
        st.builds(NeverReturnsFact, st.just(NOWHERE), FUNCTIONS),
        st.builds(ReturnsFact, st.just(NOWHERE), PLACES),
        st.builds(
            lambda p, t, s: BranchFact(NOWHERE, p, t, *s),
            PLACES,
            st.booleans(),
            st.one_of(SCOPES, st.just((None, None))),
        ),
        st.builds(IgnoreFact, st.just(NOWHERE), PLACES),
        st.builds(IgnoreEdgeFact, st.just(NOWHERE), PLACES, PLACES),
        st.builds(RequireFact, st.just(NOWHERE), PLACES),
        st.builds(
            lambda t, r, n, s: LinearFact(NOWHERE, tuple((f, p) for p, f in t.items()), r, n, *s),
            st.dictionaries(PLACES, FACTORS, min_size=1, max_size=3),
            st.sampled_from(["<=", ">=", "="]),
            st.integers(0, 99),
            st.one_of(SCOPES, st.just((None, None))),
        ),
        st.builds(PathEndFact, st.just(NOWHERE), PLACES, st.booleans()),
        st.builds(PathStartFact, st.just(NOWHERE), PLACES),
        st.builds(ReturnsEndFact, st.just(NOWHERE)),
        st.builds(RecursionFact, st.just(NOWHERE), FUNCTIONS, st.integers(1, 2**40)),
        st.builds(ReplacedFact, st.just(NOWHERE), FUNCTIONS, st.integers(1, 2**40), st.booleans()),
    )
