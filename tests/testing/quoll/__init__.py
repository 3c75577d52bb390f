"""Programs as short text, random programs and random facts."""
