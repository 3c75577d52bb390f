"""Smaller models with the same or more runs.

Takes the model of a loop and what constrains its words.
Gives a model without what decides nothing, and weaker models that are easier to prove.
"""
