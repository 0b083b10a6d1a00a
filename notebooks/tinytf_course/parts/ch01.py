"""Chapter 02: recurrent cells, encoder and decoder, and what the decoder sees of the source."""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf_course.parts import Part, arrived, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide


def _cell(pair=False, **named):
    def run(cell, *states):
        return twin(cell, 3, 6, **named)(wide(2, 3, seed=1), *states)

    def single(cell):
        out = cell(3, 6)(wide(2, 3, seed=1).float())
        return dtypes(*out) if pair else dtypes(out)

    def gradients(cell):
        module, x = twin(cell, 3, 6, **named), learned(2, 3, seed=1)
        out = module(x)
        return arrived(out[0] if pair else out, x, module=module)

    def further(cell):
        module, leaves = twin(cell, 3, 6, **named), [learned(2, 6, seed=n) for n in (2, 3)]
        if not pair:
            return arrived(module(wide(2, 3, seed=1), leaves[0]), leaves[0])
        h, c = module(wide(2, 3, seed=1), tuple(leaves))
        return arrived(torch.cat([h, c]), *leaves)

    two = (wide(2, 6, seed=2), wide(2, 6, seed=3))
    state = two if pair else two[0]
    return {
        "its weights are counted": lambda cell: shapes(cell(3, 4)),
        "it reads a first word": lambda cell: run(cell),
        "it goes on from a state": lambda cell: run(cell, state),
        "numbers are in float32": single,
        "gradients go back to the word and to every weight": gradients,
        "gradients go back to the state before": further,
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
    """A context of all that it is given: the decoder's state, what was prepared, words, a mask."""

    def prepare(self, states, mask):
        return states.masked_fill(~mask[..., None], 0.0).sum(dim=1)

    def forward(self, state, kept, states, mask):
        hidden = states.masked_fill(~mask[..., None], 0.5).sum(dim=1)
        return kept * state.sum(dim=-1, keepdim=True) + states[:, 0] + hidden


def _decoded(decoder, length=3):
    module, states = twin(decoder, 5, 3, _Between()), learned(3, 4, 6, seed=1)
    x = learned(3, length, 5, seed=2)
    out, (state, kept) = module(x, states, _SHOWN)
    return [out, state, kept, *arrived(out, x, states, module=module).values()]


def _carried_gradients(decoder):
    module, states, x = (
        twin(decoder, 5, 3, _Between()),
        learned(3, 4, 6, seed=1),
        wide(3, 2, 5, seed=2),
    )
    _, (state, kept) = module(x, states, _SHOWN)
    return arrived(torch.cat([state.flatten(), kept.flatten()]), states)


def _decoded_single(decoder):
    states, x = wide(3, 4, 6, seed=1).float(), wide(3, 2, 5, seed=2).float()
    module = decoder(5, 3, _Between())
    out, (state, kept) = module(x, states, _SHOWN)
    return dtypes(out, state, kept, *module.begin(states, _SHOWN))


def _context_single(context):
    module, states = context(3), wide(3, 4, 6, seed=1).float()
    kept = module.prepare(states, _SHOWN)
    return dtypes(kept, module(wide(3, 3, seed=2).float(), kept, states, _SHOWN))


def _one_context(context):
    module, states, mask = twin(context, 3), wide(1, 4, 6, seed=1), _SHOWN[2:]
    kept = module.prepare(states, mask)
    return [kept, module(wide(1, 3, seed=2), kept, states, mask)]


def _v_started(attention):
    """The bounds of v in two modules, whose memory nobody finds as it was left."""
    made = [attention(900) for _ in range(2)]
    bounds = [(30 * end).item() for module in made for end in module.v.detach().aminmax()]
    same = torch.equal(made[0].v, made[1].v)
    for module in made:
        module.v.data.fill_(7.0)
    return {"v · √H lies between": [f"{end:.1f}" for end in bounds], "both are the same": same}


def _scored(f, dtype):
    q, k, v = (x.to(dtype) for x in (wide(2, 3, seed=1), wide(2, 4, 3, seed=2), wide(3, seed=3)))
    return dtypes(f(q, k, v, torch.tensor([[True, True, False, False], [True] * 4])))


def _decoded_on(decoder):
    module, states, x = (
        twin(decoder, 5, 3, _Between()),
        wide(3, 4, 6, seed=1),
        wide(3, 4, 5, seed=2),
    )
    first, carried = module(x[:, :1], states, _SHOWN)
    rest, _ = module(x[:, 1:], states, _SHOWN, carried)
    return torch.cat([first, rest], dim=1)


def _bias(cell, **named):
    torch.manual_seed(0)
    return cell(3, 4, **named).bias_ih.detach()


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


SIZE_KEPT = "… => self.input_size, self.hidden_size = (hidden_size, hidden_size)"
ZEROS = "zeros are zeros in any dtype, and no gradient goes to a size"
TWO_AXES = "there are two axes: the second is the last"

PARTS = (
    Part(
        "tinytf.related.recurrent.RecurrentCell",
        {
            "its weights are counted": lambda cell: shapes(cell(3, 4)),
            "its weights start between plus and minus one over the root of the size": _started,
            "it makes the zeros of the first state": lambda cell: cell(3, 4).zeros(
                wide(2, 3, seed=1)
            ),
            "the zeros of a word in float32 are made": lambda cell: dtypes(
                cell(3, 4).zeros(wide(2, 3, seed=1).float())
            ),
            "three maps of word and state are made": _projected,
        },
        equivalent={
            SIZE_KEPT: "only a check of arguments asks for the input's size",
        },
    ),
    Part(
        "tinytf.related.recurrent.RNNCell",
        _cell(),
        tolerance=1e-9,
        equivalent={"… => h = self.zeros(x.detach()) …": ZEROS},
    ),
    Part(
        "tinytf.related.recurrent.LSTMCell",
        _cell(pair=True)
        | {
            "the forget gate starts open by its bias": lambda cell: _bias(cell, forget_bias=2.0),
            "no forget bias is named": _bias,
        },
        tolerance=1e-9,
        equivalent={
            "… => h, c = (…x.detach()…": ZEROS,
            "… => h, c = (self.zeros(x), self.zeros(x.float())) …": ZEROS,
            "… => i, f, g, o = (from_x + from_h).chunk(4, dim=1)": TWO_AXES,
        },
    ),
    Part(
        "tinytf.related.recurrent.GRUCell",
        _cell(),
        tolerance=1e-9,
        equivalent={
            "… => h = self.zeros(x.detach()) …": ZEROS,
            "… => (xr, xz, xn), (hr, hz, hn) = (from_x.chunk(3, dim=1), …": TWO_AXES,
            "… => (xr, xz, xn), (hr, hz, hn) = (…, from_h.chunk(3, dim=1))": TWO_AXES,
        },
    ),
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
            "numbers are in float32": lambda encoder: dtypes(
                encoder(5, 3)(wide(3, 4, 5, seed=1).float(), _SHOWN)
            ),
            "its `gru` is to be batch first": lambda encoder: {
                "batch first": encoder(5, 3).gru.batch_first
            },
            "gradients go back to every word and weight, and to no padding": _encoded,
        },
        equivalent={
            "… => lengths = mask.sum(dim=1)": "lengths must be moved from another device alone",
            "… => …total_length=mask.size(1))": "a mask is as long as its sentences",
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
            "numbers are in float32": _decoded_single,
            "gradients go back by what goes on": _carried_gradients,
        },
        tolerance=1e-9,
        equivalent={
            "… => state = self.cell(torch.cat([word, context], dim=1), state)": TWO_AXES,
            "… => steps.append(torch.cat([state, context, word], dim=1))": TWO_AXES,
        },
    ),
    Part(
        "tinytf.related.contexts.FixedContext",
        {
            "three sentences of unequal length stop where they end": _contexts,
            "there is one sentence": _one_context,
            "numbers are in float32": _context_single,
            "gradients go back to the states": _context_gradients,
        },
        tolerance=1e-9,
        equivalent={
            "… => ahead = states[torch.arange(len(last)), last]": "an index may lie on the CPU",
            "… => return torch.cat([…], dim=1)": TWO_AXES,
        },
    ),
    Part(
        "tinytf.related.contexts.AdditiveAttention",
        {
            "its weights are counted": lambda attention: shapes(attention(3)),
            "it mixes the states of three sentences, twice": _contexts,
            "there is one sentence": _one_context,
            "numbers are in float32": _context_single,
            "`v` has not been trained": _v_started,
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
            "a word that is hidden is far louder than those that are shown": lambda f: f(
                torch.tensor([[0.0]], dtype=torch.float64),
                torch.tensor([[[-9.0], [9.0], [-8.0]]], dtype=torch.float64),
                torch.tensor([3e4], dtype=torch.float64),
                torch.tensor([[True, False, True]]),
            ),
            "numbers are in float32": lambda f: _scored(f, torch.float32),
            "numbers are in half precision": lambda f: _scored(f, torch.float16),
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
        tolerance=1e-9,
        equivalent={
            "… => …torch.finfo(v.dtype).min)": "v has the dtype of the scores",
            "… => return scores.softmax(dim=1)…": TWO_AXES,
        },
    ),
)
