"""Chapter 18: GPT, its stack, its config, and the padding of its batches."""

import dataclasses

import torch

from tinytf.attention import KeyValueCache
from tinytf.blocks import EncoderLayer
from tinytf.gpt import GPT, GPTConfig
from tinytf.norm import LayerNorm
from tinytf.residual import PreNorm
from tinytf_course.parts import Part, arrived, frozen, says, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide


def stacked(stack):
    """Three Pre-LN layers of width 6 and a norm."""
    layers = [EncoderLayer(6, 2, 10, residual=PreNorm) for _ in range(3)]
    return twin(stack, layers, LayerNorm(6))


def _in_parts(stack):
    module, x = stacked(stack), wide(2, 6, 6, seed=1)
    cache = module.new_cache()
    ends = ((0, 3), (3, 4), (4, 6))
    return [*(module(x[:, a:b], cache) for a, b in ends), torch.tensor([len(c) for c in cache])]


def _gradients(stack):
    module, x = stacked(stack), learned(2, 4, 6, seed=1)
    return arrived(module(x)[:, 2], x, module=module)


def _single(stack):
    """The dtype of what comes out, where everything is in float32."""
    return dtypes(stacked(stack).float()(wide(2, 4, 6, seed=1).float()))


# Padding

ROWS = torch.tensor([[True, True, True, True], [False, False, True, True]])[:, None, None]
LATER = torch.tensor([[True], [False]])[:, None, None]


def _filled(length=0):
    """A cache that holds keys and values of so many positions."""
    cache = KeyValueCache()
    if length:
        cache.append(torch.zeros(2, 1, length, 3), torch.zeros(2, 1, length, 3))
    return cache


def _said(found):
    return "None" if found is None else found


def _told(f, *steps, length=0):
    """What is said call by call of masks and lengths, and what the cache keeps at last."""
    cache, out = _filled(length), []
    for mask, new in steps:
        out.append(_said(f(mask, new, cache)))
        cache.append(torch.zeros(2, 1, new, 3), torch.zeros(2, 1, new, 3))
    return [*out, _said(cache.padding)]


def _repeated(f):
    cache = _filled()
    return [f(ROWS, 4, cache), f(ROWS, 4, cache), cache.padding]


# The model

SIZES = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "num_layers": 2, "max_len": 9}
IDS = torch.tensor([[3, 1, 4, 1, 5], [10, 2, 6, 5, 3]])


def _made(gpt, **choices):
    return gpt(GPTConfig(**SIZES | choices))


def _gpt(gpt, mode="eval", **choices):
    return twin(gpt, GPTConfig(**SIZES | choices), mode=mode)


def _framed(frame):
    """The reader's frame around the parts of a package's GPT."""

    def framed(config):
        model, whole = frame(), GPT(config)
        model.config = config
        for name in ("embedding", "positions", "decoder", "output"):
            setattr(model, name, getattr(whole, name))
        return model

    return twin(framed, GPTConfig(**SIZES))


def _padded(frame):
    real = torch.tensor([[True] * 5, [False, False, True, True, True]])
    out = _framed(frame)(IDS, None, real[:, None, None])
    return out[real]


def _table(frame):
    model = _framed(frame)
    return [
        callable(getattr(model, "tie", None)),
        model.table is model.embedding.weight,
        str(model.device),
    ]


def _frame_single(frame):
    model = _framed(frame).float()
    return {
        **dtypes(model(IDS), model.decode(IDS)),
        "`table` is the embedding's": model.table is model.embedding.weight,
    }


def _frame_gradients(frame):
    model = _framed(frame)
    return arrived(model(IDS), module=model)


def _steps(frame, padded=False):
    """Three tokens, then one, then one; with a mask if padded, which is given once."""
    model = _framed(frame)
    cache, mask = model.decoder.new_cache(), None
    if padded:
        mask = torch.tensor([[True, True, True], [False, True, True]])[:, None, None]
    out = [model(IDS[:, :3], cache, mask)[:, -1]]
    return [*out, *(model(IDS[:, t : t + 1], cache) for t in (3, 4))]


def _start(gpt, **choices):
    """The size of each weight's numbers, as a rule, in whatever order they were drawn."""
    torch.manual_seed(0)
    model = _made(gpt, vocab_size=300, d_model=64, num_heads=4, max_len=200, **choices)
    return {name: _rule(p.detach()) for name, p in sorted(model.named_parameters())}


def _rule(p):
    if p.dim() == 1:
        return "ones" if bool((p == 1).all()) else "zeros" if bool((p == 0).all()) else "others"
    near = [std for std in (0.02, 0.01, 0.0141) if abs(p.std().item() / std - 1) < 0.1]
    return f"N(0, {near[0]}²)" if near else "another start"


def _ties(gpt):
    models = (_made(gpt), _made(gpt, tie_output=False))
    return [
        [hasattr(m, "tie"), m.output.weight is m.table, m.table is m.embedding.weight]
        for m in models
    ]


def _dropped(gpt):
    model = _gpt(gpt, mode="train", dropout=0.5)
    torch.manual_seed(0)
    return model(IDS)


def _whole_gradients(gpt):
    model = _gpt(gpt)
    return arrived(model(IDS), module=model)


def _where(gpt):
    model = _made(gpt)
    return [str(model.device), model.config == GPTConfig(**SIZES)]


def _left(f):
    """The mask that was given, after the call."""
    mask = ROWS.clone()
    f(mask, 4, _filled())
    return mask


PARTS = (
    Part(
        "tinytf.blocks.decoder_mask",
        {
            "nothing is padding": lambda f: f(None, 3),
            "two rows of four, one padded on the left": lambda f: f(ROWS, 4),
            "a batch of one row, padded": lambda f: f(ROWS[1:], 4),
            "only the two newest ask": lambda f: f(ROWS, 2),
            "only the newest asks": lambda f: f(ROWS, 1),
            "padding is on another device": lambda f: {"device": str(f(ROWS.to("meta"), 3).device)},
        },
    ),
    Part(
        "tinytf.gpt.CausalStack",
        {
            "its weights are counted": lambda stack: shapes(stacked(stack)),
            "nobody sees what comes later": lambda stack: stacked(stack)(wide(2, 4, 6, seed=1)),
            "there is one word": lambda stack: stacked(stack)(wide(2, 1, 6, seed=1)),
            "words come in parts, with a cache for every layer": _in_parts,
            "a row begins with padding": lambda stack: stacked(stack)(
                wide(2, 4, 6, seed=1), padding=ROWS
            )[ROWS[:, 0, 0]],
            "numbers are in float32": _single,
            "gradients go back to what came before, and to every weight": _gradients,
        },
        equivalent={
            "if padding is not None: => if … is not None:": "`decoder_mask` says CAUSAL for None",
        },
    ),
    Part(
        "tinytf.blocks.padding_so_far",
        {
            "there is neither padding nor cache": lambda f: _said(f(None, 4)),
            "a row is padded": lambda f: f(ROWS, 4),
            "the mask is all True": lambda f: _said(f(ROWS[:1], 4)),
            "a padded prompt is followed by words": lambda f: _told(f, (ROWS, 4), (None, 1)),
            "nothing was ever padded": lambda f: _told(f, (None, 4), (ROWS[:, :, :, 2:], 2)),
            "padding comes later": lambda f: _told(f, (LATER, 1), (None, 2), length=3),
            "a step is repeated before anything was appended": _repeated,
            "the mask that it is given stays as it is": _left,
        },
        equivalent={
            "… => … and mask.all():": "`and` in an `if` asks for the truth itself",
        },
    ),
    Part(
        "tinytf.blocks.token_positions",
        {
            "one row of two is padded on the left": lambda f: f(ROWS, 4),
            "only the newest is asked for": lambda f: f(ROWS, 1),
            "padding stands between": lambda f: f(
                torch.tensor([[[[False, True, False, True, True]]]]), 3
            ),
        },
        equivalent={
            "… => …[:, -1, 0, -length:]": "the last of one row is the first",
            "… => …[:, 0, -1, -length:]": "the last of one row is the first",
        },
    ),
    Part(
        "tinytf.gpt.GPTConfig",
        {
            "nothing is given: GPT-2's smallest": says,
            "the width is given": lambda f: says(f, d_model=24, num_heads=2),
            "sizes are given in order": lambda f: says(f, 7, 8, 2, 3, 12, 5, 0.1, "post", "gelu"),
            "the output has a matrix of its own": lambda f: says(f, tie_output=False),
            "a published size is called by its name": lambda f: [
                dataclasses.asdict(type(f()).preset(name)) for name in ("gpt2", "gpt2-xl")
            ],
            "it is frozen": frozen,
        },
    ),
    Part(
        "tinytf.gpt.DecoderOnly",
        {
            "it reads two rows": lambda f: _framed(f)(IDS),
            "hidden states are asked for": lambda f: _framed(f).decode(IDS),
            "its table is the embedding's, and says where the model is": _table,
            "tokens come in parts, with a cache": _steps,
            "a row begins with padding": _padded,
            "a padded prompt goes on, with a cache": lambda f: _steps(f, padded=True),
            "numbers are in float32": _frame_single,
            "gradients go back to every weight": _frame_gradients,
        },
    ),
    Part(
        "tinytf.gpt.GPT",
        {
            "its weights are counted": lambda f: shapes(_made(f)),
            "they are, with two matrices": lambda f: shapes(_made(f, tie_output=False)),
            "they are in float32": lambda f: {
                name: str(p.dtype) for name, p in sorted(_made(f).named_parameters())
            },
            "it is tied, or not": _ties,
            "it says where it is, and keeps its config": _where,
            "it reads two rows": lambda f: _gpt(f)(IDS),
            "it is Post-LN, with another activation": lambda f: _gpt(
                f, norm="post", activation="gelu"
            )(IDS),
            "each weight starts by its rule": _start,
            "it starts with two matrices, in one layer": lambda f: _start(
                f, tie_output=False, num_layers=1
            ),
            "half of what is said is dropped": _dropped,
            "gradients go back to every weight": _whole_gradients,
        },
        equivalent={
            "…gpt2…": "published weights are read by the package alone",
            "… => normal(self)": "0.02 is what `normal` takes by default",
        },
    ),
)
