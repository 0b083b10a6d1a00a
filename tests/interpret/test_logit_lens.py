"""The lens against a forward pass written out without hooks."""

import torch

from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import record
from tinytf.interpret.logit_lens import decided_after, logit_lens
from tinytf.support.randomness import seeded


def gpt():
    with seeded(0):
        model = GPT(GPTConfig(vocab_size=11, d_model=16, num_heads=4, num_layers=3, max_len=8))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval().requires_grad_(False)


IDS = torch.tensor([[1, 4, 2, 7, 9], [3, 3, 0, 10, 5]])


def plain_layers(model, ids):
    """The stream after each layer, computed with nothing but the weights."""
    weights = dict(model.named_parameters())

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / (var + 1e-5).sqrt() * weights[f"{name}.weight"] + weights[
            f"{name}.bias"
        ]

    x = weights["embedding.weight"][ids] + weights["positions.table"][: ids.size(1)]
    stream, heads = [x], model.config.num_heads
    hidden = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
    for i in range(model.config.num_layers):
        here = f"decoder.layers.{i}"
        y = norm(x, f"{here}.residual_1.norm")
        q, k, v = (
            linear(y, f"{here}.self_attention.w_{n}").unflatten(-1, (heads, -1)).transpose(1, 2)
            for n in "qkv"
        )
        scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(hidden, -torch.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = x + linear(mixed, f"{here}.self_attention.w_o")
        y = linear(norm(x, f"{here}.residual_2.norm"), f"{here}.feed_forward.w_1")
        y = torch.nn.functional.gelu(y, approximate="tanh")
        x = x + linear(y, f"{here}.feed_forward.w_2")
        stream.append(x)
    read = [norm(x, "decoder.final_norm") @ weights["embedding.weight"].T for x in stream]
    return torch.stack(stream), torch.stack(read)


def test_the_lens_equals_a_forward_pass_without_hooks():
    model = gpt()
    names = ["positions", *(f"decoder.layers.{i}" for i in range(3))]
    with record(model, *names) as seen:
        final = model(IDS)
    stream, read = plain_layers(model, IDS)
    torch.testing.assert_close(torch.stack([seen[name] for name in names]), stream)
    torch.testing.assert_close(logit_lens(model, stream), read)
    torch.testing.assert_close(logit_lens(model, seen["decoder.layers.2"]), final)


def test_decided_is_not_taken_back():
    guesses = torch.tensor([[2, 1, 0], [2, 0, 1], [0, 0, 1], [2, 0, 1], [2, 0, 2]])  # (L, T)
    logits = torch.nn.functional.one_hot(guesses, 3).double()
    assert decided_after(logits).tolist() == [3, 1, 4]
    assert decided_after(logits[:, None]).tolist() == [[3, 1, 4]]
    assert decided_after(logits[:1]).tolist() == [0, 0, 0]
