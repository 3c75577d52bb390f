"""quoll/preemption."""
