"""Preemption points: paths on which an interrupt is pending, and paths that stay masked.

Takes a supergraph with values, and the pending registers of the platform.
Gives a graph for each place where such a path may start; places that may unmask interrupts.
Source: docs/preemption.md; rules 21, 33 and 36 of docs/soundness.md.
Names: pending.find_pending_tests, segments.segments, masks.may_unmask.
"""
