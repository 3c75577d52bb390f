"""Proofs of loop bounds: all loops of a graph, each by the strategies in their order.

Takes slices of loops, a budget, and cached results.
Gives the proved bound with its evidence, or the reason why there is none.
Source: Sheeran, Singh, Stålmarck, FMCAD 2000 (k-induction); rules 18, 19, 22 of docs/soundness.md.
Names: abstractions.prove, prove.prove_model, rounds.ProofRounds, triangular, bound.LoopBound.
"""
