"""Results kept from one run to the next, each under a hash of everything it follows from.

Takes a value and the versions of the code, packages and programs that computed it.
Gives the same value in a later run, or nothing where anything differs or the file is damaged.
Source: rules 30 and 31 of docs/soundness.md; docs/ilp.md, "Results store".
Names: store.Store, identity.key_of, archive.to_text, archive.from_text, versions.versions.
"""
