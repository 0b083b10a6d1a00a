"""18.3 a layer from GPT-2's file (★★☆, 12 minutes)

Write `my_gpt2_layer(theirs)`, which gives the tensors of one layer our names. `theirs` is a dict
with the 12 tensors of Hugging Face's file (`ln_1.weight`, `attn.c_attn.bias` and so on, as in the
drawing); return a dict with our 16 (`residual_1.norm.weight`, `self_attention.w_q.bias` and so on).

<details><summary>The rule in detail</summary>

Their matrices are stored as (inputs, outputs), and `c_attn` holds queries, keys and values side by
side, in this order. Keep numbers and dtype, for any d_model and d_ff, and leave `theirs` unchanged.

</details>

Hint: `t()` transposes a matrix. What was side by side is then one below the other, and `chunk(3)`
cuts it into three, a bias as well.
"""

import torch

from tinytf_course.expect import expect, numbers, same, travels


def my_gpt2_layer(theirs):
    """One layer's weights under our names: a dict of 12 tensors -> a dict of 16.

    `theirs` has the names of Hugging Face's GPT-2, "ln_1.weight" or "attn.c_attn.bias"; the result
    has those of our layer, "residual_1.norm.weight" or "self_attention.w_q.bias". Their matrices
    are (inputs, outputs), ours (outputs, inputs); c_attn gives queries, keys and values side by
    side. Numbers and dtype are kept; `theirs` is not changed.
    """
    table = {
        "ln_1": ["residual_1.norm"],
        "attn.c_attn": ["self_attention.w_q", "self_attention.w_k", "self_attention.w_v"],
        "attn.c_proj": ["self_attention.w_o"],
        "ln_2": ["residual_2.norm"],
        "mlp.c_fc": ["feed_forward.w_1"],
        "mlp.c_proj": ["feed_forward.w_2"],
    }
    ours = {}
    for name, mine in table.items():
        for kind in ("weight", "bias"):
            parts = theirs[f"{name}.{kind}"].t().chunk(len(mine))  # t() leaves a vector as it is
            for own, part in zip(mine, parts, strict=True):
                ours[f"{own}.{kind}"] = part
    return ours


def _layer_file(d_model, d_ff, seed=1, dtype=torch.float32):
    """A layer of theirs, of random numbers."""
    widths = {"attn.c_attn": (d_model, 3 * d_model), "attn.c_proj": (d_model, d_model),
              "mlp.c_fc": (d_model, d_ff), "mlp.c_proj": (d_ff, d_model)}  # fmt: skip
    file = {}
    for name in ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"):
        wide = widths.get(name, (d_model,))
        file[f"{name}.weight"] = numbers(*wide, seed=seed, dtype=dtype)
        file[f"{name}.bias"] = numbers(wide[-1], seed=seed + 1, dtype=dtype)
        seed += 2
    return file


def _entry_by_entry(theirs):
    """Each number of ours looked up in theirs."""
    d = len(theirs["ln_1.weight"])
    maps = {f"self_attention.w_{x}": ("attn.c_attn", i * d) for i, x in enumerate("qkv")}
    maps |= {"self_attention.w_o": ("attn.c_proj", 0)}
    maps |= {"feed_forward.w_1": ("mlp.c_fc", 0), "feed_forward.w_2": ("mlp.c_proj", 0)}
    ours = {}
    for name, (source, first) in maps.items():
        matrix, bias = theirs[f"{source}.weight"], theirs[f"{source}.bias"]
        wide = d if source == "attn.c_attn" else len(bias)
        outputs = range(first, first + wide)
        ours[f"{name}.weight"] = torch.stack([matrix[:, i] for i in outputs])
        ours[f"{name}.bias"] = torch.stack([bias[i] for i in outputs])
    for i in (1, 2):
        for kind in ("weight", "bias"):
            ours[f"residual_{i}.norm.{kind}"] = theirs[f"ln_{i}.{kind}"].clone()
    return ours


def _given(answer, names, where, note, **sizes):
    """Compare the tensors of these names; the dict itself is looked at by `test_all_names`."""
    file = _layer_file(**({"d_model": 2, "d_ff": 3} | sizes))
    got, expected = answer(dict(file)), _entry_by_entry(file)
    _a_dict(got, where)
    for name in names:
        expect(name in got, f"{where}, there is no {name}. {note}")
        same(got[name], expected[name], f"{where}, {name}", 0, note, dtype=True)


def _a_dict(got, where):
    expect(isinstance(got, dict), f"{where}, you return {type(got).__name__}, expected a dict")


_LAYER = "for a layer of width 2 with d_ff=3"


def _pair_of(*names):
    return [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]


def test_norm_weights(answer):
    """the norms keep their numbers"""
    note = "ln_1 comes before attention, ln_2 before the feed-forward network."
    _given(answer, _pair_of("residual_1.norm", "residual_2.norm"), _LAYER, note)


def test_square(answer):
    """the square matrix is transposed, too"""
    note = "attn.c_proj is (inputs, outputs) as the others: its shape does not show it."
    _given(answer, _pair_of("self_attention.w_o"), _LAYER, note)


def test_three_maps(answer):
    """queries, keys and values are taken apart"""
    note = "c_attn's first d_model outputs are the queries, the next the keys, the last the values."
    _given(answer, _pair_of(*(f"self_attention.w_{x}" for x in "qkv")), _LAYER, note)


def test_two_maps(answer):
    """the feed-forward matrices are transposed"""
    note = "c_fc goes from d_model to d_ff, c_proj back."
    _given(answer, _pair_of("feed_forward.w_1", "feed_forward.w_2"), _LAYER, note)


def test_all_names(answer):
    """there are 16 names, those of our layer"""
    file = _layer_file(2, 3)
    got = answer(dict(file))
    _a_dict(got, _LAYER)
    wanted = sorted(_entry_by_entry(file))
    extra = [name for name in got if name not in wanted]
    missing = [name for name in wanted if name not in got]
    expect(not missing, f"{_LAYER}, there is no {', '.join(missing)}")
    expect(not extra, f"{_LAYER}, there is a name too many: {', '.join(map(str, extra))}")


def test_loads(answer):
    """any layer takes it: of other sizes, in half precision, in float64, on another device"""
    every = sorted(_entry_by_entry(_layer_file(2, 3)))
    for width, inner, dtype in (
        (6, 24, torch.float32), (5, 5, torch.float64), (1, 4, torch.float16), (4, 1, torch.float64),
    ):  # fmt: skip
        where = f"for a layer of width {width} with d_ff={inner} in {str(dtype)[6:]}"
        _given(answer, every, where, "", d_model=width, d_ff=inner, seed=30, dtype=dtype)
    travels(answer, _layer_file(2, 3), where=_LAYER)


MISTAKES = r"""
nothing turned
    .t().chunk(len(mine)) => .chunk(len(mine), dim=-1)
    says: its shape does not show it
    Theirs are (inputs, outputs), ours (outputs, inputs): transpose every matrix.
the square matrix not turned
    return ours =>
        ours["self_attention.w_o.weight"] = theirs["attn.c_proj.weight"]
        return ours
    says: its shape does not show it
    (C, C) fits either way, so no error is raised. The layer computes something else.
reshaped instead of turned
    return ours =>
        for own, name in (("w_1", "c_fc"), ("w_2", "c_proj")):
            turned = ours[f"feed_forward.{own}.weight"]
            ours[f"feed_forward.{own}.weight"] = theirs[f"mlp.{name}.weight"].reshape(turned.shape)
        return ours
    says: c_fc goes from d_model to d_ff
    `reshape` gives the right shape and leaves the numbers in their old order; `t()` exchanges
    rows and columns.
cut before it is turned
    return ours =>
        square = theirs["attn.c_attn.weight"].reshape(3, *theirs["attn.c_proj.weight"].shape)
        return ours | {f"self_attention.w_{x}.weight": square[i] for i, x in enumerate("qkv")}
    says: first d_model outputs are the queries
    Queries, keys and values are side by side: columns of theirs, rows of ours.
queries, keys and values by turns
    parts = theirs[f"{name}.{kind}"].t().chunk(len(mine)) =>
        whole = theirs[f"{name}.{kind}"].t()
        parts = [whole[i :: len(mine)] for i in range(len(mine))]
    says: first d_model outputs are the queries
    They come in blocks, not one after the other. (Some other models' files weave them.)
keys and values exchanged
    "self_attention.w_k", "self_attention.w_v" => "self_attention.w_v", "self_attention.w_k"
    says: first d_model outputs are the queries
    The order in c_attn is queries, keys, values.
the norms exchanged
    "ln_1": ["residual_1.norm"] => "ln_1": ["residual_2.norm"]
    "ln_2": ["residual_2.norm"] => "ln_2": ["residual_1.norm"]
    says: ln_1 comes before attention
    Pre-LN: each sublayer's norm comes before it, and ln_1 is that of attention.
in float32, whatever it was
    = part => = part.float()
    says: float64
    A file in half precision keeps its dtype; the code that loads it decides.
the biases left out
    return ours =>
        del ours["self_attention.w_o.bias"]
        return ours
    says: there is no self_attention.w_o.bias
    Every linear layer of GPT-2 has a bias, and every norm a shift.
their names kept beside ours
    ours = {} => ours = dict(theirs)
    says: there is a name too many
    `load_state_dict` would refuse names that the model does not have.
"""

HARMLESS = r"""
for kind in ('weight', 'bias'): => for kind in ('bias', 'weight'):
    a dict is looked up by name: its order says nothing
for own, part in zip(mine, parts, strict=True): => for own, part in zip(mine, parts):
    there are as many chunks as names, in every row of the table
for own, part in zip(mine, parts, strict=True): => for own, part in zip(mine, parts, strict=False):
    there are as many chunks as names, in every row of the table
ours[f'{own}.{kind}'] = part => ours[f'{own}.{kind}'] = part.detach()
    what is read from a file has no gradient to lose
"""
