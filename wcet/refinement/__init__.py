"""Refinement: worst paths that no execution takes, and the constraints that exclude them.

Takes an entry before its integer program, and the solution of the program.
Gives proved exclusions of edges, and the bound after each round.
Source: Blackham, Liffiton, Heiser, "Trickle" (RTAS 2014); docs/refinement.md.
Names: refine.refine, passes.passes_of, pass_conditions.PassConditions, unsatisfiable_core.core_of.
"""
