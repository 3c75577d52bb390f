"""Extraction: from entries to every function that they may reach.

Takes an image, the addresses of entries, and facts about control flow.
Gives a ``Program``, which lists undecided transfers with their places.
Source: docs/extraction.md; rules 1, 3 and 35 of docs/soundness.md.
Names: extract.extract, cuts.guided, work_list.CallGraphFixpoint, functions.FunctionTable.
"""
