"""NuSMV as a back end: the text of a transition system, and the only code that runs the checker.

Takes a ``LoopModel`` and invariants of it, with limits on time and memory.
Gives a verdict for each invariant; anything but a clear verdict is FAILED (rule 19).
Source: NuSMV 2.6 User Manual, chapters 2 and 4.
Names: nusmv_checker.NusmvChecker, model_text.smv_text, printing.SmvPrinter.
"""
