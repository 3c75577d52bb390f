"""The ARM instruction set: decoding and semantics. Nothing outside knows an encoding.

Later stages ask ``Insn`` for its data flow and its ``operation``; ``status`` for modes, masks and
status registers; ``coprocessor`` for caches and translation; ``immediates`` for constants;
``block_transfer`` for lists of registers. A test looks for those that read the bits themselves.
"""
