"""The contents of a binary: bytes, symbols, source lines, build attributes.

Takes an ELF file, and optionally dumped memory and a list of symbols. Nothing is trusted.
Gives ``Image``, with lookups by address and by name; ``MemoryMap``.
Source: System V ABI, chapters 4 and 5; AAELF32; DWARF 5, section 6.2; Arm ABI addenda, 3.2 and 3.3.
Names: image.Image, memory_map.MemoryMap.
"""
