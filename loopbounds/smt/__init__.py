"""A word-level SMT solver in this process: what a model of a loop allows, and why a proof fails.

Takes a ``LoopModel`` and invariants of it, with limits on counted steps, time and memory.
Gives an answer for each invariant, with a run or a failed induction step where it does not hold.
Source: Niemetz and Preiner, "Bitwuzla" (2023); Eén and Sörensson, "Temporal induction" (2003).
Names: checker.SmtChecker, induction.SmtInduction, unrolling.ModelUnrolling, solver.SmtSolver.
"""
