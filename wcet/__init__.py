"""The command line, platforms and reports."""
