"""Random code on concrete pipelines."""
