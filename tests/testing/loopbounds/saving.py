"""A loop in assembly whose counter and limit a called function saves on the stack."""

__all__ = ["COUNTING", "LEAF"]

COUNTING = """\
  and r4, r1, #3
  mov r5, #0
again: cmp r5, r4
  beq done
  bl leaf
  add r5, r5, #1
  b again
"""
LEAF = """\
leaf: push {r4, r5, r6, lr}
  STORE
  mov r4, #9
  mov r5, #9
  pop {r4, r5, r6, pc}
"""
