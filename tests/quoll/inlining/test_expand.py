"""Virtual inlining against a naive expansion by strings of calls, and loops drawn by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings

from quoll.arm.decode import decode
from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Block, Edge, EdgeKind, Program
from quoll.errors import ControlFlowError
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.expand import expand, without_edges
from quoll.inlining.supergraph import Supergraph
from tests.testing.harness.cases import cases
from tests.testing.quoll.building import build
from tests.testing.quoll.invariants import InvariantError, verify_program, verify_supergraph
from tests.testing.quoll.random_programs import programs
from tests.testing.quoll.sketch import assemble, extracted

Point = tuple[tuple[int, ...], int]  # call sites from the root, block address
Step = tuple[Point, Point, EdgeKind]


def expanded(image: Image, program: Program, name: str = "main") -> Supergraph:
    """The verified expansion of a function."""
    symbol = image.symbol(name)
    assert symbol
    graph = expand(program, symbol.addr, image)
    verify_supergraph(graph, program)
    return graph


def naive(program: Program, entry: int) -> tuple[set[Step], set[Point]]:
    """Steps and exits on paths from the entry to an exit, by search over explicit call strings.

    Also the steps off these paths: to where no exit is reached from.

    The string of a point is (site, function, site, function, ...) with the return point of each
    call looked up in the function that made it.
    """
    steps: set[Step] = set()
    exits: set[Point] = set()
    owner: dict[tuple[int, ...], int] = {(): entry}
    pending: list[Point] = [((), entry)]
    seen: set[Point] = set()
    while pending:
        point = pending.pop()
        if point in seen:
            continue
        seen.add(point)
        string, addr = point
        cfg = program.functions[owner[string]]
        block = next(b for b in cfg.blocks if b.addr == addr)
        after: list[tuple[Point, EdgeKind]] = []
        for edge in cfg.successors(block.index):
            if edge.kind is not EdgeKind.ACROSS:
                after.append(((string, cfg.blocks[edge.dst].addr), edge.kind))
        for callee in block.calls:
            inner = (*string, block.last.addr, callee)
            owner[inner] = callee
            after.append(((inner, callee), EdgeKind.CALL))
        if block.exits:
            exits.add(point)
        if block.returns:
            back = return_points(program, entry, string)
            if back is None:
                exits.add(point)
            else:
                after.extend((p, EdgeKind.RETURN) for p in back)
        steps.update((point, to, kind) for to, kind in after)
        pending.extend(to for to, _ in after)
    idle = {a for a, _, _ in steps if is_idle(program, owner[a[0]], a[1])}
    while more := {a for a, b, _ in steps if a in idle and b not in idle}:
        idle -= more
    idle -= {a for a in idle if not on_every_way(a, steps)}
    halts = {b for a, b, _ in steps if b in idle and a not in idle}
    steps = {(a, b, k) for a, b, k in steps if a not in idle}
    exits |= halts
    useful = set(exits)
    grown = True
    while grown:
        more = {a for a, b, _ in steps if b in useful} - useful
        useful |= more
        grown = bool(more)
    return {(a, b, k) for a, b, k in steps if a in useful}, exits


def on_every_way(start: Point, steps: set[Step]) -> bool:
    """Whether control comes back to ``start`` from each place that it gets to from there."""
    behind = reached({b for a, b, _ in steps if a == start}, steps)
    return all(start in reached({point}, steps) for point in behind)


def reached(points: set[Point], steps: set[Step]) -> set[Point]:
    """The ends of all sequences of ``steps`` from ``points``, themselves included."""
    found = set(points)
    while more := {b for a, b, _ in steps if a in found} - found:
        found |= more
    return found


def is_idle(program: Program, function: int, addr: int) -> bool:
    """Whether the block at ``addr`` does nothing but jump, or wait."""
    [block] = [b for b in program.functions[function].blocks if b.addr == addr]
    return block.does_nothing


def return_points(program: Program, entry: int, string: tuple[int, ...]) -> list[Point] | None:
    """Where a return from the context ``string`` leads; None out of the root."""
    while string:
        outer, site = string[:-2], string[-2]
        cfg = program.functions[outer[-1] if outer else entry]
        block = next(b for b in cfg.blocks if b.last.addr == site)
        if not block.tail:
            return [
                (outer, cfg.blocks[e.dst].addr)
                for e in cfg.successors(block.index)
                if e.kind is EdgeKind.ACROSS
            ]
        string = outer
    return None


def as_points(graph: Supergraph) -> tuple[set[Step], set[Point]]:
    """The supergraph with call strings and addresses instead of numbers."""
    strings: list[tuple[int, ...]] = []
    for context in graph.contexts:
        if context.parent is None:
            strings.append(())
        else:
            assert context.call_site is not None
            strings.append((*strings[context.parent], context.call_site, context.function))
    points = [(strings[n.context], n.block.addr) for n in graph.nodes]
    steps = {(points[e.src], points[e.dst], e.kind) for e in graph.edges}
    return steps, {points[n] for n in graph.exits}


CALLS = """
__attribute__((noinline)) static int leaf(int x) { return x > 3 ? x * 5 : x; }
__attribute__((noinline)) static int twice(int x) { return leaf(x) + leaf(x + 1); }
__attribute__((noinline, noreturn)) static void stop(void) { for (;;) ; }
__attribute__((noinline)) static int tail(int x) { if (x == 9) stop(); return twice(x + 2); }
int main(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            sum += twice(j);
        if (sum > 100)
            return tail(sum);
    }
    return tail(sum) + 1;
}
"""


@pytest.mark.parametrize("optimise", ["-O0", "-O1", "-O2", "-Os"])
@pytest.mark.parametrize("thumb", [False, True])
def test_compiled_programs_expand_as_the_naive_expansion(optimise: str, thumb: bool) -> None:
    cpu = "cortex-a8" if thumb else "arm1136jf-s"
    image = Image.load(build(CALLS, optimise=optimise, thumb=thumb, cpu=cpu))
    program = extracted(image)
    assert program.unresolved == ()
    graph = expanded(image, program)
    assert as_points(graph) == naive(program, program.entries[0])
    assert 1 <= len(graph.halts) <= 2
    assert not graph.stops
    assert len(graph.contexts) > 5


def test_contexts_loops_and_their_edges() -> None:
    image = assemble(
        """
        main:   push {r4, lr}
        outer:  bl work
        inner:  subs r0, r0, #1
                bne inner
                subs r4, r4, #1
                bne outer
                pop {r4, pc}
                .type work, %function
        work:   subs r1, r1, #1
                bne work
                bx lr
        """
    )
    graph = expanded(image, extracted(image))
    headers = [image.place(graph.nodes[lp.header].block.addr)[11:].split()[0] for lp in graph.loops]
    assert sorted(headers) == ["<inner>", "<outer>", "<work>"]
    outer, *inside = graph.loops
    assert headers[0] == "<outer>"
    assert [lp.parent for lp in inside] == [0, 0]
    assert all(lp.nodes < outer.nodes for lp in inside)
    assert [len(lp.entries) for lp in graph.loops] == [1, 1, 1]
    assert [len(lp.backs) for lp in graph.loops] == [1, 1, 1]
    work = next(lp for lp, h in zip(graph.loops, headers, strict=True) if h == "<work>")
    assert graph.edges[work.entries[0]].kind is EdgeKind.CALL
    assert len(graph.contexts) == 2
    assert [c.function for c in graph.call_string(1)] == [c.function for c in graph.contexts]


def test_tail_calls_return_to_the_caller_of_the_caller() -> None:
    image = assemble(
        """
        main:   push {lr}
                bl first
                pop {pc}
                .type first, %function
        first:  b second
                .type second, %function
        second: bx lr
        """
    )
    program = extracted(image)
    graph = expanded(image, program)
    assert [e.kind for e in graph.edges] == [EdgeKind.CALL, EdgeKind.CALL, EdgeKind.RETURN]
    assert as_points(graph) == naive(program, program.entries[0])


def test_a_call_comes_back_to_the_addresses_in_lr() -> None:
    image = assemble(
        """
        main:   push {r4, lr}
                cmp r0, #0
                adr lr, one
                adreq lr, two
                b leaf
        one:    mov r0, #1
        two:    pop {r4, pc}
                .type leaf, %function
        leaf:   bx lr
        """
    )
    program = extracted(image)
    graph = expanded(image, program)
    returns = [e for e in graph.edges if e.kind is EdgeKind.RETURN]
    assert len(returns) == 2
    assert as_points(graph) == naive(program, program.entries[0])


def test_removed_edges_take_what_only_they_reach() -> None:
    image = Image.load(build(CALLS, optimise="-O1"))
    program = extracted(image)
    graph = expanded(image, program)
    assert without_edges(graph, ()) == graph
    for loop in graph.loops:
        smaller = without_edges(graph, loop.backs, image)
        verify_supergraph(smaller, program, complete=False)
        assert len(smaller.loops) < len(graph.loops)
        steps, _ = as_points(smaller)
        assert steps < as_points(graph)[0]
    with pytest.raises(ControlFlowError, match="no end of a path is reachable"):
        without_edges(graph, range(len(graph.edges)), image)


def test_recursion_shows_its_cycle() -> None:
    image = Image.load(
        build(
            """
            __attribute__((noinline)) int odd(int n);
            __attribute__((noinline)) int even(int n) { return n ? odd(n - 1) * 3 : 1; }
            __attribute__((noinline)) int odd(int n) { return n ? even(n - 1) + 1 : 0; }
            int main(int n) { return even(n) + 1; }
            """,
            optimise="-O1",
        )
    )
    program = extracted(image)
    (cycle,) = call_graph(program).cycles
    assert len(cycle) == 2
    assert cycle[0].callee == cycle[1].caller
    with pytest.raises(
        ControlFlowError, match=r"recursion: (even|odd) -> \w+ -> (even|odd) .* calls odd"
    ):
        expanded(image, program)


def test_too_many_contexts_name_a_recursive_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is reached in ``leaf``, which does not recurse."""
    monkeypatch.setattr("quoll.inlining.expand.ACTIVATIONS", 40)
    text = (
        ".type deep, %function\n.type leaf, %function\nmain: push {r4, lr}\nbl deep\npop {r4, pc}\n"
    )
    text += "deep: push {r4, lr}\ncmp r0, #0\nblne deep\ncmp r0, #1\nblne deep\n" + "bl leaf\n" * 9
    image = assemble(f"{text}pop {{r4, pc}}\nleaf: bx lr\n")
    program = extracted(image, facts=parse("recursion of deep at most 4", "k.facts"))
    with pytest.raises(ControlFlowError, match="smaller depth: recursion of deep at most N"):
        expanded(image, program)


def test_unresolved_branches_and_missing_exits_are_refused() -> None:
    image = assemble("main: push {lr}\nblx r3\npop {pc}")
    with pytest.raises(ControlFlowError, match=r"targets of blx r3 .*targets of PLACE"):
        expanded(image, extracted(image))
    image = assemble("main: b main")
    with pytest.raises(ControlFlowError, match=r"<main> .*no end of a path"):
        expanded(image, extracted(image))


IRREDUCIBLE = """
        main:   cmp r0, #0
                beq second
        first:  subs r1, r1, #1
        second: subs r2, r2, #1
                bne first
                bx lr
"""


def test_irreducible_loops_are_split() -> None:
    image = assemble(IRREDUCIBLE)
    program = extracted(image)
    graph = expanded(image, program)
    blocks = [n.block.addr for n in graph.nodes]
    assert len(blocks) == len(set(blocks)) + 1
    assert len(graph.loops) == 1
    assert {(a[1], b[1], k) for a, b, k in as_points(graph)[0]} == {
        (a[1], b[1], k) for a, b, k in naive(program, program.entries[0])[0]
    }


def test_loops_too_entangled_name_their_blocks() -> None:
    """Every block of a complete graph may jump to every other, through a stated table."""
    names = [f"n{i}" for i in range(14)]
    text = "main: bx r0\n" + "\n".join(f"{n}: bx r0" for n in names) + "\nout: bx lr"
    image = assemble(text)
    program = extracted_with_jumps(image, ["main", *names], [*names, "out"])
    with pytest.raises(ControlFlowError, match=r"several entries need too many copies: .*<n7>"):
        expanded(image, program)


def extracted_with_jumps(image: Image, sites: list[str], targets: list[str]) -> Program:
    """Extraction with the same targets stated for several indirect jumps."""
    from quoll.facts.control_flow_facts import TargetsFact
    from quoll.facts.fact import FactSource
    from quoll.facts.read import Facts

    facts = (TargetsFact(FactSource("k.facts", 1, "fact"), site, tuple(targets)) for site in sites)
    return extracted(image, facts=Facts(tuple(facts)))


def returning(addr: int) -> Block:
    """A block that is one ``bx lr``."""
    return Block(0, (decode(b"\x1e\xff\x2f\xe1", addr, False),), returns=True)


def damaged(program: Program) -> list[Program]:
    """Programs that each break an invariant."""
    entry = program.entries[0]
    cfg = program.functions[entry]
    edge = cfg.edges[0]
    variants = [
        replace(cfg, edges=cfg.edges[1:]),
        replace(cfg, edges=(*cfg.edges, edge)),
        replace(cfg, edges=(*cfg.edges, Edge(edge.src, edge.dst, EdgeKind.RETURN))),
        replace(cfg, blocks=cfg.blocks[::-1]),
        replace(cfg, returns=False),
        replace(cfg, entry=entry + 4),
        replace(cfg, blocks=(*cfg.blocks, returning(cfg.blocks[-1].end + 400))),
        replace(cfg, blocks=(*cfg.blocks[:-1], replace(cfg.blocks[-1], returns=False))),
        replace(cfg, blocks=tuple(replace(b, calls=()) for b in cfg.blocks)),
        replace(cfg, blocks=tuple(replace(b, calls=(4,)) for b in cfg.blocks)),
        replace(cfg, blocks=tuple(replace(b, insns=b.insns[::-1]) for b in cfg.blocks)),
    ]
    return [Program({**program.functions, entry: variant}, program.entries) for variant in variants]


def test_the_verifier_notices_damage() -> None:
    image = Image.load(build(CALLS, optimise="-O1"))
    program = extracted(image)
    for variant in damaged(program):
        with pytest.raises(InvariantError):
            verify_program(variant)


def test_the_verifier_notices_damaged_supergraphs() -> None:
    image = Image.load(build(CALLS, optimise="-O1"))
    program = extracted(image)
    graph = expanded(image, program)
    a, b = graph.edges[0], graph.edges[-1]
    variants = [
        replace(graph, edges=graph.edges[1:]),
        replace(graph, edges=(replace(a, dst=b.dst), *graph.edges[1:])),
        replace(graph, edges=(replace(a, kind=EdgeKind.RETURN), *graph.edges[1:])),
        replace(graph, exits=()),
        replace(graph, exits=(graph.entry,)),
        replace(graph, loops=graph.loops[1:]),
        replace(graph, loops=tuple(replace(lp, entries=lp.backs) for lp in graph.loops)),
        replace(graph, contexts=tuple(replace(c, call_site=1) for c in graph.contexts)),
        replace(graph, successors=graph.successors[::-1]),
        replace(graph, entry=graph.exits[0]),
        replace(graph, nodes=tuple(replace(n, context=0) for n in graph.nodes)),
    ]
    for variant in variants:
        with pytest.raises(InvariantError):
            verify_supergraph(variant, program)


@pytest.mark.slow("many random programs")
@settings(max_examples=cases(12), deadline=None)
@given(programs())
def test_random_programs_expand_as_the_naive_expansion(text: str) -> None:
    image = assemble(text)
    program = extracted(image)
    entry = program.entries[0]
    steps, exits = naive(program, entry)
    if all(is_idle(program, string[-1] if string else entry, at) for string, at in exits):
        with pytest.raises(ControlFlowError, match="no end of a path"):
            expanded(image, program)
        return
    graph = expanded(image, program)
    assert as_points(graph) == (steps, exits)
    assert all(a.header != b.header for a, b in pairwise(graph.loops))


def test_a_smaller_depth_is_asked_of_a_recursive_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, of the function with the most contexts that a fact or a proof gives a depth."""
    monkeypatch.setattr("quoll.inlining.expand.ACTIVATIONS", 20)
    source = """
    __attribute__((noinline)) int leaf(int n) { __asm__ volatile(""); return n + 1; }
    __attribute__((noinline)) int deep(int n) {
        return n ? deep(n - 1) + deep(n - 2) + leaf(n) + leaf(n + 1) + leaf(n + 2) : 0;
    }
    int main(int n) { return deep(n) + leaf(n) + 1; }
    """
    image = Image.load(build(source, optimise="-O1"))
    facts = parse("recursion of leaf at most 3\nrecursion of deep at most 5", "facts")
    with pytest.raises(ControlFlowError, match="recursion makes") as error:
        expanded(image, extracted(image, "main", facts=facts))
    assert error.value.hint == "state a smaller depth: recursion of deep at most N"
