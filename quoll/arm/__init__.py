"""The ARM instruction set: decoding and semantics. Nothing outside knows an encoding.

Takes bytes at an address, in ARM or Thumb state (ARMv4 to ARMv7-A, little-endian).
Gives ``Insn``: operands, data access, flow; and its effect as ops on registers, flags and memory.
Source: ARM Architecture Reference Manual (DDI 0406C), A5 to A8 and B1.3; Ghidra's SLEIGH.
Names: decode.decode, insn.Insn, status, coprocessor, immediates, addressing, semantics.lift.
"""
