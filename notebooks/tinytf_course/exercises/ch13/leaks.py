"""13.3 does it leak? (★★★, 15 minutes)

You are given a function whose code you can't see, and an input `x` of shape `(B, T, C)`; the output
has the same shape. Write `my_leaks(function, x)`, which returns True if some output depends on an
input at a later position, and False if position t depends on inputs 0 to t only.

<details><summary>The rule in detail</summary>

A leak counts however small it is. The function can be differentiated, and it takes T positions, no
fewer. The sentences of a batch have no effect on each other.

</details>

Hint: For each t, take the gradient of output t in a random direction with `torch.autograd.grad`,
and look at its part for the inputs after t. Or change the inputs after t and compare outputs 0 to
t.
"""

import torch

from tinytf_course.expect import YES_OR_NO, expect, number
from tinytf_course.grading import hint


def my_leaks(function, x):
    """Whether an output of `function` depends on a later input.

    x is (B, T, C); function maps it to (B, T, C). Position t may depend on inputs 0 to t.
    """
    x = x.detach().requires_grad_()
    out = function(x)
    for t in range(x.size(1) - 1):
        direction = torch.randn_like(out[:, t])
        (grad,) = torch.autograd.grad(
            out[:, t], x, direction, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        if grad[:, t + 1 :].abs().max() > 0:
            return True
    return False


def _mix(allowed):
    """Average, at each position, the inputs where allowed (T, T) is not 0."""
    return lambda x: torch.tensor(allowed, dtype=x.dtype) @ x


def _normed(function):
    """Bring each output vector to mean 0 and variance 1, as a layer does that ends in a norm."""

    def run(x):
        out = function(x)
        return (out - out.mean(-1, keepdim=True)) / (out.var(-1, keepdim=True) + 1e-5).sqrt()

    return run


_PAST = _mix([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.3, 0.3, 0.4, 0], [0.25] * 4])
_BEFORE = _mix([[0.0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])
_ITSELF = _mix([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
_FIRST = _mix([[1.0, 0, 0, 0], [1, 0, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]])
_NEXT = _mix([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0.5, 0.5, 0.25], [0, 0, 0, 1]])
_FAR = _mix([[1.0, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
_EARLY = _mix([[0.5, 0.5, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
_FUTURE = _mix([[0.0, 0.3, 0.3, 0.4], [0, 0, 0.5, 0.5], [0, 0, 0, 1], [0.25] * 4])


def _one_number(x):
    """Causal but for one number: feature 0 of output 0 holds feature 2 of input 1."""
    leak = torch.zeros_like(x)
    leak[:, 0, 0] = 1
    return _PAST(x) + leak * x[:, 1:2, 2:]


def _second_row(x):
    """Causal in the first sentence of the batch, and not in the second."""
    return torch.cat([_PAST(x[:1]), _FUTURE(x[1:])])


X = torch.tensor(
    [
        [[0.5, -1.0, 2.0], [1.5, 0.3, -0.4], [-0.7, 0.9, 0.2], [0.1, -1.3, 0.8]],
        [[1.1, 0.6, -0.5], [0.4, -0.8, 1.9], [1.2, -0.2, 0.7], [-1.4, 0.5, 0.3]],
    ]
)


def _says_of(answer, function, wanted, what, x=X):
    got = answer(function, x)
    said = number(got, f"for {what}", YES_OR_NO)
    expect(said == wanted, f"for {what}, you return {said}, expected {wanted}")


def test_causal(answer):
    """a function that averages the past does not leak"""
    _says_of(answer, _PAST, False, "the mean of inputs 0 to t")
    _says_of(answer, _BEFORE, False, "the input before")


def test_causal_without_last(answer):
    """nor does one that never reads the last input"""
    _says_of(answer, _FIRST, False, "some of the inputs 0 to t")


def test_itself(answer):
    """nor does the identity"""
    _says_of(answer, _ITSELF, False, "the identity")


def test_one_step(answer):
    """one that sees the future leaks, if only by one step, at one position"""
    _says_of(answer, _FUTURE, True, "the mean of the inputs after t")
    _says_of(answer, _NEXT, True, "an output 2 that sees input 3, the others causal")
    _says_of(answer, _EARLY, True, "an output 0 that sees input 1, the others causal")


def test_one_feature(answer):
    """so is one from a single number to a single number"""
    _says_of(answer, _one_number, True, "an output 0 that sees feature 2 of input 1 only")


def test_long_way(answer):
    """so is one from the last input to the first output"""
    _says_of(answer, _FAR, True, "an output 0 that sees input 3, the others causal")


def test_behind_a_norm(answer):
    """a norm at the end does not hide it"""
    _says_of(answer, _normed(_FUTURE), True, "the mean of the inputs after t, then normalised")
    _says_of(answer, _normed(_PAST), False, "the mean of inputs 0 to t, then normalised")


def test_every_sentence(answer):
    """every sentence of the batch counts"""
    _says_of(answer, _second_row, True, "one that leaks in the second sentence only")


def _leak(t, s, sentence=None, reads=None, says=None, by=1.0):
    """Causal, but `by` times input s enters output t.

    reads and says are weights of the features that leak; sentence is the only one that leaks.
    """

    def run(x):
        told = x[:, s] @ reads.to(x)[:, None] if reads is not None else x[:, s]
        told = told * (says.to(x) if says is not None else 1.0)
        if sentence is not None:
            told = told * (torch.arange(x.size(0)) == sentence).to(x)[:, None]
        at = (torch.arange(x.size(1)) == t).to(x)
        return _PAST(x) + by * at[:, None] * told[:, None]

    return run


_PAIRS = [(t, s) for t in range(4) for s in range(t + 1, 4)]


@hint("Ask for every output, and for all inputs after it.")
def test_each_pair(answer):
    """whichever input it comes from, whichever output it goes to"""
    for t, s in _PAIRS:
        _says_of(answer, _leak(t, s), True, f"an output {t} that sees input {s} as well")


def test_each_sentence(answer):
    """whichever sentence it is in"""
    for b in range(2):
        _says_of(
            answer, _leak(1, 2, b), True, f"an output 1 that sees input 2, in sentence {b} only"
        )


def _features(*weights):
    return torch.tensor(weights, dtype=torch.float64)


def test_each_feature(answer):
    """whichever features it takes"""
    for i in range(3):
        one = torch.eye(3, dtype=torch.float64)[i]
        what = f"an output 0 that sees feature {i} of input 2"
        _says_of(answer, _leak(0, 2, reads=one), True, what)
        what = f"an output 0 that sees input 2 in its feature {i}"
        _says_of(answer, _leak(0, 2, says=one), True, what)


@hint("What is the same in all features cancels here: a sum of features, or 1 added to each.")
def test_differences(answer):
    """a leak that cancels in the sum of the features is one"""
    reads = _leak(0, 2, reads=_features(1, -1, 0))
    _says_of(answer, reads, True, "an output 0 that sees feature 0 less feature 1 of input 2")
    says = _leak(0, 2, says=_features(1, -1, 0), reads=_features(1, 0, 0))
    _says_of(answer, says, True, "an output 0 that has input 2 in feature 0, and less in feature 1")


def _later_less_later(x):
    """Causal, but the difference of inputs 2 and 3 enters output 0."""
    return _leak(0, 2)(x) - _leak(0, 3)(x) + _PAST(x)


@hint("Setting the later inputs to 0 changes nothing where they are 0. Use random numbers.")
def test_zero_words(answer):
    """inputs that are all 0, or equal, do not hide it"""
    x = X.clone()
    x[:, 2:] = 0
    _says_of(answer, _FUTURE, True, "the mean of the inputs after t, words 2 and 3 all 0", x)
    _says_of(answer, _leak(1, 3), True, "an output 1 that sees input 3, which is all 0", x)
    x[:, 2:] = X[:, :1]
    what = "an output 0 that sees input 2 less input 3, which are equal"
    _says_of(answer, _later_less_later, True, what, x)


@hint("A slope is that at one input: take it at `x`, where the product of two inputs has one.")
def test_product(answer):
    """a leak may be a product or a square"""
    first = torch.eye(4)[:, :1]
    what = "an output 0 that holds input 0 times input 2 as well"
    _says_of(answer, lambda x: _PAST(x) + first.to(x) * x[:, :1] * x[:, 2:3], True, what)
    what = "an output 0 that holds the square of input 3 as well"
    _says_of(answer, lambda x: _PAST(x) + first.to(x) * x[:, 3:].square(), True, what)
    what = "the product of inputs 0 to t"
    _says_of(answer, lambda x: x.cumprod(1), False, what)


@hint("A threshold hides a small leak. What does not depend on the future is exactly the same.")
def test_small(answer):
    """a small leak is a leak"""
    what = "an output 0 that sees 1/10000 of input 2"
    _says_of(answer, _leak(0, 2, by=1e-4), True, what, X.double())
    _says_of(answer, _PAST, False, "the mean of inputs 0 to t, in float64", X.double())
    what = "an output 0 that sees -1/10000 of input 3"
    _says_of(answer, _leak(0, 3, by=-1e-4), True, what, X.double())


def _alone(by):
    """The input before, and at position 0, where there is none, `by` times input 2."""
    return lambda x: _BEFORE(x) + by * torch.eye(4).to(x)[:, :1] * x[:, 2:3]


@hint("A threshold hides a small leak. What does not depend on the future is exactly the same.")
def test_tiny(answer):
    """however small, where nothing else is"""
    for by in (1e-7, 1e-12):
        what = f"an output 0 that is {by:g} of input 2, and nothing else"
        _says_of(answer, _alone(by), True, what, X.double())


def test_shortest(answer):
    """one position has no future, two have one"""
    one, two = X[:, :1], X[:, :2]
    _says_of(answer, lambda x: 2 * x, False, "one position", one)
    _says_of(answer, lambda x: x.cumsum(1), False, "the sum so far of two positions", two)
    _says_of(answer, lambda x: x.flip(1), True, "two positions that change places", two)


MISTAKES = r"""
the future set to 0
    … =>
        for t in range(x.size(1) - 1):
            changed = x.clone()
            changed[:, t + 1 :] = 0
            if (function(changed) != function(x))[:, : t + 1].any():
                return True
        return False
    says: input 3, which is all 0, you return False
    Where the future is 0 already, that changes nothing. Put random numbers in its place.
slopes at 0 instead of at x
    x = x.detach() => x = torch.zeros_like(x)
    says: input 0 times input 2 as well, you return False
    Where all inputs are 0, a product has no slope, nor has a square. Differentiate at `x`.
a threshold
    > 0 => > 1e-3
    says: an output 0 that sees 1/10000 of input 2, you return False
    A model learns to make use of a small leak. What does not depend on the future has slope 0,
    exactly.
1 added to every feature
    … =>
        for s in range(1, x.size(1)):
            changed = x.clone()
            changed[:, s] += 1
            if (function(changed) != function(x))[:, :s].any():
                return True
        return False
    says: feature 0 less feature 1 of input 2, you return False
    A difference of two features, or a norm, does not notice it. Add random numbers.
only from the last input to the first output
    range(x.size(1) - 1) => [0]
    t + 1 : => -1:
    says: for an output 2 that sees input 3
    That is one pair of positions of many. A leak of one step is the worst of all, and passes.
any change counts
    range(x.size(1) - 1) => range(x.size(1))
    t + 1 : => -1:
    says: for the mean of inputs 0 to t, you return True
    The last output may depend on the last input. Only earlier outputs may not.
the present counts as the future
    range(x.size(1) - 1) => range(x.size(1))
    t + 1 : => t:
    says: for the mean of inputs 0 to t, you return True
    The input is shifted already: position t may see input t. Look strictly above the diagonal.
the past counts as the future
    range(x.size(1) - 1) => range(1, x.size(1))
    t + 1 : => :t
    says: for the mean of inputs 0 to t, you return True
    `:t` are the inputs before position t, which it may read. Look at those after t.
only the next position
    t + 1 : => t + 1
    says: for an output 0 that sees input 3
    A leak may skip positions: look at all inputs after t.
blind behind a norm
    out[:, t], x, direction, => out[:, t].sum(), x,
    > 0 => > 1e-6
    says: then normalised, you return False
    A norm at the end removes what is the same in all features: the sum of an output has no
    gradient, and adding one number to all features of an input changes nothing. Use random
    directions, or random changes.
only the last input
    t + 1 : => -1:
    says: for an output 0 that sees input 1
    A leak may come from any later input, not only from the last. Change every one.
the last input left out
    range(x.size(1) - 1) => range(x.size(1) - 2)
    t + 1 : => t + 1 : -1
    says: for an output 0 that sees input 3
    `-1` as an end leaves out the last position. Look at every later input.
x overwritten
    … =>
        out = function(x)
        for s in range(1, x.size(1)):
            x[:, s] = torch.randn_like(x[:, s])
            if (function(x) != out)[:, :s].any():
                return True
        return False
    says: changes the caller's `x`
    The first change stays when the second is tried, so an earlier input has changed, too, and
    the caller's `x` is lost. Change a copy.
only the first output
    range(x.size(1) - 1) => range(min(1, x.size(1) - 1))
    says: an output 2 that sees input 3
    Output 0 is one of T. Ask of each output whether it sees a later input.
only the first feature
    t + 1 : => t + 1 :, 0
    says: feature 2 of input 1 only
    An input is a vector, and a leak may use any of its numbers.
only the first sentence
    grad[:, => grad[0,
    says: one that leaks in the second sentence only
    Masks are made for each sentence, and may be wrong in some of them.
a tolerance
    > 0 => > 1e-8
    says: an output 0 that is 1e-12 of input 2
    A threshold of 1e-8, or `allclose`, lets smaller leaks pass. Ask whether a slope is exactly
    0, or whether two outputs are equal.
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
… => …square()…
    only whether a slope is 0 counts
… => direction = out[:, t]
    a direction that is not 0; rounding keeps slopes from 0
… => direction = torch.randn_like(x[:, t])
    out has the shape of x
… => for t in range(out.size(1) - 1):
    out is as long as x
… => grad, = …, retain_graph=True, materialize_grads=True)
    this allows unused ones
… => grad, = …, retain_graph=True, allow_unused=True)
    every function here uses x
… => grad, = …, materialize_grads=False)
    every function here uses x
"""
