"""Exercises of chapter 29, Following an answer."""

import math

import torch
from torch import nn

from tinytf_course.expect import agrees, expect, gradients, numbers, same, tensor
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import short

# 29.1 decided, and not taken back


def my_decided_after(logits):
    """Find the level from which on each position's most likely token is the final one.

    logits is (L, B, T, V). Returns the numbers of the levels (B, T), counted from 0.
    """
    raise NotImplementedError


def _logits(guesses, size=5):
    """Logits (L, B, T, V) whose likeliest tokens are `guesses` (L, B, T)."""
    guesses = torch.tensor(guesses)
    return torch.nn.functional.one_hot(guesses, size).float() * 2 - 1


def _walk_down(logits):
    """Position by position, from the last level down as long as the guess stays."""
    likeliest = logits.argmax(dim=-1).tolist()
    rows = []
    for b in range(logits.size(1)):
        rows.append([])
        for t in range(logits.size(2)):
            layer = len(likeliest) - 1
            while layer > 0 and likeliest[layer - 1][b][t] == likeliest[-1][b][t]:
                layer -= 1
            rows[-1].append(layer)
    return torch.tensor(rows).view(logits.shape[1:3])


def _d_one(answer):
    """one position that is decided after level 2"""
    where = "for one position at which five levels predict 1, 3, 4, 4, 4"
    same(answer(_logits([[[1]], [[3]], [[4]], [[4]], [[4]]])), [[2]], where)


def _d_back(answer):
    """a guess that is given up and comes back counts from its return"""
    where = "for one position at which five levels predict 2, 2, 0, 2, 2"
    note = "Level 2 predicts something else, so the prediction stays the same only from level 3 on."
    same(answer(_logits([[[2]], [[2]], [[0]], [[2]], [[2]]])), [[3]], where, note=note)


def _d_ends(answer):
    """decided at the first level, or only at the last"""
    where = "for two positions at which three levels predict 1, 1, 1 and 1, 1, 3"
    same(answer(_logits([[[1, 1]], [[1, 1]], [[1, 3]]])), [[0, 2]], where)
    agrees(answer, _walk_down, numbers(1, 2, 3, 4, seed=1), note="A single level is the final one.")


def _d_places(answer):
    """every position by itself, in every row"""
    for seed, shape in enumerate([(4, 3, 2, 2), (7, 2, 5, 3), (3, 1, 6, 2), (5, 4, 1, 2)]):
        agrees(answer, _walk_down, numbers(*shape, seed=seed))


def _d_kinds(answer):
    """in half and double precision, for large logits, for no positions"""
    near = torch.tensor([[0.0, 1e-12], [0.0, 1e-12], [1e-12, 0.0]], dtype=torch.float64)
    agrees(answer, _walk_down, near[[0, 2, 1], None, None] + 1)
    agrees(answer, _walk_down, numbers(4, 2, 3, 2, seed=5, dtype=torch.float16))
    agrees(answer, _walk_down, numbers(4, 2, 3, 2, seed=6, scale=1e4, shift=-1e5))
    empty = answer(torch.zeros(3, 2, 0, 4))
    got = tuple(tensor(empty, "for no positions").shape)
    expect(got == (2, 0), f"for logits of shape (3, 2, 0, 4), you return {got}, expected (2, 0)")


DECIDED = Exercise(
    id="29.1",
    title="decided, and not taken back",
    difficulty=2,
    minutes=8,
    statement=(
        "When is a prediction *decided*? Not when it first appears, because a guess may be given "
        "up again. We call it decided after the first level from which on the most likely token "
        "is the final one and stays so. Write `my_decided_after(logits)`, which takes the lens at "
        "L levels, `logits` of shape (L, B, T, V), the last of them being the model's own logits. "
        "Return a tensor of shape (B, T) with the number of that level for each position, counted "
        "from 0. If the levels predict 2, 2, 0, 2, 2, the answer is 3."
    ),
    hint=(
        "`logits.argmax(dim=-1)` is what each level predicts, (L, B, T). Start at the last level "
        "and go down as long as the level below predicts the same token. A loop over levels is "
        "fine: keep a mask of the positions that have agreed so far."
    ),
    function=my_decided_after,
    tests=(_d_one, _d_back, _d_ends, _d_places, _d_kinds),
)


# 29.2 repair a patch that leaks


def my_transplant(values, at):
    """Make a function that replaces one position per row of x (B, T, C), at (B,), from `values`."""
    raise NotImplementedError


LEAKY = """
def my_transplant(values, at):
    def change(x):
        x[:, at] = values[:, at]
        return x
    return change
"""

X = torch.zeros(2, 3, 1)
VALUES = torch.tensor([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]])
AT = torch.tensor([0, 2])
_PATCH = f"for values={short(VALUES[..., 0])} (C = 1), at={short(AT)}, and x all 0"


def _patched(values, at, x):
    """Vector by vector."""
    rows = []
    for b in range(x.size(0)):
        rows.append([])
        for t in range(x.size(1)):
            rows[-1].append(values[b, t].to(x.dtype) if t == int(at[b]) else x[b, t])
    return torch.stack([torch.stack(row) for row in rows])


def _applied(answer):
    def run(values, at, x):
        return answer(values, at)(x)

    return run


def _t_own_place(answer):
    """each row gets the vector of its own position"""
    got = tensor(answer(VALUES, AT)(X.clone()), _PATCH)
    expect(got.shape == X.shape, f"{_PATCH}, the shape is {tuple(got.shape)}, expected (2, 3, 1)")
    picked = [got[0, 0, 0].item(), got[1, 2, 0].item()]
    expect(picked == [1, 6], f"{_PATCH}, the two patched numbers are {picked}, expected [1, 6]")


def _t_nothing_else(answer):
    """nothing else changes, in any row"""
    got = tensor(answer(VALUES, AT)(X.clone()), _PATCH)
    note = "`x[:, at]` picks every position of `at` in every row, so the patch leaks."
    same(got[..., 0], [[1, 0, 0], [0, 0, 6]], _PATCH, note=note)


def _t_callers_own(answer):
    """the caller's x and values stay as they are"""
    x, values = numbers(2, 3, 2, seed=1), numbers(2, 3, 2, seed=2)
    before, kept = x.clone(), values.clone()
    out = tensor(answer(values, AT)(x), "for random x")
    note = "The caller's tensor may be the record of another run, or be needed for the gradient."
    same(x, before, "after the patch, for the caller's x", note=note)
    same(values, kept, "after the patch, for the caller's values", note=note)
    expect(out.data_ptr() != x.data_ptr(), "the result is the caller's x itself: return a copy")


def _t_again(answer):
    """one change can be used many times, on other x"""
    values, at = numbers(3, 4, 2, seed=3), torch.tensor([3, 0, 0])
    change = answer(values, at)
    for seed in (4, 5):
        x = numbers(3, 4, 2, seed=seed)
        where = "for a change that is used twice"
        same(change(x), _patched(values, at, x), where)


def _t_sizes(answer):
    """for other sizes, and for one row, one position"""
    run = _applied(answer)
    run.parameters = ("values", "at", "x")
    for seed, (b, t, c) in enumerate([(3, 5, 2), (5, 2, 4), (1, 4, 3), (4, 1, 2), (4, 4, 1)]):
        at = torch.tensor([(2 * i + seed) % t for i in range(b)])
        agrees(run, _patched, numbers(b, t, c, seed=seed), at, numbers(b, t, c, seed=seed + 9))


def _t_kinds(answer):
    """the result has x's dtype, and gradients reach x and values"""
    run = _applied(answer)
    run.parameters = ("values", "at", "x")
    at = torch.tensor([1, 0, 3])
    wide, half = numbers(3, 4, 2, seed=1, dtype=torch.float64), torch.float16
    agrees(run, _patched, wide, at, numbers(3, 4, 2, seed=2, dtype=half))
    agrees(run, _patched, wide, at, numbers(3, 4, 2, seed=2, dtype=torch.float64))
    agrees(run, _patched, wide.to(half), at, numbers(3, 4, 2, seed=2))
    gradients(run, _patched, numbers(3, 4, 2, seed=3), at, numbers(3, 4, 2, seed=4))


@hint("Assign the vector, or choose with `where`: 0 times infinity is NaN.")
def _t_exact(answer):
    """what is kept and what is put in is exact, even beside huge numbers and infinities"""
    x = X.clone()
    x[0, 0], x[1, 2] = 1e9, -1e9
    got = tensor(answer(VALUES, AT)(x), _PATCH)[..., 0]
    same(got, [[1, 0, 0], [0, 0, 6]], f"{_PATCH} except for ±1e9 at the patched positions")
    x, values = X.clone(), VALUES.clone()
    x[0, 0], x[0, 1], values[1, 1] = math.nan, math.inf, math.inf
    got = tensor(answer(values, AT)(x), _PATCH)[..., 0]
    where = "for x with infinity at (0, 1) and NaN at (0, 0), the position patched in row 0"
    same(got, [[1, math.inf, 0], [0, 0, 6]], where)


TRANSPLANT = Exercise(
    id="29.2",
    title="repair a patch that leaks",
    difficulty=2,
    minutes=8,
    statement=(
        "`replace(model, name, change)` calls `change` with what the module computes and goes on "
        "with what `change` returns. We need a change that replaces *one* vector per sentence: in "
        "`x` of shape (B, T, C), sentence b gets `values[b, at[b]]` at position `at[b]`, and "
        "everything else stays. The first attempt works only for a batch of one."
        f"\n\n```python{LEAKY}```\n\n"
        "In a larger batch it patches too many positions, so that every patch seems to work. In "
        "any "
        "batch, it also writes into the caller's tensor `x`. Repair it: `my_transplant(values, "
        "at)` "
        "returns the function `change`, which returns a new tensor."
    ),
    hint=(
        (
            "With a list of rows beside the list of positions, `x[rows, at]` pairs them: row 0 "
            "with at[0], row 1 with at[1]. `torch.arange(len(x))` is the list of rows. And "
            "`clone` first."
        ),
        (
            "In detail: `values` is (B, T, C), `at` is (B,) and holds integers. The result has "
            "the dtype of `x`, and gradients reach `x` and `values`."
        ),
    ),
    function=my_transplant,
    tests=(
        _t_own_place,
        _t_nothing_else,
        _t_callers_own,
        _t_again,
        _t_sizes,
        _t_exact,
        _t_kinds,
    ),
)


# 29.3 design the control


def my_donors(answers, words, control):
    """Find each sentence a donor: the next sentence, going round, that fits; (B,), or -1.

    A donor has another word, and another answer; with `control` another word, and the same answer.
    """
    raise NotImplementedError


ANSWERS = torch.tensor([0, 0, 1, 0, 1])
WORDS = torch.tensor([7, 7, 3, 8, 4])
_FIVE = f"for answers={short(ANSWERS)}, words={short(WORDS)}"


def _next_that_fits(answers, words, control):
    """Sentence by sentence, walking on from it."""
    count, found = len(answers), []
    for i in range(count):
        donor = -1
        for step in range(1, count):
            j = (i + step) % count
            other_word = int(words[j]) != int(words[i])
            same_answer = int(answers[j]) == int(answers[i])
            if other_word and same_answer == control:
                donor = j
                break
        found.append(donor)
    return torch.tensor(found, dtype=torch.long)


def _c_experiment(answer):
    """in the experiment, `it` refers to the other noun in the donor"""
    note = "In sentence 0 the answer is 0. The next sentence whose answer is 1 is sentence 2."
    where = f"{_FIVE}, control=False"
    same(answer(ANSWERS, WORDS, False), [2, 2, 3, 4, 0], where, note=note)


def _c_control(answer):
    """in the control, it refers to the same noun, with another word"""
    note = (
        "Sentence 1 has the same answer as sentence 0, but also the same word, so nothing foreign "
        "would be put in. The next sentence with another word is sentence 3."
    )
    where = f"{_FIVE}, control=True"
    same(answer(ANSWERS, WORDS, True), [3, 3, 4, 0, 2], where, note=note)


def _c_other_word(answer):
    """with another word in the experiment as well"""
    answers, words = torch.tensor([0, 1, 1]), torch.tensor([5, 5, 6])
    note = "The same word can point to either noun, but a donor must have another word."
    agrees(answer, _next_that_fits, answers, words, False, note=note)


def _c_none(answer):
    """-1 where no sentence fits"""
    same(
        answer(torch.tensor([0, 0]), torch.tensor([1, 2]), False), [-1, -1],
        "for answers=[0, 0], words=[1, 2], control=False",
    )  # fmt: skip
    agrees(answer, _next_that_fits, torch.tensor([1]), torch.tensor([3]), True)
    agrees(answer, _next_that_fits, torch.tensor([1]), torch.tensor([3]), False)
    for control in (True, False):
        agrees(answer, _next_that_fits, torch.tensor([2, 2, 1]), torch.tensor([4, 4, 4]), control)


def _c_many(answer):
    """in larger batches, with more than two answers"""
    for seed in range(6):
        count = (9, 14, 5, 11, 2, 3)[seed]
        answers = numbers(count, seed=seed).abs().mul(2).long()
        words = numbers(count, seed=seed + 50).abs().mul(3).long()
        for control in (True, False):
            agrees(answer, _next_that_fits, answers, words, control)
    got = answer(ANSWERS, WORDS, True)
    expect(
        isinstance(got, torch.Tensor),
        f"{_FIVE}, you return {type(got).__name__}, expected a tensor",
    )
    expect(got.dtype == torch.int64, f"{_FIVE}, the dtype is {got.dtype}, expected torch.int64")


DONORS = Exercise(
    id="29.3",
    title="design the control",
    difficulty=2,
    minutes=10,
    statement=(
        "In each sentence, the vector of the adjective will be replaced by that of a *donor*, "
        "another sentence of the batch with another adjective. In the experiment, `it` refers to "
        "a different noun in the donor, so the answer should change. In the control, everything "
        "is just as foreign, but `it` refers to the same noun, so nothing should happen. Write "
        "`my_donors(answers, words, control)`, which finds a donor for each sentence: `answers` "
        "(B,) is what its `it` refers to, `words` (B,) is its adjective. Return the donors' "
        "numbers, of shape (B,), and -1 where there is none."
    ),
    hint=(
        (
            "In detail: the donor is the *next* sentence, going round past the end to the "
            "beginning, that has another adjective and, with control=False, another answer, with "
            "control=True the same answer. All tensors hold integers."
        ),
        (
            "Two tables of all pairs: `words[:, None] != words` and `answers[:, None] == "
            "answers`. Or a loop: from sentence i try (i + 1) % B, (i + 2) % B, and so on."
        ),
    ),
    function=my_donors,
    tests=(_c_experiment, _c_control, _c_other_word, _c_none, _c_many),
)


# 29.4 repair a probe


def my_probe(x, y, test_x, ridge):
    """Fit a linear probe to states x (N, C) of classes y (N,); score the states test_x (M, C).

    Returns (M, classes).
    """
    raise NotImplementedError


CHEATING = """
def my_probe(x, y, test_x, ridge):
    mean = torch.cat([x, test_x]).mean(dim=0)
    x = x - mean
    wanted = torch.nn.functional.one_hot(y).to(x)
    weights = torch.linalg.solve(x.T @ x, x.T @ wanted)
    return x @ weights
"""

STATES = torch.tensor([[0.0], [2.0], [4.0]])
CLASSES = torch.tensor([0, 0, 1])
_LINE = f"for x={short(STATES)}, y={short(CLASSES)}"


def _least_squares(x, y, test_x, ridge):
    """With a column of ones that is not held down, as one system of equations."""
    wide = x.dtype if x.dtype == torch.float64 else torch.float32
    ones = torch.cat([x, torch.ones_like(x[:, :1])], dim=1).to(wide)
    wanted = torch.stack([(y == k).to(wide) for k in range(int(y.max()) + 1)], dim=1)
    held = torch.diag(torch.tensor([ridge] * x.size(1) + [0.0], dtype=wide))
    weights = torch.linalg.inv(ones.T @ ones + held) @ (ones.T @ wanted)
    asked = torch.cat([test_x, torch.ones_like(test_x[:, :1])], dim=1).to(wide)
    return (asked @ weights).to(x.dtype)


def _fitted_to(y):
    return lambda x, _, test_x, ridge: _least_squares(x, y, test_x, ridge)


def _p_test_states(answer):
    """it scores the test states"""
    test = torch.tensor([[2.0]])
    where = f"{_LINE}, test_x={short(test)}, ridge=2"
    got = tensor(answer(STATES, CLASSES, test, 2.0), where)
    note = "There is one test state, and there are two classes."
    expect(
        tuple(got.shape) == (1, 2),
        f"{where}, the shape is {tuple(got.shape)}, expected (1, 2). {note}",
    )


def _p_mean(answer):
    """at the mean of the training states, the scores are the classes' shares"""
    test = torch.tensor([[2.0]])
    where = f"{_LINE}, test_x={short(test)}, ridge=2"
    note = (
        "2 is the mean of x. The ridge does not apply to the offset, so the scores are the shares."
    )
    same(answer(STATES, CLASSES, test, 2.0), [[2 / 3, 1 / 3]], where, 1e-4, note)


def _p_slope(answer):
    """elsewhere it follows a slope, which the ridge keeps small"""
    test = torch.tensor([[7.0], [2.0]])
    for ridge, score in ((2.0, 1 / 3 + 1.0), (32.0, 1 / 3 + 0.25)):
        where = f"{_LINE}, test_x={short(test)}, ridge={ridge:g}"
        got = tensor(answer(STATES, CLASSES, test, ridge), where)
        note = f"The slope is Σ(x − 2)(y − 1/3) / (Σ(x − 2)² + ridge) = 2 / (8 + {ridge:g})."
        expect(got.dim() == 2 and len(got) == 2, f"{where}, the shape is {tuple(got.shape)}")
        same(got[0, 1], score, f"{where}, for the first state's score of class 1", 1e-4, note)


def _p_blind(answer):
    """a state's score does not depend on the other test states"""
    test = torch.tensor([[7.0], [2.0]])
    where = f"{_LINE}, ridge=2, for the state 7"
    alone = tensor(answer(STATES, CLASSES, test[:1], 2.0), where)
    beside = tensor(answer(STATES, CLASSES, torch.tensor([[7.0], [900.0]]), 2.0), where)
    expect(alone.shape == (1, 2) and beside.shape == (2, 2), f"{where}, the shapes are wrong")
    note = "The test states must not be used in the fit or in the mean."
    same(beside[0], alone[0], f"{where} beside the state 900", 1e-4, note)


def _p_many(answer):
    """for many features and classes, for few states and many"""
    cases = [(30, 4, 3, 0.5), (6, 9, 2, 1.0), (12, 3, 5, 20.0), (40, 7, 4, 0.1), (5, 2, 1, 1.0)]
    for seed, (n, c, classes, ridge) in enumerate(cases):
        x = numbers(n, c, seed=seed, shift=0.5, dtype=torch.float64)
        y = torch.arange(n).mul(7).add(seed) % classes
        test = numbers(4, c, seed=seed + 20, dtype=torch.float64)
        agrees(answer, _least_squares, x, y, test, ridge, tolerance=1e-11)
    missing = torch.tensor([0, 3, 3, 0, 1])  # no state has class 2
    x = numbers(5, 2, seed=3, dtype=torch.float64)
    agrees(answer, _least_squares, x, missing, x[:2] + 1, 0.3, tolerance=1e-11)


def _p_kinds(answer):
    """in float32 too, exactly in float64, and the caller's states stay as they are"""
    far = numbers(7, 2, seed=8, scale=1e-6, dtype=torch.float64)
    agrees(answer, _least_squares, far, torch.arange(7) % 2, far[:3] * 5, 1e-12, tolerance=1e-7)
    y = torch.arange(8) % 3
    gradients(answer, _fitted_to(y), numbers(8, 2, seed=4), y, numbers(3, 2, seed=5), 0.5)
    x, test = numbers(20, 3, seed=1), numbers(6, 3, seed=2)
    y, kept, asked = torch.arange(20) % 3, x.clone(), test.clone()
    agrees(answer, _least_squares, x, y, test, 0.7, tolerance=1e-4)
    same(x, kept, "after the call, for the caller's x")
    same(test, asked, "after the call, for the caller's test_x")


PROBE = Exercise(
    id="29.4",
    title="repair a probe that has seen the test",
    difficulty=3,
    minutes=12,
    statement=(
        "The accuracy of this probe is too good to be true. It should be a linear probe fitted by "
        "least squares to one-hot classes, but it has four faults: the states that it scores, the "
        "states over which it takes the mean, a forgotten `ridge`, and a missing offset."
        f"\n\n```python{CHEATING}```\n\n"
        "Repair it. `my_probe(x, y, test_x, ridge)` is fitted to states `x` (N, C) of classes `y` "
        "(N,) and to nothing else, and returns the scores (M, classes) of the states `test_x` (M, "
        "C). It minimises the sum of the squared errors plus `ridge` times the sum of the squared "
        "weights. Each class has an offset, to which the ridge does not apply."
    ),
    hint=(
        (
            "In detail: classes are numbered from 0 to the largest in `y`, and `ridge` is above "
            "0. The scores are in x's dtype, and gradients reach `x` and `test_x`."
        ),
        (
            "If the mean is subtracted from the states, the best offset is the mean of the "
            "one-hot classes, that is, the classes' shares. The weights solve (xᵀx + ridge · 1) W "
            "= xᵀ wanted. Subtract the same mean from test_x."
        ),
    ),
    function=my_probe,
    tests=(_p_test_states, _p_mean, _p_slope, _p_blind, _p_many, _p_kinds),
)


# 29.5 patch the bug


def my_culprit(good, broken, names, x):
    """Name the first module of `names` whose patch heals `broken` on x, or None.

    good, broken: two models of the same modules. Both stay as they are.
    """
    raise NotImplementedError


class _Block(nn.Module):
    """x + w_2(gelu(w_1(x))), with a bug that is named: in its code, or in what it adds to."""

    def __init__(self, seed, bug=""):
        super().__init__()
        self.w_1, self.w_2 = _Linear(4, 6, seed, bug == "w_1"), _Linear(6, 4, seed + 1)
        self.act = nn.ReLU() if bug == "act" else nn.GELU()
        self.bug = bug

    def forward(self, x):
        out = self.w_2(self.act(self.w_1(x)))
        return out if self.bug == "residual" else x + out


class _Linear(nn.Linear):
    """A linear layer whose code forgets its bias if `broken`; its weights don't show it."""

    def __init__(self, width, out, seed, broken=False):
        super().__init__(width, out)
        self.broken = broken
        for i, part in enumerate(self.parameters()):
            part.data.copy_(numbers(*part.shape, seed=seed + 10 * i, shift=0.5 * i))

    def forward(self, x):
        return super().forward(x) - (self.bias if self.broken else 0)


class _Small(nn.Module):
    """Two blocks, a norm and an output, with `bugs`; `wrong` times 0 to 3 is added in between."""

    def __init__(self, wrong=0.0, norm=False, **bugs):
        super().__init__()
        self.first, self.second = (
            _Block(i, bugs.get(name, "")) for i, name in enumerate(("first", "second"), 1)
        )
        self.norm, self.output = nn.LayerNorm(4), _Linear(4, 3, 5)
        self.norm.eps = 0.5 if norm else 1e-5
        self.wrong = wrong

    def forward(self, x):
        return self.output(self.norm(self.second(self.first(x) + self.wrong * torch.arange(4))))


class _Adds(nn.Module):
    """x + what: numbers in the code, which no weight tells."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def forward(self, x):
        return x + self.what


class _Twice(nn.Module):
    """x + part(x), where the part puts out the tensor that it is given."""

    def __init__(self):
        super().__init__()
        self.part = nn.Identity()

    def forward(self, x):
        return x + self.part(x)


def _at(places, shape=(2, 3, 4)):
    """Zeros, with these numbers at their places."""
    numbers = torch.zeros(shape)
    for place, number in places.items():
        numbers[place] = number
    return numbers


# In words, what is added to a right answer.
GAPS = {
    "every number is 3e-3 too large": _at({...: 3e-3}),
    "every number is 3e-3 too small": _at({...: -3e-3}),
    "two numbers of a row are wrong by 3e-3 and -3e-3": _at({(0, 1, 1): 3e-3, (0, 1, 2): -3e-3}),
    "one number is wrong, in the middle of the first row": _at({(0, 1, 1): 3e-3}),
    "one number is wrong, in the middle of the last row": _at({(1, 1, 1): 3e-3}),
    "one number is NaN": _at({(1, 1, 1): math.nan}),
}

NAMES = ["first.w_1", "first.act", "first.w_2", "second.w_1", "second.act", "second.w_2"]
WHOLE = ["first", "second", "norm", "output"]
XS = numbers(2, 3, 4, seed=3)


def _state(model):
    hooks = {n: [*m._forward_hooks, *m._forward_pre_hooks] for n, m in model.named_modules()}
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    return hooks, kept, {name: module.training for name, module in model.named_modules()}


def _found(answer, said, broken, names, expected, note="", good=None, x=XS):
    good = good or _Small()
    for module in (*good.modules(), *broken.modules()):
        module.register_forward_hook(lambda module, inputs, out: None)  # the caller's
    before = [_state(model) for model in (good, broken)]
    got = answer(good, broken, list(names), x)
    where = f"for a model in which {said}, names={list(names)}"
    note = f" {note}" if note else ""
    expect(got == expected, f"{where}, you return {got!r}, expected {expected!r}.{note}")
    for which, model, (hooks, kept, modes) in zip(("good", "broken"), (good, broken), before):
        hooks_now, kept_now, modes_now = _state(model)
        expect(
            hooks_now == hooks,
            f"{where}, a hook is left in `{which}`, or one of the caller's has been removed",
        )
        alike = all(torch.equal(kept_now[name], value) for name, value in kept.items())
        expect(alike, f"{where}, you change the weights of `{which}`")
        expect(modes_now == modes, f"{where}, you change the mode of `{which}`")


def _k_one(answer):
    """a bug in one module's code is found"""
    _found(answer, "first.act computes another function", _Small(first="act"), NAMES, "first.act")
    _found(answer, "second.w_1 forgets its bias", _Small(second="w_1"), NAMES[2:], "second.w_1")


def _k_weights(answer):
    """a bug in one module's weights is found; both models stay as they are"""
    broken = _Small()
    broken.second.w_2.weight.data[1, 2] += 0.5
    _found(answer, "one weight of second.w_2 is wrong", broken, NAMES, "second.w_2")
    broken.train()
    _found(answer, "one weight of second.w_2 is wrong", broken, NAMES, "second.w_2",
           good=_Small().eval())  # fmt: skip
    broken = _Small()
    broken.first.w_1.weight.data[1, 2] = math.inf
    _found(answer, "one weight of first.w_1 is infinite", broken, NAMES, "first.w_1",
           "Test whether the good output heals `broken`; here it does.")  # fmt: skip


def _k_first(answer):
    """every module after the bug heals the answer, and the first of them is the culprit"""
    note = "Later modules heal the answer as well, because their outputs are computed from it."
    _found(answer, "first.act computes another function", _Small(first="act"), WHOLE, "first", note)
    _found(answer, "the norm has another eps", _Small(norm=True), WHOLE, "norm", note)


def _k_residual(answer):
    """the culprit may be a whole block, where none of its parts is"""
    note = "Its parts compute the right outputs, but the residual addition around them is missing."
    said = "the second block forgets to add its input"
    _found(answer, said, _Small(second="residual"), [*NAMES[3:], *WHOLE[1:]], "second", note)
    _found(answer, said, _Small(second="residual"), NAMES[4:], None, note)


def _k_between(answer):
    """a module whose output differs need not be the culprit: only healing counts"""
    note = (
        "Its output differs from that in the good model, but with the good output in its place the "
        "answer is still wrong."
    )
    said = "something is added between the two blocks"
    _found(answer, said, _Small(wrong=0.3), [*NAMES[3:], *WHOLE[1:]], "second",
           f"second.w_1 is not it. {note}")  # fmt: skip
    said = "both first.w_1 and second.act are broken"
    two = _Small(first="w_1", second="act")
    _found(answer, said, two, NAMES, None, f"first.w_1 is not it. {note}")
    good, broken = (nn.Sequential(_Adds(more), _Twice()) for more in (0.0, 0.3))
    _found(answer, "0 adds 0.3, and 1 adds to its input the output of 1.part", broken,
           ["1.part"], None, "1.part returns its input unchanged, so a hook that writes into "
           "that tensor also changes what 1 adds to it. Return another tensor.", good)  # fmt: skip


def _k_none(answer):
    """None where the models agree already"""
    note = "There is nothing to heal, so any patch would seem to work."
    _found(answer, "nothing is wrong", _Small(), NAMES, None, note)
    positive = numbers(2, 3, 4, seed=3).abs() * 9 + 20
    good, broken = nn.Sequential(nn.LeakyReLU(0.1)), nn.Sequential(nn.ReLU())
    _found(answer, "the bug makes no difference for this x", broken, ["0"], None, note, good,
           positive)  # fmt: skip


def _k_exact(answer):
    """equal means within 1e-4"""
    note = "Equal means within 1e-4 everywhere, however large the answer is."
    for shift, expected in ((3e-3, "output"), (1.5e-4, "output"), (5e-5, None)):
        good, broken = _Small().double(), _Small().double()
        for model, more in ((good, 0), (broken, shift)):
            model.output.bias.data += torch.tensor([0.0, 900.0 + more, 0.0])
        said = f"one bias of the output is {shift} too large, in float64"
        _found(answer, said, broken, WHOLE, expected, note, good, XS.double())
    for said, gap in GAPS.items():
        good, broken = (nn.Sequential(nn.Identity(), _Adds(more)) for more in (0.0, gap))
        _found(
            answer, f"1 should return its input, but {said}", broken, ["0", "1"], "1", note, good
        )
    good = nn.Sequential(_Adds(0.0), _Adds(0.0))
    broken = nn.Sequential(_Adds(0.3), _Adds(5e-5))
    _found(answer, "0 adds 0.3 and 1 adds 5e-5", broken, ["0", "1"], "0", note, good)


CULPRIT = Exercise(
    id="29.5",
    title="patch the bug",
    difficulty=3,
    minutes=15,
    statement=(
        "Patching finds more than answers. You have a model that works, `good`, and a copy, "
        "`broken`, in which one thing has been changed: a weight, or a line of code. Every module "
        "after the bug has a different output, so comparing outputs accuses many modules, but a "
        "patch accuses only one. Run `broken` with the output of one module replaced by the "
        "output of that module in `good`. If this heals the answer, the bug is not after that "
        "module.\n\nWrite `my_culprit(good, broken, names, x)`. It returns the first of `names`, "
        "in the order in which the modules run, whose patch alone makes `broken(x)` equal to "
        "`good(x)`, or None if there is none. Afterwards, both models are as they were before."
    ),
    hint=(
        (
            "In detail: equal means within 1e-4 everywhere. If the two models agree without any "
            "patch, return None. Each module runs once, and its output is a tensor. Weights, "
            "modes and hooks must be as before. You may use PyTorch's hooks, or `record` and "
            "`replace`."
        ),
        (
            "A hook that returns a tensor replaces the module's output. For each name, run `good` "
            "with a hook that keeps the output, and `broken` with a hook that returns it."
        ),
        (
            "`torch.allclose(a, b, rtol=0, atol=1e-4)` compares. Before the loop, compare without "
            "any patch."
        ),
    ),
    function=my_culprit,
    none_is_a_result=True,
    tests=(_k_weights, _k_one, _k_first, _k_residual, _k_between, _k_none, _k_exact),
)


EXERCISES = (DECIDED, TRANSPLANT, DONORS, PROBE, CULPRIT)
