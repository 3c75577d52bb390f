"""Reports: a result as text, as JSON, as a path, and why a place is on it.

Takes a ``Result``.
Gives text for a terminal and documents of a versioned schema.
Source: docs/architecture.md; the collapsed stacks of Brendan Gregg's FlameGraph.
Names: result_text.to_text, json_document.to_json, path_text.tree.
"""
