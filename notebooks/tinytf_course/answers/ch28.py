"""Answers to chapter 28: references and mistakes."""

import copy
import itertools

import torch

from tinytf_course.exercises.ch28 import BACKUP, LEAKS, MEAN, PROBE, SCORE
from tinytf_course.grading import Answers, WrongAnswer

# 28.1 a hook that leaks


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


LEAKS_ANSWERS = Answers(
    reference=my_outputs,
    equivalent={
        "kept[name] = … => …detach().detach()": "cut off already, once is enough",
    },
    wrong=(
        WrongAnswer(
            "the loop's last name",
            _late_name,
            "that is the last name",
            "A function keeps no copy of `name`, so all hooks store under the loop's last name.",
        ),
        WrongAnswer(
            "the input is kept",
            _inputs,
            "expected (2, 6, 4)",
            "A hook receives the module, its inputs and its output, in this order.",
        ),
        WrongAnswer(
            "the model's output is detached as well",
            _cut_off,
            "detach only the outputs",
            "A hook that returns something changes the model. One that only reads returns nothing.",
        ),
        WrongAnswer(
            "run without gradients",
            torch.no_grad()(my_outputs),
            "has no graph",
            "Used in a training step, it would leave the model without gradients.",
        ),
        WrongAnswer(
            "run in evaluation mode",
            _evaluated,
            "it does not run in that mode",
            "The model must run in the mode it is in, dropout included.",
        ),
        WrongAnswer(
            "the graph is kept",
            _outputs(detach=False),
            "requires a gradient",
            "Without `detach` each recorded tensor holds the whole graph in memory.",
        ),
        WrongAnswer(
            "hooks are left",
            _outputs(remove=False),
            "there are hooks left on",
            "A hook stays until its handle removes it, and the next call adds another.",
        ),
        WrongAnswer(
            "hooks are left after an error",
            _outputs(always=False),
            "remove them in a `finally`",
            "The line that removes them is never reached when the model raises.",
        ),
        WrongAnswer(
            "everybody's hooks are removed",
            _outputs(clear=True),
            "is gone",
            "Clearing a module's hooks also removes those that others have registered.",
        ),
        WrongAnswer(
            "the error is hidden",
            _swallows,
            "does not pass it on",
            "`finally` cleans up and passes the error on; `except` without `raise` hides it.",
        ),
        WrongAnswer(
            "`forward` called by hand",
            _past_the_hooks,
            "a hook on the model itself runs 0 times",
            "`model.forward(...)` skips the hooks of the model itself; `model(...)` runs them.",
        ),
        WrongAnswer(
            "the tables of hooks exchanged",
            _tables_exchanged,
            "no longer removes it",
            "A handle removes its hook from the table it was registered in, and you have replaced "
            "that table. Remove your own hooks by their handles.",
        ),
        WrongAnswer(
            "a copy is run",
            lambda model, names, *inputs: my_outputs(copy.deepcopy(model), names, *inputs),
            "a copy of the model runs",
            "Run the model itself, because its gradients and running means belong to it.",
        ),
        WrongAnswer(
            "one name for each module",
            _named_by_module,
            "another name of `left`",
            "A dictionary with modules as its keys keeps one name for each, but a module may have "
            "two.",
        ),
    ),
)


# 28.2 a text on which nobody else scores


def my_probe_texts(n, length, draws):
    """Draw n texts of tokens 0 to 63, (n, length), on which only an induction head scores."""
    order = torch.rand(n, 64, generator=draws).argsort(dim=-1)  # (n, 64): each its own
    period = torch.randint(8, 21, (n, 1), generator=draws)
    return order.gather(1, torch.arange(length) % period)


def _probe(own_order=True, own_period=True, tokens=64):
    def answer(n, length, draws):
        order = torch.rand(n, tokens, generator=draws).argsort(dim=-1)
        if not own_order:
            order = torch.arange(64).expand(n, -1)
        period = torch.randint(8, 21, (n, 1), generator=draws)
        if not own_period:
            period = torch.full((n, 1), 16)
        return order.gather(1, torch.arange(length) % period)

    return answer


PROBE_ANSWERS = Answers(
    reference=my_probe_texts,
    equivalent={
        "… => ….detach()…": "whole numbers have no graph",
        "… => …torch.rand(n, 63,…": "63 tokens to shuffle serve as well as 64",
        "… => ….argsort()": "the last axis is the default",
        "… => ….argsort(dim=1)": "of two axes, 1 is the last",
        "… => …torch.randint(8, 20,…": "a longest period of 19 serves as well",
        "… => …torch.randint(8, 22,…": "so does one of 21",
        "… => …torch.randint(7, 21,…": "a shortest period of 7 serves as well",
        "… => …torch.randint(9, 21,…": "so does one of 9",
    },
    wrong=(
        WrongAnswer(
            "one period for all",
            _probe(own_period=False),
            "15 positions back",
            "One distance fits all texts, so a head that compares no tokens scores 1.",
        ),
        WrongAnswer(
            "one order for all",
            _probe(own_order=False),
            "which token mostly follows which",
            "If 7 always follows 6, a head can memorise that and need not look for an earlier 6.",
        ),
        WrongAnswer(
            "nothing is repeated",
            lambda n, length, draws: torch.rand(n, 64, generator=draws).argsort(-1)[:, :length],
            "something to find, expected half",
            "If no token occurs twice, there is nothing to find.",
        ),
        WrongAnswer(
            "two tokens",
            lambda n, length, draws: torch.randint(0, 2, (n, length), generator=draws),
            "spreads its weight evenly",
            "Half of all keys are then wanted, and a head that spreads its weight evenly finds "
            "them.",
        ),
        WrongAnswer(
            "one token",
            lambda n, length, draws: torch.randint(0, 64, (n, 1), generator=draws).repeat(
                1, length
            ),
            "0 positions back",
            "Every key is then wanted, and any head scores.",
        ),
        WrongAnswer(
            "too many tokens",
            _probe(tokens=100),
            "expected 0 to 63",
            "The vocabulary has 64 tokens.",
        ),
        WrongAnswer(
            "drawn with the global generator",
            lambda n, length, draws: my_probe_texts(n, length, None),
            "draw with `draws`",
            "The texts must depend on the seed, and the seed is in `draws`.",
        ),
        WrongAnswer(
            "floats",
            lambda *given: my_probe_texts(*given).float(),
            "expected torch.int64",
            "Ids are integers, because an embedding looks them up.",
        ),
    ),
)


# 28.3 a mean over the wrong axis


def my_mean_ablated(z, real, head):
    """Replace a head's vectors by their mean over real tokens: z (B, H, T, D), real (B, T)."""
    out = z.clone()
    out[:, head] = z[:, head][real].mean(dim=0)  # (tokens, D) -> (D,)
    return out


def _replaced(mean):
    def answer(z, real, head):
        out = z.clone()
        out[:, head] = mean(z, real, head)
        return out

    return answer


def _in_place(z, real, head):
    z[:, head] = z[:, head][real].mean(dim=0)
    return z


def _per_sentence(z, real, head):
    part = z[:, head] * real[..., None]
    return part.sum(dim=1, keepdim=True) / real.sum(dim=1).clamp(min=1)[:, None, None]


def _only_at_tokens(z, real, head):
    out = z.clone()
    out[:, head][real] = z[:, head][real].mean(dim=0)
    return out


MEAN_ANSWERS = Answers(
    reference=my_mean_ablated,
    equivalent={
        "out[:, head] = … => ….double()": "it is cast where it is written",
        "out[:, head] = … => …[real.detach()]…": "a mask carries no gradient anyway",
    },
    wrong=(
        WrongAnswer(
            "the mean over heads",
            _replaced(lambda z, real, head: z.mean(dim=1)),
            "Head 0's tokens are 1 and 3",
            "Axis 1 holds the heads, so each token gets the mean of its own heads.",
        ),
        WrongAnswer(
            "padding in the mean",
            _replaced(lambda z, real, head: z[:, head].mean(dim=(0, 1))),
            "100 is padding",
            "What a head computes at padding belongs to no token and shifts the mean.",
        ),
        WrongAnswer(
            "each sentence's own mean",
            _replaced(_per_sentence),
            "The real tokens of head 0 are 1, 3 and 5",
            "A sentence's own mean still contains information about this sentence.",
        ),
        WrongAnswer(
            "the mean of the sentences' means",
            _replaced(lambda z, real, head: _per_sentence(z, real, head).mean(dim=(0, 1))),
            "The real tokens of head 0 are 1, 3 and 5",
            "Then a token of a short sentence counts for more.",
        ),
        WrongAnswer(
            "the caller's tensor is changed",
            _in_place,
            "chang",
            "The next ablation would start from the tensor that this one has changed.",
        ),
        WrongAnswer(
            "padding keeps what it had",
            _only_at_tokens,
            "100 is padding",
            "The statement asks for the mean at every position, including padding.",
        ),
        WrongAnswer(
            "padding multiplied by 0",
            _replaced(
                lambda z, real, head: (
                    (z[:, head] * real[..., None]).sum(dim=(0, 1)) / real.sum().to(z.dtype)
                )
            ),
            "hold NaN here",
            "0 times NaN is NaN. Pick the tokens out: `z[:, head][real]`.",
        ),
    ),
)


# 28.4 two tokens must match


_MARKS = "marks and ids carry no gradient"
_NUMBERS = "marks of 0 and 1, exact in any dtype"
_AS_MANY = "as many keys are wanted as queries want: each repeat makes one of both"


def my_matched_score(weights, ids, match):
    """Score heads for what followed the last `match` tokens: (B, H, T, T) -> (H,)."""
    same = ids[:, :, None] == ids[:, None, :]  # (B, T, T)
    matched = same
    for _ in range(match - 1):
        before = torch.zeros_like(same)
        before[:, 1:, 1:] = matched[:, :-1, :-1]
        matched = same & before
    wanted = torch.zeros_like(same)
    wanted[:, :, 1:] = matched[:, :, :-1]
    wanted = wanted.tril()
    sums = (weights * wanted[:, None]).sum(dim=-1)  # (B, H, T)
    return sums.sum(dim=(0, 2)) / wanted.any(dim=-1).sum()


def _score(shift=1, past=True, count="queries", wrap=False, newest=False, how="run"):
    def moved(table, by):
        if wrap:
            return table.roll((by, by), dims=(1, 2))
        out = torch.zeros_like(table)
        out[:, by:, by:] = table[:, :-by, :-by]
        return out

    def answer(weights, ids, match):
        same = ids[:, :, None] == ids[:, None, :]
        matched = same
        if how == "run":
            for _ in range(match - 1):
                matched = same & moved(matched, 1)
        if how == "ends" and match > 1:
            matched = same & moved(same, match - 1)
        if how == "one more":
            for _ in range(match):
                matched = same & moved(matched, 1)
        if how == "any":
            earlier = same
            for _ in range(match - 1):
                earlier = moved(earlier, 1)
                matched = matched | earlier
        wanted = torch.zeros_like(same)
        if shift == 0:
            wanted = matched.tril(-1)
        else:
            wanted[:, :, shift:] = matched[:, :, :-shift]
        wanted = wanted.tril() if past else wanted
        if newest:
            later = wanted.flip(-1).cumsum(-1).flip(-1)
            wanted = wanted & (later == 1)
        sums = (weights * wanted[:, None]).sum(dim=-1)
        there = wanted.any(dim=-1)
        if count == "all":
            return sums.mean(dim=(0, 2))
        if count == "links":
            return sums.sum(dim=(0, 2)) / wanted.sum()
        if count == "rows":
            return (sums.sum(dim=2) / there.sum(dim=1)[:, None]).mean(dim=0)
        return sums.sum(dim=(0, 2)) / there.sum()

    return answer


SCORE_ANSWERS = Answers(
    reference=my_matched_score,
    equivalent={
        "same = … => …detach()…": _MARKS,
        "matched = … => …detach()…": _MARKS,
        "before = … => …detach()…": _MARKS,
        "before[:, 1:, 1:] = … => …detach()…": _MARKS,
        "wanted = … => …detach()…": _MARKS,
        "wanted[:, :, 1:] = … => …detach()…": _MARKS,
        "… => …wanted.detach()…": _MARKS,
        "matched = … => ….half()": _NUMBERS,
        "matched = … => ….float()": _NUMBERS,
        "matched = … => ….double()": _NUMBERS,
        "before[:, 1:, 1:] = … => ….half()": _NUMBERS,
        "before[:, 1:, 1:] = … => ….float()…": _NUMBERS,
        "before[:, 1:, 1:] = … => …matched.float()…": _NUMBERS,
        "before[:, 1:, 1:] = … => ….double()": _NUMBERS,
        "wanted = … => ….half()": _NUMBERS,
        "wanted[:, :, 1:] = … => ….half()": _NUMBERS,
        "wanted[:, :, 1:] = … => ….float()": _NUMBERS,
        "wanted[:, :, 1:] = … => …matched.float()…": _NUMBERS,
        "wanted[:, :, 1:] = … => ….double()": _NUMBERS,
        "return … => …wanted.float()…": _NUMBERS,
        "… => …torch.zeros_like(matched)": "matched and same have one shape",
        "matched = … => matched = matched & before": "two runs, one place apart, make one longer",
        "wanted = … => wanted = wanted.tril_()": "it is our own tensor, made above",
        "sums = … => ….sum(dim=-2)": "queries first or keys first, both are summed",
        "return … => …sum(dim=(2, 0))…": "the same two axes, in another order",
        "return … => …any(dim=1)…": _AS_MANY,
        "return … => …any(dim=-2)…": _AS_MANY,
    },
    wrong=(
        WrongAnswer(
            "match is ignored",
            _score(how="last"),
            "follows 5 3",
            "That is the induction score, whatever `match` is.",
        ),
        WrongAnswer(
            "one of them matches",
            _score(how="any"),
            "follows 5 3",
            "All of the last tokens must match, not one of them.",
        ),
        WrongAnswer(
            "the first and the last match",
            _score(how="ends"),
            "the middle tokens differ",
            "Of three tokens the middle one must match, too.",
        ),
        WrongAnswer(
            "one too many match",
            _score(how="one more"),
            "expected",
            "A loop from match=1 goes match − 1 times: the first token is matched before it.",
        ),
        WrongAnswer(
            "the table is rolled",
            _score(wrap=True),
            "expected",
            "What leaves at the end of a rolled table comes in at the front, and matches there.",
        ),
        WrongAnswer(
            "the token itself",
            _score(shift=0),
            "Key 2 follows 7 3",
            "That finds heads that attend to the same token. The wanted key is the one after it.",
        ),
        WrongAnswer(
            "two positions later",
            _score(shift=2),
            "Key 2 follows 7 3",
            "The key that follows is one position later, not two.",
        ),
        WrongAnswer(
            "queries that want no key count",
            _score(count="all"),
            "The other queries want no key",
            "They add 0 to the sum and 1 to the count.",
        ),
        WrongAnswer(
            "the mean over links",
            _score(count="links"),
            "expected",
            "A query with three keys has one weight of at most 1 to give.",
        ),
        WrongAnswer(
            "only the latest",
            _score(newest=True),
            "expected",
            "If the tokens occurred several times, each key that followed them is wanted.",
        ),
        WrongAnswer(
            "rows count alike",
            _score(count="rows"),
            "expected",
            "Rows with few queries then count for more, and a row with none makes all NaN.",
        ),
        WrongAnswer(
            "the future counts",
            _score(past=False),
            "expected",
            "Only keys up to the query can be wanted.",
        ),
    ),
)


# 28.5 the smallest set that is needed


def my_smallest_set(heads, works):
    """Find the smallest set of `heads` whose removal makes the model fail: a list, or None.

    works(removed) runs the model without the heads of the list `removed`, and returns whether its
    answer is still right.
    """
    from itertools import combinations

    for size in range(len(heads) + 1):
        for removed in combinations(heads, size):
            if not works(list(removed)):
                return list(removed)
    return None


def _by_sizes(sizes):
    def answer(heads, works):
        for size in sizes(len(heads)):
            for removed in itertools.combinations(heads, size):
                if not works(list(removed)):
                    return list(removed)
        return None

    return answer


def _one_after_another(heads, works):
    """Remove more and more of them."""
    for size in range(len(heads) + 1):
        if not works(heads[:size]):
            return heads[:size]
    return None


def _given_back(heads, works):
    """Remove all, and give back those that are not missed."""
    gone = list(heads)
    if works(gone):
        return None
    for head in heads:
        fewer = [other for other in gone if other != head]
        if not works(fewer):
            gone = fewer
    return gone


def _each_needed(heads, works):
    """All that are missed when they alone are gone."""
    return [head for head in heads if not works([head])] or None


BACKUP_ANSWERS = Answers(
    reference=my_smallest_set,
    equivalent={
        "return None => (nothing)": "a function that comes to its end returns None",
        "for size in … => …+ 1 + 1…": "there is no set of more heads than there are",
        "for size in … => …+ 2…": "there is no set of more heads than there are",
        "if not … => …works(removed)…": "a tuple names the same heads",
    },
    wrong=(
        WrongAnswer(
            "each head alone",
            _by_sizes(lambda n: range(min(n, 1) + 1)),
            "Each of the two alone can be removed",
            "Removing one head at a time finds nothing if two do the same work.",
        ),
        WrongAnswer(
            "all heads that are needed alone",
            _each_needed,
            "Each of the two alone can be removed",
            "Removing one head at a time finds nothing if two do the same work.",
        ),
        WrongAnswer(
            "one after another",
            _one_after_another,
            "expected ['0.1']",
            "The set then contains the heads before the needed one, which need not be removed.",
        ),
        WrongAnswer(
            "all removed, then some put back",
            _given_back,
            "works against the right answer",
            "What is left can't be made smaller, but it need not be the smallest; and where a head "
            "works against the right answer, the model may work without all.",
        ),
        WrongAnswer(
            "the whole model is never tried",
            _by_sizes(lambda n: range(1, n + 1)),
            "fails with all heads in place",
            "Size 0 comes first: a model that fails with all heads in place needs no removal.",
        ),
        WrongAnswer(
            "the largest first",
            _by_sizes(lambda n: range(n, -1, -1)),
            "expected",
            "Large sets break the model as well. Begin with the small ones to find the smallest.",
        ),
        WrongAnswer(
            "the set of all heads is left out",
            _by_sizes(range),
            "expected ['0.0', '0.1', '1.0', '1.1']",
            "range(n) ends before n, but the set of all heads must be tried as well.",
        ),
    ),
)


ANSWERS = {
    LEAKS.id: LEAKS_ANSWERS,
    PROBE.id: PROBE_ANSWERS,
    MEAN.id: MEAN_ANSWERS,
    SCORE.id: SCORE_ANSWERS,
    BACKUP.id: BACKUP_ANSWERS,
}
