"""Loop bounds by slicing and model checking."""
