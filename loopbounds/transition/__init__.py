"""The transition system of a loop, its concrete executions, and queries about its invariants.

Takes initial and next values of the words at a loop's header, as terms.
Gives the model, its successor function, and the interface of every checker of invariants.
Source: Baier and Katoen, "Principles of Model Checking" (2008), chapter 2.
Names: model.LoopModel, stepper.ModelStepper, query.InvariantQuery, checker.Checker.
"""
