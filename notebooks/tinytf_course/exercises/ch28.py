"""Exercises of chapter 28, Looking inside."""

import math

import torch
from torch import nn

from tinytf_course.expect import agrees, expect, gradients, numbers, precise, same, tensor, travels
from tinytf_course.grading import Exercise

# 28.1 a hook that leaks


def my_outputs(model, names, *inputs):
    """Return the outputs of the named modules for these inputs: {name: tensor}, detached.

    Afterwards the model has the same hooks as before, even if it fails.
    """
    raise NotImplementedError


LEAK = """
def my_outputs(model, names, *inputs):
    kept = {}
    for name in names:
        def keep(module, inputs, out):
            kept[name] = out
        model.get_submodule(name).register_forward_hook(keep)
    model(*inputs)
    return kept
"""


class _Sum(nn.Module):
    """Two inputs, three named parts; `fails` makes its last part raise."""

    def __init__(self, fails=False):
        super().__init__()
        self.left, self.right, self.last = nn.Linear(3, 4), nn.Linear(2, 4), nn.Sequential()
        self.last.append(nn.Linear(4, 5))
        self.last.append(_Fails() if fails else nn.Identity())
        for i, part in enumerate(self.parameters()):
            part.data.copy_(numbers(*part.shape, seed=i))

    def forward(self, x, y):
        return self.last(self.left(x) + self.right(y))


class _Fails(nn.Module):
    def forward(self, x):
        raise ArithmeticError("this module fails")


X, Y = numbers(2, 6, 3, seed=11), numbers(2, 6, 2, seed=12)
_W = "for a model of two inputs with the modules `left`, `right` and `last`"


def _expected_outputs(model):
    a, b = model.left(X).detach(), model.right(Y).detach()
    return {"left": a, "right": b, "last.0": model.last[0](a + b).detach()}


def _hooks(model):
    return {name: len(module._forward_hooks) for name, module in model.named_modules()}


def _o_one(answer):
    """it returns the output of one module"""
    model = _Sum()
    got = answer(model, ["right"], X, Y)
    same(got, {"right": _expected_outputs(model)["right"]}, f"{_W}, and names=['right']")


def _o_several(answer):
    """of several modules, each output has its own name"""
    model = _Sum()
    wanted = _expected_outputs(model)
    got = answer(model, ["last.0", "left", "right"], X, Y)
    expect(isinstance(got, dict), f"{_W}, you return {type(got).__name__}, expected a dict")
    expect(
        set(got) == set(wanted),
        f"{_W}, and three names, you return the names {sorted(got)}: a function defined in a loop "
        "looks up the loop's variable only when it is called, and by then that is the last name",
    )
    for name, value in wanted.items():
        same(got[name], value, f"{_W}, under the name `{name}`", dtype=True)
    model.twin = model.left  # one module, two names
    got = answer(model, ["left", "twin"], X, Y)
    where = f"{_W}, and with `twin`, another name of `left`"
    same(got, {"left": wanted["left"], "twin": wanted["left"]}, where)
    wide = _Sum().double()
    got = answer(wide, ["left"], X.double(), Y.double())
    same(got["left"], wide.left(X.double()).detach(), f"{_W} in float64", dtype=True)
    kinds = {part.dtype for part in wide.parameters()}
    expect(kinds == {torch.float64}, f"{_W} in float64, you change the model's dtype")


def _o_detached(answer):
    """the outputs are detached from the graph"""
    for name, value in answer(_Sum(), ["left", "last.0"], X, Y).items():
        expect(
            not value.requires_grad,
            f"{_W}, the stored output of `{name}` requires a gradient, so it keeps the graph of "
            "the whole pass in memory",
        )


def _o_removed(answer):
    """no hook of yours is left"""
    model = _Sum()
    before = _hooks(model)
    for _ in range(2):
        answer(model, ["left", "last.0"], X, Y)
        left = {name: n for name, n in _hooks(model).items() if n != before[name]}
        expect(not left, f"{_W}, after the call there are hooks left on {sorted(left)}")


def _o_others_stay(answer):
    """hooks of others stay and do their work"""
    model = _Sum()
    calls = []
    handle = model.left.register_forward_hook(lambda module, inputs, out: calls.append(1))
    model.right.register_forward_hook(lambda module, inputs, out: out * 2)
    before = _hooks(model)
    got = answer(model, ["left", "right"], X, Y)
    expect(_hooks(model) == before, f"{_W}, a hook that was there before is gone")
    expect(len(calls) == 1, f"{_W}, the model ran {len(calls)} times, expected once")
    doubled = 2 * _expected_outputs(_Sum())["right"]
    same(got["right"], doubled, f"{_W}, with an earlier hook that doubles `right`")
    handle.remove()
    message = (
        f"{_W}, the handle of an earlier hook no longer removes it: don't edit `_forward_hooks`"
    )
    expect(not model.left._forward_hooks, message)
    whole = []
    model.register_forward_hook(lambda module, inputs, out: whole.append(module))
    answer(model, ["left"], X, Y)
    message = f"{_W}, a hook on the model itself runs {len(whole)} times, expected once"
    expect(len(whole) == 1, message + ": call `model(...)`")
    message = f"{_W}, a copy of the model runs: run the model itself, whose pass keeps its graph"
    expect(whole[0] is model, message)


def _o_graph(answer):
    """only the kept outputs are detached: the model's own output keeps its graph"""
    model, handed_on = _Sum(), []
    model.last.register_forward_hook(lambda module, inputs, out: handed_on.append(out))
    answer(model, ["left"], X, Y)
    expect(
        handed_on[-1].requires_grad,
        f"{_W}, the model's own output has no graph: don't run the model under `no_grad`",
    )
    handed_on[-1].sum().backward()
    expect(
        model.left.weight.grad is not None,
        f"{_W}, and names=['left'], gradients no longer reach `left`: detach only the outputs "
        "that you store",
    )


def _o_fails(answer):
    """if the model fails, its error goes on, and no hook is left"""
    model = _Sum(fails=True)
    before = _hooks(model)
    try:
        answer(model, ["left", "last.0"], X, Y)
    except ArithmeticError:
        pass
    else:
        expect(
            False, f"{_W}, the model raises ArithmeticError, but your function does not pass it on"
        )
    expect(
        _hooks(model) == before,
        f"{_W}, the model raises an error and your hooks stay: remove them in a `finally`",
    )


def _o_wrong_name(answer):
    """an unknown name raises AttributeError, and no hook is left on the others"""
    model = _Sum()
    before = _hooks(model)
    try:
        answer(model, ["left", "missing"], X, Y)
    except AttributeError:
        pass
    else:
        expect(False, f"{_W}, and the unknown name `missing`, your function raises no error")
    expect(_hooks(model) == before, f"{_W}, and names=['left', 'missing'], a hook stays on `left`")


def _o_mode(answer):
    """the model keeps its mode, and runs in it"""
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    for mode in (True, False):
        model.train(mode)
        got = answer(model, ["0", "1"], X + 5)
        dropped = bool((tensor(got["1"], "dropout") == 0).any())
        said = "training" if mode else "evaluation"
        expect(model.training == mode, f"for a model in {said} mode, you change its mode")
        expect(dropped == mode, f"for a model in {said} mode, it does not run in that mode")


LEAKS = Exercise(
    id="28.1",
    title="a hook that leaks",
    difficulty=2,
    minutes=10,
    statement=(
        "This function should return the outputs of several modules from one forward pass, but it "
        "has four faults. They concern the names under which the outputs are stored, what the "
        "outputs keep in memory, what is left in the model afterwards, and what is left in it if "
        "the forward pass fails."
        f"\n\n```python{LEAK}```\n\n"
        "Repair it. `my_outputs(model, names, *inputs)` calls `model(*inputs)` once and returns a "
        "dictionary that maps each name to the detached output of that module. Afterwards the "
        "model has the same hooks as before, even if the pass raises an error or a name doesn't "
        "exist; the error goes on to the caller."
    ),
    hint=(
        (
            "In detail: the model runs in the mode it is in, its own output keeps its graph, and "
            "hooks that others have registered stay and do their work. For an unknown name, "
            "`get_submodule` raises an AttributeError."
        ),
        (
            "A function that makes the hook, `keeper(name)`, fixes the name for it. Collect the "
            "handles in a list, and remove them in a `finally`; registering the hooks belongs in "
            "the `try`."
        ),
    ),
    function=my_outputs,
    tests=(
        _o_one, _o_several, _o_detached, _o_removed, _o_others_stay, _o_graph, _o_fails,
        _o_wrong_name, _o_mode,
    ),
)  # fmt: skip


# 28.2 a text on which only induction scores


def my_probe_texts(n, length, draws):
    """Draw n texts of tokens 0 to 63, (n, length), on which only an induction head scores."""
    raise NotImplementedError


N, LENGTH = 64, 48
_P = f"for n={N}, length={LENGTH}"


def _texts(answer, seed, n=N, length=LENGTH):
    said = f"for n={n}, length={length} and a generator with seed {seed}"
    ids = answer(n, length, torch.Generator().manual_seed(seed))
    expect(
        isinstance(ids, torch.Tensor), f"{said}, you return {type(ids).__name__}, expected a tensor"
    )
    shape, wanted = tuple(ids.shape), (n, length)
    expect(shape == wanted, f"{said}, your texts have shape {shape}, expected {wanted}")
    expect(ids.dtype == torch.int64, f"{said}, your ids are {ids.dtype}, expected torch.int64")
    low, high = int(ids.min()), int(ids.max())
    expect(low >= 0 and high < 64, f"{said}, ids go from {low} to {high}, expected 0 to 63")
    return ids


def _wanted(ids):
    """Whether the key follows an earlier occurrence of the query's token, (n, T, T)."""
    wanted = torch.zeros(*ids.shape, ids.size(1), dtype=torch.bool)
    wanted[:, :, 1:] = ids[:, :, None] == ids[:, None, :-1]
    return wanted.tril()


def _scores(weights, ids):
    """The induction score of one head, weights (n, T, T)."""
    wanted = _wanted(ids)
    return float((weights * wanted).sum() / wanted.any(dim=-1).sum().clamp(min=1))


def _spread(chosen):
    """Weights that are even over the chosen keys, with nothing where there are none."""
    return chosen / chosen.sum(dim=-1, keepdim=True).clamp(min=1)


def _p_shape(answer):
    """n texts of tokens 0 to 63, drawn with the given generator"""
    for n, length in ((3, 40), (1, 64), (100, 40), (N, LENGTH)):
        first = _texts(answer, 1, n, length)
        again = _texts(answer, 1, n, length)
        expect(torch.equal(first, again), "the same seed gives other texts: draw with `draws`")
    other = _texts(answer, 2)
    expect(not torch.equal(first, other), "another seed gives the same texts: draw with `draws`")


def _p_enough(answer):
    """in at least half of the positions there is something to find"""
    for length in (LENGTH, 40, 64):
        share = _wanted(_texts(answer, 3, N, length)).any(dim=-1).float().mean().item()
        where = f"for n={N}, length={length}"
        expect(
            share >= 0.5,
            f"{where}, only {share:.0%} of the positions have something to find, expected half",
        )


def _p_distance(answer):
    """a head that attends a fixed number of positions back, or to a fixed one, scores under 0.4"""
    wanted = _wanted(_texts(answer, 4))
    asking = wanted.any(dim=-1).sum().clamp(min=1)
    for d in range(LENGTH):
        score = float(wanted.diagonal(-d, 1, 2).sum() / asking)
        expect(
            score < 0.4, f"{_P}, a head that always attends {d} positions back scores {score:.2f}"
        )
        score = float(wanted[:, :, d].sum() / asking)
        expect(score < 0.4, f"{_P}, a head that always attends to position {d} scores {score:.2f}")


def _p_even(answer):
    """a head that spreads its weight, over all or over the same token, scores under 0.4"""
    ids = _texts(answer, 5)
    everywhere = torch.ones(N, LENGTH, LENGTH).tril()
    score = _scores(_spread(everywhere), ids)
    expect(score < 0.4, f"{_P}, a head that spreads its weight evenly scores {score:.2f}")
    same = (ids[:, :, None] == ids[:, None, :]).float().tril()
    score = _scores(_spread(same), ids)
    expect(
        score < 0.4, f"{_P}, a head that attends to tokens equal to the query's scores {score:.2f}"
    )


def _p_order(answer):
    """a head that has memorised which token follows which scores under 0.4"""
    learned = torch.zeros(64, 64)
    for ids in (_texts(answer, 6), _texts(answer, 7)):
        learned.index_put_((ids[:, :-1], ids[:, 1:]), torch.tensor(1.0), accumulate=True)
    follower = learned.argmax(dim=-1)  # (64,)
    ids = _texts(answer, 8)
    knows = (follower[ids][:, :, None] == ids[:, None, :]).float().tril()
    score = _scores(_spread(knows), ids)
    expect(
        score < 0.4,
        f"{_P}, a head that has memorised from other texts which token mostly follows which scores "
        f"{score:.2f}, without looking for what followed in this text",
    )


PROBE = Exercise(
    id="28.2",
    title="a text on which only induction scores",
    difficulty=2,
    minutes=10,
    statement=(
        "A score is only as good as the text on which it is measured. Write `my_probe_texts(n, "
        "length, draws)`, which draws n texts of `length` tokens on which an induction head "
        "scores 1 and every other kind of head stays below 0.4. In at least half of the positions "
        "there must be something to find, that is, a key whose preceding token equals the query's "
        "token.\n\nThe other heads attend a fixed number of positions back or to a fixed "
        "position, spread their weight over all tokens or over those equal to the query's, or "
        "have memorised from other texts of yours which token usually follows which."
    ),
    hint=(
        (
            "In detail: return ids of shape (n, length) in int64, from 0 to 63, drawn with the "
            "generator `draws`. n may be 1, and `length` is 40 to 64. The scores are measured on "
            "64 texts of 48 tokens."
        ),
        (
            "Repeat a stretch of different tokens. What must differ from text to text so that no "
            "fixed distance works, and what so that nothing can be memorised? `torch.rand(n, 64, "
            "generator=draws).argsort(dim=-1)` shuffles 64 tokens n times."
        ),
    ),
    function=my_probe_texts,
    tests=(_p_shape, _p_enough, _p_distance, _p_even, _p_order),
)


# 28.3 a mean over the wrong axis


def my_mean_ablated(z, real, head):
    """Replace a head's vectors by their mean over real tokens: z (B, H, T, D), real (B, T)."""
    raise NotImplementedError


WRONG_MEAN = """
def my_mean_ablated(z, real, head):
    z[:, head] = z.mean(dim=1)
    return z
"""


def _m_by_loop(z, real, head):
    """Summed token by token."""
    rows = [z[b, head, t] for b in range(len(z)) for t in range(z.size(2)) if real[b, t]]
    mean = torch.stack(rows).sum(dim=0) / len(rows)
    parts = [mean.expand_as(z[:, 0]) if h == head else z[:, h] for h in range(z.size(1))]
    return torch.stack(parts, dim=1)


def _real(*lengths, width):
    return torch.arange(width)[None] < torch.tensor(lengths)[:, None]


Z = torch.tensor([[[[1.0], [3.0]], [[10.0], [20.0]]], [[[5.0], [100.0]], [[30.0], [40.0]]]])
R = torch.tensor([[True, True], [True, False]])


def _m_small(answer):
    """the mean is over tokens, of this head"""
    agrees(answer, _m_by_loop, Z[:1], R[:1], 0, note="Head 0's tokens are 1 and 3, mean 2.")


def _m_sentences(answer):
    """over the tokens of all sentences together, without the padding"""
    note = "The real tokens of head 0 are 1, 3 and 5; 100 is padding."
    agrees(answer, _m_by_loop, Z, R, 0, note=note)
    agrees(answer, _m_by_loop, Z, R, 1)


def _m_others(answer):
    """other heads keep what they had, and the caller its tensors"""
    z, real = numbers(3, 4, 5, 2, seed=1), _real(5, 2, 4, width=5)
    before, real_before = z.clone(), real.clone()
    for head in range(4):
        agrees(answer, _m_by_loop, z, real, head)
    kept = torch.equal(z, before) and torch.equal(real, real_before)
    expect(kept, "for z of shape (3, 4, 5, 2), you change the caller's tensors: work on a copy")


def _m_sizes(answer):
    """for any sizes, and padding anywhere, whatever it contains"""
    agrees(answer, _m_by_loop, numbers(2, 3, 3, 3, seed=2), _real(1, 3, width=3), 2)
    agrees(answer, _m_by_loop, numbers(1, 1, 1, 4, seed=3), _real(1, width=1), 0)
    agrees(answer, _m_by_loop, numbers(4, 2, 6, 1, seed=4), _real(6, 1, 3, 2, width=6), 1)
    holes = torch.tensor([[False, True, True], [False, False, True], [False, False, False]])
    agrees(answer, _m_by_loop, numbers(3, 2, 3, 2, seed=5), holes, 0)
    spoilt = numbers(3, 2, 3, 2, seed=5).masked_fill(~holes[:, None, :, None], math.nan)
    note = "Padded positions hold NaN here, and 0 times NaN is NaN."
    agrees(lambda *given: answer(*given)[:, 0], lambda *given: _m_by_loop(*given)[:, 0],
           spoilt, holes, 0, note=note)  # fmt: skip


def _m_kinds(answer):
    """in other dtypes, with gradients"""
    z, real = numbers(2, 3, 4, 2, seed=6), _real(4, 2, width=4)
    agrees(answer, _m_by_loop, z.double(), real, 1)
    precise(answer, _m_by_loop, z, real, 1, dtype=torch.float16, tolerance=2e-3)
    gradients(answer, _m_by_loop, z, real, 1)


MEAN = Exercise(
    id="28.3",
    title="a mean over the wrong axis",
    difficulty=2,
    minutes=10,
    statement=(
        "This function should replace what one head computes by its mean. `z` of shape (B, H, T, "
        "D) holds the outputs of all heads before they are joined, and `real` of shape (B, T) is "
        "True at tokens and False at padding. The function runs and does some damage to the "
        "model, so nobody notices that it has three faults."
        f"\n\n```python{WRONG_MEAN}```\n\n"
        "Repair it. `my_mean_ablated(z, real, head)` returns a copy of `z` in which the given "
        "head has the same vector at every position: the mean of its vectors over all real tokens "
        "of the batch. The other heads stay as they are, and so does the caller's `z`."
    ),
    hint=(
        "`z[:, head]` has shape (B, T, D), and `real` picks its tokens: (tokens, D).",
        (
            "In detail: each token counts once, whichever sentence it is in, and padded positions "
            "get the mean as well. At least one token is real."
        ),
    ),
    function=my_mean_ablated,
    tests=(_m_small, _m_sentences, _m_others, _m_sizes, _m_kinds),
)


# 28.4 two tokens must match


def my_matched_score(weights, ids, match):
    """Score heads for what followed the last `match` tokens: (B, H, T, T) -> (H,)."""
    raise NotImplementedError


def _s_by_loop(weights, ids, match):
    """Query by query, key by key."""
    total, count = weights.new_zeros(weights.size(1)), 0
    for row, tokens in enumerate(ids.tolist()):
        for t in range(len(tokens)):
            last = tokens[max(0, t - match + 1) : t + 1]
            keys = [s for s in range(match, t + 1) if tokens[s - match : s] == last]
            if keys:
                count += 1
                total = total + sum(weights[row, :, t, s] for s in keys)
    return total / count if count else total * math.nan


def _patterns(ids, seed=0, dtype=torch.float32):
    """Random causal weights of three heads for these ids."""
    scores = numbers(len(ids), 3, ids.size(1), ids.size(1), seed=seed, scale=2.0, dtype=dtype)
    future = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1)


TWICE = torch.tensor([[7, 3, 5, 3, 7, 3]])


def _s_small(answer):
    """in 7 3 5 3 7 3, the last query wants key 2, which follows 7 3, and not key 4"""
    weights = torch.zeros(1, 3, 6, 6)
    weights[0, 0, 5, 2], weights[0, 0, 5, 4] = 0.75, 0.25  # what followed 7 3, and 5 3
    weights[0, 1, 5, 4] = 1.0
    weights[0, 2, 5, 1], weights[0, 2, 3, 2] = 1.0, 1.0  # the same token; one back
    note = (
        "The last two tokens up to query 5 are 7 3. Key 2 follows 7 3 and is wanted, and key 4 "
        "follows 5 3. The other queries want no key."
    )
    agrees(answer, _s_by_loop, weights, TWICE, 2, note=note)


def _s_one(answer):
    """with match=1 it is the induction score"""
    weights = torch.zeros(1, 3, 4, 4)
    weights[0, 0, 2, 1], weights[0, 0, 3, 2] = 0.75, 0.25  # what followed
    weights[0, 1, 2, 0], weights[0, 1, 3, 1] = 1.0, 1.0  # the same token
    weights[0, 2, 1, 0], weights[0, 2, 2, 1], weights[0, 2, 3, 2] = 1.0, 0.5, 0.5  # one back
    note = "Key 1 follows the first 7 and key 2 the first 3. Queries 0 and 1 want no key."
    agrees(answer, _s_by_loop, weights, torch.tensor([[7, 3, 7, 3]]), 1, note=note)


def _s_order(answer):
    """the tokens must match in their order, each of them"""
    ids = torch.tensor([[1, 2, 9, 2, 1, 8, 1, 2]])
    note = "The last two tokens up to query 7 are 1 2. Key 2 follows 1 2, and key 5 follows 2 1."
    agrees(answer, _s_by_loop, _patterns(ids, 3), ids, 2, note=note)
    ids = torch.tensor([[4, 1, 2, 9, 4, 6, 2]])
    note = "In 4 6 2 and 4 1 2, the middle tokens differ."
    expect_none(answer, ids, 3, note)
    ids = torch.tensor([[4, 1, 2, 9, 5, 1, 2, 8, 6, 1, 2, 4, 1, 2], [3, 1, 3, 2] * 3 + [3, 1]])
    for match in (3, 2, 4):
        agrees(answer, _s_by_loop, _patterns(ids, 4), ids, match)


def expect_none(answer, ids, match, note=""):
    """Expect NaN for each of three heads."""
    got = tensor(answer(_patterns(ids), ids, match), f"for ids {ids.tolist()}, match={match}")
    said = f"for ids {ids.tolist()}, match={match}, your scores are {got.tolist()}, expected NaN"
    expect(got.shape == (3,) and bool(got.isnan().all()), f"{said} for each of 3 heads. {note}")


def _s_several(answer):
    """what has occurred several times has several keys, and their weights are added"""
    ids = torch.tensor([[4, 4, 4, 4, 9, 4, 4]])
    note = "The last two tokens up to query 6 are 4 4. It wants keys 2, 3 and 4, which follow 4 4."
    agrees(answer, _s_by_loop, _patterns(ids), ids, 2, note=note)


def _s_batch(answer):
    """rows that repeat differently; each query counts once, whichever row it is in"""
    ids = torch.tensor([[1, 2, 1, 2, 1, 2], [5, 6, 7, 8, 5, 6], [3, 3, 0, 1, 2, 4]])
    for match in (2, 1, 3):
        agrees(answer, _s_by_loop, _patterns(ids, 1), ids, match)
        agrees(answer, _s_by_loop, _patterns(ids.flip(0), 2), ids.flip(0), match)
    agrees(answer, _s_by_loop, _patterns(ids[:2] * 0, 3), ids[:2] * 0, 2)
    near = torch.tensor([[2**24, 5, 2**24 + 1, 5, 2**24, 5]])  # the same in float32
    agrees(answer, _s_by_loop, _patterns(near, 9), near, 2, note="Compare the ids as integers.")
    some = torch.tensor([[1, 2, 3, 4, 5], [8, 8, 9, 8, 8]])
    agrees(answer, _s_by_loop, _patterns(some, 4), some, 2, note="In row 0 no token occurs twice.")


def _s_past(answer):
    """only keys up to the query count, even if later keys have weight"""
    ids = torch.tensor([[2, 5, 2, 5, 2, 5], [0, 0, 0, 1, 0, 0]])
    weights = numbers(2, 3, 6, 6, seed=8).softmax(dim=-1)
    note = "Some of these weights are on keys after the query, which are never wanted."
    for match in (2, 1):
        agrees(answer, _s_by_loop, weights, ids, match, note=note)


def _s_none(answer):
    """where nothing that long is repeated, every head's score is NaN"""
    expect_none(answer, torch.tensor([[3, 1, 2]]), 1)
    expect_none(answer, torch.tensor([[3, 1, 3, 2, 3]]), 2)
    expect_none(answer, torch.tensor([[3, 3]]), 2)
    expect_none(answer, torch.tensor([[3, 3, 3]]), 5, "The text is shorter than 5.")
    expect_none(answer, torch.tensor([[3]]), 1)


def _s_kinds(answer):
    """in other dtypes, with gradients, on other devices"""
    ids = torch.tensor([[1, 2, 1, 2, 1], [0, 4, 4, 0, 4]])
    agrees(answer, _s_by_loop, _patterns(ids, 5, torch.float64), ids.int(), 2)
    precise(answer, _s_by_loop, _patterns(ids, 6), ids, 2, dtype=torch.float16, tolerance=2e-3)
    gradients(answer, _s_by_loop, _patterns(ids, 7), ids, 2)
    travels(answer, _patterns(ids, 7), ids, 2)
    weights, before, kept = _patterns(ids, 8), _patterns(ids, 8), ids.clone()
    answer(weights, ids, 2)
    expect(torch.equal(weights, before), "you change the caller's weights")
    expect(torch.equal(ids, kept), "you change the caller's ids")


SCORE = Exercise(
    id="28.4",
    title="two tokens must match",
    difficulty=3,
    minutes=15,
    statement=(
        "In `7 3 5 3 7 3`, two different tokens have followed a 3, so an induction head is torn "
        "between them. A cleverer head would match the last *two* tokens and attend only to what "
        "followed `7 3`. Write `my_matched_score(weights, ids, match)`, which scores the heads "
        "for this: it is the induction score for a head that matches the last `match` tokens. "
        "With `match=1` it equals `induction_score`."
    ),
    hint=(
        (
            "In detail: `weights` is (B, H, T, T), `ids` is (B, T), and the result is (H,). Key s "
            "is wanted by query t if match ≤ s ≤ t and the `match` tokens before s equal, in "
            "their order, the last `match` tokens up to and including t: ids[s − match] to ids[s "
            "− 1] equal ids[t − match + 1] to ids[t]. The weights of several wanted keys are "
            "added. The score is the mean of this sum over all queries of the batch that want at "
            "least one key, each counting once, and NaN if there is none."
        ),
        (
            "`same = ids[:, :, None] == ids[:, None, :]` says whether the tokens at t and s are "
            "equal. The last two match where it is true at [t, s] and at [t − 1, s − 1]: shift "
            "the table by one along both axes, with False in the first row and column. Three "
            "match where it is true at [t, s], and the last two match at [t − 1, s − 1]."
        ),
    ),
    function=my_matched_score,
    tests=(_s_small, _s_one, _s_order, _s_several, _s_batch, _s_past, _s_none, _s_kinds),
)


# 28.5 the smallest set that is needed


def my_smallest_set(heads, works):
    """Find the smallest set of `heads` whose removal makes the model fail: a list, or None.

    works(removed) runs the model without the heads of the list `removed`, and returns whether its
    answer is still right.
    """
    raise NotImplementedError


FOUR = ["0.0", "0.1", "1.0", "1.1"]


def _model(heads, groups, rescued=()):
    """A model that fails where all heads of a group are gone, unless a set of `rescued` is, too."""

    def works(removed):
        where = f"your answer calls works({removed!r})"
        expect(not isinstance(removed, str), f"{where}: pass a list, even for a single head")
        gone = list(removed)
        unknown = [head for head in gone if head not in heads]
        expect(not unknown, f"{where}, but {unknown} are not among the model's heads, {heads}")
        expect(len(set(gone)) == len(gone), f"{where}, which names a head twice")
        lost = any(set(group) <= set(gone) for group in groups)
        return not lost or any(set(group) <= set(gone) for group in rescued)

    return works


def _asked(answer, heads, groups, expected, note="", rescued=()):
    said = f"for a model with the heads {heads}"
    if groups:
        said += ", which fails if " + " or ".join(f"all of {list(g)}" for g in groups) + " are"
    else:
        said += ", which never fails, whichever heads are"
    said += " removed"
    if rescued:
        said += f", but not if {list(rescued[0])} is removed as well"
    got = answer(list(heads), _model(heads, groups, rescued))
    note = f" {note}" if note else ""
    expect(got == expected, f"{said}, you return {got!r}, expected {expected!r}.{note}")


def _b_one(answer):
    """one head that is needed is found"""
    _asked(answer, FOUR, [["0.1"]], ["0.1"])
    _asked(answer, FOUR, [["1.1"]], ["1.1"])


def _b_pair(answer):
    """two heads that back each other up are found together, and no other head"""
    note = "Each of the two alone can be removed."
    _asked(answer, FOUR, [["0.1", "1.1"]], ["0.1", "1.1"], note)
    _asked(answer, FOUR, [["0.0", "1.0"]], ["0.0", "1.0"], note)


def _b_many(answer):
    """three and more, up to all"""
    six = [f"1.{h}" for h in range(6)]
    _asked(answer, six, [["1.1", "1.3", "1.4"]], ["1.1", "1.3", "1.4"])
    _asked(answer, FOUR, [FOUR], FOUR)
    _asked(answer, six, [six[1:]], six[1:])
    _asked(answer, ["2.7"], [["2.7"]], ["2.7"])


def _b_smallest(answer):
    """of several sets, the smallest"""
    note = "A set of three makes the model fail, too, but the set of two is smaller."
    _asked(answer, FOUR, [["0.0", "0.1", "1.0"], ["1.0", "1.1"]], ["1.0", "1.1"], note)
    five = ["a", "b", "c", "d", "e"]
    _asked(answer, five, [["a", "b", "c"], ["b", "d", "e"], ["c", "e"]], ["c", "e"], note)


def _b_ties(answer):
    """of several of one size, the first in the order of the list"""
    note = "In the order of `itertools.combinations`, sets with the first head come first."
    _asked(answer, FOUR, [["0.1", "1.0"], ["0.0", "1.1"]], ["0.0", "1.1"], note)
    _asked(answer, ["z", "y", "x", "a"], [["y", "a"], ["y", "x"]], ["y", "x"], note)


def _b_back_again(answer):
    """even if the answer is right again when still more heads are removed"""
    note = "Head 1.1 works against the right answer, so without it the others are enough again."
    _asked(answer, FOUR, [["0.0", "1.0"]], ["0.0", "1.0"], note, rescued=[["1.1"]])
    _asked(answer, FOUR, [["0.1"]], ["0.1"], note, rescued=[["1.1"]])


def _b_none(answer):
    """None if the model works without all of them, and [] if it fails with all"""
    _asked(answer, FOUR, [], None)
    _asked(answer, [], [], None)
    _asked(
        answer,
        FOUR,
        [[]],
        [],
        "The model fails with all heads in place, so the smallest set is empty.",
    )


BACKUP = Exercise(
    id="28.5",
    title="which heads back each other up",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_smallest_set(heads, works)`, which searches for the smallest set of heads that "
        "a model can't do without. `works(removed)` runs the model without the heads in the list "
        "`removed` and returns whether its answer is still right. Return the smallest set whose "
        "removal makes the model fail, as a list in the order of `heads`. Return None if the "
        "model works whichever heads are removed, and [] if it fails with all of them in "
        "place.\n\nRemoving more heads doesn't always do more damage, because a head may also "
        "work against the right answer."
    ),
    hint=(
        (
            "First try no head, then each alone, then each pair, and so on: the first set that "
            "makes the model fail is the smallest."
        ),
        (
            "Of several sets of the same size, return the one that `itertools.combinations(heads, "
            "size)` gives first. `works` expects a list."
        ),
    ),
    function=my_smallest_set,
    none_is_a_result=True,
    tests=(_b_one, _b_pair, _b_many, _b_smallest, _b_ties, _b_back_again, _b_none),
)


EXERCISES = (LEAKS, PROBE, MEAN, SCORE, BACKUP)
