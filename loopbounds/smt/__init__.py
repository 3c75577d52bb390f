"""The SMT back end, in this process: runs of a model, k-induction, failed induction steps.

Takes a ``LoopModel`` and invariants of it, with limits on counted steps, time and memory.
Gives a verdict for each invariant, with a run or a failed induction step where it does not hold.
Source: Niemetz and Preiner, "Bitwuzla" (2023); Eén and Sörensson, "Temporal induction" (2003).
Names: smt_checker.SmtChecker, induction.SmtInduction, unrolling.ModelUnrolling, solver.SmtSolver.
"""
