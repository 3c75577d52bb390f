"""What would lower a bound, and by how much: each computed by bounding the entry again.

Takes the ``Result`` of one entry and the options that it was found with.
Gives levers: a line for a facts file, or an option, and the cycles that the bound falls by it.
Source: docs/advice.md.
Names: lever.Lever, recorded.recorded, counts.of_loops, inputs.of_inputs, advise.advice.
"""
