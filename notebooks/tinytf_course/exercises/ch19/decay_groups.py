"""19.3 what decays (★★☆, 10 minutes)

This function sorts a model's parameters for the optimiser into those that weight decay pulls
towards 0 and all others:

```python
def my_decay_groups(model):
    named = list(model.named_parameters())
    decayed = [p for name, p in named if name.endswith("weight")]
    others = [p for name, p in named if name.endswith("bias")]
    return decayed, others
```

Our GPT trains with it without an error, but its table of positions still holds the random numbers
that it began with. Find out why, and repair `my_decay_groups(model)` for models of any names.

<details><summary>The rule in detail</summary>

What has more than one axis decays, embedding tables among it. Biases, the gains and shifts of
norms, and single numbers do not. Each of the model's own parameters is in one of the two lists,
once, even if it is used in two places or frozen.

</details>

Hint: Which parameters of the model are in neither list, and which are in the wrong one? A norm's
gain is called `weight`, too.

Hint: `model.parameters()` gives a shared parameter once. How many axes has a bias?
"""

from collections.abc import Iterable

import torch
from torch import nn

from tinytf.gpt import GPT, GPTConfig
from tinytf_course.expect import expect


def my_decay_groups(model):
    """Which parameters to decay, and which not: two lists of tensors.

    Matrices decay, embedding tables among them; biases and the norms' gains and shifts do not. A
    parameter used in two places is in one list, once.
    """
    parameters = list(model.parameters())
    return [p for p in parameters if p.dim() > 1], [p for p in parameters if p.dim() <= 1]


def _small():
    return GPT(GPTConfig(vocab_size=7, d_model=4, num_heads=2, num_layers=1, max_len=5))


def _foreign():
    """Parameters with GPT-2's own names: they do not say what is a norm."""
    parts = {"wte": nn.Embedding(7, 4), "ln_1": nn.LayerNorm(4), "c_attn": nn.Linear(4, 12)}
    return nn.ModuleDict(parts)


def _listed(answer, make=_small, where="for a GPT of one layer"):
    """The model, and the two lists as names."""
    model = make()
    names = {id(p): name for name, p in model.named_parameters()}
    got = answer(model)
    pair = isinstance(got, tuple | list) and len(got) == 2
    expect(pair, f"{where}, you return {type(got).__name__}, expected two lists of parameters")
    lists = []
    for part in got:
        kind = type(part).__name__
        expect(
            isinstance(part, Iterable), f"{where}, you return {kind}, expected lists of parameters"
        )
        part = list(part)  # an iterator is read once
        for p in part:
            message = f"{where}, a list holds {type(p).__name__} that is no parameter of the model"
            expect(id(p) in names, message)
        lists.append([names[id(p)] for p in part])
    return model, lists


def test_matrices(answer):
    """matrices decay"""
    model, (decayed, _) = _listed(answer)
    for name, p in model.named_parameters():
        if p.dim() > 1:
            expect(name in decayed, f"for a GPT of one layer, {name} {tuple(p.shape)} must decay")


def test_vectors(answer):
    """biases and norms do not"""
    model, (decayed, _) = _listed(answer)
    for name, p in model.named_parameters():
        if p.dim() <= 1:
            message = f"for a GPT of one layer, {name} {tuple(p.shape)} must not decay"
            expect(name not in decayed, message)


def test_once(answer):
    """each parameter is in the two lists once"""
    model, (decayed, others) = _listed(answer)
    both = decayed + others
    for name, _ in model.named_parameters():
        times = both.count(name)
        message = f"for a GPT of one layer, {name} is in the lists {times} times, expected once"
        expect(times == 1, message)


def test_other_names(answer):
    """names decide nothing"""
    where = "for a model with GPT-2's own names"
    model, (decayed, _) = _listed(answer, _foreign, where)
    for name, p in model.named_parameters():
        must = "must" if p.dim() > 1 else "must not"
        expect((name in decayed) == (p.dim() > 1), f"{where}, {name} {tuple(p.shape)} {must} decay")


def _double():
    """Two layers in float64: what is listed has to be the parameter itself."""
    config = GPTConfig(vocab_size=9, d_model=6, num_heads=3, num_layers=2, max_len=4)
    return GPT(config).double()


def _filters():
    """Parameters with more than two axes, or one alone."""
    parts = {"images": nn.Conv2d(3, 4, 2), "steps": nn.Conv1d(2, 3, 2, bias=False)}
    model = nn.ModuleDict(parts)
    model.register_parameter("temperature", nn.Parameter(torch.tensor(1.0)))
    model["verdict"] = nn.Linear(4, 1)  # a matrix of one row is a matrix
    model["frozen"] = nn.Linear(2, 2).requires_grad_(False)  # listed, too
    model["running"] = nn.BatchNorm1d(2)  # with buffers, which are no parameters
    return model


def test_itself(answer):
    """the lists hold every model's own parameters, whatever their dtype and number of axes"""
    for make, where in ((_double, "for a GPT in float64"), (_filters, "for filters")):
        kinds = {p.dtype for p in make().parameters()}
        model, (decayed, others) = _listed(answer, make, where)
        cast = {p.dtype for p in model.parameters()} != kinds
        expect(not cast, f"{where}, the model's parameters have another dtype after your call")
        for name, p in model.named_parameters():
            right, wrong = (decayed, others) if p.dim() > 1 else (others, decayed)
            message = f"{where}, {name} {tuple(p.shape)} is in the wrong list, or in none or twice"
            expect(right.count(name) == 1 and name not in wrong, message)


MISTAKES = r"""
everything decays
    p.dim() > 1 => True
    p.dim() <= 1 => False
    says: w_q.bias (4,) must not decay
    Biases and norms are few and have nothing to do with large weights: a gain pulled towards 0
    only takes away what the norm is there for.
the code as given
    … =>
        named = list(model.named_parameters())
        decayed = [p for name, p in named if name.endswith("weight")]
        others = [p for name, p in named if name.endswith("bias")]
        return decayed, others
    says: positions.table (5, 4) must decay
    A norm's gain is called `weight`, too, and decays. What is called neither, such as the table
    of positions, is in no list and would never be trained.
whatever is called weight
    model.parameters() => model.named_parameters()
    p for p in parameters if p.dim() > 1 => p for n, p in parameters if n.endswith("weight")
    p for p in parameters if p.dim() <= 1 => p for n, p in parameters if not n.endswith("weight")
    says: must not decay
    A norm's gain is called `weight` too, and a table of positions may not be. Count axes, not
    letters.
by our names
    model.parameters() => model.named_parameters()
    p for p in parameters if p.dim() > 1 => p for n, p in parameters if p.dim() > 1
    p.dim() > 1 => "norm" not in n and "bias" not in n
    p for p in parameters if p.dim() <= 1 => p for n, p in parameters if "norm" in n or "bias" in n
    says: ln_1.weight (4,) must not decay
    Right for our GPT, whose norms are called so; GPT-2's own are `ln_1`. Count axes.
groups swapped
    > 1], [p for p in parameters if p.dim() <= 1 => <= 1], [p for p in parameters if p.dim() > 1
    says: embedding.weight (7, 4) must decay
    The first list is the one that decays.
tables left out
    model.parameters() => model.named_parameters()
    p for p in parameters if p.dim() > 1 => p for n, p in parameters if p.dim() > 1
    p.dim() > 1 => p.dim() > 1 and "emb" not in n
    p for p in parameters if p.dim() <= 1 => p for n, p in parameters if p.dim() <= 1 or "emb" in n
    says: embedding.weight (7, 4) must decay
    Some recipes spare the embeddings; this one does not. The table is the output's matrix as
    well.
biases belong to no group
    , [p for p in parameters if p.dim() <= 1] => , []
    says: is in the lists 0 times
    What is in neither list is never updated: the optimiser only knows what it is given.
tied matrix twice
    model.parameters() => p for m in model.modules() for p in m.parameters(recurse=False)
    says: embedding.weight is in the lists 2 times
    Walking through modules meets the tied matrix twice; an optimiser refuses or updates it
    twice. `model.parameters()` gives it once.
a matrix of one row taken for a vector
    p.dim() > 1 => p.squeeze().dim() > 1
    p.dim() <= 1 => p.squeeze().dim() <= 1
    says: verdict.weight (1, 4) is in the wrong list
    Count all axes, those of length 1 too: a map to a single number is a matrix of one row.
frozen ones left out
    list(model.parameters()) => [p for p in model.parameters() if p.requires_grad]
    says: frozen.weight (2, 2) is in the wrong list, or in none
    Each parameter belongs in one of the two; one that is frozen today may learn tomorrow.
buffers as well
    model.parameters()) => model.parameters()) + list(model.buffers())
    says: that is no parameter of the model
    Buffers, such as the statistics of a batch norm, are stored and not learned.
exactly two axes
    p.dim() > 1 => p.dim() == 2
    p.dim() <= 1 => p.dim() != 2
    says: for filters, images.weight (4, 3, 2, 2) is in the wrong list
    A filter for images has four axes, and is as much a matrix: more than one is enough.
"""
