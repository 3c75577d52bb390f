"""The longest stretches between two points where an interrupt can be taken.

Takes the result of an analysis and the inputs of its run.
Gives stretches, each with its operation, its loops, and the longest one without it.
Source: rules 21 and 32 of docs/soundness.md; docs/preemption.md.
Names: longest.longest_stretches, stretch.Stretch, decision.decisions, starts.PathStarts.
"""
