"""The rules of recurrent layers, with every step written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature

from uop.conformance.adapters.onnx.ops import activations
from uop.conformance.adapters.onnx.ops.elementwise import between
from uop.conformance.adapters.onnx.ops.views import joined
from uop.conformance.adapters.onnx.rules import rule
from uop.conformance.adapters.tensors import shrunk
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.compositions import full
from uop.spec.frontend.tensor import Tensor

Function = Callable[[Tensor], Tensor]
State = tuple[Tensor, ...]
NextState = Callable[[Tensor, State], State]
"""From the input of a step and the state, whose first part is the output, to the next state."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The attributes of recurrent layers; the last two are of GRU and of LSTM alone."""

    hidden_size: int = 0
    direction: str = "forward"
    layout: int = 0
    clip: float | None = None
    activations: Sequence[str] = ()
    activation_alpha: Sequence[float] = ()
    activation_beta: Sequence[float] = ()
    linear_before_reset: int = 0
    input_forget: int = 0

    def functions(self, turn: int, *usual: str) -> list[Function]:
        """The functions of a direction, each behind the clip of its argument."""
        count = len(usual)
        names = self.activations[turn * count : (turn + 1) * count] or usual
        numbers = {"alpha": [*self.activation_alpha], "beta": [*self.activation_beta]}
        taken: list[Function] = []
        for name in [*self.activations[: turn * count], *names]:
            function = FUNCTIONS.get(name.lower())
            if function is None:
                raise UnsupportedError(f"activation {name!r}")
            # Those of the functions that take one stand one behind the other.
            takes = signature(function).parameters.keys() & numbers.keys()
            own = {word: numbers[word].pop(0) for word in takes if numbers[word]}
            taken.append(partial(function, **own))
        return [partial(self.applied, function) for function in taken[-count:]]

    def applied(self, function: Function, x: Tensor) -> Tensor:
        if self.clip is not None:
            x = between(x, min=-self.clip, max=self.clip)
        return function(x)


FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "relu": Tensor.relu,
    "tanh": Tensor.tanh,
    "sigmoid": Tensor.sigmoid,
    "softsign": activations.UNARY["Softsign"],
    "softplus": activations.UNARY["Softplus"],
    "hardsigmoid": activations.hard_sigmoid,
    "leakyrelu": activations.leaky_relu,
    "elu": activations.elu,
    "thresholdedrelu": activations.thresholded_relu,
    "affine": lambda x, *, alpha=1.0, beta=0.0: x * alpha + beta,
    "scaledtanh": lambda x, *, alpha=1.0, beta=1.0: (x * beta).tanh() * alpha,
}
"""Those of the attributes, by their names in small letters: the case does not matter."""


def unrolled(
    x: Tensor,
    layer: Layer,
    lengths: Tensor | None,
    starts: Sequence[Tensor | None],
    step: Callable[[int], NextState],
) -> list[Tensor]:
    """By the step of each direction all outputs, and the last state.

    A sequence that has ended keeps its state and gives 0.
    """
    if layer.layout:
        x = x.permute(1, 0, 2)
        starts = [None if s is None else s.permute(1, 0, 2) for s in starts]
    steps, batch = x.shape[:2]
    kept = full((batch, layer.hidden_size), 0, x.dtype)
    outputs, lasts = [], []
    for turn in range(2 if layer.direction == "bidirectional" else 1):
        back = turn == 1 or layer.direction == "reverse"
        state: State = tuple(kept if s is None else s[turn] for s in starts)
        advance, rows = step(turn), {}
        for time in reversed(range(steps)) if back else range(steps):
            new = advance(x[time], state)
            rows[time] = new[0]
            if lengths is not None:
                runs = (lengths > time).reshape(batch, 1)
                rows[time] = runs.where(new[0], kept)
                new = tuple(runs.where(a, b) for a, b in zip(new, state, strict=True))
            state = new
        outputs.append(_rows([rows[time] for time in range(steps)]))
        lasts.append(state)
    # (time, direction, batch, hidden)
    y = _rows(outputs).permute(1, 0, 2, 3)
    last = [_rows([state[k] for state in lasts]) for k in range(len(starts))]
    if layer.layout:
        return [y.permute(2, 0, 1, 3), *(t.permute(1, 0, 2) for t in last)]
    return [y, *last]


def _rows(tensors: Sequence[Tensor]) -> Tensor:
    return joined([t.reshape(1, *t.shape) for t in tensors], 0)


def _gates(x: Tensor, count: int) -> list[Tensor]:
    """The equal parts of the last axis."""
    size, axis = x.shape[-1] // count, x.ndim - 1
    return [shrunk(x, axis, k * size, (k + 1) * size) for k in range(count)]


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What a direction multiplies its input and its state by, and adds to its gates."""

    w: Tensor
    r: Tensor
    biases: Sequence[Tensor]
    """Those of the inputs, then those of the state, one for each gate."""
    peepholes: Sequence[Tensor]


def layer(
    cell: Callable[[Layer, int, Weights], NextState],
    states: int,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    start: Tensor | None = None,
    start_cell: Tensor | None = None,
    peepholes: Tensor | None = None,
    *,
    about: Layer,
) -> list[Tensor]:
    """A layer of cells with so many states each."""
    gates, none = r.shape[1] // r.shape[2], full((), 0, x.dtype)

    def step_of(turn: int) -> NextState:
        biases = [none] * (2 * gates) if bias is None else _gates(bias[turn], 2 * gates)
        held = [none] * 3 if peepholes is None else _gates(peepholes[turn], 3)
        return cell(about, turn, Weights(w[turn].T, r[turn].T, biases, held))

    return unrolled(x, about, lengths, [start, start_cell][:states], step_of)


def rnn(about: Layer, turn: int, of: Weights) -> NextState:
    (f,) = about.functions(turn, "Tanh")
    wb, rb = of.biases
    return lambda part, state: (f(part @ of.w + state[0] @ of.r + wb + rb),)


def gru(about: Layer, turn: int, of: Weights) -> NextState:
    f, g = about.functions(turn, "Sigmoid", "Tanh")
    columns = _gates(of.r, 3)

    def step(part: Tensor, state: State) -> State:
        (h,) = state
        xz, xr, xh = (t + b for t, b in zip(_gates(part @ of.w, 3), of.biases, strict=False))
        z = f(xz + h @ columns[0] + of.biases[3])
        reset = f(xr + h @ columns[1] + of.biases[4])
        if about.linear_before_reset:
            new = g(xh + reset * (h @ columns[2] + of.biases[5]))
        else:
            new = g(xh + (reset * h) @ columns[2] + of.biases[5])
        return ((-z + 1) * new + z * h,)

    return step


def lstm(about: Layer, turn: int, of: Weights) -> NextState:
    f, g, h = about.functions(turn, "Sigmoid", "Tanh", "Tanh")
    pi, po, pf = of.peepholes

    def step(part: Tensor, state: State) -> State:
        before, cell = state
        total = _gates(part @ of.w + before @ of.r, 4)
        i, o, forget, c = (
            t + wb + rb for t, wb, rb in zip(total, of.biases[:4], of.biases[4:], strict=True)
        )
        i = f(i + pi * cell)
        forget = -i + 1 if about.input_forget else f(forget + pf * cell)
        cell = forget * cell + i * g(c)
        return f(o + po * cell) * h(cell), cell

    return step


for name, cell, states in (("RNN", rnn, 1), ("GRU", gru, 1), ("LSTM", lstm, 2)):
    rule(name, since=7, about=Layer)(partial(layer, cell, states))
