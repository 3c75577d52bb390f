"""Proofs of the facts of facts files, from the binary.

Takes a kernel and its facts.
Gives for each fact whether it is proved, refuted, or assumed, with the reason.
Source: docs/proving.md.
Names: prove.prove_facts, verdict.JudgedFact, entry_basis.EntryBasis.
"""
