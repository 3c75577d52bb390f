"""Bit-vector terms: what a register or a branch holds, as an expression over symbols.

Takes operators, terms and numbers; or values of the symbols.
Gives simplified, interned terms; their values, intervals and parts.
Source: SMT-LIB 2.6, theory FixedSizeBitVectors.
Names: term.Term, bit_vectors, rewrite.substitute, interval.interval, evaluate.evaluate.
"""
