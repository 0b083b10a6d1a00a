"""12.4 does it see the right? (★★★, 15 minutes)

Write `my_sees_right(encode, x)`, a check that detects a causal encoder. `encode` maps `(B, S, C)`
to `(B, S, C)`. Return `True` if in every sentence *every* output can be changed by *every* input to
its right, and `False` otherwise.

<details><summary>The rule in detail</summary>

Any change counts, however small it is and whichever features it affects. Use gradients, or change
one input at a time in float64 and compare exactly, because rounding hides small changes. The last
word has nothing to its right, so nothing is missing there. Sentences don't mix: an output depends
on words of its own sentence only.

</details>

Hint: For each t, take the gradient of `out[:, t]`, its features weighted at random, with respect to
`x`: `torch.autograd.grad(out[:, t], x, weights, retain_graph=True)`. Check for each position of
`[:, t + 1 :]`, in each sentence, whether the gradient is exactly 0 in all features.
"""

import torch

from tinytf_course.expect import YES_OR_NO, expect, number, numbers
from tinytf_course.grading import hint


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


def _judges(answer, *cases):
    """Expect the right verdict of each case: (what it is, encoder, verdict), and its input if any.

    All are asked before anything is compared.
    """
    said = [answer(encode, *x or (_sentences(),)) for _, encode, _, *x in cases]
    for got, (which, _, expected, *_) in zip(said, cases, strict=True):
        found = number(got, f"for {which}", YES_OR_NO)
        expect(found == expected, f"for {which}, you return {found}, expected {expected}")


def test_short(answer):
    """of one word nothing is missing; of two, the first must see the second"""
    both = torch.ones(2, 2, dtype=torch.bool)
    _judges(
        answer,
        ("an encoder of one word", _encoder(both[:1, :1]), True, _sentences(2, 1)),
        ("an encoder of two words that sees both", _encoder(both), True, _sentences(1, 2)),
        ("a causal encoder of two words", _encoder(both.tril()), False, _sentences(1, 2)),
    )


def test_sees_the_right(answer):
    """an encoder that sees all words to the right passes, whatever else it sees"""
    but_itself = _table(_LENGTH, lambda t, s: s != t)
    _judges(
        answer,
        ("an encoder that sees everything", _encoder(_EVERYTHING), True),
        ("one that sees only itself and the right", _encoder(_EVERYTHING.triu()), True),
        ("one that sees all but the word itself", _encoder(but_itself), True),
    )


def test_behind_a_norm(answer):
    """one that ends in a norm passes: its outputs have mean 0"""
    centred = _encoder(_EVERYTHING, leaves=lambda out: out - out.mean(dim=-1, keepdim=True))
    opposite = _encoder(_EVERYTHING, leaves=lambda out: torch.cat([out, -out], -1)[..., ::2])
    which = "an encoder that sees everything and whose outputs"
    _judges(
        answer,
        (f"{which} have mean 0, as after a norm", centred, True),
        (f"{which} add up to exactly 0", opposite, True),
    )


def test_sees_too_little(answer):
    """one that misses some word to the right does not pass"""
    tables = {
        "a causal encoder": lambda t, s: s <= t,
        "an encoder that sees one word to the right": lambda t, s: s <= t + 1,
        "one that never sees the last word": lambda _, s: s < 4,
        "one in which only the first word sees the right": lambda t, s: (s <= t) | (t == 0),
        "one in which a word sees itself and the last word": lambda t, s: (s == t) | (s == 4),
    }
    encoders = {which: _encoder(_table(_LENGTH, sees)) for which, sees in tables.items()}
    _judges(answer, *((which, encode, False) for which, encode in encoders.items()))


@hint("Look at each output and each input to its right separately.")
def test_one_gap(answer):
    """one word that one output cannot see is enough for a no"""
    cases = []
    for t, s in torch.ones(_LENGTH, _LENGTH).triu(1).nonzero().tolist():
        allowed = _EVERYTHING.clone()
        allowed[t, s] = False
        which = f"an encoder that sees everything, but output {t} not input {s}"
        cases.append((which, _encoder(allowed), False))
    _judges(answer, *cases)


def _causal_in(blind):
    """An encoder that is causal in the sentence with this number at its very beginning."""

    def encode(x):
        found = (x[:, 0, 0].detach().round() == blind)[:, None, None]
        return _encoder(torch.where(found, _CAUSAL, _EVERYTHING))(x)

    return encode


@hint("Look at each sentence by itself: a sum over the batch hides the one that is blind.")
def test_every_sentence(answer):
    """every sentence of the batch counts"""
    x = _sentences(3)
    x[:, 0, 0] = torch.arange(3)
    which = "an encoder that is causal in sentence {} of 3 only"
    cases = [(which.format(n), _causal_in(n), False, x) for n in range(3)]
    for which, sees in {"next": lambda t, s: s == t + 1, "last": lambda _, s: s == 4}.items():
        encode = _encoder(_table(_LENGTH, sees))
        cases.append((f"one in which a word sees only the {which} one", encode, False, x))
    _judges(answer, *cases)


@hint("A word is a vector: one feature that is seen, or that changes, is enough.")
def test_any_feature(answer):
    """one feature that is read, or that changes, is enough for a yes"""
    cases = []
    for i in range(_WIDTH):
        only = (torch.arange(_WIDTH) == i).double()
        read = _encoder(_EVERYTHING, enters=lambda x, i=i: x[..., i : i + 1].expand_as(x))
        said = _encoder(_EVERYTHING, leaves=lambda out, only=only: out * only.to(out))
        cases.append((f"an encoder that reads feature {i} of every word only", read, True))
        cases.append((f"an encoder that changes feature {i} of every word only", said, True))
    less = _encoder(_EVERYTHING, enters=lambda x: (x[..., :1] - x[..., 1:2]).expand_as(x))
    cases.append(("an encoder that reads feature 0 less feature 1 of every word", less, True))
    _judges(answer, *cases)


def test_zeros(answer):
    """words may be all zeros"""
    some, none = _sentences(), torch.zeros_like(_sentences())
    some[:, 3] = 0
    which, all_seen = "an encoder that sees everything,", _encoder(_EVERYTHING)
    _judges(
        answer,
        (f"{which} where word 3 is all 0", all_seen, True, some),
        (f"{which} where all words are all 0", all_seen, True, none),
    )


def _whispers(x):
    """Each word, and a billionth of the other of two."""
    return x + 1e-9 * x.flip(1)


_WHISPER = "x plus 0.000000001 of the two words in the other order"


def test_small(answer):
    """a small change is a change"""
    which = "an encoder that sees everything, with weights near"
    _judges(
        answer,
        (f"{which} 0.00001", _encoder(_EVERYTHING, strength=1e-5), True),
        (_WHISPER, _whispers, True, _sentences(2, 2)),
        (f"{which} 1e-12", _encoder(_EVERYTHING, strength=1e-12), True),
    )


@hint("Beside x so small a change is rounded away. A slope keeps its digits; so does float64.")
def test_float32(answer):
    """a change that float32 rounds away is a change"""
    _judges(
        answer,
        ("an encoder that sees everything, in float32", _encoder(_EVERYTHING), True,
         _sentences().float()),
        (f"{_WHISPER}, in float32", _whispers, True, _sentences(2, 2).float()),
    )  # fmt: skip


MISTAKES = r"""
only the last input
    t + 1 : => -1:
    says: sees itself and the last word, you return True
    Here each word sees the last one and no other. Look at each input to the right.
only the first sentence
    slope[:, => slope[:1,
    says: causal in sentence 1 of 3 only, you return True
    A mask is made for each sentence, and may be wrong in some. Look at all of them.
the batch summed
    .any(dim=-1) => .any(dim=(0, -1))
    says: causal in sentence 0 of 3 only, you return True
    Taken together, the sentences that see hide the one that does not. Look at each by itself.
only the first feature read
    t + 1 :] => t + 1 :, :1]
    says: reads feature 1 of every word only, you return False
    A word is a vector, and a change of any of its features counts. Look at all of them.
only the first feature said
    grad(out[:, t], x, direction, => grad(out[:, t, 0].sum(), x,
    says: changes feature 1 of every word only, you return False
    An output is a vector, and a change of any of its features is one.
set to 0
    … =>
        for s in range(1, x.size(1)):
            changed = x.clone()
            changed[:, s] = 0
            if not (encode(changed) != encode(x)).any(-1)[:, :s].all():
                return False
        return True
    says: word 3 is all 0, you return False
    Setting a word to 0 changes nothing where it is 0 already. Add random numbers.
looks to the left
    range(x.size(1) - 1) => range(1, x.size(1))
    t + 1 : => :t
    says: a causal encoder, you return True
    `:t` is what lies to the left of word t, and a causal encoder sees that. To the right is `t
    + 1:`.
some instead of every
    seen.all() => seen.any()
    says: sees one word to the right, you return True
    One input that is seen is not enough: `all`, not `any`.
all outputs summed
    … =>
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(encode(x).pow(2).sum(), x)
        return bool((slope.abs().sum(dim=(0, 2)) > 0).all())
    says: a causal encoder, you return True
    The gradient of the sum shows whether an input changes anything. Each word changes its own
    output, so every encoder passes. Take one output at a time.
only the corner
    range(x.size(1) - 1) => [0]
    t + 1 : => -1:
    says: only the first word sees the right, you return True
    That the first word sees the last is no evidence about the others.
only the next word
    t + 1 : => t + 1 : t + 2
    says: sees one word to the right, you return True
    A window passes this check. Ask for every position to the right.
the decoder's question
    if not seen.all(): => if seen.any():
    says: sees everything, you return False
    That nothing comes from the right is what a decoder must pass. An encoder must not.
left and right both
    range(x.size(1) - 1) => range(x.size(1))
    slope[:, t + 1 :] => slope
    says: only itself and the right, you return False
    This asks for more than the exercise: that everything sees everything.
the word itself too
    t + 1 : => t:
    says: all but the word itself, you return False
    `t:` begins at the word itself; what is to its right begins at `t + 1`.
the squares of the features
    grad(out[:, t], x, direction, => grad(out[:, t].square().sum(), x,
    says: all words are all 0, you return False
    Where an output is 0 the slope of its square is 0, and after a norm the sum of the squares
    is constant. Weight the features with random numbers.
everything to the right changed at once
    seen.all() => seen.any(dim=1).all()
    says: an encoder that sees one word to the right
    For this, one word on the right that is seen is enough. Look at one at a time.
the plain sum of the features
    grad(out[:, t], x, direction, => grad(out[:, t].sum(), x,
    says: as after a norm, you return False
    `out[:, t].sum()` has gradient 0 where a norm has made the sum constant, however much the
    word sees. Weight the features with random numbers first.
a threshold
    slope[:, t + 1 :] != 0 => slope[:, t + 1 :].abs() > 1e-8
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
    says: in the other order, in float32
    Beside x a change of a billionth of it is rounded away, and the outputs are equal. A slope
    is taken by itself, and keeps its digits; or compare in float64.
"""

HARMLESS = r"""
… => ….double()…
    only whether a slope is 0 counts
… => ….float()…
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
