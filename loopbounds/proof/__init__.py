"""Proofs of loop bounds: the search for the smallest number that is provable.

Takes slices of loops, a budget, and answers that are kept.
Gives the proven bound with its evidence, or why there is none.
Source: Sheeran, Singh, Stålmarck, FMCAD 2000 (k-induction); rules 18, 19, 22 of docs/soundness.md.
Names: prove.prove, rounds.Rounds, candidates.candidates, runs, triangular, bound.LoopBound.
"""
