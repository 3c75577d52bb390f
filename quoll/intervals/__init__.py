"""Sets of 32-bit words: strided intervals, their arithmetic and their comparison.

Takes sets {low, low+stride, ..., high} of unsigned words.
Gives a set that contains every result modulo 2**bits, or the subset for which a test holds.
Source: Reps, Balakrishnan, Lim, PEPM 2006, section 4.
Names: strided_interval.ValueSet, interval_arithmetic.add, interval_comparison.refine.
"""
