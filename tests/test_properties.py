"""What holds for every model: the future, padding and the cuts of a cache change no score."""

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_support import MODELS, gpt, llama, transformer
from support import bounded, random_ids, randomise

CAUSAL = {"GPT": gpt, "Llama": llama}
TRANSFORMERS = {"Post-LN": transformer, "Pre-LN": functools.partial(transformer, norm="pre")}
ALL = MODELS | TRANSFORMERS
SEEDS = st.integers(0, 2**20)


def some_ids(rows, length, device):
    return torch.randint(3, 11, (rows, length), device=device)


def scores(model, ids):
    """What the model computes for ids, with a source of unequal lengths where it has one."""
    if not hasattr(model, "encode"):
        return model(ids)
    return model(random_ids([5, 3], 11, ids.device), ids)


@pytest.mark.parametrize("family", CAUSAL | TRANSFORMERS)
@bounded
@given(st.integers(2, 8), SEEDS)
def test_future_never_reaches_the_past(family, device, length, seed):
    torch.manual_seed(seed)
    model, leaves = ALL[family]().to(device, torch.float32), []

    def leaf(_module, _inputs, out):
        leaves.append(out.detach().requires_grad_())
        return leaves[-1]

    embedding = model.tgt_embedding if family in TRANSFORMERS else model.embedding
    embedding.register_forward_hook(leaf)
    position = seed % (length - 1)
    scores(model, some_ids(2, length, device))[:, position].logsumexp(-1).sum().backward()
    assert (leaves[0].grad[:, position + 1 :] == 0).all()
    assert (leaves[0].grad[:, : position + 1].abs().sum(-1) > 0).all()


@pytest.mark.parametrize("family", CAUSAL)
@bounded
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), SEEDS)
def test_cached_scores_equal_uncached_ones_however_they_are_cut(family, exact, cuts, seed):
    torch.manual_seed(seed)
    model = randomise(CAUSAL[family]().to(exact))
    ids, cache = some_ids(2, sum(cuts), exact), model.decoder.new_cache()
    whole, parts = model(ids), [model(part, cache) for part in ids.split(cuts, dim=1)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-10, rtol=1e-10)
    assert [len(layer) for layer in cache] == [sum(cuts)] * 2
    alone = model(ids[:, : cuts[0]])  # a prefix gets the same scores alone
    torch.testing.assert_close(alone, whole[:, : cuts[0]], atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("family", CAUSAL)
@bounded
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.lists(st.integers(1, 3), max_size=3),
    st.sampled_from(["left", "right", "scattered"]),
    SEEDS,
)
def test_padded_rows_get_the_scores_they_get_alone(family, exact, lengths, cuts, side, seed):
    torch.manual_seed(seed)
    model = randomise(CAUSAL[family]().to(exact))
    side = "left" if family == "Llama" else side  # it knows how far apart words stand
    width, more = max(lengths) + 1, sum(cuts)
    mask = torch.zeros(len(lengths), width + more, dtype=torch.bool, device=exact)
    for row, length in zip(mask, lengths, strict=True):
        places = {"left": range(width - length, width), "right": range(length)}.get(side)
        row[list(places or torch.randperm(width)[:length].tolist())] = True
    mask[:, width:] = True
    ids = some_ids(len(lengths), width + more, exact)
    alone = [model(row[real][None])[0] for row, real in zip(ids, mask, strict=True)]
    whole, cache = model(ids, mask=mask[:, None, None]), model.decoder.new_cache()
    parts = [model(ids[:, :width], cache, mask[:, None, None, :width])]
    parts += [model(part, cache) for part in ids[:, width:].split(cuts, dim=1) if cuts]
    for found in (whole, torch.cat(parts, 1)):
        for row, real, expected in zip(found, mask, alone, strict=True):
            torch.testing.assert_close(row[real], expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("family", ALL)
def test_every_parameter_gets_a_gradient(family, exact):
    kind = {} if family == "Bert" else {"tie_output": False}
    model = randomise(ALL[family](max_len=6, **kind).to(exact))
    scores(model, torch.arange(12, device=exact).reshape(2, 6) % 8 + 3).square().sum().backward()
    idle = {n for n, p in model.named_parameters() if p.grad is None or p.grad.abs().max() < 1e-9}
    assert all(n.endswith("w_k.bias") for n in idle), idle  # shifts a row's scores alike


@pytest.mark.parametrize("family", ALL)
def test_device_is_that_of_the_parameters(family, device):
    assert ALL[family]().to(device, torch.float32).device.type == device.type
