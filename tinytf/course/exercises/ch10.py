"""Chapter 10: what training a Transformer needs besides the model."""

import functools
import math

import torch
from torch.nn import functional as F

from tinytf.course.evidence import copied
from tinytf.course.expect import (
    Counted,
    agrees,
    expect,
    gradients,
    numbers,
    same,
    saved,
    short,
    tensor,
)
from tinytf.course.grading import Exercise, hint
from tinytf.masks import padding_mask
from tinytf.transformer import Transformer, TransformerConfig

PAD = 0


# 10.1 a forward pass to repair


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
    model = _Parts(config).to(dtype).eval()
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
    id="10.1",
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


# 10.2 label-smoothed loss without the padding


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
    id="10.2",
    title="label-smoothed loss without the padding",
    difficulty=2,
    minutes=15,
    statement=(
        "Write `smoothed_loss(logits, targets, epsilon, pad_id)`: the cross-entropy with a target "
        "distribution that puts $1-\\epsilon$ on the right word and shares $\\epsilon$ equally "
        "among all $V$ words, averaged over the real tokens of the whole batch. It is a tensor to "
        "call `backward` on, and stands logits of any size."
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


# 10.3 a schedule that waits


def my_rate(step, lr, warmup, steps, fall):
    """The learning rate at `step`, counted from 1: rise, stay, fall, each in a straight line.

    It rises for `warmup` steps to reach lr at step `warmup`, stays there, and falls over the last
    `fall` steps to reach 0 at step `steps`. Afterwards it is 0.
    """
    raise NotImplementedError


def _rate_is(answer, expected, note, step, lr=0.5, warmup=10, steps=100, fall=20):
    where = f"for step={step}, lr={lr}, warmup={warmup}, steps={steps}, fall={fall}"
    got = tensor(answer(step, lr, warmup, steps, fall), where).double()
    same(got, expected, where, note=note, tolerance=1e-9)


def _rises(answer):
    """it rises in a straight line, and reaches lr at the end of the warm-up"""
    _rate_is(answer, 0.05, "The first of ten steps: a tenth of the way.", 1)
    _rate_is(answer, 0.2, "Four tenths of the way.", 4)
    _rate_is(answer, 0.5, "The warm-up ends here.", 10)


def _stays(answer):
    """it stays at lr until the fall begins"""
    for step in (11, 50, 80):
        _rate_is(answer, 0.5, "The fall begins after step 80.", step)


def _falls(answer):
    """it falls in a straight line to 0 at the last step"""
    _rate_is(answer, 0.475, "One of twenty steps down.", 81)
    _rate_is(answer, 0.25, "Half of the way down.", 90)
    _rate_is(answer, 0.025, "One step before the last.", 99)
    _rate_is(answer, 0.0, "The last step.", 100)


def _over(answer):
    """after the last step it is 0, and never negative"""
    for step in (101, 150):
        _rate_is(answer, 0.0, "Training is over.", step)


def _other_settings(answer):
    """any settings: one step of warm-up, a fall of one step, no plateau between"""
    _rate_is(answer, 0.3, "A warm-up of one step is none.", 1, 0.3, 1, 8, 2)
    _rate_is(answer, 0.3, "A fall of one step.", 7, 0.3, 2, 8, 1)
    _rate_is(answer, 0.0, "A fall of one step.", 8, 0.3, 2, 8, 1)
    for step in range(1, 13):  # rises for 5 steps, stays for none, falls for 7
        wanted = 0.007 * (step / 5 if step <= 5 else (12 - step) / 7)
        _rate_is(answer, wanted, "There is no plateau here.", step, 0.007, 5, 12, 7)


SCHEDULE = Exercise(
    id="10.3",
    title="a schedule that waits",
    difficulty=1,
    minutes=10,
    statement=(
        "The cosine has to know from its first step when it will end. Another schedule decides "
        "late: it rises in a straight line to `lr` over `warmup` steps (`lr` is reached at step "
        "`warmup`), stays there for as long as you like, and over the last `fall` steps falls in a "
        "straight line, to reach 0 at step `steps`. Afterwards it is 0. Write "
        "`my_rate(step, lr, warmup, steps, fall)`, with steps counted from 1. `warmup` and `fall` "
        "are at least 1, and together at most `steps`."
    ),
    hint="Three straight lines: the rate is the least of them, and never below 0.",
    function=my_rate,
    tests=(_rises, _stays, _falls, _over, _other_settings),
)


# 10.4 gradient accumulation


def accumulated_step(optimizer, batches, loss_and_tokens):
    """One optimizer step on all `batches`, as if they were one batch.

    loss_and_tokens(batch) returns the loss summed over the batch's tokens, and their number. The
    step follows the gradient of the mean loss per token. Gradients left from before do not count.
    """
    raise NotImplementedError


UNEVEN = ([1.0, 1.0, 1.0, 1.0], [6.0])
EVEN = ([1.0, 3.0], [2.0, 4.0])


def _after(answer, batches, stale=0.0):
    """The parameter after one step from 0 with rate 1; the loss of a token x is -x * parameter.

    Returns None when the answer looked at no batch: it is a stub.
    """
    parameter = torch.zeros((), requires_grad=True)
    parameter.grad = torch.tensor(stale)
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    seen = []

    def loss_and_tokens(batch):
        seen.append(batch)
        return -sum(batch) * parameter, len(batch)

    answer(optimizer, copied(list(batches)), loss_and_tokens)
    return parameter.detach() if seen else None


def _moved(answer, batches, expected, note, stale=0.0):
    where = f"for batches with gradients {short(list(batches))}, one step of rate 1"
    got = _after(answer, batches, stale)
    same(torch.zeros(()) if got is None else got, expected, where, note=note)


def _one_batch(answer):
    """one batch makes a plain step"""
    _moved(answer, [[2.0, 4.0]], 3.0, "That is the mean over its 2 tokens.")


def _even(answer):
    """even batches equal one big batch"""
    _moved(answer, EVEN, 2.5, "That is the mean over all 4 tokens.")


def _uneven(answer):
    """uneven batches equal one big batch"""
    _moved(answer, UNEVEN, 2.0, "That is the mean over all 5 tokens.")


def _starts_clean(answer):
    """gradients left from an earlier step do not count"""
    note = "A gradient of -5 was left over; clear it once, at the start."
    _moved(answer, EVEN, 2.5, note, stale=5.0)


def _weights(seed=1):
    """Two weights in groups of their own rates, and one weight that no batch uses."""
    first = numbers(3, 2, seed=seed, dtype=torch.float64).requires_grad_()
    second = numbers(2, seed=seed + 1, dtype=torch.float64).requires_grad_()
    unused = numbers(2, seed=seed + 2, dtype=torch.float64).requires_grad_()
    groups = [{"params": [first], "lr": 0.5}, {"params": [second, unused], "lr": 0.1}]
    return [first, second, unused], torch.optim.SGD(groups, lr=1.0)


def _summed(parameters, batch):
    """A loss with a product in it, so that autograd has something to keep."""
    return ((batch @ parameters[0]).tanh() * parameters[1]).square().sum(), len(batch)


def _stepped(answer, batches):
    """The parameters after a step on these batches, what autograd held, and the calls."""
    parameters, optimizer = _weights()
    loss_and_tokens = Counted(lambda batch: _summed(parameters, batch))
    optimizer.step = Counted(optimizer.step)
    with saved() as memory:
        answer(optimizer, batches, loss_and_tokens)
    return [p.detach() for p in parameters], memory.peak, optimizer.step.count


_BATCHES = [numbers(n, 3, seed=n, dtype=torch.float64) for n in (5, 2, 7, 1)]


@hint("Every weight of every group takes part: `for group in optimizer.param_groups`.")
def _every_group(answer):
    """every weight of every group moves as on one big batch; one without a gradient stays"""
    parameters, _ = _weights()
    loss, tokens = _summed(parameters, torch.cat(_BATCHES))
    (loss / tokens).backward()
    rates = (0.5, 0.1, 0.1)
    moved = zip(parameters, rates, strict=True)
    wanted = [(p - r * p.grad if p.grad is not None else p).detach() for p, r in moved]
    got, _, steps = _stepped(answer, _BATCHES)
    where = "for batches of 5, 2, 7 and 1 tokens and three weights in two groups, for "
    for name, one, other in zip(
        ("group 0", "group 1", "a weight not used"), got, wanted, strict=True
    ):
        same(one, other, where + name)
    expect(steps == 1, f"optimizer.step is called {steps} times, expected once")


@hint("`loss.backward()` belongs inside the loop: it frees what the batch has kept.")
def _frees(answer):
    """a batch's memory is freed before the next: backward batch by batch"""
    _, alone, _ = _stepped(answer, _BATCHES[:1])
    _, peak, _ = _stepped(answer, _BATCHES[:1] * 6)
    message = (
        f"autograd holds {alone} numbers for one batch, and {peak} at one time for six of this "
        "size; called batch by batch, `backward` frees each before the next"
    )
    expect(peak < 2 * alone or alone == 0, message)


ACCUMULATION = Exercise(
    id="10.4",
    title="gradient accumulation",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `accumulated_step(optimizer, batches, loss_and_tokens)`: one step of the optimizer "
        "on several small batches, equal to a step on all of them as one batch. "
        "`loss_and_tokens(batch)` gives the summed loss and the number of tokens, which differs "
        "from batch to batch. Call `backward` batch by batch: that is what saves the memory."
    ),
    hint="`backward` adds to `.grad`. Clear once, add up all batches, divide once by all tokens.",
    function=accumulated_step,
    changes=("optimizer",),
    tests=(_one_batch, _even, _uneven, _starts_clean, _every_group, _frees),
)


EXERCISES = (FORWARD, SMOOTHED_LOSS, SCHEDULE, ACCUMULATION)
