"""Chapter 02: recurrent cells, encoder and decoder, and what the decoder sees of the source."""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.course.parts import Part, arrived, shapes, twin
from tinytf.course.parts.ch05 import learned, wide


def _cell(target, **named):
    def run(cell, *states):
        return twin(cell, 3, 4, **named)(wide(2, 3, seed=1), *states)

    def gradients(cell):
        module = twin(cell, 3, 4, **named)
        x = learned(2, 3, seed=1)
        out = module(x)
        return arrived(out[0] if isinstance(out, tuple) else out, x, module=module)

    two = (wide(2, 4, seed=2), wide(2, 4, seed=3))
    state = two if target.endswith("LSTMCell") else two[0]
    return {
        "its weights are counted": lambda cell: shapes(cell(3, 4)),
        "it reads a first word": lambda cell: run(cell),
        "it goes on from a state": lambda cell: run(cell, state),
        "gradients go back to the word and to every weight": gradients,
    }


def _projected(cell):
    class Three(type(cell(1, 1))):
        gates = 3

    module = twin(Three, 2, 4)
    x, h = learned(3, 2, seed=1), learned(3, 4, seed=2)
    from_x, from_h = module.project(x, h)
    return [from_x, from_h, *arrived(from_x + 2 * from_h, x, h, module=module).values()]


def _started(cell):
    class Two(type(cell(1, 1))):
        gates = 2

    torch.manual_seed(0)
    made = {name: value.detach() for name, value in Two(3, 16).named_parameters()}
    return {name: [value.min(), value.max()] for name, value in made.items()}


_SHOWN = torch.tensor([[True, True, True, True], [True, False, False, False], [True] * 3 + [False]])


def _encoded(encoder, mask=_SHOWN):
    module, x = twin(encoder, 5, 3), learned(*mask.shape, 5, seed=1)
    return arrived(module(x, mask), x, module=module)


def _contexts(context):
    """What `prepare` makes of a batch, and two contexts that it is then asked for."""
    module, states = twin(context, 3), wide(3, 4, 6, seed=1)
    kept = module.prepare(states, _SHOWN)
    asked = [module(wide(3, 3, seed=seed), kept, states, _SHOWN) for seed in (2, 3)]
    return [kept, *asked]


def _context_gradients(context):
    module, states, state = twin(context, 3), learned(3, 4, 6, seed=1), learned(3, 3, seed=2)
    out = module(state, module.prepare(states, _SHOWN), states, _SHOWN)
    return arrived(out, states, state, module=module)


def _noted(attention):
    """How often the weights' function is called, and with what, when it is replaced."""
    module, states, calls = twin(attention, 3), wide(3, 4, 6, seed=1), []

    def first(*inputs):
        calls.append(inputs)
        return torch.eye(4, dtype=torch.float64)[:3]

    module.weights = first
    out = module(wide(3, 3, seed=2), module.prepare(states, _SHOWN), states, _SHOWN)
    return [out, torch.tensor(len(calls)), *(calls[0] if calls else ())]


class _Between(nn.Module):
    """A context that depends on the decoder's state and on what was prepared."""

    def prepare(self, states, mask):
        return (states * mask[..., None]).sum(dim=1)

    def forward(self, state, kept, states, mask):
        return kept * state.sum(dim=-1, keepdim=True) + states[:, 0]


def _decoded(decoder, length=3):
    module, states = twin(decoder, 5, 3, _Between()), learned(3, 4, 6, seed=1)
    x = learned(3, length, 5, seed=2)
    out, (state, kept) = module(x, states, _SHOWN)
    return [out, state, kept, *arrived(out, x, states, module=module).values()]


def _decoded_on(decoder):
    module, states, x = (
        twin(decoder, 5, 3, _Between()),
        wide(3, 4, 6, seed=1),
        wide(3, 4, 5, seed=2),
    )
    first, carried = module(x[:, :1], states, _SHOWN)
    rest, _ = module(x[:, 1:], states, _SHOWN, carried)
    return torch.cat([first, rest], dim=1)


def _bias(cell):
    torch.manual_seed(0)
    return cell(3, 4, forget_bias=2.0).bias_ih.detach()


class _Sum:
    """A cell without weights, whose state is a tensor."""

    def __call__(self, x, state=None):
        return x if state is None else 2 * state + x


class _Pair:
    """A cell whose state is a pair; its first entry is the output."""

    def __call__(self, x, state=None):
        h, c = (x, x) if state is None else state
        return h * c + x, c + 1


def _unrolled(f):
    x = learned(2, 4, 3, seed=1)
    return arrived(f(_Sum(), x), x)


PARTS = (
    Part(
        "tinytf.related.recurrent.RecurrentCell",
        {
            "its weights are counted": lambda cell: shapes(cell(3, 4)),
            "its weights start between plus and minus one over the root of the size": _started,
            "it makes the zeros of the first state": lambda cell: cell(3, 4).zeros(
                wide(2, 3, seed=1)
            ),
            "three maps of word and state are made": _projected,
        },
    ),
    Part("tinytf.related.recurrent.RNNCell", _cell("RNNCell")),
    Part(
        "tinytf.related.recurrent.LSTMCell",
        _cell("LSTMCell") | {"the forget gate starts open by its bias": _bias},
    ),
    Part("tinytf.related.recurrent.GRUCell", _cell("GRUCell")),
    Part(
        "tinytf.related.recurrent.unroll",
        {
            "there is one word": lambda f: f(_Sum(), torch.tensor([[[1.0]]])),
            "two sentences have four words": lambda f: f(_Sum(), wide(2, 4, 3, seed=1)),
            "the state is a pair": lambda f: f(_Pair(), wide(2, 4, 3, seed=1)),
            "it begins from a state": lambda f: f(
                _Sum(), wide(2, 4, 3, seed=1), wide(2, 3, seed=2)
            ),
            "gradients go back to every word": _unrolled,
        },
    ),
    Part(
        "tinytf.related.recurrent_seq2seq.RecurrentEncoder",
        {
            "its weights are counted": lambda encoder: shapes(encoder(3, 4)),
            "one sentence of one word is read": lambda encoder: twin(encoder, 5, 3)(
                wide(1, 1, 5, seed=1), torch.tensor([[True]])
            ),
            "three sentences of unequal length are read": lambda encoder: twin(encoder, 5, 3)(
                wide(3, 4, 5, seed=1), _SHOWN
            ),
            "all sentences are shorter than the batch is wide": lambda encoder: twin(encoder, 5, 3)(
                wide(3, 6, 5, seed=1), F.pad(_SHOWN, (0, 2))
            ),
            "gradients go back to every word and weight, and to no padding": _encoded,
        },
    ),
    Part(
        "tinytf.related.recurrent_seq2seq.RecurrentDecoder",
        {
            "its weights are counted": lambda decoder: shapes(decoder(5, 3, _Between())),
            "it begins from the reader that stopped at the first word": lambda decoder: list(
                twin(decoder, 5, 3, _Between()).begin(wide(3, 4, 6, seed=1), _SHOWN)
            ),
            "it writes one word": lambda decoder: _decoded(decoder, 1),
            "it writes three, and gradients go back to all": _decoded,
            "it goes on from where it stopped": _decoded_on,
        },
        tolerance=1e-8,
    ),
    Part(
        "tinytf.related.contexts.FixedContext",
        {
            "three sentences of unequal length stop where they end": _contexts,
            "gradients go back to the states": _context_gradients,
        },
    ),
    Part(
        "tinytf.related.contexts.AdditiveAttention",
        {
            "its weights are counted": lambda attention: shapes(attention(3)),
            "it mixes the states of three sentences, twice": _contexts,
            "the function of its weights is replaced": _noted,
            "gradients go back to states, query and every weight": _context_gradients,
        },
    ),
    Part(
        "tinytf.related.contexts.additive_weights",
        {
            "two sentences of unequal length are read": lambda f: f(
                wide(2, 3, seed=1),
                wide(2, 4, 3, seed=2),
                wide(3, seed=3),
                torch.tensor([[True, True, False, False], [True, True, True, True]]),
            ),
            "a sentence has nothing to read": lambda f: f(
                wide(2, 3, seed=1),
                wide(2, 2, 3, seed=2),
                wide(3, seed=3),
                torch.tensor([[False, False], [True, False]]),
            ),
            "gradients go back to query, keys and v": lambda f: arrived(
                f(
                    *(
                        leaves := (
                            learned(2, 3, seed=1),
                            learned(2, 4, 3, seed=2),
                            learned(3, seed=3),
                        )
                    ),
                    torch.ones(2, 4).bool(),
                ),
                *leaves,
            ),
        },
    ),
)
