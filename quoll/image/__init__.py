"""What a binary contains: bytes, symbols, source lines, build attributes, recorded executions.

Takes an ELF file, and perhaps dumped memory, a list of symbols, a recording. Nothing is trusted.
Gives ``Image``, which answers by address or by name; ``MemoryMap``; ``Trace``.
Source: System V ABI, chapters 4 and 5; AAELF32; DWARF 5, section 6.2; Arm ABI addenda, 3.2 and 3.3.
Names: image.Image, memory_map.MemoryMap, trace.Trace, inputs.read_input.
"""
