"""tests/testing/loopbounds."""
