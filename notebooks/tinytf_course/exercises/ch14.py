"""Chapter 14: a forward pass and a loss."""

import functools
import math

import torch
from torch.nn import functional as F

from tinytf.masks import padding_mask
from tinytf.transformer import Transformer, TransformerConfig
from tinytf_course.expect import (
    agrees,
    expect,
    gradients,
    numbers,
    same,
    short,
    tensor,
)
from tinytf_course.grading import Exercise, hint

PAD = 0


# 14.1 a forward pass to repair


def my_forward(model, src, tgt):
    """The logits of `model(src, tgt)`, by its parts: (B, S) and (B, T) to (B, T, V).

    The parts are model.src_embedding, .tgt_embedding, .positions, .encoder, .decoder and .output;
    model.config.pad_id is the id of the padding.
    """
    raise NotImplementedError


_BROKEN = """```python
def my_forward(model, src, tgt):
    x = model.src_embedding(src)
    mask = src != 0
    memory = model.encoder(x, mask)
    y = model.positions(model.src_embedding(tgt))
    hidden = model.decoder(y, memory, padding_mask(tgt), mask)
    return hidden @ model.src_embedding.weight.T
```"""


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


def _first_word(answer):
    """the logits after <bos>, with nothing to hide"""
    note = "One source word, one target word: only tables, positions and the output matter."
    for dtype in (torch.float64, torch.float32):
        _forward_agrees(answer, ((4,),), ((1,),), note, dtype=dtype)


@hint("Both sides get their positions before the first layer.")
def _source_order(answer):
    """the order of the source's words matters"""
    note = "Attention alone can't see the source's order."
    _forward_agrees(answer, SENTENCE, ((1,),), note)


@hint("A position of the target may look at itself and what is before it.")
def _sees_no_future(answer):
    """no position sees a later one"""
    note = "All prefixes at once must agree with prefix by prefix."
    _forward_agrees(answer, SENTENCE, SAID, note)


@hint("The source's mask is `padding_mask(src, model.config.pad_id)`, of shape (B, 1, 1, S).")
def _padded(answer):
    """sentences of different lengths in one batch, each as if it were alone"""
    note = "Padding may not matter, in the encoder or in cross-attention."
    _forward_agrees(answer, THREE, THREE_SAID, note)
    _forward_agrees(answer, AS_LONG, AS_LONG_SAID, note)


@hint("The id of the padding is `model.config.pad_id`; here 0 is a word.")
def _other_padding(answer):
    """another id for the padding, and the paper's norm"""
    note = "Here 0 is a word."
    _forward_agrees(answer, ZERO_IS_A_WORD, ZERO_IS_SAID, note, 6, "post")


@hint("The result is trained with: no `no_grad`, `detach` or new tensors on the way.")
def _can_be_trained(answer):
    """the gradient reaches every weight that it should"""
    ids, said = torch.tensor(THREE), torch.tensor(THREE_SAID)
    where = f"for src={short(ids)}, tgt={short(said)}"
    model = _translator()
    out = answer(model, ids, said)
    expect(getattr(out, "requires_grad", False), f"{where}, no gradient goes back from your logits")
    found = _gradients(model, out[said != PAD])
    for name, wanted in _expected_gradients(THREE, THREE_SAID).items():
        expect(found[name] is not None, f"{where}, no gradient reaches `{name}`")
        same(found[name], wanted, f"{where}, for the gradient to `{name}`")


FORWARD = Exercise(
    id="14.1",
    title="a forward pass to repair",
    difficulty=2,
    minutes=15,
    statement=(
        "Somebody wrote the forward pass of a `Transformer` from its parts. It has five faults "
        "at least, and not all of them stop it:\n\n" + _BROKEN + "\n\n"
        "Write `my_forward(model, src, tgt)` so that it gives the logits of `model(src, tgt)`, "
        "also for padded batches, for a model whose padding has another id, and for one with two "
        "embeddings and an output matrix of its own. Use the parts: `model.encode`, `model.decode` "
        "and `model(...)` are what you are writing. (Logits at positions that are padding are not "
        "looked at.)"
    ),
    hint=(
        "Go through it in the order of the drawing: which table, with positions or without, which "
        "mask (of what shape), and which matrix at the end?"
    ),
    function=my_forward,
    tests=(
        _first_word,
        _source_order,
        _sees_no_future,
        _padded,
        _other_padding,
        _can_be_trained,
    ),
)


# 14.2 label-smoothed loss without the padding


def smoothed_loss(logits, targets, epsilon, pad_id):
    """Label-smoothed cross-entropy, averaged over the targets that are not padding.

    logits is (B, T, V), targets (B, T). The target distribution is 1 - epsilon on the target,
    plus epsilon shared equally by all V words (the target too).
    """
    raise NotImplementedError


LOGITS = torch.tensor(
    [
        [[1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 3.0, 1.0], [0.0, 0.0, 1.0, 2.0]],
        [[1.0, 0.0, 0.0, 2.0], [4.0, 0.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.0]],
    ]
)
TARGETS = torch.tensor([[1, 2, 3], [3, 0, 0]])
_TARGETS = f"for targets={short(TARGETS)} with pad_id=0"


def _oracle_loss(epsilon):
    return F.cross_entropy(
        LOGITS.flatten(0, 1), TARGETS.flatten(), ignore_index=PAD, label_smoothing=epsilon
    )


def _no_smoothing(answer):
    """with epsilon 0 it is the mean negative log-likelihood of the real tokens"""
    got = answer(LOGITS, TARGETS, 0.0, PAD)
    same(got, _oracle_loss(0.0), f"{_TARGETS}, epsilon=0", note="Four tokens are real.")


def _uniform(answer):
    """a model that knows nothing scores ln V, whatever the smoothing"""
    where = "for all-zero logits over V=4 words, one real token, epsilon=0.2"
    got = answer(torch.zeros(1, 1, 4), torch.tensor([[3]]), 0.2, PAD)
    same(got, math.log(4), where, note="The smoothed target is a distribution: it sums to 1.")


def _smoothed(answer):
    """with epsilon 0.2 it agrees with `F.cross_entropy`"""
    got = answer(LOGITS, TARGETS, 0.2, PAD)
    same(got, _oracle_loss(0.2), f"{_TARGETS}, epsilon=0.2", note="Each word gets epsilon/V.")


def _pads_do_not_count(answer):
    """what the model says at padding does not count"""
    loud = LOGITS.clone()
    loud[1, 1:] = torch.tensor([-50.0, 0.0, 0.0, 0.0])
    quiet = tensor(answer(LOGITS, TARGETS, 0.1, PAD), _TARGETS)
    changed = tensor(answer(loud, TARGETS, 0.1, PAD), _TARGETS)
    message = (
        f"{_TARGETS}, changing only the logits at padding moves the loss from {short(quiet)} "
        f"to {short(changed)}; it should not move"
    )
    expect(quiet.numel() == 1 and torch.allclose(quiet, changed), message)


def _torchs(logits, targets, epsilon, pad_id):
    """The mean over the real tokens, by torch."""
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id, label_smoothing=epsilon
    )


_PADDED = torch.tensor([[1, 4, 3, 3], [0, 2, 1, 4], [4, 3, 3, 3]])  # 3 is padding, 0 a word


@hint("The padding has the id `pad_id`, and 0 may be a word.")
def _any_batch(answer):
    """any batch, with any id for padding"""
    agrees(answer, _torchs, numbers(1, 1, 3, seed=1), torch.tensor([[0]]), 0.1, 2)
    agrees(answer, _torchs, numbers(3, 1, 2, seed=2), torch.tensor([[0], [1], [0]]), 0.1, 1)
    agrees(answer, _torchs, numbers(1, 3, 2, seed=3), torch.tensor([[0, 0, 1]]), 0.3, 1)
    for epsilon in (0.0, 0.1, 1.0):
        agrees(answer, _torchs, numbers(3, 4, 5, seed=4), _PADDED, epsilon, 3)


@hint("`log_softmax` takes the largest logit away first; `exp` of 200 is too large for a number.")
def _large_logits(answer):
    """large logits are no trouble"""
    logits = torch.tensor([[[200.0, 0.0, -3.0]]])
    agrees(answer, _torchs, logits, torch.tensor([[0]]), 0.0, 2)
    agrees(answer, _torchs, logits, torch.tensor([[1]]), 0.1, 2)
    agrees(answer, _torchs, numbers(3, 4, 5, seed=5, scale=1e4), _PADDED, 0.1, 3)


@hint("The loss is a tensor that knows its way back: no `.item()`, `.detach()` or `no_grad`.")
def _loss_gradients(answer):
    """it can be trained with: the gradient reaches every logit"""
    for epsilon in (0.0, 0.2):
        gradients(answer, _torchs, numbers(3, 4, 5, seed=6), _PADDED, epsilon, 3)


def _in_float64(answer):
    """float64 stays float64"""
    logits = numbers(3, 4, 5, seed=7, dtype=torch.float64)
    for epsilon in (0.2, 1.0):
        agrees(answer, _torchs, logits, _PADDED, epsilon, 3)


SMOOTHED_LOSS = Exercise(
    id="14.2",
    title="label-smoothed loss without the padding",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `smoothed_loss(logits, targets, epsilon, pad_id)`: the cross-entropy with a target "
        "distribution that puts $1-\\epsilon$ on the right word and shares $\\epsilon$ equally "
        "among all $V$ words, averaged over the real tokens of the whole batch. It is a tensor to "
        "call `backward` on, has the logits' dtype, and stands logits of any size."
    ),
    hint="`log_softmax`, `gather` for the target, `mean(-1)` for the shared part, then `[real]`.",
    function=smoothed_loss,
    tests=(
        _no_smoothing,
        _pads_do_not_count,
        _uniform,
        _smoothed,
        _any_batch,
        _large_logits,
        _loss_gradients,
        _in_float64,
    ),
)


EXERCISES = (FORWARD, SMOOTHED_LOSS)
