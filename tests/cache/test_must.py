"""Effects on sets: composition, joins, and the concrete direct-mapped cache they describe."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cache.must import EffectBuilder, MustStates
from cache.persistence import persistent_lines

SETS = 4
Steps = list[tuple[str, int]]
LINES = st.integers(0, 11)
STEPS = st.lists(st.tuples(st.sampled_from(["access", "may", "any"]), LINES), max_size=8)


def compose(steps: Steps) -> EffectBuilder:
    builder = EffectBuilder(SETS)
    for kind, line in steps:
        if kind == "access":
            builder.access(line)
        elif kind == "may":
            builder.may_access(line)
        elif line < 3:
            builder.may_access_any(None)
        else:
            builder.may_access_any([line, (line + SETS) % 12])
    return builder


@given(STEPS, STEPS, LINES)
def test_composition_is_sequence(first: Steps, then: Steps, line: int) -> None:
    states = MustStates(SETS)
    one, two, both = (states.effect(compose(s).build()) for s in (first, then, first + then))
    start = states.apply(MustStates.TOP, states.effect(compose([("access", line)]).build()))
    assert states.apply(states.apply(start, one), two) == states.apply(start, both)
    builder = compose(first)
    row = states.row(start)
    assert builder.resident(line, row) == (
        states.row(states.apply(start, one))[line % SETS] == line
    )


@given(STEPS, STEPS, STEPS)
def test_effects_are_monotone(a: Steps, b: Steps, code: Steps) -> None:
    states = MustStates(SETS)
    x, y = (states.apply(MustStates.TOP, states.effect(compose(s).build())) for s in (a, b))
    joined = states.join(x, y)
    effect = states.effect(compose(code).build())
    for state in (x, y):
        assert states.leq(state, joined)
        assert states.leq(states.apply(state, effect), states.apply(joined, effect))
    assert states.known(joined).items() == states.known(x).items() & states.known(y).items()


@given(STEPS, st.data())
def test_resident_lines_are_in_a_direct_mapped_cache(steps: Steps, data: st.DataObject) -> None:
    cache: dict[int, int] = {s: data.draw(LINES) for s in range(SETS)}
    for kind, line in steps:
        if kind == "access" or (kind == "may" and data.draw(st.booleans())):
            cache[line % SETS] = line
        elif kind == "any":
            options = range(12) if line < 3 else [line, (line + SETS) % 12]
            for other in data.draw(st.lists(st.sampled_from(options), max_size=3)):
                cache[other % SETS] = other
    states = MustStates(SETS)
    after = states.apply(MustStates.TOP, states.effect(compose(steps).build()))
    assert all(cache[s] == line for s, line in states.known(after).items())


@given(st.lists(st.frozensets(LINES), max_size=5))
def test_persistent_lines_are_alone_in_their_set(touched: list[frozenset[int]]) -> None:
    every = frozenset().union(*touched)
    expected = {n for n in every if not any(m != n and m % SETS == n % SETS for m in every)}
    assert persistent_lines(touched, SETS) == expected
    assert persistent_lines([*touched, None], SETS) == frozenset()
