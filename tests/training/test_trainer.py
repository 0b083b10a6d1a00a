"""The loop: each step against torch's own, runs stopped and resumed to the bit, what is refused."""

import math
import os
import signal
import threading

import pytest
import torch
import torch.nn.functional as F
from support import random_ids, small_model
from training_support import assert_same_bits, batch_of, bits, trainer

from tinytf.attention import explicit_attention, fused_attention
from tinytf.inspect import attention_layers, record
from tinytf.relative import RotaryAttention
from tinytf.text.words import PAD
from tinytf.training import checkpointing
from tinytf.training.checkpointing import CheckpointError
from tinytf.training.losses import Batch
from tinytf.training.schedules import warmup_cosine, warmup_inverse_sqrt
from tinytf.training.trainer import InFloat32, Trainer, TrainingConfig
from tinytf.transformer import Transformer

# ---- one step


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, lambda s: warmup_cosine(s, 2e-3, 3, 12)),
        ({"min_lr": 2e-4}, lambda s: warmup_cosine(s, 2e-3, 3, 12, 2e-4)),
        ({"schedule": "constant"}, lambda s: 2e-3 * min(1, s / 3)),
        ({"schedule": "inverse_sqrt"}, lambda s: warmup_inverse_sqrt(s, 12, 3)),
    ],
)
def test_each_step_takes_its_own_rate(settings, expected):
    run, used = trainer(**settings), []
    step = run.optimizer.step
    run.optimizer.step = lambda: (
        used.append([g["lr"] for g in run.optimizer.param_groups]),
        step(),
    )
    history = run.run(log_every=1)
    assert used == [[pytest.approx(expected(s))] * 2 for s in range(1, 13)]
    assert [row["lr"] for row in history] == [rates[0] for rates in used]


def test_a_step_equals_plain_adamw(exact):
    """Two steps, against torch's own loss, clipping and optimiser, written out."""
    settings = {"clip": 0.5, "weight_decay": 0.3, "lr": 1e-2, "betas": (0.8, 0.9), "eps": 1e-6}
    run = trainer(exact, dtype=torch.float64, **settings)
    plain = small_model(exact)
    plain.load_state_dict(run.model.state_dict())
    history = run.run(until=2, log_every=1)
    groups = [
        {"params": [p for p in plain.parameters() if p.dim() > 1], "weight_decay": 0.3},
        {"params": [p for p in plain.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups, betas=(0.8, 0.9), eps=1e-6)
    for step in range(2):
        batch = batch_of(step).to(exact)
        logits = plain(batch.src, batch.tgt_in).flatten(0, 1).float()
        targets = batch.tgt_out.flatten()
        loss = F.cross_entropy(logits, targets, ignore_index=PAD, label_smoothing=0.1)
        adam.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
        assert norm > 0.5  # so that clipping is tested
        assert history[step]["grad_norm"] == pytest.approx(norm.item(), rel=1e-5)
        assert history[step]["loss"] == pytest.approx(loss.item(), rel=1e-5)
        for group in adam.param_groups:
            group["lr"] = 1e-2 * (step + 1) / 3
        adam.step()
    for a, b in zip(run.model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-6)


def test_accumulation_equals_the_big_batch(exact):
    """Micro-batches of 1, 5 and 2 sentences, of different lengths, against the 8 at once."""
    whole, asked = batch_of(3, size=8), []
    cuts = [(0, 1), (1, 6), (6, 8)]

    def micro(index):
        asked.append(index)
        return Batch(*(part[slice(*cuts[index % 3])] for part in whole))

    big = trainer(exact, lambda _: whole, dtype=torch.float64, clip=1e9)
    small = trainer(exact, micro, dtype=torch.float64, clip=1e9, accumulate=3)
    for run in (big, small):
        run.run(until=2, log_every=1)
    assert asked == list(range(6))  # each batch once
    for a, b in zip(big.model.parameters(), small.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
    for a, b in zip(big.history, small.history, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-6)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-5)


def test_history_is_the_mean_over_tokens_and_the_bar_moves_once_a_step():
    moves, first, second = [], trainer(), trainer()

    class Bar:
        def update(self, n):
            moves.append(n)

        def set_postfix_str(self, text, refresh):
            moves.append(text)

    losses = [row["loss"] for row in first.run(until=4, log_every=1)]
    tokens = [int((batch_of(i).tgt_out != PAD).sum()) for i in range(4)]
    assert len(set(tokens)) > 1
    (row,) = second.run(until=4, log_every=4, bar=Bar())
    mean = sum(a * n for a, n in zip(losses, tokens, strict=True)) / sum(tokens)
    assert (row["step"], row["loss"]) == (4, pytest.approx(mean))
    assert row["seconds"] > 0
    assert moves == [1, 1, 1, 1, f"loss {mean:.3f}"]


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "auto"])
def test_training_learns_in_every_precision_with_float32_weights(precision, device):
    settings = {"steps": 80, "lr": 1e-2, "label_smoothing": 0.0, "precision": precision}
    run = trainer(device, lambda _: batch_of(0), **settings)
    history = run.run(log_every=1)
    assert history[0]["loss"] > 1.5
    assert history[-1]["loss"] < 0.3
    assert {p.dtype for p in run.model.parameters()} == {torch.float32}
    assert run.config.precision in ("float32", "bfloat16")


@pytest.mark.parametrize("fault", ["loss", "gradient"])
def test_a_non_finite_step_leaves_the_weights_alone(fault, device):
    run = trainer(device)
    run.run(until=3)
    before = bits(run)
    if fault == "loss":
        run.model.output.register_forward_hook(lambda _m, _i, out: out * math.nan)
        message = "the loss is nan at step 4.*the weights are as they were"
    else:
        run.model.output.weight.register_hook(lambda g: g * math.inf)
        message = "the gradient's norm is (nan|inf) at step 4"
    with pytest.raises(FloatingPointError, match=message):
        run.run()
    assert run.step == 3
    assert_same_bits(bits(run), before)


# ---- one kernel, or step by step


def test_both_attentions_train_alike(device):
    runs = [trainer(device, dtype=torch.float64, attention=a) for a in ("fused", "explicit")]
    for run in runs:
        run.run()
    for name, value in bits(runs[0]).items():
        torch.testing.assert_close(bits(runs[1])[name], value, atol=1e-8, rtol=0)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_asked_for_attends_while_training_and_only_then(precision):
    seen, inside = [], {}

    def look(step):
        seen.extend(layer.attention for layer in layers)
        batch = batch_of(step)
        with record(run.model) as weights, torch.no_grad():
            run.model(batch.src, batch.tgt_in)
        inside.update(weights)
        return batch

    run = trainer(batches=look, precision=precision, attention="explicit")
    layers = attention_layers(run.model).values()
    own = RotaryAttention()  # what attends in another way is left as it is
    (first, *rest) = layers
    first.attention = own
    batch = batch_of(0)
    with record(run.model) as outside:
        run.model(batch.src, batch.tgt_in)
    run.run(until=1)
    assert [type(f) is InFloat32 for f in seen] == [precision == "bfloat16"] * len(seen)
    plain = [f.attention if precision == "bfloat16" else f for f in seen]
    assert plain == [own] + [explicit_attention] * len(rest)
    assert [layer.attention for layer in layers] == [own] + [fused_attention] * len(rest)
    assert inside.keys() == outside.keys()  # a look from inside sees what is trained
    for name, weights in outside.items():
        torch.testing.assert_close(inside[name], weights, atol=1e-6, rtol=0)
    with record(run.model) as trained:
        run.run(until=2)
    assert len(trained) == len(layers)


# ---- stopping and resuming

STOPS = {
    "by until": None,
    "by Ctrl-C": lambda: signal.raise_signal(signal.SIGINT),
    "by termination": lambda: signal.raise_signal(signal.SIGTERM),
    "by an error in a batch": lambda: 1 / 0,
}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_run_that_was_stopped_ends_in_the_same_bits(dropout, stop, device, tmp_path):
    """Gone on with in this process, in another one, or, as after kill -9, from the last file."""
    path, kept, acts = tmp_path / "run", {}, [STOPS[stop]]

    def batches(step):
        if step == 4 and path.exists():
            kept.setdefault("file", path.read_bytes())
            if act := acts.pop() if acts else None:
                act()
        return batch_of(step)

    whole = trainer(device, dropout=dropout)
    whole.run()
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    first, second = (trainer(device, batches, dropout=dropout) for _ in range(2))
    options = {"save_to": path, "save_every": 0.0, "header": {"note": "kept"}}
    if stop == "by until":
        first.run(until=5, **options)
    else:
        error = ZeroDivisionError if "error" in stop else KeyboardInterrupt
        with pytest.raises(error, match=None if "error" in stop else "stopped after step 5 of 12"):
            first.run(**options)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert first.step == (4 if "error" in stop else 5)
    torch.rand(17)  # what else draws random numbers has no part in it
    for p in second.model.parameters():
        p.data.zero_()
    assert second.load(path)["note"] == "kept"
    assert (second.step, second.saved_step) == (first.saved_step, first.saved_step)
    path.with_name("middle").write_bytes(kept["file"])
    third = trainer(device, dropout=dropout)
    third.load(path.with_name("middle"))
    assert third.step == 4
    for run in (first, second, third):
        run.run()
        assert_same_bits(bits(run), bits(whole))


@pytest.mark.parametrize(("cut", "clip"), [(6, 1.0), (7, math.inf)])
def test_a_break_does_not_change_the_history(cut, clip, tmp_path):
    """Rows cover the same steps whether or not the run was stopped between them."""
    whole, parts, resumed = (trainer(clip=clip, seed=2**40) for _ in range(3))
    whole.run(log_every=4)
    parts.run(until=cut, log_every=4, save_to=tmp_path / "run")
    resumed.load(tmp_path / "run")
    assert resumed.history == parts.history
    for run in (parts, resumed):
        run.run(log_every=4)
        for row, want in zip(run.history, whole.history, strict=True):
            assert row | {"seconds": 0} == want | {"seconds": 0}


def test_dropout_is_drawn_from_the_runs_own_seed(device):
    """The caller's random numbers neither decide it nor are used up by it."""
    runs = []
    for caller, seed in ((1, 0), (2, 0), (1, 3)):
        torch.manual_seed(caller)
        run = trainer(device, dropout=0.3, seed=seed)
        before = torch.get_rng_state()
        run.run(until=3)
        assert torch.equal(torch.get_rng_state(), before)
        runs.append(bits(run)["tgt_embedding.weight"])
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_apples_random_state_is_the_runs_own_too(monkeypatch):
    """Without such a device: what would be read from it, and written to it."""
    state = {"now": torch.tensor([1], dtype=torch.uint8)}
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: state["now"])
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda new: state.update(now=new))
    monkeypatch.setattr(Transformer, "device", torch.device("mps"))
    run = trainer()
    state["now"] = torch.tensor([2], dtype=torch.uint8)
    with run._set_up():
        assert state["now"].item() == 1
    assert state["now"].item() == 2


def test_a_second_interrupt_is_obeyed_at_once(device):
    def batches(_step):
        os.kill(os.getpid(), signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("went on after the second Ctrl-C")

    run, handler = trainer(device, batches), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert run.step == 0
    assert signal.getsignal(signal.SIGINT) is handler


def test_training_in_another_thread_works():
    run = trainer()
    thread = threading.Thread(target=run.run)
    thread.start()
    thread.join()
    assert run.step == 12


@pytest.mark.parametrize("part", ["encoder", "", None])
@pytest.mark.parametrize("fails", [False, True])
def test_each_part_trains_in_its_mode_and_a_model_at_rest_as_a_whole(part, fails):
    """What a user freezes, dropout too, stays so; loaders give models in evaluation mode."""
    run, during = trainer(dropout=0.3), []

    def look(step):
        during.append({name: m.training for name, m in run.model.named_modules()})
        return 1 / 0 if fails else batch_of(step)

    run.batches = look
    if part is not None:
        run.model.get_submodule(part).eval()
    before = {name: m.training for name, m in run.model.named_modules()}
    try:
        run.run(until=1)
    except ZeroDivisionError:
        assert fails
    assert during == [before if part == "encoder" else dict.fromkeys(before, True)]
    assert {name: m.training for name, m in run.model.named_modules()} == before


# ---- what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"accumulate": 0}, "accumulate must be at least 1, got 0"),
        ({"warmup": 0}, r"warmup=0 must lie in 1..steps=12"),
        ({"warmup": 13}, r"warmup=13 must lie in 1..steps=12: warm up for fewer steps, or train"),
        ({"clip": 0.0}, "clip must be above 0, got 0.0; math.inf never clips"),
        ({"clip": -1.0}, "clip must be above 0, got -1.0"),
        ({"label_smoothing": 1.5}, r"label_smoothing must lie in \[0, 1\), got 1.5"),
        ({"lr": math.inf}, "lr must be a finite number of at least 0, got inf"),
        ({"lr": math.nan}, "lr must be a finite number of at least 0, got nan"),
        ({"lr": -1e-3}, "lr must be a finite number of at least 0, got -0.001"),
        ({"min_lr": -1.0}, r"min_lr must lie in 0..lr=0.002, got -1.0"),
        ({"min_lr": 3e-3}, r"min_lr must lie in 0..lr=0.002, got 0.003"),
        ({"min_lr": math.nan}, r"min_lr must lie in 0..lr=0.002, got nan"),
        ({"min_lr": 1e-3, "schedule": "constant"}, "min_lr=0.001 is the cosine's: constant has"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0, got -0.1"),
        ({"schedule": "linear"}, "schedule='linear' is not one of"),
        ({"precision": "int8"}, "precision='int8' is not one of"),
        ({"attention": "flash"}, "attention='flash' is not one of"),
        ({"parallel": "zero"}, r"parallel='zero' is not one of \('ddp', 'fsdp'\)"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        trainer(**settings)


@pytest.mark.parametrize(
    ("sizes", "settings", "message"),
    [
        ({"d_model": 15}, {}, "d_model=12, but this run has d_model=15"),
        ({"num_heads": 4}, {}, "num_heads=3, but this run has num_heads=4"),  # shapes would fit
        ({"norm": "pre", "activation": "gelu"}, {}, "has norm=pre, activation=gelu"),
        ({}, {"lr": 0.5}, "lr=0.002, but this run has lr=0.5"),
        ({}, {"steps": 20, "schedule": "constant"}, "steps=20, schedule=constant"),
        ({"d_ff": 24}, {"attention": "explicit"},
         "run: it was trained with d_ff=20, attention=fused, but this run has d_ff=24, "
         "attention=explicit: a resumed run keeps its model and its settings"),
    ],
    ids=str,
)  # fmt: skip
def test_a_run_of_another_model_or_other_settings_is_refused(sizes, settings, message, tmp_path):
    path = tmp_path / "run"
    trainer().run(until=1, save_to=path)
    model = small_model(dtype=torch.float32, **sizes)
    other = Trainer(model, batch_of, trainer(**settings).config)
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(CheckpointError, match=message):
        other.load(path)
    assert all(map(torch.equal, model.parameters(), before))
    assert (other.step, other.saved_step) == (0, None)


def test_a_run_from_before_a_setting_was_there_goes_on(tmp_path):
    trainer().run(until=1, save_to=tmp_path / "run")
    tensors, header = checkpointing.read(tmp_path / "run")
    del header["training"]["attention"]
    checkpointing.write(tmp_path / "run", tensors, header)
    trainer().load(tmp_path / "run")
    with pytest.raises(CheckpointError, match="trained with attention=fused, but this run"):
        trainer(attention="explicit").load(tmp_path / "run")


def test_batches_that_do_not_fit_the_model_are_refused(device):
    """With other padding words would count as padding; other ids have no row in the table."""
    with pytest.raises(ValueError, match="pad_id=3, but batches are padded with 0"):
        Trainer(small_model(pad_id=3), batch_of, TrainingConfig())
    run = trainer(device, lambda _: Batch(*(random_ids([3], 40) for _ in range(3))))
    with pytest.raises(ValueError, match="is outside the vocabulary of"):
        run.run()
