"""14.1 a forward pass to repair (★★☆, 15 minutes)

Somebody wrote the forward pass of a `Transformer` from its parts. It runs, and in training the loss
falls almost to 0, but the trained model can't write a sentence:

```python
def my_forward(model, src, tgt):
    mask = padding_mask(src)
    memory = model.encoder(model.src_embedding(src), mask)
    y = model.positions(model.src_embedding(tgt))
    hidden = model.decoder(y, memory, padding_mask(tgt), mask)
    return hidden @ model.src_embedding.weight.T
```

Write `my_forward(model, src, tgt)`, which returns the logits of `model(src, tgt)`: the symptom has
one cause, and it is not the only fault.

<details><summary>The rule in detail</summary>

Batches may be padded, with whatever id the config names; source and target may have an embedding
each, and the output a matrix of its own. Logits at padding are not looked at. Call the parts of the
model: `model.encode`, `model.decode` and `model(...)` are what you are writing.

</details>

Hint: A loss near 0 means that the answer can be seen. What may a position of the target attend to?

Hint: Five things are wrong. Go through the code in the order of the drawing: which embedding, with
positions or without, which mask and for which padding, and which matrix at the end?
"""

import functools

import torch

from tinytf.masks import causal_mask, padding_mask
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.expect import expect, numbers, same, short, tensor
from tinytf_course.grading import hint


def my_forward(model, src, tgt):
    """The logits of `model(src, tgt)`, by its parts: (B, S) and (B, T) to (B, T, V).

    The parts are model.src_embedding, .tgt_embedding, .positions, .encoder, .decoder and .output;
    model.config.pad_id is the id of the padding.
    """
    pad = model.config.pad_id
    mask = padding_mask(src, pad)  # (B, 1, 1, S)
    memory = model.encoder(model.positions(model.src_embedding(src)), mask)
    y = model.positions(model.tgt_embedding(tgt))
    ahead = causal_mask(tgt.size(1), tgt.device) & padding_mask(tgt, pad)
    return model.output(model.decoder(y, memory, ahead, mask))  # (B, T, C) -> (B, T, V)


PAD = 0


class _Parts(Transformer):
    """A model that has its parts and no way of its own to call them."""

    def forward(self, *_):
        """Refuse."""
        raise RuntimeError("encode, decode and forward are yours to write, from the parts")

    encode = decode = forward


def _translator(pad_id=0, norm="pre", dtype=torch.float64):
    """A small model with weights of all sizes; two tables and an output of its own."""
    config = TransformerConfig(
        9, 7, d_model=8, num_heads=2, num_layers=1, d_ff=12, dropout=0.0, max_len=12, norm=norm,
        pad_id=pad_id, tie_output=False,
    )  # fmt: skip
    model = _Parts(config).to(dtype)
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            drawn = numbers(*parameter.shape, seed=i + 1, scale=0.6, dtype=torch.float64)
            parameter.copy_(drawn + (1.0 if parameter.dim() == 1 else 0.0))
    return model


def _explicit(model, src, tgt):
    """Prefix by prefix, each sentence alone and without its padding: logits at words, (N, V)."""
    pad, rows = model.config.pad_id, []
    for source, target in zip(src.tolist(), tgt.tolist(), strict=True):
        words = torch.tensor([[word for word in source if word != pad]])
        real = padding_mask(words, pad)
        memory = model.encoder(model.positions(model.src_embedding(words)), real)
        for t in range(1, sum(word != pad for word in target) + 1):
            y = model.positions(model.tgt_embedding(torch.tensor([target[:t]])))
            ahead = torch.ones(t, t).tril().bool()[None, None]
            rows.append(model.output(model.decoder(y, memory, ahead, real))[0, -1])
    return torch.stack(rows)


@functools.cache
def _expected(pad_id, norm, dtype, src, tgt):
    """What `_explicit` gives of nested tuples of ids."""
    model = _translator(pad_id, norm, dtype)
    return _explicit(model, torch.tensor(src), torch.tensor(tgt)).detach()


@functools.cache
def _expected_gradients(src, tgt):
    model = _translator()
    return _gradients(model, _explicit(model, torch.tensor(src), torch.tensor(tgt)))


def _gradients(model, out):
    """The gradient of a weighted sum of logits at words to each weight, by name."""
    scale = numbers(*out.shape, seed=9, dtype=torch.float64)
    names, weights = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad((out * scale).sum(), weights, allow_unused=True)
    return dict(zip(names, found, strict=True))


SENTENCE, SAID = ((4, 3, 5),), ((1, 6, 3, 5),)
THREE = ((4, 3, 5, 8, 2), (7, 7, 2, 0, 0), (3, 2, 0, 0, 0))
THREE_SAID = ((1, 6, 3, 5), (1, 5, 0, 0), (1, 4, 4, 0))
AS_LONG, AS_LONG_SAID = ((4, 3, 2), (7, 2, 0)), ((1, 5, 0), (1, 6, 3))
ZERO_IS_A_WORD = ((4, 0, 5, 8, 2), (7, 7, 2, 6, 6), (3, 2, 6, 6, 6))
ZERO_IS_SAID = ((1, 5, 0, 5), (1, 5, 6, 6), (1, 4, 4, 6))


def _forward_agrees(answer, src, tgt, note, pad_id=0, norm="pre", dtype=torch.float64):
    ids, said = torch.tensor(src), torch.tensor(tgt)
    where = f"for src={short(ids)}, tgt={short(said)}, pad_id={pad_id}, norm={norm!r}"
    got = tensor(answer(_translator(pad_id, norm, dtype), ids, said), where)
    shape = (*said.shape, 7)
    message = f"{where}, you return shape {tuple(got.shape)}, expected {shape}"
    expect(tuple(got.shape) == shape, message)
    expect(got.dtype == dtype, f"{where}, you return {got.dtype} of a model in {dtype}")
    expected = _expected(pad_id, norm, dtype, src, tgt)
    same(got.detach()[said != pad_id], expected, f"{where}, for the logits at words", note=note)


def test_first_word(answer):
    """the logits after <bos>, with nothing to hide"""
    note = "One source word, one target word: only tables, positions and the output matter."
    for dtype in (torch.float64, torch.float32):
        _forward_agrees(answer, ((4,),), ((1,),), note, dtype=dtype)


@hint("Both sides get their positions before the first layer.")
def test_source_order(answer):
    """the order of the source's words matters"""
    note = "Attention alone can't see the source's order."
    _forward_agrees(answer, SENTENCE, ((1,),), note)


@hint("A position of the target may look at itself and what is before it.")
def test_sees_no_future(answer):
    """no position sees a later one"""
    note = "All prefixes at once must agree with prefix by prefix."
    _forward_agrees(answer, SENTENCE, SAID, note)


@hint("The source's mask is `padding_mask(src, model.config.pad_id)`, of shape (B, 1, 1, S).")
def test_padded(answer):
    """sentences of different lengths in one batch, each as if it were alone"""
    note = "Padding may not matter, in the encoder or in cross-attention."
    _forward_agrees(answer, THREE, THREE_SAID, note)
    _forward_agrees(answer, AS_LONG, AS_LONG_SAID, note)


@hint("The id of the padding is `model.config.pad_id`; here 0 is a word.")
def test_other_padding(answer):
    """another id for the padding, and the paper's norm"""
    note = "Here 0 is a word."
    _forward_agrees(answer, ZERO_IS_A_WORD, ZERO_IS_SAID, note, 6, "post")


@hint("The result is trained with: no `no_grad`, `detach` or new tensors on the way.")
def test_can_be_trained(answer):
    """the gradient reaches every weight that it should"""
    ids, said = torch.tensor(THREE), torch.tensor(THREE_SAID)
    where = f"for src={short(ids)}, tgt={short(said)}"
    model = _translator()
    out = answer(model, ids, said)
    expect(getattr(out, "requires_grad", False), f"{where}, no gradient goes back from your logits")
    found = _gradients(model, out[said != PAD])
    message = f"{where}, no gradient reaches any weight of `model`: are the logits those of a copy?"
    expect(any(each is not None for each in found.values()), message)
    for name, wanted in _expected_gradients(THREE, THREE_SAID).items():
        expect(found[name] is not None, f"{where}, no gradient reaches `{name}`")
        same(found[name], wanted, f"{where}, for the gradient to `{name}`")


MISTAKES = r"""
no positions for the source
    model.positions(model.src_embedding(src)) => model.src_embedding(src)
    says: for src=[[4]], tgt=[[1]]
    The source's vectors reach the encoder without positions: it sees a set of words, and can't tell
    whether the dog chased the cat or the cat the dog.
the source's table for the target
    model.tgt_embedding => model.src_embedding
    says: for src=[[4]], tgt=[[1]]
    The target's ids are looked up in the source's embedding. It runs as long as the ids exist
    there, but each id is another word there.
an embedding for the output
    return model.output(model.decoder(y, memory, ahead, mask)) =>
        return model.decoder(y, memory, ahead, mask) @ model.tgt_embedding.weight.T
    says: for src=[[4]], tgt=[[1]]
    The output is tied to the target's embedding in many models, and not in all. `model.output`
    is right for both.
no causal mask
    causal_mask(tgt.size(1), tgt.device) & padding_mask(tgt, pad) => padding_mask(tgt, pad)
    says: All prefixes at once must agree with prefix by prefix
    Every position sees the word that it has to predict, one place to the right. The training loss
    looks wonderful, and alone the model can't write.
the memory's mask forgotten
    ahead, mask) => ahead, None)
    says: Padding may not matter
    Cross-attention looks at the padding of the shorter sentences, so their logits depend on the
    longest sentence of the batch.
the target's padding for the memory
    ahead, mask) => ahead, padding_mask(tgt, pad))
    says: does not fit scores of shape
    The keys of cross-attention are the source's words, so its mask is the source's. The
    target's fits only where both are equally long, and hides the wrong words.
the encoder's mask forgotten
    (src)), mask) => (src)), None)
    says: Padding may not matter
    The encoder's words attend to padding, so the memory of a sentence depends on its batch.
a mask of shape (B, S)
    mask = padding_mask(src, pad) => mask = src != pad
    says: does not fit scores of shape
    Attention's scores are (B, H, T, S), and a mask (B, S) has no axes for heads and queries.
    `padding_mask` makes it (B, 1, 1, S), which fits all of them.
0 taken for the padding
    pad = model.config.pad_id => pad = 0
    says: Here 0 is a word
    Another vocabulary pads with another id, which is in `model.config.pad_id`.
the memory detached
    memory, ahead => memory.detach(), ahead
    says: no gradient reaches `src_embedding.weight`
    The logits are right, but no gradient reaches the encoder: it would never be trained.
"""

HARMLESS = r"""
ahead = causal_mask(tgt.size(1), tgt.device) & padding_mask(tgt, pad) => ahead = causal_mask(…)
    padding on the right is later than every word, so the causal mask hides it
… => …causal_mask(tgt.size(1)) & …
    another device was not asked for
… => …model.device…
    model and ids are on one device
… => …src.device…
    model and ids are on one device
… => …mask.device…
    model and ids are on one device
"""
