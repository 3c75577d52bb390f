"""Random integer programs and graphs, and searches that find their maximum."""
