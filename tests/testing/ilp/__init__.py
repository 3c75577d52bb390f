"""tests/testing/ilp."""
