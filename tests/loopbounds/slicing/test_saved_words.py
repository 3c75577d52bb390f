"""Words that functions save on the stack, next to other stores there."""

from __future__ import annotations

import pytest

from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.assumptions import F1
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.expand import expand
from quoll.value_analysis.value_results import analyse
from tests.testing.loopbounds.counting import load
from tests.testing.loopbounds.saving import COUNTING, LEAF
from tests.testing.quoll.building import address, build

pytestmark = pytest.mark.slow("compiles programs and proves the bounds of their loops")

SAVED = """.global main
main: push {r4, r5, r6, lr}
  sub sp, sp, #16
  and r4, r0, #3
  add r5, sp, #0
  add r6, r5, r4, lsl #2
fill: cmp r5, r6
  beq filled
  ldr r0, [r1], #4
  str r0, [r5], #4
  b fill
filled: ldr r6, [sp]
  and r5, r2, #31
  mov r4, #0
count: cmp r4, r5
  beq done
  mov r0, r6
  bl store
  add r4, r4, #1
  b count
done: add sp, sp, #16
  pop {r4, r5, r6, pc}
store: push {r4, r5, r6, lr}
  cmp r1, #0
  beq stored
  str r1, [r0]
stored: pop {r4, r5, r6, pc}
"""


@pytest.mark.parametrize(("stored", "bound"), [("ldr r0, [r1], #4", 32), ("add r0, sp, #8", None)])
def test_a_word_from_an_array_on_the_stack(stored: str, bound: int | None) -> None:
    """It is a stack address only if one is put into the array: S1 speaks of the other (rule 1)."""
    code = load(build(SAVED.replace("ldr r0, [r1], #4", stored), language="asm"))
    assert [b.bound for b in code.bounds()] == [4, bound]


FRAMED = """.global main
main: push {r4, r11, lr}
  add r11, sp, #0
  sub sp, sp, #8
  and r0, r0, #31
  str r0, [r11, #-4]
again: ldr r0, [r11, #-4]
  cmp r0, #0
  beq done
  sub r0, r0, #1
  str r0, [r11, #-4]
  sub r3, r11, #8
  str r1, [r3]
  add r2, r11, #0
  and r3, r1, #16
  bl leaf
  b again
done: add sp, r11, #0
  pop {r4, r11, pc}
leaf: str r11, [sp, #-4]!
  add r11, sp, #0
  sub sp, sp, #12
  str r0, [r11, #-8]
  LEAF
  ldr r0, [r11, #-8]
  add sp, r11, #0
  ldr r11, [sp], #4
  bx lr
"""


@pytest.mark.parametrize(
    ("leaf", "bound"),
    [
        ("nop", 32),
        ("str r1, [r4]", 32),
        ("str r1, [r2, #-12]", None),
        ("str r1, [r2, -r3]", None),
        ("strb r1, [r2, #-9]", None),
        ("strne r1, [r2, #-12]", None),
        ("str r1, [r2, #-4]", None),
    ],
)
def test_a_frame_pointer_that_functions_save(leaf: str, bound: int | None) -> None:
    """It is kept where nothing may hit the word that it is saved in (S1 spares that, rule 1)."""
    code = load(build(FRAMED.replace("LEAF", leaf), language="asm"))
    assert [b.bound for b in code.bounds()] == [bound]


def test_without_s1_a_saved_frame_pointer_is_lost() -> None:
    """A store of unknown address may hit the word that it is saved in."""
    code = load(build(FRAMED.replace("LEAF", "str r1, [r4]"), language="asm"))
    options = BoundOptions(Budget(seconds=20), workers=1, s1=False)
    assert [b.bound for b in code.bounds(options=options)] == [None]


WALKED = """.global main
main: push {r4, r5, r6, lr}
  sub sp, sp, #16
  ldm r0, {r0, r2, r3}
  stm sp, {r0, r2, r3}
  add r5, sp, #0
  mov r4, #0
again: ldr r0, [r5], #4
  cmp r0, #0
  beq done
  bl store
  add r4, r4, #1
  cmp r4, #3
  bne again
done: add sp, sp, #16
  pop {r4, r5, r6, pc}
store: push {r4, r5, lr}
  STORE
  mov r4, r1
  pop {r4, r5, pc}
"""


@pytest.mark.parametrize(
    ("store", "bound", "by_f1"),
    [
        ("str r1, [r0]", 3, True),
        ("str r1, [r0, r1]", 3, True),
        ("nop", 3, False),
        ("str r1, [sp, r1]", None, False),
        ("str r1, [sp, #0]", None, False),
        ("add r2, sp, r1\n  str r1, [r2, r0]", None, False),
    ],
)
def test_pointers_in_an_array_on_the_stack(store: str, bound: int | None, by_f1: bool) -> None:
    """A store through a pointer spares callee-saved words (F1); one at an unknown index may not."""
    code = load(build(WALKED.replace("STORE", store), language="asm"))
    [found] = code.bounds()
    assert found.bound == bound
    assert (F1.of() in found.assumed) is by_f1


RETURNED = """  sub sp, sp, #8
  add r2, r4, #1
  str r2, [sp]
  str r1, [r0]
  ldr r4, [sp]
  add sp, sp, #8
  bx lr
"""


@pytest.mark.parametrize(("stored", "bound"), [("str r1, [r0]", None), ("nop", 3)])
def test_a_local_that_is_returned_was_not_saved(stored: str, bound: int | None) -> None:
    """F1 does not speak of it, though a callee-saved register is loaded from it."""
    head, _ = WALKED.replace("  add r4, r4, #1\n", "").split("store: ")
    text = f"{head}store:\n{RETURNED.replace('str r1, [r0]', stored)}"
    [found] = load(build(text, language="asm")).bounds()
    assert found.bound == bound
    assert F1.of() not in found.assumed


def test_without_s1_a_store_through_a_pointer_hits_anything() -> None:
    """F1 only covers cases beyond S1."""
    code = load(build(WALKED.replace("STORE", "str r1, [r0]"), language="asm"))
    options = BoundOptions(Budget(seconds=20), workers=1, s1=False)
    assert [b.bound for b in code.bounds(options=options)] == [None]


HANDED = """.global main
main: push {r4, r5, lr}
  sub sp, sp, #12
  mov r4, #0
again: bl outer
  add r4, r4, #1
  cmp r4, #3
  bne again
  add sp, sp, #12
  pop {r4, r5, pc}
outer: push {r4, r5, lr}
  sub sp, sp, #4
  mov r4, r1
  add r0, sp, #0
  bl leaf
  add sp, sp, #4
  pop {r4, r5, pc}
leaf: str r1, [r0]
  bx lr
"""


@pytest.mark.parametrize(("s1", "bound"), [(True, 3), (False, None)])
def test_a_replaced_function_that_is_handed_a_stack_address(s1: bool, bound: int | None) -> None:
    """Its stores are not analysed: under F1 they spare its caller's saved registers."""
    path = build(HANDED, language="asm")
    image = Image.load(path)
    facts = locate(parse("function leaf takes at most 90 cycles", "x"), image)
    entry = address(image, "main")
    graph = expand(extract(image, [entry], facts), entry, image)
    assert any(graph.passed(e) for e in range(len(graph.edges)))
    options = BoundOptions(Budget(seconds=60), workers=1, s1=s1)
    [found] = bound_loops(graph, image, analyse(graph, image), facts, options)
    assert found.bound == bound
    assert (F1.of() in found.assumed) is s1


NAMED = f""".global main
main: mov r7, sp
  mov r8, lr
  mvn sp, #15
{COUNTING}done: mov sp, r7
  bx r8
{LEAF}"""


@pytest.mark.parametrize(
    ("store", "bound"),
    [
        ("ldr r6, [r0]\n  str r1, [r6]", 4),
        ("ldr r6, [r0]\n  bic r6, r6, #31\n  str r1, [r6]", 4),  # 0xffffffe0 is no address here
        ("ldr r6, [r0]\n  cmn r6, #32\n  movne r6, r1\n  str r1, [r6]", 4),  # nor here
        (
            "ldr r6, [r0]\n  mvn r3, #31\n  cmp r1, #0\n  moveq r6, r3\n  str r1, [r6]",
            None,
        ),  # but here
        ("mvn r6, #255\n  str r1, [r6]", 4),  # 0xffffff00
        ("mvn r6, #31\n  str r1, [r6]", None),  # 0xffffffe0, where r4 is kept
        ("mvn r6, #27\n  strb r1, [r6]", None),  # 0xffffffe4, where r5 is kept
        ("mvn r6, #31\n  and r3, r1, #12\n  str r1, [r6, r3]", None),
    ],
)
def test_a_stack_in_memory_that_no_section_names(store: str, bound: int | None) -> None:
    """Code sets sp to a constant: words in its frames are tracked, too (rules 1, 34)."""
    code = load(build(NAMED.replace("STORE", store), language="asm"))
    assert [b.bound for b in code.bounds()] == [bound]


CONTEXTS = """.global main
main: push {r4, lr}
  sub sp, sp, #64
  mov r0, sp
  bl walk
  ldr r0, [r2]
  bl walk
  add sp, sp, #64
  pop {r4, pc}
walk: sub sp, sp, #8
  and r1, r1, #31
  str r1, [sp]
  mov r3, #0
again: ldr r12, [sp]
  cmp r3, r12
  beq done
  str r4, [r0], #4
  add r3, r3, #1
  b again
done: add sp, sp, #8
  bx lr
"""


def test_what_may_be_a_stack_address_in_one_context_need_not_be_one_in_another() -> None:
    """The first call may store over its own local, the second by S1 does not."""
    found = load(build(CONTEXTS, language="asm")).bounds()
    assert sorted(str(b.bound) for b in found) == ["32", "None"]


SECTION = """.global main
main: mov r7, sp
  mov r8, lr
  ldr sp, =stack + 64
  sub sp, sp, #32
  b start
start: and r4, r1, #3
  str r4, [sp, #8]
  ldr r6, [r0]
  STORE
  ldr r4, [sp, #8]
  mov r5, #0
again: cmp r5, r4
  beq done
  add r5, r5, #1
  b again
done: mov sp, r7
  bx r8
.comm stack, 64
"""


@pytest.mark.parametrize(
    ("store", "bound"),
    [
        ("str r1, [r6]", 4),
        ("add r3, sp, #8\n  and r6, r6, #255\n  strb r1, [r3, r6]", None),
        ("add r3, sp, #8\n  and r6, r6, r3\n  str r1, [r6]", None),
    ],
)
def test_a_store_at_an_index_that_may_be_beyond_the_stack(store: str, bound: int | None) -> None:
    """It may also be within it: the mask alone says that the index is less than 256."""
    code = load(build(SECTION.replace("STORE", store), language="asm"))
    assert [b.bound for b in code.bounds()] == [bound]


CLEARED = """.global main
main: push {r4, r5, r6, r7, lr}
  sub sp, sp, #20
  mov r7, r0
  mov r4, #0
again: add r2, sp, #4
  str r2, [sp, #4]
  strb r1, [sp, #5]
  READ
  cmp r6, #0
  LEAVE done
  mov r0, r7
  bl store
  mov r7, r6
  add r4, r4, #1
  cmp r4, #3
  bne again
done: add sp, sp, #20
  pop {r4, r5, r6, r7, pc}
store: push {r4, r5, lr}
  str r1, [r0]
  mov r4, r1
  pop {r4, r5, pc}
"""


@pytest.mark.parametrize(("leave", "bound"), [("bne", 3), ("beq", None)])
@pytest.mark.parametrize("read", ["ldr r6, [sp, #4]", "mrc p15, 0, r6, c13, c0, 4"])
def test_a_pointer_that_is_null_where_it_is_copied(
    read: str, leave: str, bound: int | None
) -> None:
    """The word that is read may be a stack address, but not where it is 0."""
    code = load(build(CLEARED.replace("READ", read).replace("LEAVE", leave), language="asm"))
    assert [b.bound for b in code.bounds()] == [bound]


OF_A_REGISTER = """.global main
main: mov r7, sp
  mov r8, lr
  mrc p15, 0, sp, c13, c0, 4
  MOVE
start: and r4, r1, #3
  str r4, [sp, #8]
  STORE
  ldr r4, [sp, #8]
  mov r5, #0
again: cmp r5, r4
  beq done
  add r5, r5, #1
  b again
done: mov sp, r7
  bx r8
"""


@pytest.mark.parametrize("move", ["sub sp, sp, #32\n  b start", "b start", "push {r0-r9}"])
@pytest.mark.parametrize(
    ("store", "bound"),
    [
        ("str r1, [r0]", 4),
        ("str r1, [sp, #4]", 4),
        ("ldr r3, =0xf0020000\n  str r1, [r3]", 4),
        ("str r1, [sp, #8]", None),
        ("add r3, sp, #8\n  and r6, r0, #255\n  strb r1, [r3, r6]", None),
        ("str r1, [r7, #-4]", None),
    ],
)
def test_a_stack_whose_pointer_is_in_a_system_register(
    move: str, store: str, bound: int | None
) -> None:
    """The new stack is at an unknown place, and may be the stack that was used before."""
    code = load(build(OF_A_REGISTER.replace("MOVE", move).replace("STORE", store), language="asm"))
    assert [b.bound for b in code.bounds()] == [bound]
