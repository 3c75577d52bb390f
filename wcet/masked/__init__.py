"""Bounds of the regions with masked interrupts, and of the latency that follows.

Takes the inputs of a run.
Gives every region with masked interrupts and its bound, and regions without a bound.
Source: rules 21 and 33 of docs/soundness.md; docs/preemption.md.
Names: masked_entries.masked, masked_functions.everywhere, masked_region.bounded_regions.
"""
