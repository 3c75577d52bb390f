"""Instructions and encodings to test decoding and semantics with, and Unicorn to compare with."""
