"""Results of calls: bounds of a function by the class of its result, and branches on it.

Takes the graph of a function or entry with its values, and the bounds of its callees by result.
Gives the classes of the function's own result; the edges that a callee's result excludes.
Source: path partitioning (Rival and Mauborgne, TOPLAS 2007); docs/contexts.md.
Names: returned_words.result_classes, class_bounds.bounds_by_results, branches.with_branches.
"""
