"""tests/testing/values."""
