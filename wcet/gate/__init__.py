"""The regression gate: detects and locates bounds that grew since the baseline.

Takes a ``Result``, the record of an earlier result, and budgets.
Gives a verdict for each entry, with the lines, loops and assumptions that changed.
Source: docs/gate.md; the formats of JUnit and SARIF 2.1.0 (OASIS).
Names: record.recorded, compare.compare, project_file.ProjectFile, change_text.to_text.
"""
