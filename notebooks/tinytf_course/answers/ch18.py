"""Answers to chapter 18: references and mistakes."""

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 18.1 causal and padded


def my_gpt_mask(length, attention_mask=None):
    """Which keys each query may attend to: boolean, (1, 1, T, T), or (B, 1, T, T) with a mask.

    attention_mask is (B, T), 1 for a real token and 0 for padding, or None if all are real. True =
    may attend: the key is real and not later than the query.
    """
    device = None if attention_mask is None else attention_mask.device
    causal = torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
    if attention_mask is None:
        return causal
    return causal & attention_mask.bool()[:, None, None, :]


def _on_the_cpu(length, attention_mask=None):
    causal = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
    return causal if attention_mask is None else causal & attention_mask.bool()[:, None, None, :]


def _mask(join=lambda c, m: c & m[:, None, None, :], none=lambda c: c, diagonal=0):
    def mask(length, attention_mask=None):
        device = None if attention_mask is None else attention_mask.device
        ones = torch.ones(length, length, dtype=torch.bool, device=device)
        causal = ones.tril(diagonal)[None, None]
        return none(causal) if attention_mask is None else join(causal, attention_mask.bool())

    return mask


MASKS = Answers(
    reference=my_gpt_mask,
    equivalent={
        "… => ….detach()…": "a mask carries no gradient",
        "return … => …attention_mask.float().bool()…": "as a boolean 0 stays 0",
        "if attention_mask is None: => if device is None:": "a tensor has a device",
    },
    wrong=(
        WrongAnswer(
            "the mask given replaces the causal one",
            _mask(lambda c, m: m[:, None, None, :].expand(-1, 1, m.size(1), -1)),
            "12 pairs see the future",
            "`if attention_mask is None: mask = causal` is found in a published tutorial. With a "
            "mask of ones, as Hugging Face's tokenizers return it, every position then sees the "
            "future.",
        ),
        WrongAnswer(
            "either will do",
            _mask(lambda c, m: c | m[:, None, None, :]),
            "pairs see the future",
            "A key must be real and not later: `&`, not `|`.",
        ),
        WrongAnswer(
            "padding hides queries",
            _mask(lambda c, m: c & m[:, None, :, None]),
            "but that key is padding",
            "Padding has to be hidden as a key, along the last axis.",
        ),
        WrongAnswer(
            "padding hidden as a query too",
            _mask(lambda c, m: c & m[:, None, None, :] & m[:, None, :, None]),
            "query 3, key 0: False, but that key is real and not later",
            "The output at a padded position is not used, so its query need not be hidden. A row "
            "without any key gives 0 / 0 in many implementations.",
        ),
        WrongAnswer(
            "True = blocked",
            lambda length, attention_mask=None: ~my_gpt_mask(length, attention_mask),
            "some query may attend to a later key",
            "`masked_fill` wants it so; here, as everywhere in tinytf, True = may attend.",
        ),
        WrongAnswer(
            "padding ignored",
            _mask(lambda c, m: c.expand(len(m), 1, -1, -1)),
            "but that key is padding",
            "Padding on the right happens to lie in the future; padding on the left does not, and "
            "prompts of different length are padded on the left.",
        ),
        WrongAnswer(
            "no mask where none is given",
            _mask(none=lambda c: torch.ones_like(c)),
            "some query may attend to a later key",
            "No attention mask means that all tokens are real, not that all may be seen.",
        ),
        WrongAnswer(
            "made on the CPU",
            _on_the_cpu,
            "on another device than the CPU it fails",
            "A GPU's mask meets a triangle on the CPU: give that `device=attention_mask.device`.",
        ),
        WrongAnswer(
            "no axis for the heads",
            _mask(lambda c, m: c[0] & m[:, None, :]),
            "the shape is (2, 4, 4)",
            "(B, T, T) meets the scores (B, H, T, T) as (1, B, T, T): the batch lines up with the "
            "heads.",
        ),
        WrongAnswer(
            "a token does not see itself",
            _mask(diagonal=-1),
            "3 of 9 are True",
            "The targets are shifted by one: a position may see its own token, because it "
            "predicts the next one.",
        ),
        WrongAnswer(
            "only padding on the right",
            _mask(
                lambda c, m: c & (torch.arange(m.size(1)) < m.sum(1, keepdim=True))[:, None, None]
            ),
            "Padding on the left",
            "The number of real tokens does not tell where they are: prompts are padded on the "
            "left.",
        ),
    ),
)

# 18.2 count a GPT


def my_gpt_parameters(vocab_size, d_model, num_layers, max_len, d_ff):
    """The number of parameters of a GPT: an integer.

    The output layer is the embedding table and has no bias; every other linear layer has one.
    Each norm has a gain and a shift for each feature, and one last norm follows the stack.
    """
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norms = 2 * (2 * d_model)
    tables = vocab_size * d_model + max_len * d_model
    return tables + num_layers * (attention + feed_forward + norms) + 2 * d_model


def _counter(**off):
    """A `my_gpt_parameters` with one part counted otherwise."""

    def count(vocab_size, d_model, num_layers, max_len, d_ff):
        v, d, layers, t = vocab_size, d_model, num_layers, max_len
        f = off.get("d_ff", lambda d, f: f)(d, d_ff)
        biases = off.get("biases", 1)
        attention = off.get("maps", 4) * (d * d + biases * d)
        layer = attention + 2 * d * f + biases * (f + d) + off.get("norms", 2) * 2 * d
        tables = v * d + off.get("positions", 1) * t * d
        end = off.get("last", 1) * 2 * d + off.get("head", lambda v, d: 0)(v, d)
        return tables + layers * layer + end

    return count


PARAMETERS = Answers(
    reference=my_gpt_parameters,
    equivalent={},
    wrong=(
        WrongAnswer(
            "untied head",
            _counter(head=lambda v, d: v * d),
            "the head is tied",
            "The output's matrix is the embedding table: it counts once. Untied, GPT-2 would have "
            "163 million.",
        ),
        WrongAnswer(
            "head with a bias",
            _counter(head=lambda v, d: v * d + v),
            "the head is tied",
            "This is one tutorial's model: 163,087,441 parameters where GPT-2 has 124,439,808.",
        ),
        WrongAnswer(
            "the head's bias",
            _counter(head=lambda v, d: v),
            "the head is tied, no bias",
            "GPT-2's output is the embedding table and nothing else: no number per token is added.",
        ),
        WrongAnswer(
            "no biases",
            _counter(biases=0),
            "has in each layer 48 for attention",
            "GPT-2's linear layers have biases. (Many of today's models leave them out.)",
        ),
        WrongAnswer(
            "positions forgotten",
            _counter(positions=0),
            "4 · 3 for positions",
            "The positions are learned: a row of d_model numbers for each of max_len positions.",
        ),
        WrongAnswer(
            "last norm forgotten",
            _counter(last=0),
            "6 for the last norm",
            "A pre-norm stack ends in a norm of its own.",
        ),
        WrongAnswer(
            "one norm a layer",
            _counter(norms=1),
            "12 for two norms",
            "Each of the two sublayers has its own norm.",
        ),
        WrongAnswer(
            "three maps in attention",
            _counter(maps=3),
            "has in each layer 48 for attention",
            "Queries, keys, values, and the output projection w_o that joins the heads.",
        ),
        WrongAnswer(
            "d_ff taken to be 4 d_model",
            _counter(d_ff=lambda d, f: 4 * d),
            "38 for the feed-forward network",
            "That is GPT-2's choice, not a law: use the argument.",
        ),
        WrongAnswer(
            "a float",
            lambda *sizes: float(my_gpt_parameters(*sizes)),
            "a float, expected an integer",
            "`/` makes a float. Parameters are counted: stay with `+`, `*` and `//`.",
        ),
    ),
)


# 18.3 a layer from GPT-2's file


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


def _slip(change):
    """A `my_gpt2_layer` whose answer is changed by `change(ours, theirs)`."""

    def slipped(theirs):
        ours = dict(my_gpt2_layer(theirs))
        change(ours, theirs)
        return ours

    return slipped


def _swapped(one, other):
    def change(ours, theirs):
        for kind in ("weight", "bias"):
            a, b = f"{one}.{kind}", f"{other}.{kind}"
            ours[a], ours[b] = ours[b], ours[a]

    return _slip(change)


def _square_left(ours, theirs):
    ours["self_attention.w_o.weight"] = theirs["attn.c_proj.weight"]


def _as_stored(ours, theirs):
    _square_left(ours, theirs)
    parts = theirs["attn.c_attn.weight"].chunk(3, dim=1)
    for x, part in zip("qkv", parts, strict=True):
        ours[f"self_attention.w_{x}.weight"] = part
    for name, own in (("mlp.c_fc", "feed_forward.w_1"), ("mlp.c_proj", "feed_forward.w_2")):
        ours[f"{own}.weight"] = theirs[f"{name}.weight"]


def _reshaped(ours, theirs):
    for name, own in (("mlp.c_fc", "feed_forward.w_1"), ("mlp.c_proj", "feed_forward.w_2")):
        matrix = theirs[f"{name}.weight"]
        ours[f"{own}.weight"] = matrix.reshape(matrix.shape[::-1])


def _rows_cut(ours, theirs):
    matrix = theirs["attn.c_attn.weight"]
    for i, x in enumerate("qkv"):
        ours[f"self_attention.w_{x}.weight"] = matrix.reshape(
            3, *ours["self_attention.w_o.weight"].shape
        )[i]


def _woven(ours, theirs):
    turned, bias = theirs["attn.c_attn.weight"].t(), theirs["attn.c_attn.bias"]
    for i, x in enumerate("qkv"):
        ours[f"self_attention.w_{x}.weight"] = turned[i::3]
        ours[f"self_attention.w_{x}.bias"] = bias[i::3]


def _in_float32(ours, theirs):
    for name in ours:
        ours[name] = ours[name].float()


_EACH = "for own, part in zip(mine, parts, strict=True):"
_CHUNKS = "there are as many chunks as names, in every row of the table"

WEIGHTS = Answers(
    reference=my_gpt2_layer,
    equivalent={
        "for kind in ('weight', 'bias'): => for kind in ('bias', 'weight'):": "a dict is looked up "
        "by name: its order says nothing",
        f"{_EACH} => {_EACH.replace(', strict=True', '')}": _CHUNKS,
        f"{_EACH} => {_EACH.replace('strict=True', 'strict=False')}": _CHUNKS,
        "ours[f'{own}.{kind}'] = part => ours[f'{own}.{kind}'] = part.detach()": "what is "
        "read from a file has no gradient to lose",
    },
    wrong=(
        WrongAnswer(
            "nothing turned",
            _slip(_as_stored),
            "its shape does not show it",
            "Theirs are (inputs, outputs), ours (outputs, inputs): transpose every matrix.",
        ),
        WrongAnswer(
            "the square matrix not turned",
            _slip(_square_left),
            "its shape does not show it",
            "(C, C) fits either way, so no error is raised. The layer computes something else.",
        ),
        WrongAnswer(
            "reshaped instead of turned",
            _slip(_reshaped),
            "c_fc goes from d_model to d_ff",
            "`reshape` gives the right shape and leaves the numbers in their old order; `t()` "
            "exchanges rows and columns.",
        ),
        WrongAnswer(
            "cut before it is turned",
            _slip(_rows_cut),
            "first d_model outputs are the queries",
            "Queries, keys and values are side by side: columns of theirs, rows of ours.",
        ),
        WrongAnswer(
            "queries, keys and values by turns",
            _slip(_woven),
            "first d_model outputs are the queries",
            "They come in blocks, not one after the other. (Some other models' files weave them.)",
        ),
        WrongAnswer(
            "keys and values exchanged",
            _swapped("self_attention.w_k", "self_attention.w_v"),
            "first d_model outputs are the queries",
            "The order in c_attn is queries, keys, values.",
        ),
        WrongAnswer(
            "the norms exchanged",
            _swapped("residual_1.norm", "residual_2.norm"),
            "ln_1 comes before attention",
            "Pre-LN: each sublayer's norm comes before it, and ln_1 is that of attention.",
        ),
        WrongAnswer(
            "in float32, whatever it was",
            _slip(_in_float32),
            "float64",
            "A file in half precision keeps its dtype; the code that loads it decides.",
        ),
        WrongAnswer(
            "the biases left out",
            _slip(lambda ours, theirs: [ours.pop(n) for n in list(ours) if n.endswith("_o.bias")]),
            "there is no self_attention.w_o.bias",
            "Every linear layer of GPT-2 has a bias, and every norm a shift.",
        ),
        WrongAnswer(
            "their names kept beside ours",
            _slip(lambda ours, theirs: ours.update(theirs)),
            "there is a name too many",
            "`load_state_dict` would refuse names that the model does not have.",
        ),
    ),
)

ANSWERS = {"18.1": MASKS, "18.2": PARAMETERS, "18.3": WEIGHTS}
