"""Chapter 30: checks of a program, each on a healthy program and on one made ill on purpose."""

import math

import torch

from tinytf_course.clinic.checks import CHECKS, Check
from tinytf_course.clinic.patients import healthy, load
from tinytf_course.parts import Part

LIMITS = {check.run.__name__: check.limit for check in CHECKS.values()}


def _program(name, **entrances):
    """A healthy program in which some entrances are replaced; each is made of the old one."""
    m = load(healthy(name))
    for entrance, change in entrances.items():
        setattr(m, entrance, change(m, getattr(m, entrance)))
    return m


def _finding(f, m, name):
    """What the check of this name says of a program: None, or whether it raises an alarm."""
    with torch.random.fork_rng():
        number = f(m)
    return None if number is None else bool(number > LIMITS[name])


def _part(name, well, ill, nothing=()):
    """A part whose check acquits the programs `well`, convicts `ill`, and has nothing to say."""
    scripts = {
        f"a healthy {program} is examined": lambda f, p=program: _finding(f, _program(p), name)
        for program in well
    }
    scripts |= {
        words: lambda f, p=program, e=entrances: _finding(f, _program(p, **e), name)
        for words, (program, entrances) in ill.items()
    }
    scripts |= {
        f"a {program} has nothing of the kind": lambda f, p=program: f(_program(p)) is None
        for program in nothing
    }
    return Part(f"tinytf_course.clinic.checks.{name}", scripts)


def _later(m, outputs):
    return lambda model, batch: outputs(model, batch) + outputs(model, batch).flip(1)


def _counts_pads(m, outputs):
    return lambda model, batch: outputs(model, batch) + (batch["src"] == 0).sum()


def _counts_rows(m, outputs):
    def run(model, batch):
        out = outputs(model, batch)
        return out + torch.arange(len(out)).reshape(-1, 1, 1)

    return run


def _stuck(m, outputs):
    def run(model, batch):
        out = outputs(model, batch)
        return torch.linspace(0, 1, out.numel()).reshape(out.shape) + 0 * out

    return run


def _no_number(m, outputs):
    def run(model, batch):
        empty = (batch["src"] == 0).all(dim=1)[:, None, None]
        return outputs(model, batch).masked_fill(empty, math.nan)

    return run


def _half_held(m, make):
    return lambda model: torch.optim.SGD(list(model.parameters())[::2], lr=0.1)


def _still(m, make):
    return lambda model: torch.optim.SGD(model.parameters(), lr=0.0)


def _dice(m, train):
    return lambda seed, steps: (None, torch.rand(steps).tolist())


def _losses(loss):
    return lambda m, train: lambda seed, steps: (m.make_model(0), [loss] * steps)


def _apart_from(change):
    return lambda m, entrance: lambda *given, **named: change(entrance(*given, **named))


def _untied(m, resume):
    def run(saved):
        model = resume(saved)
        model.head.weight = torch.nn.Parameter(model.head.weight.detach().clone())
        return model

    return run


def _undivided(m, accumulate):
    def run(model, parts):
        model.zero_grad()
        for part in parts:
            m.loss_of(model, part).backward()

    return run


def _moving(m, outputs):
    return lambda model, batch: outputs(model, batch) + float(model.training)


def _all_counted(m, loss_of):
    def run(model, batch):
        out, target = m.outputs(model, batch), batch["tgt"][:, 1:]
        return torch.nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())

    return run


def _checked(words):
    """`examine` with two checks of a test's own, on a program that is no more than a name."""

    def run(examine):
        def broken(m):
            raise RuntimeError("shapes differ")

        checks = {
            "a": Check(lambda m: 0.5 * (m == "program"), 1.0),
            "b": Check(lambda m: None, 1.0),
        }
        if words == "error":
            checks["c"] = Check(broken, 1.0)
        found = examine("program", checks)
        return [list(found), [str(number) for number in found.values()]]

    return run


PARTS = (
    Part(
        "tinytf_course.clinic.checks.fresh",
        {
            "a batch of eight is asked for": lambda f: f(_program("writer"))[1]["ids"],
            "a batch of three is asked for": lambda f: f(_program("translator"), 3)[1]["src"],
            "the weights are those of seed 0": lambda f: f(_program("writer"))[0].head.weight,
            "the model is in evaluation mode": lambda f: f(_program("writer"))[0].training,
        },
    ),
    Part(
        "tinytf_course.clinic.checks.apart",
        {
            "two rows differ in one number": lambda f: f(
                torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 2.5, 4.0])
            ),
            "they differ downwards": lambda f: f(
                torch.tensor([[1.0, 20.0], [4.0, 8.0]]), torch.tensor([[1.0, 10.0], [4.0, 8.0]])
            ),
            "they are the same": lambda f: f(torch.arange(4.0), torch.arange(4.0)),
            "one number is none": lambda f: str(
                f(torch.arange(3.0), torch.tensor([0.0, math.nan, 2.0]))
            ),
            "the first has one that is none": lambda f: str(
                f(torch.tensor([0.0, math.inf, 2.0]), torch.arange(3.0))
            ),
            "it is a plain number": lambda f: type(f(torch.arange(4.0), torch.ones(4))).__name__,
            "they are in float64, far from 0": lambda f: f(
                torch.tensor([1.0, 2.3, 4.0]).double() / 999 + 1e3,
                torch.tensor([1.0, 2.7, 4.0]).double() / 999 + 1e3,
            ),
            "they are too large for float32": lambda f: [
                math.isfinite(f(torch.arange(3).double() * a, torch.ones(3).double() * b))
                for a, b in ((1e50, 1.0), (1.0, 1e50))
            ],
        },
    ),
    _part("future_moves", ("writer", "translator"),
          {"outputs see later ones": ("writer", {"outputs": _later}),
           "a decoder sees later ones": ("translator", {"outputs": _later})}, ("reader",)),
    _part("pads_move", ("translator", "reader"),
          {"outputs count the padding": ("translator", {"outputs": _counts_pads})}, ("writer",)),
    _part("rows_move", ("writer", "translator"),
          {"outputs count the rows": ("writer", {"outputs": _counts_rows})}),
    _part("order_ignored", ("writer", "translator", "reader"),
          {"outputs are always the same": ("writer", {"outputs": _stuck})}),
    _part("answers_ignored", ("writer", "translator"),
          {"the loss asks for nothing": ("writer", {"loss_of": lambda m, loss: lambda model, batch:
              m.outputs(model, batch).mean()})}, ("reader",)),
    _part("start_surprise", ("writer", "reader"),
          {"the loss is doubled": ("writer", {"loss_of": _apart_from(lambda loss: loss * 2)}),
           "the loss is halved": ("writer", {"loss_of": _apart_from(lambda loss: loss / 2)})}),
    _part("unreached", ("writer",),
          {"half the weights are held": ("writer", {"make_optimizer": _half_held}),
           "the loss reaches none": ("writer", {"loss_of": lambda m, loss: lambda model, batch:
              m.outputs(model, batch).mean() * 0})}),
    _part("not_by_heart", ("writer",),
          {"the optimizer stands still": ("writer", {"make_optimizer": _still})}),
    _part("unlike_twice", ("writer",), {"losses are thrown": ("writer", {"train": _dice})}),
    _part("steps_differ", ("writer", "speaker"),
          {"alone it says more": ("writer", {"next_token": _apart_from(lambda out: out + 1)}),
           "cached it says more": ("speaker", {"read": _apart_from(lambda out: out + 1)})},
          ("translator",)),
    _part("beam_worse", (),
          {"the beam writes zeros": ("speaker", {"beam": lambda m, beam: lambda model, prompt:
              torch.zeros(m.LENGTH, dtype=torch.long)})}, ("writer",)),
    _part("nothing_left", ("speaker",),
          {"nothing is left": ("speaker", {"top_p": _apart_from(lambda out: 0 * out - 1e9)}),
           "all logits change their sign": ("speaker", {"top_p": _apart_from(lambda out: -out)})},
          ("writer",)),
    _part("modes_differ", ("writer", "translator"),
          {"training adds something": ("writer", {"outputs": _moving})}),
    _part("tie_broken", ("pipeline",),
          {"it comes back untied": ("pipeline", {"resume": _untied})}, ("writer",)),
    _part("parts_add_up", ("pipeline",),
          {"nothing is divided": ("pipeline", {"accumulate": _undivided})}, ("writer",)),
    _part("rate_stays_up", ("pipeline",),
          {"the rate only rises": ("pipeline", {"learning_rate": lambda m, rate: lambda step:
              step + 1.0})}, ("writer",)),
    _part("known_lines", ("pipeline",),
          {"the test set is of the training set": ("pipeline", {"split": lambda m, split:
              lambda pairs: (pairs, pairs[:5])})}, ("writer",)),
    _part("cuts_graded", ("pipeline",),
          {"grades are halved": ("pipeline", {"score": _apart_from(lambda grade: grade / 2)})},
          ("writer",)),
    _part("nothing_to_see", ("translator", "reader"),
          {"an empty row gives no numbers": ("translator", {"outputs": _no_number})}, ("writer",)),
    _part("pads_counted", ("translator",),
          {"padding is asked for": ("translator", {"loss_of": _all_counted})}, ("writer",)),
    _part("below_the_floor", (),
          {"losses are 0.1": ("writer", {"train": _losses(0.1)}),
           "losses are 1.5": ("writer", {"train": _losses(1.5)})}, ("translator",)),
    Part(
        "tinytf_course.clinic.checks.examine",
        {
            "there are two checks": _checked("two"),
            "a check ends in an error": _checked("error"),
        },
        equivalent={
            "… => with seeded(…": "any seed will do that is always the same",
            "… => except (…, …, …):": "errors are listed in any order",
        },
    ),
)  # fmt: skip
