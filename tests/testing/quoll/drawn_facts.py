"""Facts of every kind, with every kind of place."""

from __future__ import annotations

from hypothesis import strategies as st

from quoll.facts import (
    AtMost,
    Branch,
    Conflict,
    Consistent,
    Fact,
    Ignore,
    IgnoreEdge,
    InitialContents,
    Linear,
    LoopFact,
    LoopParameter,
    NeverReturns,
    PathEnd,
    PathStart,
    PointsInto,
    RecursionFact,
    RegionFact,
    Replaced,
    Require,
    Returns,
    ReturnsEnd,
    Source,
    Targets,
    UnknownPointsInto,
)

NOWHERE = Source("-", 0, "")
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
            PointsInto,
            st.just(NOWHERE),
            PLACES,
            st.none() | st.integers(0, 14),
            NAMES,
            st.sampled_from([1, 4, 256]),
        ),
        st.builds(UnknownPointsInto, st.just(NOWHERE), NAMES),
        st.builds(InitialContents, st.just(NOWHERE), PLACES, NAMES),
        st.builds(LoopFact, st.just(NOWHERE), PLACES, st.integers(1, 2**40)),
        st.builds(
            LoopParameter,
            st.just(NOWHERE),
            PLACES,
            st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
            st.integers(0, 99),
            st.booleans(),
        ),
        st.builds(lambda a, b, s: Conflict(NOWHERE, a, b, *s), PLACES, PLACES, SCOPES),
        st.builds(lambda a, b, s: Consistent(NOWHERE, a, b, *s), PLACES, PLACES, SCOPES),
        st.builds(
            lambda p, n, s: AtMost(NOWHERE, p, n, *s),
            PLACES,
            COUNTS,
            st.one_of(SCOPES, st.just((None, None))),
        ),
        st.builds(lambda p, t: Targets(NOWHERE, p, tuple(t)), PLACES, st.lists(PLACES, min_size=1)),
        st.builds(NeverReturns, st.just(NOWHERE), FUNCTIONS),
        st.builds(Returns, st.just(NOWHERE), PLACES),
        st.builds(
            lambda p, t, s: Branch(NOWHERE, p, t, *s),
            PLACES,
            st.booleans(),
            st.one_of(SCOPES, st.just((None, None))),
        ),
        st.builds(Ignore, st.just(NOWHERE), PLACES),
        st.builds(IgnoreEdge, st.just(NOWHERE), PLACES, PLACES),
        st.builds(Require, st.just(NOWHERE), PLACES),
        st.builds(
            lambda t, r, n, s: Linear(NOWHERE, tuple((f, p) for p, f in t.items()), r, n, *s),
            st.dictionaries(PLACES, FACTORS, min_size=1, max_size=3),
            st.sampled_from(["<=", ">=", "="]),
            st.integers(0, 99),
            st.one_of(SCOPES, st.just((None, None))),
        ),
        st.builds(PathEnd, st.just(NOWHERE), PLACES, st.booleans()),
        st.builds(PathStart, st.just(NOWHERE), PLACES),
        st.builds(ReturnsEnd, st.just(NOWHERE)),
        st.builds(RecursionFact, st.just(NOWHERE), FUNCTIONS, st.integers(1, 2**40)),
        st.builds(Replaced, st.just(NOWHERE), FUNCTIONS, st.integers(1, 2**40), st.booleans()),
    )
