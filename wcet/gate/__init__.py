"""The gate: whether a kernel became slower than what was written down, and where.

Takes a ``Result``, the record of an earlier one, and budgets.
Gives a verdict for each entry, with the lines, loops and assumptions that changed.
Source: docs/gate.md; the formats of JUnit and SARIF 2.1.0 (OASIS).
Names: record.recorded, compare.compare, project.Project, text.to_text, exchange.to_sarif.
"""
