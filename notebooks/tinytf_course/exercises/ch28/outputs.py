"""28.1 a hook that leaks (★★☆, 10 minutes)

This function should return the outputs of several modules from one forward pass, but it has four
faults. They concern the names under which the outputs are stored, what the outputs keep in memory,
what is left in the model afterwards, and what is left in it if the forward pass fails.

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

Repair it. `my_outputs(model, names, *inputs)` calls `model(*inputs)` once and returns a dictionary
that maps each name to the detached output of that module. Afterwards the model has the same hooks
as before, even if the pass raises an error or a name doesn't exist; the error goes on to the
caller.

Hint: In detail: the model runs in the mode it is in, its own output keeps its graph, and hooks that
others have registered stay and do their work. For an unknown name, `get_submodule` raises an
AttributeError.

Hint: A function that makes the hook, `keeper(name)`, fixes the name for it. Collect the handles in
a list, and remove them in a `finally`; registering the hooks belongs in the `try`.
"""

import torch
from torch import nn

from tinytf_course.expect import expect, numbers, same, tensor


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


def _expected_outputs(model):
    a, b = model.left(X).detach(), model.right(Y).detach()
    return {"left": a, "right": b, "last.0": model.last[0](a + b).detach()}


def _hooks(model):
    return {name: len(module._forward_hooks) for name, module in model.named_modules()}


def test_o_one(answer):
    """it returns the output of one module"""
    model = _Sum()
    got = answer(model, ["right"], X, Y)
    same(got, {"right": _expected_outputs(model)["right"]}, f"{_W}, and names=['right']")


def test_o_several(answer):
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


def test_o_detached(answer):
    """the outputs are detached from the graph"""
    for name, value in answer(_Sum(), ["left", "last.0"], X, Y).items():
        expect(
            not value.requires_grad,
            f"{_W}, the stored output of `{name}` requires a gradient, so it keeps the graph of "
            "the whole pass in memory",
        )


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


def test_o_graph(answer):
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


def test_o_fails(answer):
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


def test_o_wrong_name(answer):
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


def test_o_mode(answer):
    """the model keeps its mode, and runs in it"""
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    for mode in (True, False):
        model.train(mode)
        got = answer(model, ["0", "1"], X + 5)
        dropped = bool((tensor(got["1"], "dropout") == 0).any())
        said = "training" if mode else "evaluation"
        expect(model.training == mode, f"for a model in {said} mode, you change its mode")
        expect(dropped == mode, f"for a model in {said} mode, it does not run in that mode")


def _late_name(model, names, *inputs):
    kept, handles = {}, []
    try:
        for name in names:

            def keep(module, given, out):
                kept[name] = out.detach()  # noqa: B023

            handles.append(model.get_submodule(name).register_forward_hook(keep))
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return kept


def _outputs(detach=True, remove=True, always=True, clear=False):
    def answer(model, names, *inputs):
        kept, handles = {}, []

        def keeper(name):
            def keep(module, given, out):
                kept[name] = out.detach() if detach else out

            return keep

        def done():
            for handle in handles if remove else ():
                handle.remove()
            for name in names if clear else ():
                model.get_submodule(name)._forward_hooks.clear()

        try:
            for name in names:
                handles.append(model.get_submodule(name).register_forward_hook(keeper(name)))
            model(*inputs)
        except Exception:
            if always:
                done()
            raise
        done()
        return kept

    return answer


def _inputs(model, names, *inputs):
    kept, handles = {}, []

    def keeper(name):
        def keep(module, given, out):
            kept[name] = given[0].detach()

        return keep

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(keeper(name)))
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return kept


def _evaluated(model, names, *inputs):
    before = {module: module.training for module in model.modules()}
    model.eval()
    try:
        return my_outputs(model, names, *inputs)
    finally:
        for module, mode in before.items():
            module.training = mode


def _cut_off(model, names, *inputs):
    kept, handles = {}, []

    def keeper(name):
        def keep(module, given, out):
            kept[name] = out.detach()
            return kept[name]

        return keep

    try:
        for name in names:
            handles.append(model.get_submodule(name).register_forward_hook(keeper(name)))
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return kept


def _swallows(model, names, *inputs):
    try:
        return my_outputs(model, names, *inputs)
    except ArithmeticError:
        return {}


def _past_the_hooks(model, names, *inputs):
    kept, handles = {}, []
    try:
        for name in names:
            keep = lambda module, given, out, name=name: kept.update({name: out.detach()})  # noqa: E731
            handles.append(model.get_submodule(name).register_forward_hook(keep))
        model.forward(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return kept


def _tables_exchanged(model, names, *inputs):
    kept, before = {}, {m: type(m._forward_hooks)(m._forward_hooks) for m in model.modules()}
    try:
        for name in names:
            keep = lambda module, given, out, name=name: kept.update({name: out.detach()})  # noqa: E731
            model.get_submodule(name).register_forward_hook(keep)
        model(*inputs)
    finally:
        for module, hooks in before.items():
            module._forward_hooks = hooks
    return kept


def _named_by_module(model, names, *inputs):
    named = {model.get_submodule(name): name for name in names}
    kept = my_outputs(model, list(named.values()), *inputs)
    return {name: kept[name] for name in named.values()}


MISTAKES = r"""
the loop's last name
    … =>
        return _late_name(model, names, *inputs)
    says: that is the last name
    A function keeps no copy of `name`, so all hooks store under the loop's last name.
the input is kept
    … =>
        return _inputs(model, names, *inputs)
    says: expected (2, 6, 4)
    A hook receives the module, its inputs and its output, in this order.
the model's output is detached as well
    … =>
        return _cut_off(model, names, *inputs)
    says: detach only the outputs
    A hook that returns something changes the model. One that only reads returns nothing.
run without gradients
    … =>
        return torch.no_grad()(my_outputs)(model, names, *inputs)
    says: has no graph
    Used in a training step, it would leave the model without gradients.
run in evaluation mode
    … =>
        return _evaluated(model, names, *inputs)
    says: it does not run in that mode
    The model must run in the mode it is in, dropout included.
the graph is kept
    … =>
        return _outputs(detach=False)(model, names, *inputs)
    says: requires a gradient
    Without `detach` each recorded tensor holds the whole graph in memory.
hooks are left
    … =>
        return _outputs(remove=False)(model, names, *inputs)
    says: there are hooks left on
    A hook stays until its handle removes it, and the next call adds another.
hooks are left after an error
    … =>
        return _outputs(always=False)(model, names, *inputs)
    says: remove them in a `finally`
    The line that removes them is never reached when the model raises.
everybody's hooks are removed
    … =>
        return _outputs(clear=True)(model, names, *inputs)
    says: is gone
    Clearing a module's hooks also removes those that others have registered.
the error is hidden
    … =>
        return _swallows(model, names, *inputs)
    says: does not pass it on
    `finally` cleans up and passes the error on; `except` without `raise` hides it.
`forward` called by hand
    … =>
        return _past_the_hooks(model, names, *inputs)
    says: a hook on the model itself runs 0 times
    `model.forward(...)` skips the hooks of the model itself; `model(...)` runs them.
the tables of hooks exchanged
    … =>
        return _tables_exchanged(model, names, *inputs)
    says: no longer removes it
    A handle removes its hook from the table it was registered in, and you have replaced that
    table. Remove your own hooks by their handles.
a copy is run
    … =>
        return (lambda model, names, *inputs: my_outputs(copy.deepcopy(model), names, *inputs))(model, names, *inputs)
    says: a copy of the model runs
    Run the model itself, because its gradients and running means belong to it.
one name for each module
    … =>
        return _named_by_module(model, names, *inputs)
    says: another name of `left`
    A dictionary with modules as its keys keeps one name for each, but a module may have two.
"""
