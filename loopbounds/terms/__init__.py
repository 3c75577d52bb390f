"""Bit-vector terms: what a register, a memory word or a branch holds, over symbols.

Takes operators and symbols.
Gives interned terms in simplest form, their values, intervals and substitutions.
"""
