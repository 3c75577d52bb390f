"""quoll/kept."""
