"""An ELF file (plus raw memory) as the analyses see it: bytes, symbols, code and source lines.

    image = Image.load("kernel.elf")
    image.read(0xF0010000, 4)        bytes, or None where nothing is loaded
    image.constant(0xF0010000, 4)    little-endian value if the section is not writable, else None
    image.symbol("schedule")         Symbol, or None
    image.place(0xF0010010)          '0xf0010010 <schedule+0x10> sched.c:41'

Addresses are the virtual ones the code runs at.
"""
