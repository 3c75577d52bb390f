"""quoll/inlining."""
