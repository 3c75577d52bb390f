"""The kernel as tests build it, run it and read what it prints."""
