"""Checks that treat a program as a black box and find mistakes that raise no error.

A program is a module with `make_model(seed)`, `batch(generator, size)`, `outputs(model, batch)`,
`loss_of(model, batch)`, `make_optimizer(model)` and `train(seed, steps)`; see `programs/`. A check
takes a program and returns a number, which is 0 or small if the program is right, or None if the
check does not apply to it. `CHECKS` has a title and a limit for each.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.support.randomness import seeded

__all__ = [
    "CHECKS", "Check", "answers_ignored", "answers_shown", "apart", "beam_worse",
    "below_the_floor", "cuts_graded", "dropped_twice", "examine", "fresh", "future_moves",
    "healthy_at", "known_lines", "last_step_idle", "modes_differ", "not_by_heart", "nothing_left",
    "nothing_to_see", "one_way", "order_faint", "order_ignored", "pads_counted", "pads_move",
    "parts_add_up", "rate_stays_up", "rows_move", "start_surprise", "steps_differ",
    "steps_too_short", "stream_changed", "tie_broken", "unlike_torchs", "unlike_twice", "unreached",
    "writes_unlike",
]  # fmt: skip


def apart(a: Tensor, b: Tensor) -> float:
    """Return the largest absolute difference of two outputs, in standard deviations of the first.

    A plain number; infinity if one of the outputs contains a value that is not finite.
    """
    if not (a.isfinite().all() and b.isfinite().all()):
        return math.inf
    return ((a - b).abs().max() / a.std()).item()


def fresh(m: ModuleType, size: int = 8):
    """Return an untrained model (seed 0) in evaluation mode, and a batch (generator of seed 1)."""
    model = m.make_model(0).eval()
    return model, m.batch(torch.Generator().manual_seed(1), size)


# What must not move


def future_moves(m: ModuleType) -> float | None:
    """Return how far, at most, outputs move when all tokens after them are replaced.

    For each t from 1, the tokens from t onwards become those of the next row (`roll(1, dims=0)`),
    in the target if there is one, else in `ids`. None for an encoder, whose batch has `labels`.
    """
    model, batch = fresh(m)
    if "labels" in batch:  # an encoder may look ahead
        return None
    name = "tgt" if "tgt" in batch else "ids"
    before, gaps = m.outputs(model, batch), []  # (B, T, V)
    for t in range(1, before.size(1)):
        changed = batch[name].clone()
        changed[:, t:] = batch[name].roll(1, dims=0)[:, t:]  # the tokens of another row
        after = m.outputs(model, {**batch, name: changed})
        gaps.append(apart(before[:, :t], after[:, :t]))
    return max(gaps)


def pads_move(m: ModuleType) -> float | None:
    """Return how far the outputs at real tokens move when three columns of padding are appended.

    They are appended to `src` or, for an encoder (its batch has `labels`), to `ids`. Positions
    count where a real token is read: of the target without its last column, else of `ids`. An
    encoder with one prediction a row has outputs (B, V), all of which count. None for others.
    """
    model, batch = fresh(m)
    name = "src" if "src" in batch else "ids"
    if not hasattr(m, "PAD") or (name == "ids" and "labels" not in batch):
        return None
    longer = {**batch, name: F.pad(batch[name], (0, 3), value=m.PAD)}
    before, after = m.outputs(model, batch), m.outputs(model, longer)
    if before.dim() == 2:  # one prediction a row
        return apart(before, after)
    read = batch["tgt"][:, :-1] if "tgt" in batch else batch["ids"]
    return apart(before[read != m.PAD], after[:, : before.size(1)][read != m.PAD])


def rows_move(m: ModuleType) -> float:
    """Return how far the outputs of the rows move when all rows are moved down by one."""
    model, batch = fresh(m)
    moved = m.outputs(model, {name: x.roll(1, dims=0) for name, x in batch.items()})
    return apart(m.outputs(model, batch), moved.roll(-1, dims=0))


# What must move


def order_ignored(m: ModuleType) -> float:
    """Swap the first two tokens: return 1 if the output at the last position stays, 0 if it moves.

    They are swapped in the source if there is one, and changes below 1e-4 are rounding.
    """
    model, batch = fresh(m)
    name = "src" if "src" in batch else "ids"
    swapped = batch[name].clone()
    swapped[:, :2] = batch[name][:, :2].flip(1)
    after = m.outputs(model, {**batch, name: swapped})
    before = m.outputs(model, batch)
    last = -1 if before.dim() == 3 else slice(None)
    return float(apart(before[:, last], after[:, last]) < 1e-4)


def answers_ignored(m: ModuleType) -> float | None:
    """Replace the last token of each row, a label: return 1 if the loss stays the same, else 0.

    The token, in the target if there is one, else in `ids`, becomes the next id modulo `m.VOCAB`.
    None where the batch has `labels`.
    """
    model, batch = fresh(m)
    if "labels" in batch:
        return None
    name = "tgt" if "tgt" in batch else "ids"
    changed = batch[name].clone()
    changed[:, -1] = (changed[:, -1] + 1) % m.VOCAB
    loss, other = m.loss_of(model, batch), m.loss_of(model, {**batch, name: changed})
    return float(loss.item() == other.item())


# What training must do


def start_surprise(m: ModuleType) -> float:
    """Return the relative deviation of the initial loss, over 64 rows, from ln V."""
    model, batch = fresh(m, 64)
    even = math.log(m.outputs(model, batch).size(-1))
    return abs(m.loss_of(model, batch).item() / even - 1)


def unreached(m: ModuleType) -> float:
    """Count the parameters without a gradient, or that the optimizer does not hold."""
    model, batch = fresh(m)
    m.loss_of(model, batch).backward()
    held = {id(p) for group in m.make_optimizer(model).param_groups for p in group["params"]}
    weights = list(model.parameters())
    return float(sum(p.grad is None or not p.grad.any() or id(p) not in held for p in weights))


def not_by_heart(m: ModuleType, steps: int = 60) -> float:
    """Return the share of the loss that is left after training on a batch of four rows."""
    model, batch = fresh(m, 4)
    optimizer = m.make_optimizer(model)
    start = m.loss_of(model, batch).item()
    for _ in range(steps):
        optimizer.zero_grad()
        m.loss_of(model, batch).backward()
        optimizer.step()
    return m.loss_of(model, batch).item() / start


def unlike_twice(m: ModuleType) -> float:
    """Return the largest difference of the losses of two short training runs with one seed."""
    one, two = (torch.tensor(m.train(0, steps=3)[1]) for _ in range(2))
    return (one - two).abs().max().item()


# One thing in two ways


def steps_differ(m: ModuleType) -> float | None:
    """Return how far the logits of one pass are from those computed token by token.

    `m.read(model, ids)` computes all of them step by step with a cache; without it,
    `m.next_token(model, prefix)` gives the logits after a prefix. None for programs with neither.
    """
    if not hasattr(m, "next_token") and not hasattr(m, "read"):
        return None
    model, batch = fresh(m)
    whole, ids = m.outputs(model, batch), batch["ids"][:, :-1]  # (B, T, V), (B, T)
    if hasattr(m, "read"):
        return apart(whole, m.read(model, ids))
    alone = [m.next_token(model, ids[:, : t + 1]) for t in range(ids.size(1))]
    return apart(whole, torch.stack(alone, dim=1))


def beam_worse(m: ModuleType, steps: int = 100) -> float | None:
    """Return by how many nats greedy decoding beats a beam search, after a little training.

    Every token serves as a prompt, and the worst counts; 0 if greedy decoding never wins.
    """
    if not hasattr(m, "beam"):
        return None
    model, prompts = m.train(0, steps=steps)[0], torch.arange(m.VOCAB)[:, None]
    greedy, beam = m.write(model, prompts), torch.stack([m.beam(model, p) for p in prompts])
    odds = {}
    for name, ids in (("greedy", greedy), ("beam", beam)):
        chances = m.outputs(model, {"ids": ids}).log_softmax(-1)  # (B, T, V)
        odds[name] = chances.gather(-1, ids[:, 1:, None]).sum(dim=(1, 2))  # (B,)
    return max((odds["greedy"] - odds["beam"]).max().item(), 0.0)


def nothing_left(m: ModuleType) -> float | None:
    """Return the share of rows in which top-p with p = 0.1 drops the most likely token."""
    if not hasattr(m, "top_p"):
        return None
    logits = torch.randn(50, m.VOCAB, generator=torch.Generator().manual_seed(0)) * 5
    kept = m.top_p(logits, 0.1).argmax(-1) == logits.argmax(-1)
    some = (m.top_p(logits, 0.1) > -1e8).any(dim=-1)
    return 1 - (kept & some).float().mean().item()


def modes_differ(m: ModuleType) -> float:
    """Return how far outputs move from evaluation to training mode if all dropout is 0."""
    model, batch = fresh(m)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return apart(m.outputs(model, batch), m.outputs(model.train(), batch))


def tie_broken(m: ModuleType) -> float | None:
    """Return how many parameters a model has gained or lost when it was saved and loaded."""
    if not hasattr(m, "resume"):
        return None
    model = m.make_model(0)
    back = m.resume(m.save(model))
    return float(abs(len(list(back.parameters())) - len(list(model.parameters()))))


def parts_add_up(m: ModuleType) -> float | None:
    """Return how far the gradient accumulated over one part twice is from that of the part."""
    if not hasattr(m, "accumulate"):
        return None
    model, part = fresh(m)
    grads = []
    for parts in ([part], [part, part]):
        m.accumulate(model, parts)
        grads.append(torch.cat([p.grad.flatten().clone() for p in model.parameters()]))
    return apart(*grads)


# Around the model


def rate_stays_up(m: ModuleType, steps: int = 250) -> float | None:
    """Return the learning rate at the last step as a share of the highest."""
    if not hasattr(m, "learning_rate"):
        return None
    rates = [m.learning_rate(step) for step in range(steps)]
    return rates[-1] / max(rates)


def known_lines(m: ModuleType) -> float | None:
    """Return the share of the test set that is in the training set as well."""
    if not hasattr(m, "split"):
        return None
    train, test = m.split(m.corpus())
    return sum(line in train for line in test) / len(test)


def cuts_graded(m: ModuleType) -> float | None:
    """Return how far the score is from 1 if the right words are written, but uncut."""
    if not hasattr(m, "words"):
        return None
    right = {digits: m.words(pieces) for digits, pieces in m.corpus()}
    write, m.write = m.write, lambda model, lines: [right[digits] for digits in lines]
    try:
        return 1 - m.score(m.make_model(0), 0)
    finally:
        m.write = write


def nothing_to_see(m: ModuleType) -> float | None:
    """Return the share of outputs of a row of padding that are not finite."""
    model, batch = fresh(m)
    name = "src" if "src" in batch else "ids"
    if not hasattr(m, "PAD"):
        return None
    empty = batch[name].clone()
    empty[0] = m.PAD
    out = m.outputs(model, {**batch, name: empty})[0]
    return 1 - out.isfinite().float().mean().item()


def pads_counted(m: ModuleType) -> float | None:
    """Return by what share the loss changes with the amount of padding behind the labels.

    Two columns are taken away where both are padding in all rows; otherwise three are appended.
    """
    model, batch = fresh(m)
    name = "tgt" if "tgt" in batch else "ids"
    if not hasattr(m, "PAD") or "labels" in batch:
        return None
    if (batch[name][:, -2:] == m.PAD).all():
        other = batch[name][:, :-2]
    else:
        other = F.pad(batch[name], (0, 3), value=m.PAD)
    loss = m.loss_of(model, {**batch, name: other})
    return abs(loss.item() / m.loss_of(model, batch).item() - 1)


def below_the_floor(m: ModuleType, steps: int = 100) -> float | None:
    """Return by what share the loss is below the entropy of the data, after a little training."""
    if not hasattr(m, "entropy"):
        return None
    losses = m.train(0, steps=steps)[1][-10:]
    bits = sum(losses) / len(losses) / math.log(2)
    return max(1 - bits / m.entropy(), 0.0)


# Checks that look at one part of a program


def one_way(m: ModuleType) -> float | None:
    """Replace the last token of an encoder's input: return 1 if its first output stays, else 0."""
    model, batch = fresh(m)
    if "labels" not in batch:
        return None
    changed = batch["ids"].clone()
    changed[:, -1] = batch["ids"].roll(1, dims=0)[:, -1]
    after = m.outputs(model, {**batch, "ids": changed})
    return float(apart(m.outputs(model, batch)[:, 0], after[:, 0]) < 1e-6)


def order_faint(m: ModuleType) -> float | None:
    """Return how many times more it matters to replace the first two tokens than to swap them."""
    model, batch = fresh(m, 16)
    if "src" not in batch:
        return None
    src, before = batch["src"], m.outputs(model, batch)
    swapped = torch.cat([src[:, :2].flip(1), src[:, 2:]], dim=1)
    other = torch.cat([src.roll(1, dims=0)[:, :2], src[:, 2:]], dim=1)
    moved = [(m.outputs(model, {**batch, "src": x}) - before).norm() for x in (other, swapped)]
    return min((moved[0] / moved[1]).item(), 1e6)


def answers_shown(m: ModuleType) -> float | None:
    """Return the share of the labels that are in the input at their own position."""
    _, batch = fresh(m, 64)
    if "labels" not in batch:
        return None
    asked = batch["labels"] != -100
    return (batch["labels"] == batch["ids"])[asked].float().mean().item()


def steps_too_short(m: ModuleType) -> float:
    """Return by what share the median weight moves less than the learning rate in one step."""
    model, batch = fresh(m)
    optimizer = m.make_optimizer(model)
    before = [p.detach().clone() for p in model.parameters()]
    m.loss_of(model, batch).backward()
    optimizer.step()
    moved = torch.cat([(p.detach() - old).flatten() for p, old in zip(model.parameters(), before)])
    moved = moved[moved != 0].abs().median().item()
    return 1 - moved / optimizer.param_groups[0]["lr"]


def stream_changed(m: ModuleType) -> float | None:
    """Set all linear layers of a Pre-LN block to 0; return how far its output is from its input."""
    model, batch = fresh(m)
    blocks = next((x for x in model.modules() if isinstance(x, nn.ModuleList)), None)
    if blocks is None or hasattr(m, "read") or "src" in batch or "labels" in batch:
        return None
    for layer in blocks[0].modules():
        if isinstance(layer, nn.Linear):
            for weight in layer.parameters():
                weight.data.zero_()
    width = next(layer for layer in blocks[0].modules() if isinstance(layer, nn.Linear)).in_features
    x = torch.randn(2, 8, width) * 3
    return apart(x, blocks[0](x))


def unlike_torchs(m: ModuleType) -> float | None:
    """Return how far a translator's attention is from PyTorch's with the same weights.

    Whatever its name, it is the layer with four projections: queries, keys, values, and output.
    """
    model, batch = fresh(m)
    found = [x for x in model.modules() if len(_maps(x)) == 4]
    if "src" not in batch or not found:
        return None
    torch.manual_seed(0)
    layer, x = type(found[0])(16, 2, 0.0).eval(), torch.randn(2, 5, 16) * 3
    *three, out = _maps(layer)
    q, k, v = (f(x).unflatten(2, (2, 8)).transpose(1, 2) for f in three)
    right = out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
    return apart(right, layer(x, x, torch.ones(2, 1, 1, 5, dtype=torch.bool)))


def _maps(layer: nn.Module) -> list[nn.Linear]:
    """Return the linear layers that are a layer's own, in the order in which it made them."""
    return [part for part in layer.children() if isinstance(part, nn.Linear)]


def dropped_twice(m: ModuleType) -> float:
    """Count the dropouts that are applied directly to the output of another."""
    model, batch = fresh(m)
    left, twice = [], []

    def note(layer, inputs, output):
        twice.append(any(inputs[0] is before for before in left))
        left.append(output)

    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.register_forward_hook(note)
    m.outputs(model.train(), batch)
    return float(sum(twice))


def writes_unlike(m: ModuleType) -> float | None:
    """Return the share of tokens that differ between two generations after training mode."""
    model, batch = fresh(m)
    if "src" not in batch or not hasattr(m, "write"):
        return None
    model.train()
    one, two = m.write(model, batch["src"]), m.write(model, batch["src"])
    return (one != two).float().mean().item() if one.shape == two.shape else 1.0


def last_step_idle(m: ModuleType) -> float:
    """Train for six steps and for seven: return 1 if the last one has changed no weight."""
    six, seven = (m.train(0, steps=steps)[0].parameters() for steps in (6, 7))
    return float(all(torch.equal(a, b) for a, b in zip(six, seven)))


class Check(NamedTuple):
    """A check, and the largest number that is no alarm."""

    run: Callable[[ModuleType], float | None]
    limit: float


CHECKS = {
    "later tokens changed": Check(future_moves, 1e-3),
    "more padding": Check(pads_move, 1e-3),
    "rows moved": Check(rows_move, 1e-3),
    "two tokens swapped": Check(order_ignored, 0.5),
    "label changed": Check(answers_ignored, 0.5),
    "initial loss": Check(start_surprise, 0.2),
    "gradients everywhere": Check(unreached, 0.5),
    "overfit one batch": Check(not_by_heart, 0.2),
    "same training twice": Check(unlike_twice, 1e-5),
    "one pass, or step by step": Check(steps_differ, 1e-3),
    "beam, or greedy": Check(beam_worse, 0.5),
    "top-p leaves a token": Check(nothing_left, 1e-3),
    "training, or evaluation": Check(modes_differ, 1e-3),
    "saved and loaded": Check(tie_broken, 0.5),
    "same part twice": Check(parts_add_up, 1e-3),
    "final learning rate": Check(rate_stays_up, 0.9),
    "test data in training": Check(known_lines, 1e-3),
    "another tokenisation": Check(cuts_graded, 1e-3),
    "a row of padding": Check(nothing_to_see, 1e-3),
    "padded labels": Check(pads_counted, 1e-3),
    "last token of an encoder": Check(one_way, 0.5),
    "order against tokens": Check(order_faint, 40.0),
    "labels in the input": Check(answers_shown, 1e-3),
    "Adam's first step": Check(steps_too_short, 0.5),
    "silenced block": Check(stream_changed, 1e-3),
    "PyTorch's attention": Check(unlike_torchs, 1e-3),
    "dropped twice": Check(dropped_twice, 0.5),
    "generated twice": Check(writes_unlike, 1e-3),
    "last step": Check(last_step_idle, 0.5),
    "below the entropy": Check(below_the_floor, 0.1),
}


def examine(m: ModuleType, checks: dict[str, Check] = CHECKS) -> dict[str, float | None]:
    """Run each check on a program: {title: result}, infinite if the program raises an error."""
    found = {}
    for title, asked in checks.items():
        with seeded(0):
            try:
                found[title] = asked.run(m)
            except (RuntimeError, IndexError, ValueError):
                found[title] = math.inf
    return found


def healthy_at(found: dict[str, float | None], checks: dict[str, Check] = CHECKS) -> bool:
    """Return whether no result of `examine` is above its check's limit."""
    return all(
        found[title] is None or found[title] <= check.limit for title, check in checks.items()
    )
