"""The analysis of a kernel, one stage a line: the index of the project.

Takes the path of an ELF and ``AnalysisOptions``.
Gives ``Result``: bounds, worst paths, interrupt latency, and all their assumptions.
Source: docs/architecture.md; docs/soundness.md.
Names: analysis.analyse, preparation.prepare, result.AnalysisResult, request_key.request_key.
"""
