"""12.4 does it see the right? (★★★, 15 minutes)

Write `my_sees_right(encode, x)`, a check that detects a causal encoder. `encode` maps `(B, S, C)`
to `(B, S, C)`. Return `True` if in every sentence *every* output can be changed by *every* input to
its right, and `False` otherwise. Any change counts, however small it is and whichever features it
affects. Use gradients, or change one input at a time in float64 and compare exactly, because
rounding hides small changes.

Hint: For each t, take the gradient of `out[:, t]`, its features weighted at random, with respect to
`x`: `torch.autograd.grad(out[:, t], x, weights, retain_graph=True)`. Check for each position of
`[:, t + 1 :]`, in each sentence, whether the gradient is exactly 0 in all features.
"""

import torch

from tinytf_course.expect import expect, numbers
from tinytf_course.grading import hint
from tinytf_course.words import described


def my_sees_right(encode, x):
    """Whether every output can be changed by every input to its right.

    encode maps (B, S, C) to (B, S, C), and x is such an input.
    """
    x = x.detach().requires_grad_()
    out = encode(x)
    for t in range(x.size(1) - 1):
        direction = torch.randn(out[:, t].shape).to(out)
        (slope,) = torch.autograd.grad(out[:, t], x, direction, retain_graph=True)
        seen = (slope[:, t + 1 :] != 0).any(dim=-1)  # (B, S - t - 1)
        if not seen.all():
            return False
    return True


def _table(length, sees):
    """What output t may read: booleans (T, S)."""
    at = torch.arange(length)
    return sees(at[:, None], at[None, :]) & torch.ones(length, length, dtype=torch.bool)


def _encoder(allowed, enters=None, leaves=None, strength=0.1):
    """An encoder in which output t mixes the inputs s where allowed (S, S) or (B, S, S) is true.

    enters and leaves are what is done to the features before and after mixing.
    """
    mix = numbers(*allowed.shape[-2:], seed=7).abs() + 0.5

    def encode(x):
        out = torch.tanh(strength * (mix * allowed).to(x) @ (enters(x) if enters else x))
        return leaves(out) if leaves else out

    return encode


_LENGTH, _WIDTH = 5, 4
_EVERYTHING = torch.ones(_LENGTH, _LENGTH, dtype=torch.bool)
_CAUSAL = _table(_LENGTH, lambda t, s: s <= t)


def _sentences(batch=2, length=_LENGTH):
    return numbers(batch, length, _WIDTH, seed=11, dtype=torch.float64)


def _verdict(answer, encode, expected, which, x=None):
    x = _sentences() if x is None else x
    got = answer(encode, x)
    words = ("one word", "two words", "three words", "four words", "five words")[x.size(1) - 1]
    where = f"for {which}, {words}"
    expect(
        isinstance(got, bool) or (isinstance(got, torch.Tensor) and got.numel() == 1),
        f"{where}, you return {described(got)}, expected True or False",
    )
    expect(bool(got) == expected, f"{where}, you say {bool(got)}, expected {expected}")


def test_sees_itself_only(answer):
    """of two words, each must see the other or not"""
    x = _sentences(1, 2)
    everything = torch.ones(2, 2, dtype=torch.bool)
    _verdict(answer, _encoder(everything), True, "an encoder that sees everything", x)
    _verdict(answer, _encoder(everything.tril()), False, "a causal encoder", x)


def test_one_word(answer):
    """one word has nothing to its right, so nothing is missing"""
    x = _sentences(2, 1)
    _verdict(answer, _encoder(torch.ones(1, 1, dtype=torch.bool)), True, "any encoder", x)


def test_says_yes(answer):
    """an encoder that sees everything passes"""
    _verdict(answer, _encoder(_EVERYTHING), True, "an encoder that sees everything")


def test_says_yes_again(answer):
    """one that sees only itself and the right passes: the left is not asked about"""
    which = "an encoder that sees only itself and the right"
    _verdict(answer, _encoder(_EVERYTHING.triu()), True, which)


def test_says_yes_to_others(answer):
    """one that sees all but the word itself passes: only the right is asked about"""
    which = "an encoder that sees all but the word itself"
    _verdict(answer, _encoder(_table(_LENGTH, lambda t, s: s != t)), True, which)


def test_says_yes_centred(answer):
    """one that ends in a norm passes: its outputs have mean 0"""
    which = "an encoder that sees everything and whose outputs have mean 0, as after a norm"
    centred = _encoder(_EVERYTHING, leaves=lambda out: out - out.mean(dim=-1, keepdim=True))
    _verdict(answer, centred, True, which)
    # here the features of an output sum to 0 exactly
    opposite = _encoder(_EVERYTHING, leaves=lambda out: torch.cat([out, -out], -1)[..., ::2])
    _verdict(answer, opposite, True, which)


def test_says_no(answer):
    """a causal encoder does not pass"""
    _verdict(answer, _encoder(_CAUSAL), False, "a causal encoder")


def test_says_no_window(answer):
    """one that sees the next word and no further does not pass"""
    window = _encoder(_table(_LENGTH, lambda t, s: s <= t + 1))
    _verdict(answer, window, False, "an encoder that sees one word to the right")


def test_says_no_last(answer):
    """one that can't see the last word does not pass"""
    not_last = _encoder(_table(_LENGTH, lambda t, s: (s < _LENGTH - 1) & (t >= 0)))
    _verdict(answer, not_last, False, "an encoder that never sees the last word")


def test_says_no_first(answer):
    """one in which only the first word sees the right does not pass"""
    first_only = _encoder(_table(_LENGTH, lambda t, s: (s <= t) | (t == 0)))
    _verdict(answer, first_only, False, "an encoder in which only the first word sees the right")


def test_says_no_only_last(answer):
    """one in which a word sees itself and the last word does not pass"""
    only_last = _encoder(_table(_LENGTH, lambda t, s: (s == t) | (s == _LENGTH - 1)))
    which = "an encoder in which each word sees itself and the last word"
    _verdict(answer, only_last, False, which)


@hint("Ask for each output and each input to its right by themselves.")
def test_says_no_to_a_gap(answer):
    """one place that one word cannot see is enough for a no"""
    for t in range(_LENGTH):
        for s in range(t + 1, _LENGTH):
            allowed = _EVERYTHING.clone()
            allowed[t, s] = False
            which = f"an encoder that sees everything, but output {t} not input {s}"
            _verdict(answer, _encoder(allowed), False, which)


def _causal_in(blind):
    """An encoder that is causal in the sentence with this number at its very beginning."""

    def encode(x):
        found = (x[:, 0, 0].detach().round() == blind)[:, None, None]
        return _encoder(torch.where(found, _CAUSAL, _EVERYTHING))(x)

    return encode


@hint("Look at each sentence by itself: a sum over the batch hides the one that is blind.")
def test_says_no_in_a_sentence(answer):
    """every sentence of the batch counts"""
    x = _sentences(3)
    x[:, 0, 0] = torch.arange(3)
    for blind in range(3):
        which = f"an encoder that is causal in sentence {blind} of 3 only"
        _verdict(answer, _causal_in(blind), False, which, x)


def _read(i):
    return lambda x: x[..., i : i + 1].expand_as(x)


def _kept(i):
    return lambda out: out * (torch.arange(out.size(-1)) == i).to(out)


@hint("A word is a vector: one feature of it that is seen is enough, whichever it is.")
def test_says_yes_by_a_feature(answer):
    """one feature that is read is enough for a yes"""
    for i in range(_WIDTH):
        read = _encoder(_EVERYTHING, enters=_read(i))
        _verdict(answer, read, True, f"an encoder that reads feature {i} of every word only")


@hint("The output at a word is a vector: one feature of it that changes is enough.")
def test_says_yes_in_a_feature(answer):
    """one feature that changes is enough for a yes"""
    for i in range(_WIDTH):
        said = _encoder(_EVERYTHING, leaves=_kept(i))
        _verdict(answer, said, True, f"an encoder that changes feature {i} of every word only")


def test_says_yes_to_a_difference(answer):
    """the features may be read in any way"""
    read = _encoder(_EVERYTHING, enters=lambda x: (x[..., :1] - x[..., 1:2]).expand_as(x))
    which = "an encoder that reads feature 0 less feature 1 of every word"
    _verdict(answer, read, True, which)


def test_says_yes_to_a_whisper(answer):
    """a small change is a change, and a word may be all zeros"""
    quiet = _encoder(_EVERYTHING, strength=1e-5)
    _verdict(answer, quiet, True, "an encoder that sees everything, with weights near 0.00001")
    x = _sentences(2, 2)
    which = "x plus 0.000000001 of the two words in the other order"
    _verdict(answer, lambda x: x + 1e-9 * x.flip(1), True, which, x)
    quiet = _encoder(_EVERYTHING, strength=1e-12)
    _verdict(answer, quiet, True, "an encoder that sees everything, with weights near 1e-12")
    x = _sentences()
    x[:, 3] = 0
    _verdict(
        answer, _encoder(_EVERYTHING), True, "an encoder that sees everything, word 3 all 0", x
    )
    which = "an encoder that sees everything, all words all 0"
    _verdict(answer, _encoder(_EVERYTHING), True, which, torch.zeros_like(x))
    _verdict(
        answer, _encoder(_EVERYTHING), True, "float32, an encoder that sees everything", x.float()
    )


@hint("Beside x so small a change is rounded away. A slope keeps its digits; so does float64.")
def test_says_yes_in_float32(answer):
    """a change that float32 rounds away is a change"""
    which = "float32, x plus 0.000000001 of the two words in the other order"
    _verdict(answer, lambda x: x + 1e-9 * x.flip(1), True, which, _sentences(2, 2).float())


def _table_too(encode, x):
    """Which input s can change which output t: booleans (T, S)."""
    x = x.detach().requires_grad_()
    out, rows = encode(x), []
    for t in range(x.size(1)):
        direction = torch.tensor([1.0, 0.3, -0.7, 2.0])[: out.size(-1)].expand_as(out[:, t])
        (slope,) = torch.autograd.grad(out[:, t], x, direction, retain_graph=True)
        rows.append(slope.abs().sum(dim=(0, 2)) > 0)
    return torch.stack(rows)


def _above(encode, x):
    table = _table_too(encode, x)
    return table[torch.ones_like(table).triu(1)]


MISTAKES = r"""
only the last input
    … =>
        changed = x.clone()
        changed[:, -1] += torch.randn_like(x[:, -1])
        return bool((encode(changed) != encode(x)).any(-1)[:, :-1].all())
    says: sees itself and the last word, five words, you say True
    Here each word sees the last one and no other. Change each input to the right.
only the first sentence
    … =>
        x = x.detach().requires_grad_()
        out = encode(x)
        for t in range(x.size(1) - 1):
            (slope,) = torch.autograd.grad(out[0, t], x, torch.randn_like(out[0, t]), retain_graph=True)
            if not (slope[0, t + 1 :] != 0).any(-1).all():
                return False
        return True
    says: causal in sentence 1 of 3 only, five words, you say True
    A mask is made for each sentence, and may be wrong in some. Look at all of them.
the batch summed
    … =>
        table = _table_too(encode, x)
        return bool(table[torch.ones_like(table).triu(1)].all())
    says: causal in sentence 0 of 3 only, five words, you say True
    Summed over the batch, the slopes of a sentence that sees hide one that does not.
only the first feature read
    … =>
        for s in range(1, x.size(1)):
            changed = x.clone()
            changed[:, s, 0] += 1
            if not (encode(changed) != encode(x)).any(-1)[:, :s].all():
                return False
        return True
    says: reads feature 1 of every word only, five words, you say False
    A word is a vector. Change all its features, by different amounts.
only the first feature said
    … =>
        for s in range(1, x.size(1)):
            changed = x.clone()
            changed[:, s] += torch.randn_like(x[:, s])
            if not (encode(changed) != encode(x))[:, :s, 0].all():
                return False
        return True
    says: changes feature 1 of every word only, five words, you say False
    A word is a vector, and a change of any of its features is one.
set to 0
    … =>
        for s in range(1, x.size(1)):
            changed = x.clone()
            changed[:, s] = 0
            if not (encode(changed) != encode(x)).any(-1)[:, :s].all():
                return False
        return True
    says: word 3 all 0, five words, you say False
    Setting a word to 0 changes nothing where it is 0 already. Add random numbers.
looks to the left
    … =>
        table = _table_too(encode, x)
        return bool(table[torch.ones_like(table).tril(-1)].all())
    says: a causal encoder, five words, you say True
    Below the diagonal lies what is to the left, and a causal encoder sees that. Row t, column
    s: to the right is s > t.
some instead of every
    … =>
        return bool(_above(encode, x).any())
    says: sees one word to the right, five words, you say True
    One open way is not enough: `all`, not `any`.
all outputs summed
    … =>
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(encode(x).pow(2).sum(), x)
        return bool((slope.abs().sum(dim=(0, 2)) > 0).all())
    says: a causal encoder, five words, you say True
    The gradient of the sum tells whether an input changes anything. Each word changes its own
    output, so every encoder passes. Take one output at a time.
only the corner
    … =>
        return bool(_table_too(encode, x)[0, -1])
    says: only the first word sees the right, five words, you say True
    That the first word sees the last says nothing about the others.
only the next word
    … =>
        return bool(_table_too(encode, x).diagonal(1).all())
    says: sees one word to the right, five words, you say True
    A window passes this check. Ask for every position to the right.
the decoder's question
    … =>
        return not _above(encode, x).any()
    says: sees everything, five words, you say False
    That nothing comes from the right is what a decoder must pass. An encoder must not.
left and right both
    … =>
        return bool(_table_too(encode, x).all())
    says: only itself and the right, five words, you say False
    This asks for more than the question: that everything sees everything.
the word itself too
    … =>
        table = _table_too(encode, x)
        return bool(table[torch.ones_like(table).triu()].all())
    says: all but the word itself, five words, you say False
    `t:` begins at the word itself; what is to its right begins at `t + 1`.
the squares of the features
    … =>
        x = x.detach().requires_grad_()
        out = encode(x)
        for t in range(x.size(1) - 1):
            (slope,) = torch.autograd.grad(out[:, t].square().sum(), x, retain_graph=True)
            if not (slope[:, t + 1 :] != 0).any(dim=-1).all():
                return False
        return True
    says: all words all 0, five words, you say False
    Where an output is 0 the slope of its square is 0, and after a norm the sum of the squares
    is constant. Weigh the features with random numbers.
everything to the right changed at once
    … =>
        for t in range(x.size(1) - 1):
            changed = x.clone()
            changed[:, t + 1 :] += torch.randn_like(x[:, t + 1 :])
            if not (encode(changed) != encode(x))[:, t].any(dim=-1).all():
                return False
        return True
    says: an encoder that sees one word to the right
    One word on the right that is seen is enough for this. Change one at a time.
the plain sum of the features
    … =>
        x = x.detach().requires_grad_()
        out = encode(x)
        for t in range(x.size(1) - 1):
            (slope,) = torch.autograd.grad(out[:, t].sum(), x, retain_graph=True)
            if (slope[:, t + 1 :].abs().sum(dim=(0, 2)) == 0).any():
                return False
        return True
    says: as after a norm, five words, you say False
    `out[:, t].sum()` has gradient 0 where a norm has made the sum constant, however much the
    word sees. Weigh the features with random numbers first.
a threshold
    … =>
        x = x.clone().requires_grad_()
        out = encode(x)
        for t in range(x.size(1) - 1):
            direction = torch.randn_like(out[:, t])
            (grad,) = torch.autograd.grad((out[:, t] * direction).sum(), x, retain_graph=True)
            if not (grad[:, t + 1 :].abs() > 1e-8).any(dim=-1).all():
                return False
        return True
    says: x plus 0.000000001
    A change is a change, however small. What cannot be seen has slope 0, exactly.
compared in float32
    … =>
        out = encode(x)
        for s in range(1, x.size(1)):
            changed = x.clone()
            changed[:, s] = torch.randn_like(x[:, s])
            if not (encode(changed)[:, :s] != out[:, :s]).any(dim=-1).all():
                return False
        return True
    says: float32, x plus 0.000000001
    Beside x a change of a billionth of it is rounded away, and the outputs are equal. A slope
    is taken by itself, and keeps its digits; or compare in float64.
"""

HARMLESS = r"""
… => ….detach()…
    a slope is looked at, and nothing is trained by it
… => ….float()…
    only whether a slope is 0 counts
… => ….double()…
    only whether a slope is 0 counts
… => ….half()…
    only whether a slope is 0 counts
… => ….to(…)
    a direction of any dtype is one
direction = … => direction = torch.randn(out[:, t].shape)
    so is one of float32
… => for t in range(x.size(1)…):
    the last word has nothing to its right
… => for t in range(out.size(1) - 1):
    out is as long as x
direction = … => direction = torch.randn(x[:, t].shape).to(out)
    out has the shape of x
"""
