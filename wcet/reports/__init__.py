"""Reports: a result as text, as JSON and as a path; missing facts; words that need explanation.

Takes a ``Result``.
Gives text for a terminal and documents of a versioned schema.
Source: docs/architecture.md; the collapsed stacks of Brendan Gregg's FlameGraph.
Names: result_text.to_text, json_document.to_json, path_text.tree.
"""
