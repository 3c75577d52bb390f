"""NuSMV: a loop as a transition system, its text, and the only code that runs the checker.

Takes a ``LoopModel`` and invariants of it, with limits on time and memory.
Gives a verdict for each invariant; anything but a clear answer is FAILED (rule 19).
Source: NuSMV 2.6 User Manual, chapters 2 and 4.
Names: model.LoopModel, printing.Printer, query.ask, child.
"""
