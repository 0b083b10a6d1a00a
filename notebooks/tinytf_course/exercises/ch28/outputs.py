"""28.1 a hook that leaks (★★☆, 10 minutes)

This function should return the outputs of several modules from one forward pass. Somebody calls it
in every training step, and each step takes longer than the one before.

```python
def my_outputs(model, names, *inputs):
    kept = {}
    for name in names:
        def keep(module, inputs, out):
            kept[name] = out
        model.get_submodule(name).register_forward_hook(keep)
    model(*inputs)
    return kept
```

That is not all that is wrong. Repair it: `my_outputs(model, names, *inputs)` calls `model(*inputs)`
once, returns a dictionary that maps each name to the detached output of that module, and leaves the
model as it was.

<details><summary>The rule in detail</summary>

Afterwards the model has the same hooks as before, even if the pass raises an error or a name
doesn't exist; the error goes on to the caller. The model runs in the mode it is in, its own output
keeps its graph, and hooks that others have registered stay and do their work. For an unknown name,
`get_submodule` raises an AttributeError.

</details>

Hint: There are four faults: the names under which the outputs are stored, what the outputs keep in
memory, what is left in the model afterwards, and what is left in it if the forward pass fails.

Hint: A function that makes the hook, `keeper(name)`, fixes the name for it. Collect the handles in
a list, and remove them in a `finally`; registering the hooks belongs in the `try`.
"""

import torch
from torch import nn

from tinytf_course.expect import expect, numbers, refuses, same, tensor


def my_outputs(model, names, *inputs):
    """Return the outputs of the named modules for these inputs: {name: tensor}, detached.

    Afterwards the model has the same hooks as before, even if it fails.
    """
    kept, handles = {}, []

    def keeper(name):
        def keep(module, given, out):
            kept[name] = out.detach()

        return keep

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(keeper(name)))
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return kept


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


def _expected(model, *names):
    a, b = model.left(X).detach(), model.right(Y).detach()
    outputs = {"left": a, "right": b, "last.0": model.last[0](a + b).detach()}
    return {name: outputs[name] for name in names}


def _hooks(model):
    return {name: len(module._forward_hooks) for name, module in model.named_modules()}


def test_o_one(answer):
    """it returns the output of one module"""
    model = _Sum()
    same(answer(model, ["right"], X, Y), _expected(model, "right"), f"{_W}, and names=['right']")


def test_o_several(answer):
    """of several modules, each output has its own name"""
    model, names = _Sum(), ["last.0", "left", "right"]
    note = (
        "A function defined in a loop looks up the loop's variable only when it is called, and by "
        "then that is the last name."
    )
    same(answer(model, names, X, Y), _expected(model, *names), f"{_W}, and names={names}",
         note=note, dtype=True)  # fmt: skip
    model.twin = model.left  # one module, two names
    left = _expected(model, "left")["left"]
    where = f"{_W}, and with `twin`, another name of `left`"
    same(answer(model, ["left", "twin"], X, Y), {"left": left, "twin": left}, where)
    wide = _Sum().double()
    where = f"{_W} in float64"
    got = answer(wide, ["left"], X.double(), Y.double())
    same(got, {"left": wide.left(X.double()).detach()}, where, dtype=True)
    kinds = {part.dtype for part in wide.parameters()}
    expect(kinds == {torch.float64}, f"{where}, you change the model's dtype")


def test_o_detached(answer):
    """the outputs are detached from the graph"""
    for name, value in answer(_Sum(), ["left", "last.0"], X, Y).items():
        message = f"{_W}, the stored output of `{name}` requires a gradient, so it keeps the graph"
        expect(not value.requires_grad, f"{message} of the whole pass in memory")


def test_o_removed(answer):
    """no hook of yours is left"""
    model = _Sum()
    before = _hooks(model)
    for _ in range(2):
        answer(model, ["left", "last.0"], X, Y)
        left = {name: n for name, n in _hooks(model).items() if n != before[name]}
        expect(not left, f"{_W}, after the call there are hooks left on {sorted(left)}")


def test_o_others_stay(answer):
    """hooks of others stay and do their work"""
    model, calls, whole = _Sum(), [], []
    handle = model.left.register_forward_hook(lambda module, inputs, out: calls.append(1))
    model.right.register_forward_hook(lambda module, inputs, out: out * 2)
    before = _hooks(model)
    got = answer(model, ["left", "right"], X, Y)
    expect(_hooks(model) == before, f"{_W}, a hook that was there before is gone")
    expect(len(calls) == 1, f"{_W}, the model ran {len(calls)} times, expected once")
    doubled = 2 * _expected(_Sum(), "right")["right"]
    same(got["right"], doubled, f"{_W}, with an earlier hook that doubles `right`")
    handle.remove()
    words = "the handle of an earlier hook no longer removes it: don't edit `_forward_hooks`"
    expect(not model.left._forward_hooks, f"{_W}, {words}")
    model.register_forward_hook(lambda module, inputs, out: whole.append(module))
    answer(model, ["left"], X, Y)
    words = f"a hook on the model itself runs {len(whole)} times, expected once"
    expect(len(whole) == 1, f"{_W}, {words}: call `model(...)`")
    words = "a copy of the model runs: run the model itself, whose pass keeps its graph"
    expect(whole[0] is model, f"{_W}, {words}")


def test_o_graph(answer):
    """only the kept outputs are detached: the model's own output keeps its graph"""
    model, handed_on = _Sum(), []
    model.last.register_forward_hook(lambda module, inputs, out: handed_on.append(out))
    answer(model, ["left"], X, Y)
    words = "the model's own output has no graph: don't run the model under `no_grad`"
    expect(handed_on[-1].requires_grad, f"{_W}, {words}")
    handed_on[-1].sum().backward()
    words = "gradients no longer reach `left`: detach only the outputs that you store"
    expect(model.left.weight.grad is not None, f"{_W}, and names=['left'], {words}")


def test_o_fails(answer):
    """if the model fails, its error goes on, and no hook is left"""
    model = _Sum(fails=True)
    before, names = _hooks(model), ["left", "last.0"]
    refuses(answer, model, names, X, Y, error=ArithmeticError, where=f"{_W}, where `last` fails")
    words = "the model raises an error and your hooks stay: remove them in a `finally`"
    expect(_hooks(model) == before, f"{_W}, {words}")


def test_o_wrong_name(answer):
    """an unknown name raises AttributeError, and no hook is left on the others"""
    model, names = _Sum(), ["left", "missing"]
    before, where = _hooks(model), f"{_W}, and names={names}"
    refuses(answer, model, names, X, Y, error=AttributeError, where=where)
    expect(_hooks(model) == before, f"{where}, a hook stays on `left`")


def test_o_mode(answer):
    """the model keeps its mode, and runs in it"""
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    for mode in (True, False):
        model.train(mode)
        dropped = bool((tensor(answer(model, ["0", "1"], X + 5)["1"], "dropout") == 0).any())
        where = f"for a model in {'training' if mode else 'evaluation'} mode"
        expect(model.training == mode, f"{where}, you change its mode")
        expect(dropped == mode, f"{where}, it does not run in that mode")


MISTAKES = r"""
the loop's last name
    def keeper(name): => def keeper(_):
    says: that is the last name
    A function keeps no copy of `name`, so all hooks store under the loop's last name.
the input is kept
    out.detach() => given[0].detach()
    says: expected (2, 6, 4)
    A hook receives the module, its inputs and its output, in this order.
the model's output is detached as well
    kept[name] = out.detach() =>
        kept[name] = out.detach()
        return kept[name]
    says: detach only the outputs
    A hook that returns something changes the model. One that only reads returns nothing.
run without gradients
    model(*inputs) =>
        with torch.no_grad():
            model(*inputs)
    says: has no graph
    Used in a training step, it would leave the model without gradients.
run in evaluation mode
    kept, handles = {}, [] =>
        kept, handles, modes = {}, [], [(part, part.training) for part in model.modules()]
    model(*inputs) => model.eval()(*inputs)
    return kept =>
        for part, mode in modes:
            part.training = mode
        return kept
    says: it does not run in that mode
    The model must run in the mode it is in, dropout included.
the graph is kept
    out.detach() => out
    says: requires a gradient
    Without `detach` each recorded tensor holds the whole graph in memory.
hooks are left
    handle.remove() => pass
    says: there are hooks left on
    A hook stays until its handle removes it, and the next call adds another.
hooks are left after an error
    try: => if True:
    finally: => if True:
    says: remove them in a `finally`
    The line that removes them is never reached when the model raises.
everybody's hooks are removed
    for handle in handles: => for name in names:
    handle.remove() => model.get_submodule(name)._forward_hooks.clear()
    says: is gone
    Clearing a module's hooks also removes those that others have registered.
the error is hidden
    finally: =>
        except ArithmeticError:
            pass
        finally:
    says: expected a ArithmeticError
    `finally` cleans up and passes the error on; `except` without `raise` hides it.
`forward` called by hand
    model(*inputs) => model.forward(*inputs)
    says: a hook on the model itself runs 0 times
    `model.forward(...)` skips the hooks of the model itself; `model(...)` runs them.
the tables of hooks exchanged
    kept, handles = {}, [] =>
        kept, handles = {}, []
        tables = {part: part._forward_hooks.copy() for part in model.modules()}
    for handle in handles: => for part, hooks in tables.items():
    handle.remove() => part._forward_hooks = hooks
    says: no longer removes it
    A handle removes its hook from the table it was registered in, and you have replaced that
    table. Remove your own hooks by their handles.
a copy is run
    kept, handles = {}, [] =>
        from copy import deepcopy

        model, kept, handles = deepcopy(model), {}, []
    says: a copy of the model runs
    Run the model itself, because its gradients and running means belong to it.
one name for each module
    for name in names: =>
        for name in {model.get_submodule(name): name for name in names}.values():
    says: another name of `left`
    A dictionary with modules as its keys keeps one name for each, but a module may have two.
"""
