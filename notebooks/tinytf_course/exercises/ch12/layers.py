"""12.2 layers with weights of their own (★☆☆, 5 minutes)

Write `my_layers(make_layer, num_layers)`, which returns an `nn.ModuleList` of `num_layers` layers.
`make_layer()` makes one layer with fresh random weights. Each layer must be made separately, so
that no two are initialised equal.

Hint: Call `make_layer` once per layer, inside a list comprehension.
"""

import copy  # noqa: F401 (two mistakes use it)

import torch
from torch import nn

from tinytf_course.evidence import record
from tinytf_course.expect import expect
from tinytf_course.grading import hint
from tinytf_course.words import described


def my_layers(make_layer, num_layers):
    """An nn.ModuleList of num_layers layers, each with weights of its own.

    make_layer() makes one layer with fresh random weights.
    """
    return nn.ModuleList([make_layer() for _ in range(num_layers)])


def _maker(kind=nn.Linear, dtype=torch.float32):
    """A `make_layer` that keeps what it made, and each layer's weight as it was then."""
    made, weights = [], []

    def make_layer():
        made.append(kind(3, 3, dtype=dtype))
        weights.append(made[-1].weight.detach().clone())
        return made[-1]

    return make_layer, made, weights


def _built(answer, num_layers=4):
    return answer(_maker()[0], num_layers)


_FOUR = "for num_layers=4"


def test_counts(answer):
    """there are num_layers layers"""
    for num_layers in (4, 1, 7):
        where, layers = f"for num_layers={num_layers}", _built(answer, num_layers)
        expect(hasattr(layers, "__len__"), f"{where}, you return {described(layers)}")
        expect(len(layers) == num_layers, f"{where}, there are {len(layers)} layers")


def test_are_layers(answer):
    """each entry is a layer"""
    for layer in _built(answer):
        kind = type(layer).__name__
        expect(isinstance(layer, nn.Module), f"{_FOUR}, an entry is a {kind}, expected a layer")


def test_is_list(answer):
    """the parameters of all layers are found by the model that holds them"""
    model = nn.Module()
    model.layers = layers = _built(answer)
    found = sum(p.numel() for p in model.parameters())
    own = "each layer here has 12"
    expect(found == 48, f"{_FOUR}, the model has {found} parameters, expected 48: {own}")
    expect(isinstance(layers, nn.ModuleList), f"{_FOUR}, you return {described(layers)}, "
           "expected an `nn.ModuleList`")  # fmt: skip


def test_differ(answer):
    """no two layers start with equal weights"""
    weights = [layer.weight for layer in _built(answer)]
    for i, one in enumerate(weights):
        for j, other in enumerate(weights[:i]):
            expect(
                not torch.equal(one, other),
                f"{_FOUR}, layers {j} and {i} start with equal weights",
            )
    again = [layer.weight for layer in _built(answer)]
    seeded = any(torch.equal(one, other) for one, other in zip(weights, again, strict=False))
    expect(not seeded, f"{_FOUR}, called twice, a layer starts with equal weights both times")


@hint("Each layer is one that `make_layer()` returned, as it returned it.")
def test_all_made(answer):
    """every layer comes from a call of make_layer of its own, and is left as it was made"""
    for dtype in (torch.float32, torch.float64):
        make_layer, made, weights = _maker(dtype=dtype)
        layers = list(answer(make_layer, 3))
        where = "for num_layers=3"
        record([[layer is one for one in made] for layer in layers])
        record([[torch.equal(layer.weight, start) for start in weights] for layer in layers])
        expect(len(made) == 3, f"{where}, make_layer is called {len(made)} times, expected 3")
        for i, layer in enumerate(layers):
            at = [j for j in range(3) if made[j] is layer]
            expect(at, f"{where}, layer {i} is not one that make_layer returned")
            unchanged = layer.weight.dtype == dtype and torch.equal(layer.weight, weights[at[0]])
            expect(unchanged, f"{where}, the weights of layer {i} are not those it was made with")
            expect(layer.training, f"{where}, layer {i} is in the mode of `eval()`: it was not")
            learns = all(weight.requires_grad for weight in layer.parameters())
            expect(learns, f"{where}, layer {i} is frozen: it was not")


MISTAKES = r"""
copies with noise
    … =>
        layers = nn.ModuleList([copy.deepcopy(one) for one in [make_layer()] * num_layers])
        with torch.no_grad():
            for weight in layers.parameters():
                weight += 1e-3 * torch.randn_like(weight)
        return layers
    says: make_layer is called 1 times, expected 3
    A little noise makes copies unequal and leaves them alike: all begin as one layer. Make each
    by itself.
the same random numbers every time
    return =>
        torch.manual_seed(0)
        return
    says: called twice, a layer starts with equal weights
    A seed set in here makes every stack start alike, encoder and decoder too, and resets the
    caller's random numbers. A seed is set once, at the start of a program.
frozen layers
    range(num_layers)]) => range(num_layers)]).requires_grad_(False)
    says: layer 0 is frozen
    `requires_grad_(False)` is for models that have finished learning. These are about to begin.
layers in eval mode
    range(num_layers)]) => range(num_layers)]).eval()
    says: layer 0 is in the mode of `eval()`
    A model begins in training mode, with its dropout. `eval()` is for its use.
one layer, four times
    [make_layer() for _ in range(num_layers)] => [make_layer()] * num_layers
    says: the model has 12 parameters
    `[layer] * n` holds one layer n times. It runs, and trains one layer's weights; ALBERT does
    so on purpose.
copies of one layer
    make_layer() for _ in range(num_layers) =>
        copy.deepcopy(one) for one in [make_layer()] * num_layers
    says: layers 0 and 1 start with equal weights
    Copies have weights of their own, which start equal. `nn.TransformerEncoder` does this.
a plain list
    nn.ModuleList( => (
    says: the model has 0 parameters
    A module does not look into Python lists: the optimiser would never see these layers.
makers instead of layers
    nn.ModuleList([make_layer() for _ in range(num_layers)]) => [make_layer] * num_layers
    says: an entry is a function, expected a layer
    `make_layer` is the function; `make_layer()` is a layer.
one too few
    range(num_layers) => range(1, num_layers)
    says: there are 3 layers
    `range(1, n)` has n - 1 numbers.
"""
