"""Chapter 08: four ways to tell positions."""

import torch

from tinytf_course.parts import Part, arrived, shapes, thinned, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide


def _refusal(layer, words, start=0):
    """What a table of 9 rows says to so many words from `start`: the kind of its error."""
    module = layer(6, 9, dropout=0.0)
    try:
        module(torch.zeros(1, words, 6), start)
    except NotImplementedError:
        raise
    except (ValueError, RuntimeError, IndexError) as error:
        return type(error).__name__
    return "no error"


def _added():
    def run(layer, start=0):
        return twin(layer, 6, 9, dropout=0.0)(wide(2, 4, 6, seed=1), start)

    def gradients(layer):
        module, x = twin(layer, 6, 9, dropout=0.0), learned(2, 4, 6, seed=1)
        return arrived(module(x, 2), x, module=module)

    def dropped(layer, share=0.1, **dropout):
        module, x = twin(layer, 6, 20, **dropout, mode="train"), learned(30, 20, 6, seed=1)
        return thinned(module(x), x, share, lambda factor: module.eval()(x) * factor)

    return {
        "what it learns is counted": lambda layer: shapes(layer(6, 9)),
        "sentences begin": run,
        "they go on from position 3": lambda layer: run(layer, 3),
        "the last word has the last row": lambda layer: run(layer, 5),
        "one is longer than its table": lambda layer: _refusal(layer, 10),
        "two words come where one row is left": lambda layer: _refusal(layer, 2, 8),
        "half is dropped while it trains": lambda layer: dropped(layer, 0.5, dropout=0.5),
        "no dropout is named: a tenth is dropped": dropped,
        "it is in eval mode, and drops nothing": lambda layer: twin(layer, 6, 9, dropout=0.5)(
            wide(2, 4, 6, seed=1)
        ),
        "numbers are in float32": lambda layer: dtypes(
            layer(6, 9)(wide(2, 4, 6, seed=1).float()), *layer(6, 9).parameters()
        ),
        "its state is saved": lambda layer: {"names": ", ".join(layer(6, 9).state_dict())},
        "gradients go back": gradients,
    }


def _spread(layer):
    torch.manual_seed(0)
    (table,) = layer(64, 100).parameters()
    within = (table.abs() < table.std()).float().mean()  # normal 0.68, uniform 0.58
    return {
        "standard deviation": f"{table.std().item():.3f}",
        "mean": f"{table.mean().abs():.2f}",
        "share within one standard deviation": f"{within:.1f}",
    }


def _by_number(layer, start=0):
    rows = torch.tensor([[0, 0, 1, 2], [8, 3, 1, 0]])
    return twin(layer, 6, 9, dropout=0.0)(wide(2, 4, 6, seed=1), start, positions=rows)


def _half(f):
    """Whether each number is off by no more than rounding the result: it was turned in float32."""
    x, angles = wide(2, 30, 8, seed=1).half(), wide(30, 4, seed=2)
    out, exact = f(x, angles), f(x.double(), angles)
    off = (out.double() - exact).abs() - exact.abs() * 2**-11 * 1.05  # less what rounding may do
    words = "by rounding once" if bool((off < 1e-6).all()) else "by more than rounding once"
    return {**dtypes(out), "it is off": words}


def _heads(keys=5):
    return wide(2, 3, 5, 4, seed=1), wide(2, 3, keys, 4, seed=2), wide(2, 3, keys, 4, seed=3)


def _leaves():
    return [x.requires_grad_() for x in _heads(7)]


def _rotary(attention, mask=None, keys=5, **named):
    q, k, v = _heads(keys)
    made = attention(**named)
    return [made(q, k, v, mask), made.weights(q, k, mask), *made.turned(q, k)]


def _alibi(attention, mask=None, keys=5):
    q, k, v = _heads(keys)
    return [attention()(q, k, v, mask), attention().weights(q, k, mask)]


def _attention_gradients(attention, mask=None):
    """By what it mixes, and by the weights that it shows."""
    q, k, v = _leaves()
    made = attention()
    return {
        "mixed": arrived(made(q, k, v, mask), q, k, v),
        "weights": arrived(made.weights(q, k, mask), q, k),
    }


def _single(attention, mask=None):
    q, k, v = (x.float() for x in _heads(7))
    return dtypes(attention()(q, k, v, mask), attention().weights(q, k, mask))


def _dropping(attention, mask=None):
    """What dropout does to averages of ones, whatever way it is drawn."""
    q, k = wide(4, 8, 20, 4, seed=1), wide(4, 8, 20, 4, seed=2)
    out = attention()(q, k, torch.ones(4, 8, 20, 4).double(), mask, 0.5)
    return {
        "averages differ": bool(out.std() > 0.1),
        "they are right in the mean": bool((out.mean() - 1).abs() < 0.1),
    }


def _alibi_half(attention):
    """Half precision, and a query that sees nothing: what comes back is finite."""
    q, k, v = (x.half().requires_grad_() for x in _heads())
    made = attention(slopes=(0.3, 0.0, 1.7))
    out, shown = made(q, k, v, BLIND), made.weights(q, k, BLIND)
    back = torch.autograd.grad(out.sum() + shown.square().sum(), (q, k, v))
    return {
        **dtypes(out, shown),
        "blind": [out[:, :, 1].detach(), shown[:, :, 1].detach()],
        "finite": all(bool(x.isfinite().all()) for x in (out, shown, *back)),
    }


BLIND = torch.tensor([True, False, True, True, True])[:, None].expand(1, 1, 5, 5)
TOLD = torch.tensor([[0, 0, 0, 1, 2, 3, 4], [3, 4, 5, 6, 7, 9, 5001]])
LATER = torch.ones(1, 1, 5, 7).tril(2).bool()
NO_MPS = "wrong on Apple's device alone, and a test can't count on one"
FINER = "computed in more digits, and given back in the dtype of x"
FOUR_AXES = "q and k have four axes: the third is the last but one"
ROUNDED = "sines are rounded to float32 at the end, and here a step before"
PROMOTED = "whole numbers times float64 are float64"
ONE_KIND = "queries, keys and values have one dtype and one device"
SIZES = "it is asked for its sizes and dtype alone"

PARTS = (
    Part(
        "tinytf.positional.sinusoidal_encoding",
        {
            "there is one position": lambda f: f(1, 4),
            "there are seven of width 6": lambda f: f(7, 6),
            "the width is odd": lambda f: f(5, 7),
            "positions go into the thousands, where angles need float64": lambda f: f(5000, 64)[
                -5:
            ],
        },
        tolerance=1e-5,
        equivalent={
            "… => position = torch.arange(max_len)[:, None]": PROMOTED,
            "… => table = torch.empty(max_len, d_model)": ROUNDED,
            "… => table[:, ::2] = angle.sin()": "a slice begins at 0 anyway",
        },
    ),
    Part("tinytf.positional.PositionalEncoding", _added(), tolerance=1e-9),
    Part(
        "tinytf.positional.LearnedPositionalEncoding",
        {
            **_added(),
            "each word asks for a row of its own": _by_number,
            "it asks, and `start` is named too": lambda layer: _by_number(layer, 2),
            "it has learned nothing yet": _spread,
        },
        tolerance=1e-9,
    ),
    Part(
        "tinytf.relative.rotary_angles",
        {
            "there are three positions": lambda f: f(3, 4),
            "they begin at 7": lambda f: f(3, 6, 7),
            "the base is 100": lambda f: f(3, 6, 0, 100.0),
            "they begin at 100001, where angles need float64": lambda f: f(3, 6, 100_001),
            "positions are given, a row for each sentence": lambda f: f(
                3, 6, positions=torch.tensor([[4, 0, 9], [1, 2, 100_001]])
            ),
            "they are given, and `start` is named too": lambda f: f(
                3, 6, 7, positions=torch.tensor([4, 0, 9])
            ),
            "a device is named": lambda f: f(3, 6, device=torch.device("cpu")),
            "another device is asked for": lambda f: {
                "device": str(f(3, 6, device=torch.device("meta")).device)
            },
        },
        tolerance=1e-9,
        equivalent={
            "… => kind = torch.float64": NO_MPS,
            "… => return positions[..., None] * frequency": PROMOTED,
            "… => return positions.to()[..., None] * frequency": PROMOTED,
            "… => return positions.to(device)[..., None] * frequency": PROMOTED,
            "… => return positions.to(positions)[..., None] * frequency": PROMOTED,
            "… => return positions.to(frequency)[..., None] * frequency": PROMOTED,
        },
    ),
    Part(
        "tinytf.relative.rotate",
        {
            "a pair is turned by a right angle": lambda f: f(
                torch.tensor([[1.0, 2.0]]).double(), torch.tensor([[torch.pi / 2]]).double()
            ),
            "pairs are turned by angles of their own": lambda f: f(
                wide(2, 3, 5, 6, seed=1), wide(5, 3, seed=2)
            ),
            "angles are large": lambda f: f(wide(5, 6, seed=1), wide(5, 3, seed=2) * 1e5),
            "numbers are in half precision": _half,
            "numbers are in float32": lambda f: dtypes(
                f(wide(2, 5, 6, seed=1).float(), wide(5, 3, seed=2))
            ),
            "gradients go back": lambda f: arrived(
                f(x := learned(2, 5, 6, seed=1), wide(5, 3, seed=2)), x
            ),
        },
        tolerance=1e-9,
        equivalent={
            "… => pairs = ….double()": FINER,
            "… => cos, sin = (angles.cos(), …": FINER,
            "… => cos, sin = (angles.cos().to(), …": FINER,
            "… => cos, sin = (angles.cos().to(angles), …": FINER,
            "… => cos, sin = (…, angles.sin())": FINER,
            "… => cos, sin = (…, angles.sin().to())": FINER,
            "… => cos, sin = (…, angles.sin().to(angles))": FINER,
            "… => kind = angles.dtype if x.dtype == torch.float64 else torch.float32": (
                "float64 numbers are turned in float64, whatever the angles were rounded to"
            ),
            "… => even, odd = (x[..., ::2], x[..., 1::2])": "a slice begins at 0 anyway",
        },
    ),
    Part(
        "tinytf.relative.apply_rotary",
        {
            "texts begin": lambda f: f(wide(2, 3, 5, 4, seed=1)),
            "they go on from position 7": lambda f: f(wide(2, 3, 5, 4, seed=1), 7),
            "the base is 100": lambda f: f(wide(2, 3, 5, 4, seed=1), 2, 100.0),
            "positions are given": lambda f: f(
                wide(2, 3, 3, 4, seed=1), positions=torch.tensor([4, 0, 9])
            ),
            "each sentence has its own": lambda f: f(
                wide(2, 3, 3, 4, seed=1), positions=torch.tensor([[4, 0, 9], [1, 2, 3]])
            ),
            "positions are in the thousands": lambda f: f(
                wide(2, 3, 3, 4, seed=1), positions=torch.tensor([[4, 0, 5001], [1, 2, 7003]])
            ),
            "numbers are in float32": lambda f: dtypes(f(wide(2, 3, 5, 4, seed=1).float())),
            "gradients go back": lambda f: arrived(f(x := learned(2, 3, 5, 4, seed=1)), x),
        },
        tolerance=1e-9,
        equivalent={
            "… => return rotate(x, rotary_angles(x.size(2), …": FOUR_AXES,
        },
    ),
    Part(
        "tinytf.relative.RotaryAttention",
        {
            "everybody sees everybody": _rotary,
            "nobody sees what comes later": lambda attention: _rotary(
                attention, torch.ones(1, 1, 5, 5).tril().bool()
            ),
            "the keys of a cache come before": lambda attention: _rotary(attention, keys=8),
            "a cache holds three hundred": lambda attention: _rotary(attention, keys=300),
            "the base is 100": lambda attention: _rotary(attention, base=100.0),
            "positions are given": lambda attention: _rotary(attention, keys=7, positions=TOLD[1]),
            "each sentence has its own": lambda attention: _rotary(
                attention, keys=7, positions=TOLD
            ),
            "half of the weights are dropped": _dropping,
            "numbers are in float32": _single,
            "gradients go back to queries, keys and values": _attention_gradients,
        },
        equivalent={
            "… => before = k.size(2) - q.size(-2)": FOUR_AXES,
            "… => before = k.size(-2) - q.size(2)": FOUR_AXES,
        },
    ),
    Part(
        "tinytf.relative.alibi_slopes",
        {
            "there are 8 heads": lambda f: f(8),
            "there is one": lambda f: f(1),
            "there are 2": lambda f: f(2),
            "there are 12, no power of two": lambda f: f(12),
            "there are 6": lambda f: f(6),
            "there are 5": lambda f: f(5),
            "they are to be a tensor": lambda f: {"a tensor": isinstance(f(8), torch.Tensor)},
        },
        equivalent={
            "… => …[::2]…": "a slice begins at 0 anyway",
        },
    ),
    Part(
        "tinytf.relative.alibi_bias",
        {
            "two heads look over three words": lambda f: f(torch.tensor([0.5, 0.25]), 3),
            "there are older keys": lambda f: f(torch.tensor([0.5, 0.25, 0.1]), 2, 5),
            "there are thousands of them": lambda f: f(torch.tensor([0.5]), 2, 4100),
            "slopes are in float64": lambda f: f(torch.tensor([0.3]).double(), 2),
            "slopes are in half precision": lambda f: dtypes(f(torch.tensor([0.5]).half(), 2)),
            "slopes are in half precision, and keys in the thousands": lambda f: f(
                torch.tensor([0.5]).half(), 2, 4100
            )[..., -5:],
            "slopes are on another device": lambda f: {
                "device": str(f(torch.tensor([0.5], device="meta"), 2).device)
            },
        },
    ),
    Part(
        "tinytf.relative.AlibiAttention",
        {
            "everybody sees everybody": _alibi,
            "nobody sees what comes later": lambda attention: _alibi(
                attention, torch.ones(1, 1, 5, 5).tril().bool()
            ),
            "a query has nothing to see": lambda attention: _alibi(attention, BLIND),
            "padding is hidden, in one sentence of two": lambda attention: _alibi(
                attention, torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, None]
            ),
            "the keys of a cache come before": lambda attention: _alibi(attention, keys=8),
            "slopes are given": lambda attention: _alibi(lambda: attention(slopes=(0.3, 0.0, 2.0))),
            "numbers are in half precision, and a query has nothing to see": _alibi_half,
            "half of the weights are dropped": _dropping,
            "half are dropped, under a mask": lambda attention: _dropping(
                attention, torch.ones(1, 1, 20, 20).bool()
            ),
            "numbers are in float32": _single,
            "they are, and some are hidden": lambda attention: _single(attention, LATER),
            "another device is asked for": lambda attention: {
                "device": str(attention()(*(x.to("meta") for x in _heads())).device)
            },
            "gradients go back to queries, keys and values": _attention_gradients,
            "they go back past what is hidden": lambda attention: _attention_gradients(
                attention, LATER
            ),
        },
        tolerance=1e-5,
        equivalent={
            "… => bias = self._bias(q, …)…": SIZES,
            "… => bias = self._bias(q.…(), k)": SIZES,
            "… => …+ self._bias(q.detach(), k)": SIZES,
            "… => …+ self._bias(q, k.…())": SIZES,
            "… => return alibi_bias(…).to(q.dtype)": "an axis of one in front broadcasts unwritten",
            "… => hidden = torch.finfo().min": "-inf, in half, gives zeros in the kernel",
            "… => heads = k.size(1)": "keys have as many heads as queries",
            "… => …k.transpose(2, -1)…": FOUR_AXES,
            "… => …math.sqrt(k.size(-1))…": "queries and keys have one width",
            "… => …to(k.dtype)[None]": ONE_KIND,
            "… => …slopes.to(k.device)…": ONE_KIND,
        },
    ),
    Part(
        "tinytf.relative.half_split_order",
        {
            "a head has two numbers": lambda f: f(2),
            "a head has six numbers": lambda f: f(6),
            "a head has eight numbers": lambda f: f(8),
        },
    ),
)
