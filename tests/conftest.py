"""Settings that every test shares."""

from hypothesis import settings

# The same examples on every run: a failure is a fact, not luck. No deadline,
# because two test processes share two cores with whatever else runs.
settings.register_profile("quoll", derandomize=True, deadline=None)
settings.load_profile("quoll")
