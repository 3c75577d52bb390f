"""The semantics of instructions: a register-transfer language, and the ops of every instruction.

Takes ``Insn``.
Gives its effect as ops on registers, flags and memory.
Source: Ghidra's SLEIGH specification, corrected; ARM Architecture Reference Manual (DDI 0406C).
Names: lift.lift, ops.Op, corrections.CORRECTIONS, system.system_ops.
"""
