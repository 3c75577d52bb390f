"""The ARM instruction set: decoding. Only this package and ``quoll.semantics`` know encodings.

Takes bytes at an address, in ARM or Thumb state (ARMv4 to ARMv7-A, little-endian).
Gives ``Insn``: operands, data access, flow; the extension it needs, and whether it has a meaning.
Source: ARM Architecture Reference Manual (DDI 0406C), A5 to A8 and B1.3.
Names: decode.decode, insn.Insn, status, architecture, unpredictable, system_registers, addressing.
"""
