"""tests/testing/quoll."""
