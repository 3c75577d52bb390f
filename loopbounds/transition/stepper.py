"""A model as a program: its initial state and its successor function, on concrete words.

Back ends must agree with it (rule 19).
"""

from __future__ import annotations

from collections.abc import Sequence

from loopbounds.terms.evaluate import Loop, compile_loop, compile_terms
from loopbounds.transition.model import LoopModel

__all__ = ["ModelStepper"]


class ModelStepper:
    """A model as a program; ``loop``: the compiled loop, if the model has no inputs."""

    def __init__(self, model: LoopModel) -> None:
        self._allowed = compile_terms(model.constraints, model.parameters)
        self._initial = compile_terms([v.initial for v in model.state], model.parameters)
        state, following = [v.symbol for v in model.state], [v.next for v in model.state]
        order = [*model.parameters, *state, *model.inputs]
        self._step = compile_terms([model.again, *following], order)
        self.loop: Loop | None = None
        if not model.inputs:
            self.loop = compile_loop(model.again, following, model.parameters, state)

    def start(self, parameters: Sequence[int]) -> tuple[int, ...] | None:
        """The initial state, or None when a constraint forbids these parameters."""
        return self._initial(parameters) if all(self._allowed(parameters)) else None

    def step(
        self, parameters: Sequence[int], state: Sequence[int], inputs: Sequence[int]
    ) -> tuple[int, ...] | None:
        """The state at the next header execution, or None when the loop exits."""
        again, *following = self._step([*parameters, *state, *inputs])
        return tuple(following) if again else None
