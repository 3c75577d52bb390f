"""Suggestions that lower a bound, each evaluated by bounding the entry again.

Takes the ``Result`` of one entry and its options.
Gives suggestions: a line for a facts file, or an option, and the cycles that it saves.
Source: docs/advice.md.
Names: suggestion.Suggestion, recorded.recorded, count_suggestions.of_loops.
"""
