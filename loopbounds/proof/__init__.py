"""From slices to proved bounds (rules 18 to 22).

Takes the model of each loop and a budget.
Gives one ``LoopBound`` per loop, with its evidence, or the reason why there is none.
"""
