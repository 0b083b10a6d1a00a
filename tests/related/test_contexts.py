"""What a recurrent decoder sees of the source: against loops, at the edges, one like the other."""

import math

import pytest
import torch
from support import randomise

from tinytf.related.contexts import AdditiveAttention, FixedContext, additive_weights

LENGTHS = [5, 3, 1]


@pytest.fixture
def source(exact):
    """The states of three sentences of unequal length, noise at their padding, and their mask."""
    states = torch.randn(3, 5, 8, dtype=torch.float64, device=exact)
    lengths = torch.tensor(LENGTHS, device=exact)
    return states, torch.arange(5, device=exact)[None] < lengths[:, None]


def test_additive_weights_are_the_papers(exact):
    query, keys = torch.randn(2, 4, device=exact), torch.randn(2, 5, 4, device=exact)
    v = torch.randn(4, device=exact)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 0, 0]], device=exact).bool()
    weights = additive_weights(query, keys, v, mask)
    for b in range(2):
        e = {
            j: sum(float(v[a]) * math.tanh(float(query[b, a] + keys[b, j, a])) for a in range(4))
            for j in range(5)
            if mask[b, j]
        }
        total = sum(math.exp(score) for score in e.values())
        expected = [math.exp(e[j]) / total if j in e else 0.0 for j in range(5)]
        torch.testing.assert_close(weights[b].tolist(), expected, atol=1e-5, rtol=1e-5)


def test_additive_weights_with_nothing_to_attend_to_are_zero(exact):
    query = torch.randn(2, 4, device=exact, requires_grad=True)
    keys, v = torch.randn(2, 5, 4, device=exact), torch.randn(4, device=exact)
    mask = torch.tensor([[True] * 5, [False] * 5], device=exact)
    weights = additive_weights(query, keys, v, mask)
    torch.testing.assert_close(weights.sum(-1), torch.tensor([1.0, 0.0], device=exact))
    weights.square().sum().backward()
    assert query.grad.isfinite().all()


def test_one_vector_is_where_each_reader_stopped(source):
    states, mask = source
    context = FixedContext(4)
    vector = context.prepare(states, mask)
    for row, length in enumerate(LENGTHS):
        expected = torch.cat([states[row, length - 1, :4], states[row, 0, 4:]])
        assert torch.equal(vector[row], expected)
    assert context(torch.randn(3, 4), vector, states, mask) is vector


def test_attention_is_the_weighted_average_of_the_real_states(source, exact):
    states, mask = source
    attention = randomise(AdditiveAttention(4), std=0.5).to(exact, torch.float64)
    state = torch.randn(3, 4, dtype=torch.float64, device=exact)
    context = attention(state, attention.prepare(states, mask), states, mask)
    for row, length in enumerate(LENGTHS):
        query = attention.w.weight @ state[row]
        real = states[row, :length]
        scores = [attention.v @ torch.tanh(query + attention.u.weight @ h) for h in real]
        weights = torch.stack(scores).softmax(dim=0)
        torch.testing.assert_close(context[row], weights @ real)


def test_padding_is_not_heard(source, exact):
    states, mask = source
    other = torch.where(mask[..., None], states, torch.randn_like(states))
    state = torch.randn(3, 4, dtype=torch.float64, device=exact)
    for context in (FixedContext(4), AdditiveAttention(4).to(exact, torch.float64)):
        one, two = (context(state, context.prepare(x, mask), x, mask) for x in (states, other))
        torch.testing.assert_close(one, two)


def test_the_function_of_the_weights_can_be_replaced(source, exact):
    states, mask = source
    attention = AdditiveAttention(4).to(exact, torch.float64)
    attention.weights = lambda query, keys, v, mask: mask.double() / mask.sum(1, keepdim=True)
    state = torch.randn(3, 4, dtype=torch.float64, device=exact)
    context = attention(state, attention.prepare(states, mask), states, mask)
    torch.testing.assert_close(context[1], states[1, :3].mean(dim=0))
