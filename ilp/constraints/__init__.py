"""User constraints as rows of the integer program, and the loop nest they refer to.

Takes facts about counts and a supergraph.
Gives places located in all contexts, rows for each instance of a function, and loop bounds.
Source: Blackham, Shi, Heiser, EuroSys 2012, section 5.2; rules 24, 27 and 29 of docs/soundness.md.
Names: constraint.resolve_constraints, flowfacts.constraint_rows, nest.LoopNest, parameters.
"""
