"""The model of a loop, and the model checker that is asked about it (rule 19).

Takes terms over parameters, state and inputs.
Gives SMV text, and per property a proof, a counterexample or a failure.
"""
