"""What an instruction computes: a register-transfer language, and the ops of every instruction.

Takes ``Insn``.
Gives its effect as ops on registers, flags and memory; what each stage does with system effects.
Source: Ghidra's SLEIGH specification, corrected; ARM Architecture Reference Manual (DDI 0406C).
Names: lift.lift, ops.Op, corrections.CORRECTIONS, system.system_ops, system_effects.rows.
"""
