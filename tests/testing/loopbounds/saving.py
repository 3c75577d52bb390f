"""A loop in assembly whose counter and limit a called function saves on the stack."""

__all__ = ["COUNTING", "LEAF", "SWITCHING"]

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
SWITCHING = f""".global main
main: mov r7, sp
  mov r8, lr
  mvn sp, #15
  bl work
  bl work
  mov sp, r7
  bx r8
work: push {{r4, r5, lr}}
{COUNTING}done: pop {{r4, r5, pc}}
{LEAF}"""
