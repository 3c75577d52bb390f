"""quoll/values."""
