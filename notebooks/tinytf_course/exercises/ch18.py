"""Chapter 18: GPT's mask, counting parameters, and a layer's weights from another's file."""

import torch

from tinytf_course.expect import agrees, expect, numbers, same, tensor, travels
from tinytf_course.grading import Exercise
from tinytf_course.words import short

# 18.1 causal and padded


def my_gpt_mask(length, attention_mask=None):
    """Which keys each query may attend to: boolean, (1, 1, T, T), or (B, 1, T, T) with a mask.

    attention_mask is (B, T), 1 for a real token and 0 for padding, or None if all are real. True =
    may attend: the key is real and not later than the query.
    """
    raise NotImplementedError


_REAL = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1]])
_ONES = torch.ones(2, 4, dtype=torch.int64)
_SAID = f"for length=4, attention_mask={short(_REAL)}"


def _four_axes(got, where, shape):
    got = tensor(got, where)
    expect(got.dtype == torch.bool, f"{where}, the dtype is {got.dtype}, expected torch.bool")
    message = f"{where}, the shape is {tuple(got.shape)}, expected {shape}: it meets (B, H, T, T)"
    expect(got.shape == shape, message)
    return got


def _none(answer):
    """without an attention mask it is the causal mask"""
    where = "for length=3, no attention mask"
    got = _four_axes(answer(3), where, (1, 1, 3, 3))
    expect(not got.triu(1).any(), f"{where}, some query may attend to a later key")
    note = "a query may attend to itself and to every key before it"
    expect(bool(got.tril().sum() == 6), f"{where}, {int(got.sum())} of 9 are True: {note}")


def _ones(answer):
    """a mask of ones changes nothing"""
    where = "for length=4, attention_mask all ones"
    got = _four_axes(answer(4, _ONES), where, (2, 1, 4, 4))
    leaks = int(got.triu(1).sum())
    message = f"{where}, {leaks} pairs see the future: what is real may still lie ahead"
    expect(leaks == 0, message)
    expect(bool(got.tril().sum() == 20), f"{where}, {int(got.sum())} of 32 are True, expected 20")


def _padded(answer):
    """padding is hidden as a key, for every query"""
    got = _four_axes(answer(4, _REAL), _SAID, (2, 1, 4, 4))
    for b, t, s in ((1, 1, 0), (1, 3, 0), (0, 3, 3)):
        message = f"{_SAID}, row {b}, query {t}, key {s}: True, but that key is padding"
        expect(not got[b, 0, t, s], message)
    for b, t, s in ((0, 3, 0), (1, 3, 1), (0, 2, 2)):
        message = f"{_SAID}, row {b}, query {t}, key {s}: False, but that key is real and not later"
        expect(bool(got[b, 0, t, s]), message)


def _pair_by_pair(length, attention_mask=None):
    """Query by query, key by key."""
    rows = [[1] * length] if attention_mask is None else attention_mask.tolist()
    pairs = [
        [[[s <= t and bool(row[s]) for s in range(length)] for t in range(length)]] for row in rows
    ]
    return torch.tensor(pairs)


def _any_batch(answer):
    """for any length and batch, padding on either side or in between, as numbers or booleans"""
    agrees(answer, _pair_by_pair, 1)
    agrees(answer, _pair_by_pair, 5)
    agrees(answer, _pair_by_pair, 1, torch.tensor([[1], [0]]))
    agrees(answer, _pair_by_pair, 2, torch.tensor([[0, 1]]), note="Padding on the left.")
    agrees(answer, _pair_by_pair, 3, torch.tensor([[1, 0, 1]]))
    real = numbers(3, 5, seed=1) > -0.5
    for mask in (real, real.long(), real.float()):
        agrees(answer, _pair_by_pair, 5, mask)


def _mask_travels(answer):
    """the mask is on the device of the attention mask"""
    travels(answer, 4, _REAL, where=_SAID)


MASKS = Exercise(
    id="18.1",
    title="causal and padded",
    difficulty=2,
    minutes=6,
    statement=(
        "Write `my_gpt_mask(length, attention_mask=None)`, which returns the boolean mask "
        "(`True` = may attend) that a GPT needs for a batch in which some tokens are padding. "
        "`attention_mask` is `(B, T)` with 1 for a real token and 0 for padding, as Hugging Face's "
        "tokenizers return it, or None if all tokens are real. Return the mask on the device of "
        "`attention_mask`. A query that is padding may be left with nothing to attend to."
    ),
    hint="Both conditions must hold: `causal & real`, with axes for the heads and the queries.",
    function=my_gpt_mask,
    tests=(_none, _ones, _padded, _any_batch, _mask_travels),
)


# 18.2 count a GPT


def my_gpt_parameters(vocab_size, d_model, num_layers, max_len, d_ff):
    """The number of parameters of a GPT: an integer.

    The output layer is the embedding table and has no bias; every other linear layer has one.
    Each norm has a gain and a shift for each feature, and one last norm follows the stack.
    """
    raise NotImplementedError


_PARTS = (
    "d_model=3, num_layers=2, d_ff=5 has in each layer 48 for attention, 38 for the feed-forward "
    "network, 12 for two norms"
)


_COUNT = "the answer", "a number"


def _a_layer(answer):
    """a layer has four matrices, two matrices, and two norms"""
    two, one = (tensor(answer(7, 3, n, 4, 5), *_COUNT) for n in (2, 1))
    same(two - one, 98, "for one layer more at d_model=3, d_ff=5", note=f"A model of {_PARTS}.")


def _tables(answer):
    """outside the layers there are two tables and a norm"""
    got = tensor(answer(7, 3, 0, 4, 5), *_COUNT)
    note = "7 · 3 for tokens, 4 · 3 for positions, 6 for the last norm; the head is tied, no bias."
    same(got, 39, "for no layers, vocab_size=7, d_model=3, max_len=4", note=note)


def _whole(answer):
    """it is an integer"""
    got = answer(7, 3, 2, 4, 5)
    where = "for vocab_size=7, d_model=3, num_layers=2, max_len=4, d_ff=5"
    kind = f"{where}, you return {short(got)}, a {type(got).__name__}, expected an integer"
    expect(not tensor(got, where, "a number").is_floating_point(), f"{kind}: numbers are counted")


def _gpt2(answer):
    """GPT-2's smallest size comes out to the last parameter"""
    same(answer(50257, 768, 12, 1024, 3072), 124_439_808, "for GPT-2", tolerance=0)


PARAMETERS = Exercise(
    id="18.2",
    title="count a GPT",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_gpt_parameters(vocab_size, d_model, num_layers, max_len, d_ff)`, which returns "
        "the number of parameters of a GPT, an integer. The matrix shared by embedding and output "
        "layer counts once. Use a formula; don't build the model."
    ),
    hint=(
        "A linear layer from n to m features has n·m weights and m biases. Attention has four from "
        "d to d, and the feed-forward network has one from d to d_ff and one back. A norm has 2·d."
    ),
    function=my_gpt_parameters,
    tests=(_a_layer, _tables, _whole, _gpt2),
)


# 18.3 a layer from GPT-2's file


def my_gpt2_layer(theirs):
    """One layer's weights under our names: a dict of 12 tensors -> a dict of 16.

    `theirs` has the names of Hugging Face's GPT-2, "ln_1.weight" or "attn.c_attn.bias"; the result
    has those of our layer, "residual_1.norm.weight" or "self_attention.w_q.bias". Their matrices
    are (inputs, outputs), ours (outputs, inputs); c_attn gives queries, keys and values side by
    side. Numbers and dtype are kept; `theirs` is not changed.
    """
    raise NotImplementedError


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
    """Compare the tensors of these names; the dict itself is looked at by `_all_names`."""
    file = _layer_file(**({"d_model": 2, "d_ff": 3} | sizes))
    got, expected = answer(dict(file)), _entry_by_entry(file)
    _a_dict(got, where)
    for name in names:
        if not expected.keys() >= {name}:
            raise KeyError(name)
        expect(name in got, f"{where}, there is no {name}. {note}")
        same(got[name], expected[name], f"{where}, {name}", 0, note, dtype=True)


def _a_dict(got, where):
    expect(isinstance(got, dict), f"{where}, you return {type(got).__name__}, expected a dict")


_LAYER = "for a layer of width 2 with d_ff=3"


def _pair_of(*names):
    return [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]


def _norm_weights(answer):
    """the norms keep their numbers"""
    note = "ln_1 comes before attention, ln_2 before the feed-forward network."
    _given(answer, _pair_of("residual_1.norm", "residual_2.norm"), _LAYER, note)


def _square(answer):
    """the square matrix is transposed, too"""
    note = "attn.c_proj is (inputs, outputs) as the others: its shape does not show it."
    _given(answer, _pair_of("self_attention.w_o"), _LAYER, note)


def _three_maps(answer):
    """queries, keys and values are taken apart"""
    note = "c_attn's first d_model outputs are the queries, the next the keys, the last the values."
    _given(answer, _pair_of(*(f"self_attention.w_{x}" for x in "qkv")), _LAYER, note)


def _two_maps(answer):
    """the feed-forward matrices are transposed"""
    note = "c_fc goes from d_model to d_ff, c_proj back."
    _given(answer, _pair_of("feed_forward.w_1", "feed_forward.w_2"), _LAYER, note)


def _all_names(answer):
    """there are 16 names, those of our layer"""
    file = _layer_file(2, 3)
    got = answer(dict(file))
    _a_dict(got, _LAYER)
    wanted = sorted(_entry_by_entry(file))
    extra = [name for name in got if name not in wanted]
    missing = [name for name in wanted if name not in got]
    expect(not missing, f"{_LAYER}, there is no {', '.join(missing)}")
    expect(not extra, f"{_LAYER}, there is a name too many: {', '.join(map(str, extra))}")


def _loads(answer):
    """any layer takes it: of other sizes, in half precision, in float64, on another device"""
    every = sorted(_entry_by_entry(_layer_file(2, 3)))
    for width, inner, dtype in (
        (6, 24, torch.float32), (5, 5, torch.float64), (1, 4, torch.float16), (4, 1, torch.float64),
    ):  # fmt: skip
        where = f"for a layer of width {width} with d_ff={inner} in {str(dtype)[6:]}"
        _given(answer, every, where, "", d_model=width, d_ff=inner, seed=30, dtype=dtype)
    travels(answer, _layer_file(2, 3), where=_LAYER)


WEIGHTS = Exercise(
    id="18.3",
    title="a layer from GPT-2's file",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_gpt2_layer(theirs)`, which gives the tensors of one layer our names. `theirs` "
        "is a dict with the 12 tensors of Hugging Face's file (`ln_1.weight`, `attn.c_attn.bias` "
        "and so on, as in the drawing); return a dict with our 16 (`residual_1.norm.weight`, "
        "`self_attention.w_q.bias` and so on). Their matrices are stored as (inputs, outputs), and "
        "`c_attn` holds queries, keys and values side by side, in this order. Keep numbers and "
        "dtype, for any d_model and d_ff, and leave `theirs` unchanged."
    ),
    hint=(
        "`t()` transposes a matrix. What was side by side is then one below the other, and "
        "`chunk(3)` cuts it into three, a bias as well."
    ),
    function=my_gpt2_layer,
    tests=(_norm_weights, _square, _three_maps, _two_maps, _all_names, _loads),
)


EXERCISES = (MASKS, PARAMETERS, WEIGHTS)
