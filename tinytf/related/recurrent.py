"""Recurrent cells, one step each, and the loop that unrolls them over a sequence.

Parameters are named, shaped and initialised as those of `nn.RNNCell`, `nn.LSTMCell` and
`nn.GRUCell`, so that the two load each other's state dict.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RecurrentCell", "State", "unroll"]

State = Tensor | tuple[Tensor, Tensor]  # h (B, H), or an LSTM's (h, c)


class RecurrentCell(nn.Module):
    """What the cells share: one matrix for the input, one for the state, H rows per gate.

    `weight_ih` is (gates * H, I), `weight_hh` (gates * H, H), `bias_ih` and `bias_hh` (gates * H):
    torch's names. All are initialised uniformly between -H^-0.5 and H^-0.5, drawn in this order.
    Raises ValueError if a size is below 1.
    """

    gates = 1

    def __init__(self, input_size: int, hidden_size: int) -> None:
        _check_sizes(input_size, hidden_size)
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        rows, bound = self.gates * hidden_size, hidden_size**-0.5
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(rows).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(rows).uniform_(-bound, bound))

    def project(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply the input (B, I) and the state (B, H) by their weights: (B, gates * H) each."""
        return F.linear(x, self.weight_ih, self.bias_ih), F.linear(h, self.weight_hh, self.bias_hh)

    def zeros(self, x: Tensor) -> Tensor:
        """Return the state before the first step: (B, H) zeros."""
        return x.new_zeros(x.size(0), self.hidden_size)


class RNNCell(RecurrentCell):
    """The plain recurrent cell: h' = tanh(W x + U h + b).

    Source: Elman 1990. Equal to `nn.RNNCell`.
    """

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        """Take one step: x (B, I) and h (B, H), zeros if None; return the next h.

        Raises ValueError if x or h is not of that shape.
        """
        _check_step(self, x, h)
        h = self.zeros(x) if h is None else h
        from_x, from_h = self.project(x, h)
        return torch.tanh(from_x + from_h)


class LSTMCell(RecurrentCell):
    """A cell that carries a second state c, which gates can leave as it is.

    `forget_bias` is added to the forget gate's rows of `bias_ih` at initialisation: the higher it
    is, the longer an untrained cell keeps c. Source: Hochreiter and Schmidhuber 1997, with the
    forget gate of Gers et al. 2000. Equal to `nn.LSTMCell`; the gates' order is i, f, g, o.
    """

    gates = 4

    def __init__(self, input_size: int, hidden_size: int, forget_bias: float = 0.0) -> None:
        super().__init__(input_size, hidden_size)
        with torch.no_grad():
            self.bias_ih[hidden_size : 2 * hidden_size] += forget_bias

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Take one step: x (B, I) and (h, c), (B, H) each, zeros if None; return the next (h, c).

        Raises ValueError if x, h or c is not of that shape, TypeError if state is one tensor.
        """
        _check_pair(state)
        _check_step(self, x, *(state or ()))
        h, c = (self.zeros(x), self.zeros(x)) if state is None else state
        from_x, from_h = self.project(x, h)
        i, f, g, o = (from_x + from_h).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class GRUCell(RecurrentCell):
    """A cell with one state: z decides how much is kept, r how much enters the candidate.

    Source: Cho et al. 2014, section 2.3, with r applied after the matrix, as torch does. Equal to
    `nn.GRUCell`; the gates' order is r, z, n.
    """

    gates = 3

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        """Take one step: x (B, I) and h (B, H), zeros if None; return the next h.

        Raises ValueError if x or h is not of that shape.
        """
        _check_step(self, x, h)
        h = self.zeros(x) if h is None else h
        from_x, from_h = self.project(x, h)
        (xr, xz, xn), (hr, hz, hn) = from_x.chunk(3, dim=-1), from_h.chunk(3, dim=-1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        return (1 - z) * torch.tanh(xn + r * hn) + z * h


def unroll(cell: nn.Module, x: Tensor, state: State | None = None) -> Tensor:
    """Read x (B, T, I) in T steps, each of which needs the one before; return h (B, T, H).

    `cell` may be torch's. Raises ValueError if x is not of that shape or T is 0.
    """
    _check_sequence(x)
    outputs = []
    for t in range(x.size(1)):
        state = cell(x[:, t], state)
        outputs.append(state[0] if isinstance(state, tuple) else state)
    return torch.stack(outputs, dim=1)


def _check_sizes(input_size: int, hidden_size: int) -> None:
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def _check_step(cell: RecurrentCell, x: Tensor, *states: Tensor | None) -> None:
    if x.dim() != 2 or x.size(1) != cell.input_size:
        raise ValueError(
            f"x must be of shape (B, input_size={cell.input_size}), got {tuple(x.shape)}: "
            "a cell takes one step, `unroll` takes a sequence"
        )
    expected = (x.size(0), cell.hidden_size)
    for state in states:
        if state is not None and tuple(state.shape) != expected:
            raise ValueError(f"the state must be of shape {expected}, got {tuple(state.shape)}")


def _check_pair(state: tuple[Tensor, Tensor] | None) -> None:
    if state is not None and not (isinstance(state, tuple) and len(state) == 2):
        raise TypeError(f"an LSTM's state is the pair (h, c), got {type(state).__name__}")


def _check_sequence(x: Tensor) -> None:
    if x.dim() != 3 or x.size(1) == 0:
        raise ValueError(f"x must be of shape (B, T, I) with T at least 1, got {tuple(x.shape)}")
