"""quoll/cfg."""
