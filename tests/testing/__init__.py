"""Code that tests share, by package: programs, oracles, comparisons. No test is in here."""
