"""Answers to chapter 29: references and mistakes."""

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 29.1 decided, and not taken back


def my_decided_after(logits):
    """Find the level from which on each position's most likely token is the final one.

    logits is (L, B, T, V). Returns the numbers of the levels (B, T), counted from 0.
    """
    says = logits.argmax(dim=-1)  # (L, B, T)
    agreed = torch.ones_like(says[-1], dtype=torch.bool)
    layer = torch.full_like(says[-1], len(says))
    for level in reversed(says):
        agreed = agreed & (level == says[-1])
        layer = layer - agreed.long()
    return layer


def _first_guessed(logits):
    says = logits.argmax(dim=-1)
    return (says == says[-1]).int().argmax(dim=0)


def _levels_that_agree(logits):
    says = logits.argmax(dim=-1)
    return len(says) - (says == says[-1]).sum(dim=0)


DECIDED = Answers(
    reference=my_decided_after,
    equivalent={
        "… => ….detach()…": "ids and layers carry no gradient",
        "agreed = … => agreed = torch.ones_like(says[-1])": "`&` of 1 and True is 1",
        "agreed = … => agreed &= …": "the mask is the answer's own",
        "layer = … => layer -= …": "the numbers are the answer's own",
        "layer = … => ….float().long()": "0 and 1 are exact in float32",
        "… => …says.float()…": "ids below 2^24 are exact in float32",
        "… => …level.float()…": "ids below 2^24 are exact in float32",
        "layer = … => …len(logits))": "there is one guess a layer",
        "… => …says[-0]…": "only the shape and dtype are taken",
    },
    wrong=(
        WrongAnswer(
            "the first time it is guessed", _first_guessed,
            "Level 2 predicts something else",
            "A guess that is given up again is not decided. Go down from the last level, and stop "
            "where a level predicts something else.",
        ),
        WrongAnswer(
            "counted over all levels", lambda logits: _levels_that_agree(logits),
            "Level 2 predicts something else",
            "This counts all levels that agree. Only those that agree without a gap up to the "
            "last count.",
        ),
        WrongAnswer(
            "the number of agreeing levels", lambda z: z.size(0) - my_decided_after(z),
            "predict 1, 3, 4, 4, 4",
            "That is how many levels agree at the end. Return the number of the first of them.",
        ),
        WrongAnswer(
            "one level too far", lambda logits: my_decided_after(logits) - 1,
            "predict 1, 3, 4, 4, 4",
            "That level still predicts something else. The one above it is the first that agrees.",
        ),
    ),
)  # fmt: skip


# 29.2 repair a patch that leaks


def my_transplant(values, at):
    """Make a function that replaces one position per row of x (B, T, C), at (B,), from `values`."""

    def change(x):
        rows = torch.arange(len(x), device=x.device)
        patched = x.clone()
        patched[rows, at] = values[rows, at].to(x.dtype)
        return patched

    return change


def _leaks(values, at):
    def change(x):
        patched = x.clone()
        patched[:, at] = values[:, at].to(x.dtype)
        return patched

    return change


def _in_place(values, at):
    def change(x):
        rows = torch.arange(len(x))
        if x.requires_grad:
            return my_transplant(values, at)(x)
        x[rows, at] = values[rows, at].to(x.dtype)
        return x

    return change


def _row_0(values, at):
    def change(x):
        rows = torch.arange(len(x))
        patched = x.clone()
        patched[rows, at] = values[0, at].to(x.dtype)
        return patched

    return change


def _all_later(values, at):
    def change(x):
        later = torch.arange(x.size(1)) >= at[:, None]
        return torch.where(later[..., None], values.to(x.dtype), x)

    return change


def _detached(values, at):
    return my_transplant(values.detach(), at)


def _blended(values, at):
    def change(x):
        there = (torch.arange(x.size(1)) == at[:, None])[..., None].to(x)
        return x * (1 - there) + values.to(x) * there

    return change


def _difference_added(values, at):
    def change(x):
        there = (torch.arange(x.size(1)) == at[:, None])[..., None]
        return x + there * (values.to(x) - x)

    return change


TRANSPLANT = Answers(
    reference=my_transplant,
    equivalent={
        "rows = … => ….detach()": "places carry no gradient at all",
        "… => …rows.detach()…": "places carry no gradient at all",
        "… => …at.detach()…": "places carry no gradient at all",
        "rows = … => rows = torch.arange(len(x))": "an index on the CPU serves any device",
    },
    wrong=(
        WrongAnswer(
            "it leaks into the other rows", _leaks, "so the patch leaks",
            "`[:, at]` patches each row at the positions of all rows. Pair rows and positions: "
            "`[rows, at]`.",
        ),
        WrongAnswer(
            "in place", _in_place, "for the caller's x",
            "Writing into x changes what the caller holds. `clone` first.",
        ),
        WrongAnswer(
            "values of row 0", _row_0, "the two patched numbers are",
            "Every row has its own values: `values[rows, at]`.",
        ),
        WrongAnswer(
            "from the position on", _all_later, "so the patch leaks",
            "Only one vector is replaced, not all that follow.",
        ),
        WrongAnswer(
            "no gradient to the values", _detached, "no gradient reaches `values`",
            "Gradients must reach `values`, so don't detach them.",
        ),
        WrongAnswer(
            "blended by 0 and 1", _blended, "with infinity at",
            "0 times infinity is NaN, and so is 0 times NaN. Assign the vector, or choose with "
            "`torch.where`.",
        ),
        WrongAnswer(
            "the difference added", _difference_added, "except for ±1e9",
            "x + (v - x) is v only on paper: beside a huge x the digits of v are rounded away.",
        ),
    ),
)  # fmt: skip


# 29.3 design the control


def my_donors(answers, words, control):
    """Find each sentence a donor: the next sentence, going round, that fits; (B,), or -1.

    A donor has another word, and another answer; with `control` another word, and the same answer.
    """
    found = []
    for i in range(len(answers)):
        donor = -1
        for step in range(1, len(answers)):
            j = (i + step) % len(answers)
            if words[j] != words[i] and (answers[j] == answers[i]) == control:
                donor = j
                break
        found.append(donor)
    return torch.tensor(found, dtype=torch.long)


def _donors(fits, start=1, around=True):
    def answer(answers, words, control):
        found = []
        for i in range(len(answers)):
            steps = range(start, len(answers)) if around else range(start, len(answers) - i)
            order = [(i + step) % len(answers) for step in steps]
            right = [j for j in order if fits(answers, words, control, i, j)]
            found.append(right[0] if right else -1)
        return torch.tensor(found, dtype=torch.long)

    return answer


def _right(a, w, control, i, j):
    return bool(w[i] != w[j]) and bool(a[i] == a[j]) == control


DONORS = Answers(
    reference=my_donors,
    equivalent={
        "return torch.tensor(found, … => return found": "a list of whole numbers is taken, too",
        "return torch.tensor(found, … => return torch.tensor(found)": "whole numbers are int64",
        "… => ….detach()…": "integers carry no gradient at all",
        "… => ….float()…": "numbers of words are exact in float32",
        "return … => return torch.tensor(found)": "whole numbers become int64 anyway",
        "… => …len(words)…": "there is one word a sentence",
        "for step … => for step in range(0, …": "a sentence has not another word than itself",
        "for step … => for step in range(len(…": "a sentence has not another word than itself",
        "for step … => …len(answers) + 1):": "a sentence has not another word than itself",
    },
    wrong=(
        WrongAnswer(
            "the control takes the same word",
            _donors(lambda a, w, c, i, j: (a[i] == a[j]) == c and (c or w[i] != w[j])),
            "nothing foreign ",
            "With the same adjective, the patch puts in nearly what was there, so the control "
            "can't fail. The donor must have another adjective.",
        ),
        WrongAnswer(
            "the experiment takes the same word",
            _donors(lambda a, w, c, i, j: (a[i] == a[j]) == c and (not c or w[i] != w[j])),
            "can point to either noun",
            "The donor must have another adjective in the experiment as well, or experiment and "
            "control differ in more than one thing.",
        ),
        WrongAnswer(
            "experiment and control exchanged", lambda a, w, c: my_donors(a, w, not c),
            "control=False",
            "In the experiment the donor's answer differs, and in the control it is the same.",
        ),
        WrongAnswer(
            "it stops at the end", _donors(_right, around=False), "control=False",
            "Go round: after the last sentence comes the first.",
        ),
        WrongAnswer(
            "control ignored", lambda a, w, c: my_donors(a, w, False), "control=True",
            "With control=True the answers have to be the same.",
        ),
    ),
)  # fmt: skip


# 29.4 repair a probe


def my_probe(x, y, test_x, ridge):
    """Fit a linear probe to states x (N, C) of classes y (N,); score the states test_x (M, C).

    Returns (M, classes).
    """
    wanted = torch.nn.functional.one_hot(y).to(x)
    mean, shares = x.mean(dim=0), wanted.mean(dim=0)
    x = x - mean
    held = ridge * torch.eye(x.size(1)).to(x)
    weights = torch.linalg.solve(x.T @ x + held, x.T @ wanted)
    return (test_x - mean) @ weights + shares


def _probe(mean_of="x", ridge=True, offset=True, score="test"):
    def answer(x, y, test_x, weight):
        wanted = torch.nn.functional.one_hot(y).to(x)
        mean = (x if mean_of == "x" else torch.cat([x, test_x])).mean(dim=0)
        near, asked = x - mean, test_x - mean
        held = (weight if ridge else 1e-9) * torch.eye(x.size(1)).to(x)
        weights = torch.linalg.pinv(near.T @ near + held) @ near.T @ wanted
        shares = wanted.mean(dim=0) if offset else 0.0
        return (asked if score == "test" else near) @ weights + shares

    return answer


def _held_offset(x, y, test_x, ridge):
    x, test_x = (torch.cat([s, torch.ones_like(s[:, :1])], dim=1) for s in (x, test_x))
    wanted = torch.nn.functional.one_hot(y).to(x)
    held = ridge * torch.eye(x.size(1)).to(x)
    return test_x @ torch.linalg.solve(x.T @ x + held, x.T @ wanted)


PROBE = Answers(
    reference=my_probe,
    equivalent={
        "wanted = … => ….detach()…": "classes carry no gradient at all",
        "wanted = … => …(test_x)": "both kinds of states have one dtype",
        "wanted = … => …(x.detach())": "only the dtype is taken of it",
        "held = … => ….detach()…": "a constant carries no gradient at all",
        "held = … => …torch.eye(test_x.size(1))…": "both kinds of states have one width",
        "held = … => …(test_x)": "both kinds of states have one dtype",
        "weights = … => …held.detach()…": "a constant carries no gradient at all",
        "weights = … => …wanted.detach()…": "classes carry no gradient at all",
        "mean, shares = … => …wanted.detach()…": "classes carry no gradient at all",
        "return … => …shares.detach()…": "classes carry no gradient at all",
    },
    wrong=(
        WrongAnswer(
            "scored on its training states", _probe(score="x"), "There is one test state",
            "It scores x, the states to which it was fitted. Score test_x.",
        ),
        WrongAnswer(
            "the mean has seen the test states", _probe(mean_of="both"), "must not be used",
            "Take the mean of x alone.",
        ),
        WrongAnswer(
            "no ridge", _probe(ridge=False), "The slope is",
            "Add `ridge` to the diagonal of xᵀx.",
        ),
        WrongAnswer(
            "no offset", _probe(offset=False), "the scores are the shares",
            "At the mean state the best guess is the classes' shares, not 0.",
        ),
        WrongAnswer(
            "the offset is held down", _held_offset, "the scores are the shares",
            "A column of ones can serve as the offset, but the ridge must not apply to its weight.",
        ),
    ),
)  # fmt: skip


# 29.5 patch the bug


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


def _output(model, name, x, given=None):
    kept = {}

    def hook(module, inputs, out):
        kept["out"] = out
        return given

    handle = model.get_submodule(name).register_forward_hook(hook)
    try:
        return model(x), kept["out"]
    finally:
        handle.remove()


def _alike(a, b):
    return torch.allclose(a, b, rtol=0, atol=1e-4)


def _differs_first(good, broken, names, x):
    for name in names:
        if not _alike(_output(good, name, x)[1], _output(broken, name, x)[1]):
            return name
    return None


def _healers(good, broken, names, x):
    pairs = [(name, _output(good, name, x)[1]) for name in names]
    return [name for name, out in pairs if _alike(_output(broken, name, x, out)[0], good(x))]


def _last(good, broken, names, x):
    agree = _alike(broken(x), good(x))
    return None if agree else (_healers(good, broken, names, x) or [None])[-1]


def _without_asking(good, broken, names, x):
    return (_healers(good, broken, names, x) or [None])[0]


def _moved_most(good, broken, names, x):
    if _alike(broken(x), good(x)):
        return None
    gaps = {}
    for name in names:
        out = _output(good, name, x)[1]
        gaps[name] = (_output(broken, name, x, out)[0] - good(x)).abs().mean().item()
    return min(gaps, key=gaps.get)


def _by_weights(good, broken, names, x):
    """Copy each module's weights over."""
    if _alike(broken(x), good(x)):
        return None
    for name in names:
        module = broken.get_submodule(name)
        kept = {key: value.clone() for key, value in module.state_dict().items()}
        module.load_state_dict(good.get_submodule(name).state_dict())
        healed = _alike(broken(x), good(x))
        module.load_state_dict(kept)
        if healed:
            return name
    return None


def _leaves_hooks(good, broken, names, x):
    found = my_culprit(good, broken, names, x)
    if found:
        broken.get_submodule(found).register_forward_hook(lambda module, inputs, out: None)
    return found


CULPRIT = Answers(
    reference=my_culprit,
    equivalent={
        "return None => (nothing)": "a function that comes to its end returns None",
        "… => ….detach()…": "nothing is differentiated here",
        "… => …(x.detach())…": "nothing is differentiated here",
        "return torch.allclose(…) => return torch.allclose(good(x), answer, …)": (
            "without a relative part it is the same both ways"
        ),
    },
    wrong=(
        WrongAnswer(
            "the first that differs", _differs_first, "is not it",
            "That finds the bug only if there is a single one and its module is in the list. A "
            "patch also shows if that is not so.",
        ),
        WrongAnswer(
            "the last that heals", _last, "Later modules heal",
            "Every later module through which the whole answer passes heals it as well.",
        ),
        WrongAnswer(
            "it never tests whether anything is wrong", _without_asking, "There is nothing to heal",
            "If nothing is wrong, every patch seems to heal the model.",
        ),
        WrongAnswer(
            "the patch that comes nearest", _moved_most, "Its parts compute the right",
            "Some patch always comes nearest; the question is whether the answer is healed.",
        ),
        WrongAnswer(
            "weights are compared", _by_weights, "computes another function",
            "A bug in the code changes no weight. Replace the module's output.",
        ),
        WrongAnswer(
            "a hook is left", _leaves_hooks, "a hook is left",
            "Remove the handle, in a `finally`.",
        ),
    ),
)  # fmt: skip


ANSWERS = {"29.1": DECIDED, "29.2": TRANSPLANT, "29.3": DONORS, "29.4": PROBE, "29.5": CULPRIT}
