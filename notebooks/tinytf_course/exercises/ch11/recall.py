"""11.4 the network as a table (★★☆, 7 minutes)

Write `my_recall(x, keys, thresholds, values)` for one token `x` of shape `(C,)`. A unit's activity
is `relu(key · x + threshold)`, where the threshold is added, like a bias: the lower it is, the
better the key has to match. The result is the sum of the values, each multiplied by its unit's
activity. Return `(result, activity)`.

Hint: `keys @ x` has one entry per unit. The rest is attention with one query and no softmax.
"""

import torch

from tinytf_course.expect import agrees, expect, gradients, numbers, same, short, travels


def my_recall(x, keys, thresholds, values):
    """Return the output of a network with a key and a value per unit, and the activities.

    x is (C,), keys (d_ff, C), thresholds (d_ff,), values (d_ff, C). Returns (C,) and (d_ff,): the
    values' sum, weighted by activity, and the activity, relu(key · x + threshold).
    """
    activity = torch.relu(keys @ x + thresholds)
    return activity @ values, activity


KEYS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
THRESHOLDS = torch.tensor([-0.5, -1.0, 1.5])
VALUES = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, -40.0]])
WORD = torch.tensor([2.0, -1.0])
_MEMORY = (
    f"for x={short(WORD)}, keys={short(KEYS)}, thresholds={short(THRESHOLDS)}, "
    f"values={short(VALUES)}"
)


def _recall(x, keys, thresholds, values):
    """Unit by unit."""
    activity = [(key * x).sum() + at for key, at in zip(keys, thresholds, strict=True)]
    activity = torch.stack([a.clamp_min(0) for a in activity])
    return sum(a * value for a, value in zip(activity, values, strict=True)), activity


def _part(answer, index, x=WORD, scale=1.0):
    got = answer(x, KEYS, scale * THRESHOLDS, VALUES)
    both = isinstance(got, tuple | list) and len(got) == 2
    expect(both, "return two things, `(result, activity)`")
    exchanged = len(got[0]) == len(KEYS) and len(got[1]) == VALUES.size(1)
    expect(not exchanged, "the result, (C,), comes first, and then the activity, (d_ff,)")
    return got[index]


def test_activity(answer):
    """activities are those of a ReLU, with their thresholds"""
    same(_part(answer, 1), [1.5, 0.0, 2.5], f"{_MEMORY}, the activity")


def test_sum(answer):
    """the result is the weighted sum of the values"""
    same(_part(answer, 0), [11.5, -85.0], f"{_MEMORY}, the result")


def test_nothing(answer):
    """where no key matches, nothing is added"""
    x = torch.tensor([-5.0, -5.0])
    note = "No activity is above 0, and there is no softmax whose weights must sum to 1."
    same(_part(answer, 0, x), [0.0, 0.0], "for x=[-5, -5] in the same memory", note=note)


def test_twice(answer):
    """with thresholds of 0, twice the token gives twice the result"""
    once, twice = (_part(answer, 0, n * WORD, 0.0) for n in (1, 2))
    same(twice, 2 * once, "for thresholds of 0, the result for 2x against twice that for x")


def test_any_strength(answer):
    """an activity may be small or large"""
    one, zero = torch.ones(1, 1), torch.zeros(1)
    for x in (0.001, 1000.0):
        where = f"for x=[{x:g}], keys=[[1]], thresholds=[0], values=[[1]]"
        agrees(answer, _recall, torch.tensor([x]), one, zero, one, where=where)


def _memory(c, d_ff, seed):
    """A random word, keys, thresholds and values."""
    return (numbers(c, seed=seed), numbers(d_ff, c, seed=seed + 1), numbers(d_ff, seed=seed + 2),
            numbers(d_ff, c, seed=seed + 3))  # fmt: skip


def test_memory_sizes(answer):
    """one unit, as many units as numbers in a word, or more"""
    for sizes, seed in (((3, 1), 1), ((3, 3), 5), ((4, 9), 9)):
        agrees(answer, _recall, *_memory(*sizes, seed=seed), tolerance=1e-4)


def test_memory_dtype(answer):
    """it works in the dtype of its arguments, and where they are"""
    double = [numbers(*part.shape, seed=i, dtype=torch.float64)
              for i, part in enumerate(_memory(3, 5, seed=13))]  # fmt: skip
    agrees(answer, _recall, *double)
    travels(answer, *_memory(3, 5, seed=13))


def test_memory_gradient(answer):
    """gradients reach x, keys, thresholds and values"""
    gradients(answer, _recall, *_memory(2, 3, seed=17))
    gradients(answer, _recall, *_memory(3, 5, seed=21))


MISTAKES = r"""
softmax, as in attention
    … =>
        return (lambda x, k, t, v: ((a := (k @ x + t).softmax(0)) @ v, a))(x, keys, thresholds, values)
    says: sum to 1
    Attention's weights sum to 1, so some value is always added. Here all units may be inactive,
    and all may be active.
thresholds forgotten
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x)) @ v, a))(x, keys, thresholds, values)
    says: the activity, you get [2, 0, 1]
    w_1's bias sets how good a match has to be before the unit wakes up.
the threshold as a gate
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x) * (k @ x > t)) @ v, a))(x, keys, thresholds, values)
    says: the activity, you get [2, 0, 0]
    It is added before the ReLU: w_1's bias, not a bar that the match has to clear.
the threshold subtracted
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x - t)) @ v, a))(x, keys, thresholds, values)
    says: the activity, you get [2.5, 0, 0]
    It is added, as biases are: a unit that is hard to wake has a negative one.
the two results exchanged
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x + t)), a @ v))(x, keys, thresholds, values)
    says: comes first
    Return `(result, activity)`, in this order.
only the best key
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x + t)).max() * v[a.argmax()], a))(x, keys, thresholds, values)
    says: the result, you get [10, -100]
    Every active unit adds its value: what comes out is a sum, and seldom of one.
the mean of the values
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x + t)) @ v / len(v), a))(x, keys, thresholds, values)
    says: the result, you get [3.833, -28.33]
    Nothing divides: twice as many units can write twice as much.
normalised to sum to 1
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x + t)) @ v / a.sum().clamp_min(1e-9), a))(x, keys, thresholds, values)
    says: the result for 2x against twice that for x
    That forgets how loud the word is. The sum is not normalised.
no activation
    … =>
        return (lambda x, k, t, v: ((a := k @ x + t) @ v, a))(x, keys, thresholds, values)
    says: the activity, you get [1.5, -2, 2.5]
    A key that does not match should write nothing, not its value's opposite.
keys transposed
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(x @ k + t)) @ v, a))(x, keys, thresholds, values)
    says: raises RuntimeError
    A row of `keys` is a unit's key: `keys @ x`. With as many units as numbers in a word `x @
    keys` has a shape that fits, and is something else.
float32 comes out
    … =>
        return (lambda x, k, t, v: my_recall(x.float(), k.float(), t.float(), v.float()))(x, keys, thresholds, values)
    says: the dtype is float32, expected float64
    `.float()` or `torch.zeros(...)` makes float32 of whatever came in. Compute in the dtype of
    the arguments.
activity cut off from the graph
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x + t).detach()) @ v, a))(x, keys, thresholds, values)
    says: no gradient reaches `x`
    The numbers are right, but no key would learn: leave `detach` and `no_grad` out of it.
three units
    … =>
        return (lambda x, k, t, v: ((a := torch.relu(k @ x + t)[:3]) @ v[:3], a))(x, keys, thresholds, values)
    says: values of shape (9, 4), for result 0
    The number of units is `len(keys)`.
activity cut at 6
    … =>
        return (
                                                (
                F.relu6(keys @ x + thresholds) @ values,
                F.relu6(keys @ x + thresholds),
            )
        )
    says: x=[1000]
    `relu6` was made for phones that count in a few bits. ReLU has no ceiling.
"""
