"""tests/testing/bilby."""
