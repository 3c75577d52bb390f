"""The data cache along executions that are followed: how often each instruction misses.

Takes the addresses of executions, and a classification of their references.
Gives the most misses of each instruction on a path, and the classification with them: class CM.
Source: docs/caches.md#executions-that-are-followed.
Names: access_trace.AccessTrace, data_misses.DataMisses, counted_misses.with_misses.
"""
