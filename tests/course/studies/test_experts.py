"""The study of experts: the layer against a sum by hand, its loss, and what each run changes."""

import pytest
import torch
import torch.nn.functional as F
from support import randomise

from tinytf.feedforward import SwiGLU
from tinytf.metrics.counting import count_parameters
from tinytf.training.losses import TextBatch, next_token_loss
from tinytf_course.studies.experts import (
    ALPHA,
    EXPERTS,
    RUNS,
    MixtureOfExperts,
    build,
    layers_of_experts,
    load_balance,
    mixture_loss,
    prepare,
    shares,
)

TEXT = torch.randint(512, (700,), generator=torch.Generator().manual_seed(0))


def mixture(experts=5, top_k=2, device="cpu"):
    return randomise(MixtureOfExperts(6, 7, experts, top_k)).to(device, torch.float64)


@pytest.mark.parametrize("top_k", [1, 2, 5])
def test_each_token_gets_the_weighted_sum_of_its_experts(top_k, exact):
    layer = mixture(top_k=top_k, device=exact)
    x = torch.randn(2, 9, 6, dtype=torch.float64, device=exact)
    out = layer(x)
    for b, t in torch.cartesian_prod(torch.arange(2), torch.arange(9)).tolist():
        scores = layer.router.weight @ x[b, t]
        best = sorted(range(5), key=lambda e: -scores[e])[:top_k]
        gates = [scores[e].exp() for e in best]
        pairs = zip(gates, best, strict=True)
        by_hand = sum(gate / sum(gates) * layer.experts[e](x[b, t]) for gate, e in pairs)
        torch.testing.assert_close(out[b, t], by_hand, atol=1e-11, rtol=1e-11)


def test_one_expert_is_the_dense_network_with_its_gradients():
    layer, x = mixture(1, 1), torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    dense = layer.experts[0]
    assert isinstance(dense, SwiGLU)
    for ours, theirs in zip(*(_grads(f, x, dense) for f in (layer, dense)), strict=True):
        assert torch.equal(ours, theirs)


def _grads(f, x, dense):
    out = f(x)
    return [out, *torch.autograd.grad(out.square().sum(), [x, *dense.parameters()])]


def test_gradients_reach_the_router_and_the_experts_that_are_used():
    layer = mixture()
    with torch.no_grad():
        layer.router.weight[:] = 0
        layer.router.weight[:, 0] = torch.tensor([3.0, 2, -1, -2, -3])  # 0 and 1 for every token
    layer(torch.rand(2, 4, 6, dtype=torch.float64) + 0.1).square().sum().backward()
    assert layer.router.weight.grad.abs().max() > 0
    used = [expert.w_1.weight.grad.abs().max() > 0 for expert in layer.experts]
    assert used == [True, True, False, False, False]


def test_the_balancing_loss_is_one_if_balanced_and_half_of_the_experts_if_two_have_all():
    turns = torch.arange(8).repeat(3)
    scores = 40.0 * F.one_hot(turns, 8) + 39.0 * F.one_hot((turns + 1) % 8, 8)
    assert load_balance(scores).item() == pytest.approx(1, abs=1e-6)
    assert load_balance(scores.view(4, 6, 8)).item() == pytest.approx(1, abs=1e-6)
    assert load_balance(scores[:1].expand(5, 8)).item() == pytest.approx(4, abs=1e-6)
    assert load_balance(scores, top_k=1).item() == pytest.approx(1, abs=1e-6)


def test_the_loss_of_a_run_adds_every_layers():
    torch.manual_seed(0)
    model, batch = build(RUNS["mixture"]), TextBatch(TEXT[None, :32], TEXT[None, 1:33])
    plain, count = next_token_loss(model, batch)
    balance = sum(load_balance(layer.logits) for layer in layers_of_experts(model))
    assert balance > 3.9  # four layers of at least nearly 1
    loss, tokens = mixture_loss(model, batch)
    assert tokens == count == 32
    torch.testing.assert_close(loss, plain + ALPHA * 32 * balance)


def test_two_experts_are_as_large_as_the_dense_network():
    dense, experts = (build(RUNS[name]).decoder.layers[0].feed_forward for name in
                      ("dense", "mixture"))  # fmt: skip
    assert len(experts.experts) == EXPERTS
    assert 2 * count_parameters(experts.experts[0]) == count_parameters(dense)
    torch.manual_seed(0)
    model = build(RUNS["mixture"])
    for name, p in model.decoder.layers[0].feed_forward.named_parameters():
        std = 0.02 / (8**0.5 if name.endswith("w_2.weight") else 1)
        assert p.std().item() == pytest.approx(std, rel=0.1), name


@pytest.mark.parametrize(("run", "balanced"), [("mixture", True), ("mixture, unbalanced", False)])
def test_runs_differ_in_the_balancing_loss_alone(run, balanced):
    trainer, dense = prepare(TEXT, RUNS[run], 1), prepare(TEXT, RUNS["dense"], 1)
    assert (trainer.objective.func is mixture_loss) == balanced
    assert dense.objective.func is next_token_loss
    assert torch.equal(trainer.batches(3).ids_in, dense.batches(3).ids_in)
    assert RUNS["dense, equal time"].steps == 2 * RUNS[run].steps == 2 * RUNS["dense"].steps


def test_shares_count_every_choice():
    model = build(RUNS["mixture"]).eval()
    nats, found = shares(model, TEXT, rows=4)
    assert nats == pytest.approx(6.24, abs=0.1)  # ln 512
    assert len(found) == 4
    assert all(len(row) == EXPERTS and sum(row) == pytest.approx(1, abs=1e-3) for row in found)
    assert shares(build(RUNS["dense"]), TEXT, rows=4)[1] == []
