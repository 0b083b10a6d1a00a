"""Recurrent cells: against torch's cells and layers, forward and gradient, and on bad input."""

import pytest
import torch
from support import assert_equal_with_gradients, randomise
from torch import nn

from tinytf.related.recurrent import GRUCell, LSTMCell, RNNCell, unroll

CELLS = {
    "rnn": (RNNCell, nn.RNNCell, nn.RNN),
    "lstm": (LSTMCell, nn.LSTMCell, nn.LSTM),
    "gru": (GRUCell, nn.GRUCell, nn.GRU),
}
KINDS = pytest.mark.parametrize("kind", CELLS)


def made(kind, device, inputs=5, hidden=7):
    """Our cell with weights of every size, and torch's with its state dict."""
    ours, theirs, _ = CELLS[kind]
    cell = randomise(ours(inputs, hidden)).to(device, torch.float64)
    twin = theirs(inputs, hidden).to(device, torch.float64)
    twin.load_state_dict(cell.state_dict())
    return cell, twin


def twins(cell, twin, suffix=""):
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [([getattr(cell, n)], getattr(twin, n + suffix)) for n in names]


def states(kind, batch, hidden, device):
    shape = (2 if kind == "lstm" else 1, batch, hidden)
    return torch.randn(shape, dtype=torch.float64, device=device).unbind(0)


@KINDS
def test_a_step_is_torchs(kind, exact):
    cell, twin = made(kind, exact)
    inputs = [torch.randn(3, 5, dtype=torch.float64, device=exact), *states(kind, 3, 7, exact)]

    def step(c):
        if kind == "lstm":
            return lambda x, h, memory: torch.cat(c(x, (h, memory)))
        return lambda x, h: c(x, h)

    assert_equal_with_gradients(step(cell), step(twin), inputs, twins(cell, twin))


@KINDS
def test_no_state_is_a_state_of_zeros(kind, exact):
    cell, twin = made(kind, exact)
    x = torch.randn(3, 5, dtype=torch.float64, device=exact)
    ours, theirs = (c(x)[0] if kind == "lstm" else c(x) for c in (cell, twin))
    torch.testing.assert_close(ours, theirs)


@KINDS
def test_unrolled_it_is_torchs_layer(kind, exact):
    cell, _ = made(kind, exact)
    layer = CELLS[kind][2](5, 7, batch_first=True).to(exact, torch.float64)
    x = torch.randn(3, 9, 5, dtype=torch.float64, device=exact)
    assert_equal_with_gradients(
        lambda x: unroll(cell, x), lambda x: layer(x)[0], [x], twins(cell, layer, "_l0")
    )


@KINDS
def test_unrolling_takes_a_state_up(kind, exact):
    cell, _ = made(kind, exact)
    x = torch.randn(2, 6, 5, dtype=torch.float64, device=exact)
    state = None
    for t in range(4):
        state = cell(x[:, t], state)
    torch.testing.assert_close(unroll(cell, x[:, 4:], state), unroll(cell, x)[:, 4:])


@KINDS
def test_an_output_does_not_need_later_input(kind, exact):
    cell, _ = made(kind, exact)
    x = torch.randn(2, 6, 5, dtype=torch.float64, device=exact, requires_grad=True)
    (grad,) = torch.autograd.grad(unroll(cell, x)[:, 3].sum(), x)
    assert (grad[:, 4:] == 0).all()
    assert (grad[:, :4].abs().amax(-1) > 0).all()


@KINDS
def test_the_same_seed_gives_the_numbers_that_torch_draws(kind):
    ours, theirs, _ = CELLS[kind]
    torch.manual_seed(3)
    cell = ours(5, 7)
    torch.manual_seed(3)
    for name, parameter in theirs(5, 7).named_parameters():
        assert torch.equal(getattr(cell, name), parameter), name


def test_the_forget_bias_is_added_to_the_forget_gate_alone():
    torch.manual_seed(3)
    plain = LSTMCell(5, 7)
    torch.manual_seed(3)
    keeps = LSTMCell(5, 7, forget_bias=4.0)
    difference = (keeps.bias_ih - plain.bias_ih).view(4, 7)
    expected = torch.zeros(4, 7)
    expected[1] = 4.0
    torch.testing.assert_close(difference, expected)
    assert torch.equal(keeps.bias_hh, plain.bias_hh)
    c = torch.ones(1, 7)
    x, h = torch.zeros(1, 5), torch.zeros(1, 7)
    assert (keeps(x, (h, c))[1] > plain(x, (h, c))[1]).all()


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (3, -1)])
@KINDS
def test_sizes_below_one_are_refused(kind, sizes):
    with pytest.raises(ValueError, match=f"must be at least 1, got {min(sizes)}"):
        CELLS[kind][0](*sizes)


@KINDS
def test_input_of_another_shape_is_refused(kind):
    cell = CELLS[kind][0](5, 7)
    with pytest.raises(ValueError, match=r"\(B, input_size=5\), got \(2, 4\)"):
        cell(torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"got \(2, 3, 5\).*`unroll` takes a sequence"):
        cell(torch.zeros(2, 3, 5))
    bad = torch.zeros(3, 7)
    with pytest.raises(ValueError, match=r"\(2, 7\), got \(3, 7\)"):
        cell(torch.zeros(2, 5), (bad, bad) if kind == "lstm" else bad)


def test_an_lstm_wants_both_states():
    cell = LSTMCell(5, 7)
    with pytest.raises(TypeError, match=r"pair \(h, c\), got Tensor"):
        cell(torch.zeros(2, 5), torch.zeros(2, 7))
    with pytest.raises(ValueError, match=r"\(2, 7\), got \(2, 6\)"):
        cell(torch.zeros(2, 5), (torch.zeros(2, 7), torch.zeros(2, 6)))


@pytest.mark.parametrize("shape", [(2, 5), (2, 0, 5)])
def test_unroll_wants_a_sequence(shape):
    with pytest.raises(ValueError, match=r"\(B, T, I\) with T at least 1"):
        unroll(RNNCell(5, 7), torch.zeros(shape))
