"""Bit-vector terms: the content of a register or of a condition, as an expression over symbols.

Takes operators, terms and numbers; or values of the symbols.
Gives simplified, interned terms; their values, intervals and subterms.
Source: SMT-LIB 2.6, theory FixedSizeBitVectors.
Names: term.Term, bit_vectors, rewrite.substitute, interval.interval, evaluate.evaluate.
"""
