"""The results store: results of earlier runs, each under a hash of all its inputs.

Takes a value and the versions of the code, packages and programs that computed it.
Gives the same value in a later run, or nothing if anything differs or the file is damaged.
Source: rules 30 and 31 of docs/soundness.md; docs/ilp.md, "Results store".
Names: results_store.ResultsStore, cache_key.key_of, serialization.to_text, serialization.from_text.
"""
