"""What holds for every model: maps may be exchanged, ties hold, torch's tools work on it."""

import functools
import itertools

import pytest
import torch
from model_support import MODELS
from support import randomise
from torch import nn

from tinytf.attention import explicit_attention
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.generate import generate
from tinytf.inspect import record, replace
from tinytf.metrics.counting import largest_made
from tinytf.transformer import Transformer

TIED = ("Transformer", "GPT", "Llama")
every_model = pytest.mark.parametrize("family", MODELS)
every_tied = pytest.mark.parametrize("family", TIED)


def run(model, seed=0):
    """What the model computes for some ids."""
    draws = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 9, (2, 6), generator=draws)
    both = hasattr(model, "encode")
    return model(ids, ids[:, :4]) if both else model(ids)


# ---- maps that are more than nn.Linear


class LowRank(nn.Linear):
    """LoRA in its usual form: the frozen map, and a product of two thin matrices beside it."""

    def __init__(self, linear):
        super().__init__(linear.in_features, linear.out_features, linear.bias is not None)
        self.to(linear.weight).load_state_dict(linear.state_dict())
        self.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, linear.in_features).to(linear.weight))
        self.up = nn.Parameter(torch.randn(linear.out_features, 2).to(linear.weight))

    def forward(self, x):
        return super().forward(x) + x @ self.down.T @ self.up.T


class Wrapped(nn.Module):
    """A module around a map, as adapters put one."""

    def __init__(self, linear):
        super().__init__()
        self.inside = linear

    def forward(self, x):
        return 2 * self.inside(x)


def linear_maps(model):
    return [n for n, m in model.named_modules() if type(m) is nn.Linear]


def exchange(model, name, make):
    parent, _, own = name.rpartition(".")
    holder = model.get_submodule(parent)
    setattr(holder, own, make(getattr(holder, own)))


def merge(linear):
    """The plain map that computes what LowRank(linear) does."""
    low = LowRank(linear)
    plain = nn.Linear(linear.in_features, linear.out_features, linear.bias is not None).to(low.down)
    with torch.no_grad():
        plain.weight.copy_(linear.weight + low.up @ low.down)
        if linear.bias is not None:
            plain.bias.copy_(linear.bias)
    return plain


@every_model
def test_a_low_rank_update_of_every_map_is_computed_and_gets_its_gradient(family):
    ours, theirs = (MODELS[family]() for _ in "12")
    randomise(ours)
    theirs.load_state_dict(ours.state_dict())
    names = [n for n in linear_maps(ours) if n != "output"]
    assert {"w_q", "w_k", "w_v", "w_o", "w_1", "w_2"} <= {n.rpartition(".")[2] for n in names}
    for seed, name in enumerate(names):
        torch.manual_seed(seed)
        exchange(ours, name, LowRank)
        torch.manual_seed(seed)
        exchange(theirs, name, merge)
    torch.testing.assert_close(run(ours), run(theirs), atol=1e-10, rtol=1e-10)
    run(ours).square().sum().backward()
    for name in names:
        for factor in ("up", "down"):
            gradient = getattr(ours.get_submodule(name), factor).grad
            assert gradient is not None, (name, factor)
            assert gradient.abs().max() > 0, (name, factor)


@every_model
def test_a_wrapper_round_every_map_is_called(family):
    ours, theirs = (MODELS[family]() for _ in "12")
    randomise(ours)
    theirs.load_state_dict(ours.state_dict())
    names = linear_maps(ours)
    with torch.no_grad():
        for name in names:
            linear = theirs.get_submodule(name)
            for p in linear.parameters():  # a tied table is not to change
                setattr(linear, "weight" if p.dim() == 2 else "bias", nn.Parameter(2 * p))
    for name in names:
        exchange(ours, name, Wrapped)
    torch.testing.assert_close(run(ours), run(theirs), atol=1e-10, rtol=1e-10)
    assert ours.device.type == "cpu"


@every_model
def test_quantised_maps_run(family):
    model = randomise(MODELS[family](), std=0.2).float().eval()
    quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    assert not [n for n in linear_maps(quantised) if n != "output"]
    with torch.no_grad():
        plain, near = run(model), run(quantised)
    assert not torch.equal(plain, near)
    assert (plain - near).abs().max() < 0.2 * plain.abs().max()
    assert quantised.device.type == "cpu"


@every_model
def test_parametrised_maps_run(family):
    model = randomise(MODELS[family]())
    plain = run(model)
    for name in linear_maps(model):
        if name != "output":
            torch.nn.utils.parametrizations.weight_norm(model.get_submodule(name))
    torch.testing.assert_close(run(model), plain, atol=1e-10, rtol=1e-10)


@every_model
def test_hooks_of_every_kind_fire_on_every_module(family):
    model, fired = randomise(MODELS[family]()), set()
    for name, module in model.named_modules():
        note = functools.partial(lambda key, *_: fired.add(key) or None)
        module.register_forward_hook(functools.partial(note, (name, "forward")))
        module.register_forward_pre_hook(functools.partial(note, (name, "pre")))
        if type(module) is nn.Linear:
            module.register_full_backward_hook(functools.partial(note, (name, "backward")))
            module.register_full_backward_pre_hook(functools.partial(note, (name, "before")))
    run(model).sum().backward()
    names = {n for n, m in model.named_modules() if not isinstance(m, nn.ModuleList)}
    wanted = {(n, kind) for n in names for kind in ("forward", "pre")}
    wanted |= {(n, kind) for n in linear_maps(model) for kind in ("backward", "before")}
    assert wanted <= fired, wanted - fired


@every_model
def test_each_kind_of_hook_alone_is_enough(family):
    for kind in ("forward", "forward_pre", "full_backward", "full_backward_pre"):
        model, fired = randomise(MODELS[family]()), []
        for name, module in model.named_modules():
            if name.endswith(("w_q", "w_k", "w_v")):
                register = getattr(module, f"register_{kind}_hook")
                register(lambda *_, name=name, fired=fired: fired.append(name))
        run(model).sum().backward()
        assert set(fired) == {n for n in linear_maps(model) if n.endswith(("w_q", "w_k", "w_v"))}


@every_model
def test_replace_acts_on_every_linear_map(family):
    model = randomise(MODELS[family]())
    plain = run(model)
    for name in linear_maps(model):
        with replace(model, name, lambda y: 3 * y):
            changed = run(model)
        assert (changed - plain).abs().max() > 1e-8, name
    assert torch.equal(run(model), plain)


@every_model
def test_record_gives_the_output_of_any_module(family):
    model = randomise(MODELS[family]())
    names = [
        n for n, m in model.named_modules() if n and type(m).__name__ in ("Linear", "LayerNorm")
    ]
    expected, handles = {}, []
    for name in names:
        keep = functools.partial(lambda name, _m, _i, out: expected.update({name: out}), name)
        handles.append(model.get_submodule(name).register_forward_hook(keep))
    run(model)
    for handle in handles:
        handle.remove()
    with record(model, *names) as seen:
        run(model)
    assert set(seen) == set(names)
    assert all(torch.equal(seen[n], expected[n]) and not seen[n].requires_grad for n in names)
    with pytest.raises(KeyError, match="no module 'nothing'"), record(model, "nothing"):
        pass


# ---- ties


def tied(model):
    return model.output.weight is model.table


@every_tied
def test_tied_stays_tied_through_every_way_of_loading(family):
    source = randomise(MODELS[family](tie_output=True))
    state, expected = source.state_dict(), run(source)
    with torch.device("meta"):
        empty = MODELS[family](tie_output=True)
    for model, assign in itertools.product((MODELS[family](tie_output=True), empty), (False, True)):
        if not assign and model is empty:
            continue
        model.load_state_dict(state, assign=assign)
        assert tied(model)
    fresh = MODELS[family](tie_output=True)
    fresh.load_state_dict({k: v.clone() for k, v in state.items()}, assign=True)
    assert tied(fresh)
    assert torch.equal(run(fresh), expected)
    run(fresh).sum().backward()
    assert fresh.table.grad is not None
    holder = nn.ModuleDict({"model": MODELS[family](tie_output=True)})  # as part of something else
    holder.load_state_dict({f"model.{k}": v.clone() for k, v in state.items()}, assign=True)
    assert tied(holder["model"])


@every_tied
def test_to_empty_keeps_the_tie_and_leaves_no_table_to_chance(family):
    source = randomise(MODELS[family](tie_output=True))
    with torch.device("meta"):
        model = MODELS[family](tie_output=True)
    assert tied(model)
    model.to_empty(device="cpu")
    assert tied(model)
    model.load_state_dict(source.state_dict())
    torch.testing.assert_close(run(model), run(source), atol=1e-6, rtol=1e-6)
    with torch.device("meta"):
        holder = nn.ModuleDict({"model": MODELS[family](tie_output=True)})
    holder.to_empty(device="cpu")
    holder["model"].load_state_dict(source.state_dict())
    assert tied(holder["model"])
    torch.testing.assert_close(run(holder["model"]), run(source), atol=1e-6, rtol=1e-6)


@every_tied
def test_two_matrices_in_a_state_are_refused_where_the_config_ties_them(family):
    state = MODELS[family](tie_output=False).state_dict()
    assert not torch.equal(state["output.weight"], MODELS[family](tie_output=False).table)
    model = MODELS[family](tie_output=True)
    with pytest.raises(ValueError, match="give it tie_output=False"):
        model.load_state_dict(state, assign=True)
    untied = MODELS[family](tie_output=False)
    untied.load_state_dict(state, assign=True)
    assert not tied(untied)
    assert not tied(untied.to(torch.float32))


# ---- torch's tools


@every_model
def test_gradients_per_sample_by_vmap(family):
    model = randomise(MODELS[family]())
    ids = torch.randint(3, 9, (3, 6))
    both = family == "Transformer"

    def loss(parameters, row):
        rows = (row[None], row[None, :4]) if both else (row[None],)
        return torch.func.functional_call(model, parameters, rows).square().sum()

    parameters = dict(model.named_parameters())
    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, ids)
    for b, row in enumerate(ids):
        model.zero_grad()
        loss(parameters, row).backward()
        for name, parameter in parameters.items():
            expected = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(gradients[name][b], expected, atol=1e-9, rtol=1e-9)


@every_model
def test_ids_are_still_checked_outside_of_transforms(family):
    ids = torch.full((1, 3), 11)
    with pytest.raises(ValueError, match="id 11 is outside the vocabulary"):
        MODELS[family]()(*([ids, ids] if family == "Transformer" else [ids]))


# ---- memory of causal attention


LONG = 256  # with widths of 12 and 20 an n x n matrix is the largest thing by far


def texts(model, rows=1):
    ids = torch.randint(3, 9, (rows, LONG))
    return (ids[:, :8], ids) if isinstance(model, Transformer) else (ids,)  # source, target


@pytest.mark.parametrize("family", ["Transformer", "GPT", "Llama"])
def test_no_matrix_of_all_positions_by_all_is_made(family):
    """Neither scores nor a mask, forward and backward; the explicit attention makes both."""
    model = MODELS[family](max_len=LONG)
    largest = largest_made(lambda: model(*texts(model)).square().mean().backward())
    assert largest < LONG * LONG / 2
    for layer in model.decoder.layers:
        layer.self_attention.attention = explicit_attention
    assert largest_made(lambda: model(*texts(model))) == 3 * LONG * LONG  # a matrix a head


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("family", ["GPT", "Llama"])
def test_nor_is_one_made_for_a_long_prompt(family, fast):
    model = MODELS[family](max_len=LONG + 4).eval()
    model = fast_decoder(model) if fast else model
    assert largest_made(lambda: generate(model, *texts(model), 3)) < LONG * LONG / 2
