"""The instructions that test for interrupts, in all their forms (rules 32, 36)."""

from __future__ import annotations

import pytest

from quoll.errors import ControlFlowError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.inlining.expand import expand, without_edges
from quoll.preemption.pending import PendingTests, find_pending_tests
from quoll.preemption.predicate import PendingPredicate, non_zero
from quoll.preemption.segments import segments
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.quoll.building import address, build
from tests.testing.quoll.sketch import HEADER, assemble
from tests.testing.values.preemptible import HIGH, LOW

REGISTERS = PendingPredicate((non_zero((LOW, HIGH)),))

# A first test, so that something is decided; then a loop that tests before its work.
LOOP = f"""
main:   push {{r4, r5, r6, lr}}
        mov  r4, r0
        ldr  r5, ={LOW - 4:#x}
        ldr  r2, [r5, #4]
        ldr  r3, [r5, #8]
        orrs r2, r2, r3
        bne  done
chunk:  mov  r3, #0
test:   READ
        orrs r2, r2, r3
        bne  done
        mov  r0, #200
word:   subs r0, r0, #1
        bne  word
        subs r4, r4, #1
        bne  chunk
done:   pop  {{r4, r5, r6, pc}}
"""
WHOLE = {
    "both words": "ldrd r2, r3, [r5, #4]",
    "from below": "ldm  r5, {r1, r2, r3}",
    "upwards": "ldmib r5, {r2, r3}",
    "downwards": "add r6, r5, #8\n ldmda r6, {r2, r3}",
    "by an index": "mov r6, #2\n ldr r2, [r5, r6, lsl #1]\n ldr r3, [r5, #8]",
    "conditionally": "cmp r4, #0\n ldrne r2, [r5, #4]\n ldreq r2, [r5, #4]\n ldr r3, [r5, #8]",
}
PARTS = {
    "a byte": "ldrb r2, [r5, #4]",
    "its last byte": "ldrb r2, [r5, #7]",
    "a half-word": "ldrh r2, [r5, #6]",
    "across its end": "ldr  r2, [r5, #2]",
    "one word": "ldr  r2, [r5, #4]",  # of two; the other may be the one that is not 0
    "an unknown address": "ldr  r2, [r1]",
}


def values_of(image: Image) -> ValueResults:
    program = extract(image, [address(image, "main")])
    plain = expand(program, address(image, "main"), image)
    first = analyse(plain, image)
    graph = without_edges(plain, first.dead_edges, image)
    return first.within(graph) or analyse(graph, image)


def pending_in(values: ValueResults, *registers: int) -> PendingTests:
    predicate = PendingPredicate((non_zero(registers or (LOW, HIGH)),))
    found = find_pending_tests(values, predicate)
    assert found is not None
    return found


def starts(image: Image) -> list[int | None]:
    values = values_of(image)
    return [segment.start for segment in segments(values, pending_in(values), image)]


@pytest.mark.parametrize("read", WHOLE.values(), ids=WHOLE.keys())
def test_a_word_that_any_instruction_reads_is_a_test(read: str) -> None:
    """Item 7: an ldm that starts below the registers decided, but started no segment."""
    image = assemble(LOOP.replace("READ", read))
    found = starts(image)
    inside = range(address(image, "chunk"), address(image, "word"))
    assert found[0] is None
    assert any(start in inside for start in found[1:]), found


@pytest.mark.parametrize("read", PARTS.values(), ids=PARTS.keys())
def test_what_may_read_a_part_decides_nothing(read: str) -> None:
    """The loop goes round, and paths start at no such read."""
    image = assemble(LOOP.replace("READ", read))
    values = values_of(image)
    parts = list(segments(values, pending_in(values), image))
    inside = range(address(image, "chunk"), address(image, "word"))
    assert not any(part.start in inside for part in parts)
    headers = {parts[1].graph.nodes[loop.header].block.addr for loop in parts[1].graph.loops}
    assert address(image, "chunk") in headers


# r5 is known at the second read only if an interrupt is pending: no edge tells.
KNOWN_IF_PENDING = f"""
main:   ldr  r5, ={LOW:#x}
        ldr  r2, [r5]
        FIRST
        moveq r5, r0
        mov  r2, #0
        cmp  r1, #0
        beq  on
        nop
on:     ldr  r2, [r5]
        cmp  r2, #0
        bne  out
none:   mov  r0, #100
word:   subs r0, r0, #1
        bne  word
out:    bx   lr
"""


def test_a_read_at_an_address_that_the_assumption_decides_starts_a_path() -> None:
    """A caller that passes the register itself: the read sees nothing, then it arrives."""
    image = assemble(KNOWN_IF_PENDING.replace("FIRST", "cmp r2, #0"))
    values = values_of(image)
    found = pending_in(values, LOW)
    parts = {part.start: part for part in segments(values, found, image)}
    assert address(image, "on") in parts
    run = {node.block.addr for node in parts[address(image, "on")].graph.nodes}
    assert address(image, "word") in run


def test_what_one_register_decides_is_not_taken_for_another() -> None:
    """Equal states under both assumptions: results under one are not reused for the other."""
    first = "ldr r3, [r5, #4]\n orrs r2, r2, r3\n mov r3, #0"
    image = assemble(KNOWN_IF_PENDING.replace("FIRST", first))
    values = values_of(image)
    found = pending_in(values)
    into = {
        e for e, edge in enumerate(values.graph.edges)
        if values.graph.nodes[edge.dst].block.addr == address(image, "none")
    }  # fmt: skip
    assert into
    assert not into & found.dead


def test_a_store_to_a_register_before_the_branch_acknowledges() -> None:
    """The interrupt arrives behind the read, and the store hides it from later reads."""
    for store in ("str r2, [r5, #4]", "strb r2, [r5, #11]", "stm r5, {r1, r2}"):
        text = LOOP.replace("READ", f"ldrd r2, r3, [r5, #4]\n {store}")
        assert find_pending_tests(values_of(assemble(text)), REGISTERS) is None, store
    swap = LOOP.replace("READ", "ldrd r2, r3, [r5, #4]\n add r6, r5, #8\n swp r1, r2, [r6]")
    assert turns(assemble(swap), REGISTERS, "chunk")
    elsewhere = LOOP.replace("READ", "ldrd r2, r3, [r5, #4]\n str r2, [r5]\n str r2, [r5, #12]")
    assert pending_in(values_of(assemble(elsewhere)))


def turns(image: Image, predicate: PendingPredicate, label: str) -> bool:
    """Whether a segment repeats the loop at ``label``."""
    values = values_of(image)
    found = find_pending_tests(values, predicate)
    assert found is not None
    graphs = [segment.graph for segment in segments(values, found, image)]
    headers = {graph.nodes[loop.header].block.addr for graph in graphs for loop in graph.loops}
    return address(image, label) in headers


@pytest.mark.parametrize("store", ["str r2, [r5, #4]", "strb r2, [r5, #11]", "stm r5, {r1, r2}"])
def test_nothing_is_assumed_behind_a_store_to_a_register(store: str) -> None:
    """A loop that stores in each iteration goes round; one before the store does not."""
    text = LOOP.replace("READ", "ldrd r2, r3, [r5, #4]")
    assert not turns(assemble(text), REGISTERS, "chunk")
    inside = text.replace("word:   subs", f"{store}\nword:   subs")
    assert turns(assemble(inside), REGISTERS, "chunk")
    behind = text.replace("done:   pop", f"done:   {store}\n pop")
    assert not turns(assemble(behind), REGISTERS, "chunk")


def test_a_load_that_acknowledges_and_whose_word_is_dropped_is_refused() -> None:
    """Rule 54: after such a load the registers may show nothing, and nobody knows the number."""
    acknowledging = PendingPredicate((non_zero((LOW, HIGH)),), loads=frozenset({LOW + 16}))
    for load in ("ldr r1, [r5, #20]", "ldrb r1, [r5, #23]", "ldm r6, {r1, r6}"):
        moves = "ldrd r2, r3, [r5, #4]\n add r6, r5, #16\n add r7, r5, #20"
        image = assemble(LOOP.replace("READ", f"{moves}\nlost: {load}"))
        values = values_of(image)
        found = find_pending_tests(values, acknowledging)
        assert found is not None
        with pytest.raises(ControlFlowError, match="never reads its word") as error:
            list(segments(values, found, image))
        assert "lost" in str(error.value), load
    elsewhere = LOOP.replace("READ", "ldrd r2, r3, [r5, #4]\n ldr r1, [r5, #16]")
    assert find_pending_tests(values_of(assemble(elsewhere)), acknowledging) is not None


def test_a_register_in_memory_of_the_program_is_refused() -> None:
    """Its words are assumed constant until a store to them."""
    source = HEADER + LOOP.replace("READ", "ldrd r2, r3, [r5, #4]") + "\n.data\n.space 64\n"
    image = Image.load(build(source, f"-Wl,-Tdata={LOW - 16:#x}", language="S"))
    with pytest.raises(ControlFlowError, match="is in a section of this ELF"):
        find_pending_tests(values_of(image), REGISTERS)


WAITING = f"""
main:   ldr  r5, ={LOW:#x}
        cmp  r0, #0
        beq  out
wait:   ldrd r2, r3, [r5]
        orrs r2, r2, r3
        bne  wait
out:    bx   lr
"""


def test_code_that_waits_until_nothing_is_pending_is_refused() -> None:
    """It does not end while interrupts are masked (rule 33): never a path that is left out."""
    image = assemble(WAITING)
    values = values_of(image)
    with pytest.raises(ControlFlowError, match="no end of a path") as error:
        list(segments(values, pending_in(values), image))
    assert "wait" in str(error.value)
