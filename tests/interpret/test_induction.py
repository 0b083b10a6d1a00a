"""Induction scores and circuits, against plain loops and the layer's own scores."""

import math

import pytest
import torch

from tinytf.attention import attention_weights
from tinytf.inspect import record, replace
from tinytf.interpret.induction import (
    induction_score,
    key_matches,
    matching_scores,
)
from tinytf.relative import apply_rotary
from tinytf_course.studies.induction import AttentionOnly, repeats


@pytest.fixture
def model():
    torch.manual_seed(0)
    return AttentionOnly().double()


def plain_forward(model, ids):
    """Every pattern, by plain functions: no layer's forward, no hook, head by head."""
    x, patterns = model.embedding.weight[ids], []
    hidden = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
    for layer in model.layers:
        maps, out, ours = (layer.w_q, layer.w_k, layer.w_v), 0, []
        for h in range(4):
            mine = slice(16 * h, 16 * h + 16)
            q, k, v = (x @ w.weight[mine].T for w in maps)
            q, k = (apply_rotary(part[:, None], 0)[:, 0] for part in (q, k))
            scores = (q @ k.transpose(1, 2) / 4).masked_fill(hidden, -torch.inf)
            ours.append(scores.softmax(dim=-1))
            out = out + ours[-1] @ v @ layer.w_o.weight[:, mine].T
        x = x + out
        patterns.append(torch.stack(ours, dim=1))
    return x @ model.output.weight.T, patterns


def test_recorded_patterns_and_scores_are_those_of_plain_functions(model):
    ids, _ = repeats(3, torch.Generator().manual_seed(1))
    with torch.no_grad(), record(model) as seen:
        out = model(ids)
    with torch.no_grad():
        expected, patterns = plain_forward(model, ids)
    torch.testing.assert_close(out, expected, atol=1e-10, rtol=1e-10)
    for weights, pattern in zip(seen.values(), patterns, strict=True):
        torch.testing.assert_close(weights, pattern, atol=1e-12, rtol=1e-10)
        torch.testing.assert_close(induction_score(weights, ids), by_loop(pattern, ids))


def by_loop(weights, ids):
    total, count = 0, 0
    for b, row in enumerate(ids.tolist()):
        for t, token in enumerate(row):
            keys = [s for s in range(1, t + 1) if row[s - 1] == token]
            count += bool(keys)
            total = total + sum(weights[b, :, t, s] for s in keys)
    return total / count


def test_a_text_without_repeats_has_no_score():
    weights = torch.ones(1, 2, 3, 3) / 3
    assert induction_score(weights, torch.tensor([[3, 1, 2]])).isnan().all()


def test_matching_scores_are_the_layer_s_own(model):
    """Two tokens apart, all ways but one cut off, the score read where the layer makes it."""
    a, b, apart, h, through = 5, 9, 16, 2, 1
    table = matching_scores(model, h, through, apart)
    caught = {}
    x = model.embedding.weight
    below, layer = model.layers[0], model.layers[1]
    part = slice(16 * through, 16 * through + 16)
    written = (x[b] @ below.w_v.weight[part].T) @ below.w_o.weight[:, part].T
    stream = torch.zeros(1, apart + 1, 64, dtype=torch.float64)
    stream[0, 0], stream[0, apart] = written, x[a]

    def probe(q, k, v, mask=None, dropout=0.0):
        q, k = apply_rotary(q, 0), apply_rotary(k, 0)
        caught["score"] = (q[0, h, apart] @ k[0, h, 0] / math.sqrt(16)).item()
        return attention_weights(q, k, mask) @ v

    layer.attention, before = probe, layer.attention
    with torch.no_grad():
        layer(stream)
    layer.attention = before
    assert table[a, b].item() == pytest.approx(caught["score"])


def test_key_matches_find_a_diagonal(model):
    random = key_matches(model, 0, 0).item()
    assert abs(random) < 1
    with torch.no_grad():
        model.layers[1].w_k.weight.copy_(model.layers[1].w_q.weight)
        layer = model.layers[1]
        layer.attention = type(layer.attention)(base=1e30)  # hardly turned
    assert key_matches(model, 0, None, apart=0).item() > 3


def test_a_pattern_that_is_replaced_is_the_one_that_is_used(model):
    ids, _ = repeats(2, torch.Generator().manual_seed(2))
    with torch.no_grad(), record(model) as seen, replace(model, "layers.0", torch.zeros_like):
        model(ids)
    assert not seen["layers.0"].any()
