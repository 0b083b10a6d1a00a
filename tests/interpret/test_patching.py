"""A patched run against one written out without hooks."""

import pytest
import torch

from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import record, replace
from tinytf.interpret.patching import patch_map, recovered, transplant
from tinytf.support.randomness import seeded

IDS = torch.tensor([[1, 4, 2, 7, 9], [3, 3, 0, 10, 5]])
OTHER = torch.tensor([[1, 4, 2, 7, 6], [3, 8, 0, 10, 5]])
AT = torch.tensor([4, 1])


def gpt():
    with seeded(0):
        model = GPT(GPTConfig(vocab_size=11, d_model=16, num_heads=4, num_layers=3, max_len=8))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval().requires_grad_(False)


def plain_patched(model, layer):
    """Run OTHER by hand, with the run on IDS put in behind `layer` at AT."""

    def layers(x, numbers):
        for i in numbers:
            x = model.decoder.layers[i](x, "causal")
        return x

    clean = layers(model.positions(model.embedding(IDS)), range(layer + 1))
    x = layers(model.positions(model.embedding(OTHER)), range(layer + 1))
    rows = []
    for b in range(2):
        row = [clean[b, t] if t == int(AT[b]) else x[b, t] for t in range(5)]
        rows.append(torch.stack(row))
    x = layers(torch.stack(rows), range(layer + 1, 3))
    return model.output(model.decoder.final_norm(x))


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_patched_run_equals_one_without_hooks(layer):
    model, name = gpt(), f"decoder.layers.{layer}"
    with record(model, name) as seen:
        model(IDS)
    with replace(model, name, transplant(seen[name], AT)):
        patched = model(OTHER)
    torch.testing.assert_close(patched, plain_patched(model, layer))
    assert not torch.allclose(patched, model(OTHER))


def test_nothing_leaks_into_other_places_or_the_caller_s_tensors():
    values, x = torch.ones(2, 3, 1), torch.zeros(2, 3, 1)
    out = transplant(values, torch.tensor([0, 2]))(x)
    assert out[..., 0].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert x.eq(0).all()
    assert values.eq(1).all()


def test_values_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 3, 1\) can't stand for \(2, 4, 1\)"):
        transplant(torch.ones(2, 3, 1), torch.tensor([0, 1]))(torch.zeros(2, 4, 1))


def test_the_score_is_0_at_one_end_and_1_at_the_other():
    clean, corrupted = torch.tensor([3.0, 1.0]), torch.tensor([-1.0, 0.9])
    assert recovered(corrupted, clean, corrupted) == 0
    assert recovered(clean, clean, corrupted) == 1
    assert recovered(torch.tensor([1.05, 0.9]), clean, corrupted) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="there is nothing to recover"):
        recovered(clean, clean, clean)


def test_a_map_asks_once_for_each_module_and_place():
    model, names = gpt(), ("embedding", "decoder.layers.0")
    with record(model, *names) as seen:
        model(IDS)
    found = patch_map(
        model, lambda: model(OTHER)[:, -1, 3], dict(seen), {"a": AT, "b": torch.tensor([0, 0])}
    )
    assert {name: list(row) for name, row in found.items()} == {n: ["a", "b"] for n in names}
    torch.testing.assert_close(found["decoder.layers.0"]["a"], plain_patched(model, 0)[:, -1, 3])
    torch.testing.assert_close(found["embedding"]["b"], model(OTHER)[:, -1, 3])
    assert not any(module._forward_hooks for module in model.modules())
