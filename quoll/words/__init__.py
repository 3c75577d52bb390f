"""quoll/words."""
