"""Paths: an execution order for counts, its check and its outline.

Takes the counts of a solution and the loop nest.
Gives the steps of a worst path; a tree of calls and loops; the violations of a given path.
Source: docs/ilp.md (an Eulerian trail along the loop nest); rules 18 and 23 of docs/soundness.md.
Names: path_from_counts.build_path, path_check.violations, outline.outline.
"""
