"""Random programs, analysed, executed and replayed."""
