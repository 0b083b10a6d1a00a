"""29.5 patch the bug (★★★, 15 minutes)

Patching finds more than answers. You have a model that works, `good`, and a copy, `broken`, in
which one thing has been changed: a weight, or a line of code. Every module after the bug has a
different output, so comparing outputs accuses many modules, but a patch accuses only one. Run
`broken` with the output of one module replaced by the output of that module in `good`. If this
heals the answer, the bug is not after that module.

Write `my_culprit(good, broken, names, x)`. It returns the first of `names`, in the order in which
the modules run, whose patch alone makes `broken(x)` equal to `good(x)`, or None if there is none.
Afterwards, both models are as they were before.

<details><summary>The rule in detail</summary>

Equal means within 1e-4 everywhere. If the two models agree without any patch, return None. Each
module runs once, and its output is a tensor. Weights, modes and hooks must be as before. You may
use PyTorch's hooks, or `record` and `replace`.

</details>

Hint: A hook that returns a tensor replaces the module's output. For each name, run `good` with a
hook that keeps the output, and `broken` with a hook that returns it.

Hint: `torch.allclose(a, b, rtol=0, atol=1e-4)` compares. Before the loop, compare without any
patch.
"""

import math

import torch
from torch import nn

from tinytf_course.expect import expect, numbers


def my_culprit(good, broken, names, x):
    """Name the first module of `names` whose patch heals `broken` on x, or None.

    good, broken: two models of the same modules. Both stay as they are.
    """

    def run(model, name, hook):
        handle = model.get_submodule(name).register_forward_hook(hook)
        try:
            return model(x)
        finally:
            handle.remove()

    def healed(answer):
        return torch.allclose(answer, good(x), rtol=0, atol=1e-4)

    if healed(broken(x)):
        return None
    kept = {}
    for name in names:
        run(good, name, lambda module, inputs, out: kept.update(out=out))
        if healed(run(broken, name, lambda module, inputs, out: kept["out"])):
            return name
    return None


NONE_IS_A_RESULT = True


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
    hooks["everywhere"] = [*torch.nn.modules.module._global_forward_hooks]
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


def test_k_one(answer):
    """a bug in one module's code is found"""
    _found(answer, "first.act computes another function", _Small(first="act"), NAMES, "first.act")
    _found(answer, "second.w_1 forgets its bias", _Small(second="w_1"), NAMES[2:], "second.w_1")


def test_k_weights(answer):
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


def test_k_first(answer):
    """every module after the bug heals the answer, and the first of them is the culprit"""
    note = "Later modules heal the answer as well, because their outputs are computed from it."
    _found(answer, "first.act computes another function", _Small(first="act"), WHOLE, "first", note)
    _found(answer, "the norm has another eps", _Small(norm=True), WHOLE, "norm", note)


def test_k_residual(answer):
    """the culprit may be a whole block, where none of its parts is"""
    note = "Its parts compute the right outputs, but the residual addition around them is missing."
    said = "the second block forgets to add its input"
    _found(answer, said, _Small(second="residual"), [*NAMES[3:], *WHOLE[1:]], "second", note)
    _found(answer, said, _Small(second="residual"), NAMES[4:], None, note)


def test_k_between(answer):
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


def test_k_none(answer):
    """None where the models agree already"""
    note = "There is nothing to heal, so any patch would seem to work."
    _found(answer, "nothing is wrong", _Small(), NAMES, None, note)
    positive = numbers(2, 3, 4, seed=3).abs() * 9 + 20
    good, broken = nn.Sequential(nn.LeakyReLU(0.1)), nn.Sequential(nn.ReLU())
    _found(answer, "the bug makes no difference for this x", broken, ["0"], None, note, good,
           positive)  # fmt: skip


def test_k_exact(answer):
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


MISTAKES = r"""
the first that differs
    if healed(run(broken, name, lambda module, inputs, out: kept["out"])): =>
        run(broken, name, lambda module, inputs, out: kept.update(other=out))
        if not torch.allclose(kept["other"], kept["out"], rtol=0, atol=1e-4):
    says: is not it
    That finds the bug only if there is a single one and its module is in the list. A patch also
    shows if that is not so.
the last that heals
    for name in names: => for name in reversed(names):
    says: Later modules heal
    Every later module through which the whole answer passes heals it as well.
it never tests whether anything is wrong
    if healed(broken(x)): => if not names:
    says: There is nothing to heal
    If nothing is wrong, every patch seems to heal the model.
the patch that comes nearest
    kept = {} => kept, gaps = {}, {}
    if healed(run(broken, name, lambda module, inputs, out: kept["out"])): =>
        answer = run(broken, name, lambda module, inputs, out: kept["out"])
        gaps[name] = (answer - good(x)).abs().mean().item()
        if name == names[-1]:
    return name => return min(gaps, key=gaps.get)
    says: Its parts compute the right
    Some patch always comes nearest; the question is whether the answer is healed.
the weights, not the outputs
    if healed(run(broken, name, lambda module, inputs, out: kept["out"])): =>
        module = broken.get_submodule(name)
        before = {key: value.clone() for key, value in module.state_dict().items()}
        module.load_state_dict(good.get_submodule(name).state_dict())
        answer = broken(x)
        module.load_state_dict(before)
        if healed(answer):
    says: computes another function
    A bug in the code changes no weight, so comparing them or copying them over does not find it.
    Replace the module's output.
a hook is left
    handle.remove() => pass
    says: a hook is left
    Remove the handle, in a `finally`.
"""

HARMLESS = r"""
return model(x) => …detach()
    nothing is differentiated here
return None => (nothing)
    a function that comes to its end returns None
return torch.allclose(…) => return torch.allclose(good(x), answer, …)
    without a relative part it is the same both ways
"""
