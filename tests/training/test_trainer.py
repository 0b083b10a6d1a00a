"""Loss, schedules and the loop: accumulation, resuming to the bit, stopping, failing."""

import math
import os
import signal
import threading
import time

import pytest
import torch
import torch.nn.functional as F
from support import random_ids, small_model
from training_support import assert_same_bits, batch_of, bits, trainer

from tinytf.attention import explicit_attention, fused_attention
from tinytf.inspect import attention_layers, record
from tinytf.relative import RotaryAttention
from tinytf.support.randomness import seeded
from tinytf.text.words import PAD
from tinytf.training import checkpointing
from tinytf.training.checkpointing import CheckpointError
from tinytf.training.distributed import Team
from tinytf.training.losses import Batch, make_batch, sequence_loss
from tinytf.training.schedules import warmup_cosine, warmup_inverse_sqrt
from tinytf.training.trainer import InFloat32, Trainer, TrainingConfig
from tinytf.transformer import Transformer


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("cosine", lambda s: warmup_cosine(s, 2e-3, 3, 12)),
        ("cosine to a tenth", lambda s: warmup_cosine(s, 2e-3, 3, 12, 2e-4)),
        ("constant", lambda s: 2e-3 * min(1, s / 3)),
        ("inverse_sqrt", lambda s: warmup_inverse_sqrt(s, 12, 3)),
    ],
)
def test_each_step_takes_its_own_rate(schedule, expected):
    schedule, to_a_tenth, _ = schedule.partition(" to a tenth")
    run = trainer(schedule=schedule, min_lr=2e-4 if to_a_tenth else 0.0)
    used = []
    step = run.optimizer.step
    run.optimizer.step = lambda: (
        used.append([g["lr"] for g in run.optimizer.param_groups]),
        step(),
    )
    history = run.run(log_every=1)
    assert used == [[pytest.approx(expected(s))] * 2 for s in range(1, 13)]
    assert [row["lr"] for row in history] == [rates[0] for rates in used]


# ---- one step


def test_a_step_equals_plain_adamw(exact):
    """Two steps, against torch's own loss, clipping and optimiser, written out."""
    settings = {"clip": 0.5, "weight_decay": 0.3, "lr": 1e-2, "betas": (0.8, 0.9), "eps": 1e-6}
    run = trainer(exact, dtype=torch.float64, **settings)
    with seeded(7):
        plain = small_model(exact)
    plain.load_state_dict(run.model.state_dict())
    history = run.run(until=2, log_every=1)
    adam = torch.optim.AdamW(
        [
            {"params": [p for p in plain.parameters() if p.dim() > 1], "weight_decay": 0.3},
            {"params": [p for p in plain.parameters() if p.dim() == 1], "weight_decay": 0.0},
        ],
        betas=(0.8, 0.9),
        eps=1e-6,
    )
    for step in range(2):
        batch = batch_of(step).to(exact)
        logits = plain(batch.src, batch.tgt_in).flatten(0, 1).float()
        loss = F.cross_entropy(
            logits, batch.tgt_out.flatten(), ignore_index=PAD, label_smoothing=0.1
        )
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
    whole = batch_of(3, size=8)
    cuts = [(0, 1), (1, 6), (6, 8)]

    def micro(index):
        return Batch(*(part[slice(*cuts[index % 3])] for part in whole))

    big = trainer(exact, lambda _: whole, dtype=torch.float64, clip=1e9)
    small = trainer(exact, micro, dtype=torch.float64, clip=1e9, accumulate=3)
    for run in (big, small):
        run.run(until=2, log_every=1)
    for a, b in zip(big.model.parameters(), small.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
    for a, b in zip(big.history, small.history, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-6)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=1e-5)


def test_accumulation_asks_for_each_batch_once():
    asked = []
    run = trainer(batches=lambda i: asked.append(i) or batch_of(i), accumulate=2)
    run.run(until=3)
    assert asked == list(range(6))


def test_history_is_the_mean_over_tokens():
    first, second = trainer(), trainer()
    losses = [row["loss"] for row in first.run(until=4, log_every=1)]
    tokens = [int((batch_of(i).tgt_out != PAD).sum()) for i in range(4)]
    assert len(set(tokens)) > 1
    mean = sum(a * n for a, n in zip(losses, tokens, strict=True)) / sum(tokens)
    (row,) = second.run(until=4, log_every=4)
    assert row["step"] == 4
    assert row["loss"] == pytest.approx(mean)
    assert row["seconds"] > 0


def test_training_learns(device):
    """A few dozen steps on one batch reach a loss far under the uniform one."""
    run = trainer(device, lambda _: batch_of(0), steps=80, lr=1e-2, label_smoothing=0.0)
    history = run.run(log_every=1)
    assert history[0]["loss"] > 1.5
    assert history[-1]["loss"] < 0.2


@pytest.mark.parametrize("precision", ["bfloat16", "auto"])
def test_other_precisions_train_and_keep_float32_weights(precision, device):
    run = trainer(device, lambda _: batch_of(0), steps=60, lr=1e-2, precision=precision)
    before = [m.attention for m in run.model.modules() if hasattr(m, "attention")]
    history = run.run(log_every=1)
    assert history[-1]["loss"] < 0.6 * history[0]["loss"]
    assert {p.dtype for p in run.model.parameters()} == {torch.float32}
    assert [m.attention for m in run.model.modules() if hasattr(m, "attention")] == before
    assert run.config.precision in ("float32", "bfloat16")


# ---- one kernel, or step by step


def test_both_attentions_train_alike(device):
    ends = []
    for attention in ("fused", "explicit"):
        run = trainer(device, dtype=torch.float64, attention=attention)
        run.run()
        ends.append(bits(run))
    for name, value in ends[0].items():
        torch.testing.assert_close(ends[1][name], value, atol=1e-8, rtol=0)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_asked_for_attends_while_training_and_only_then(precision):
    seen = []

    def look(step):
        seen.extend(layer.attention for layer in layers)
        return batch_of(step)

    run = trainer(batches=look, precision=precision, attention="explicit")
    layers = attention_layers(run.model).values()
    own = RotaryAttention()  # what attends in another way is left as it is
    (first, *rest) = layers
    first.attention = own
    run.run(until=1)
    assert [type(f) is InFloat32 for f in seen] == [precision == "bfloat16"] * len(seen)
    inside = [f.attention if precision == "bfloat16" else f for f in seen]
    assert inside == [own] + [explicit_attention] * len(rest)
    assert [layer.attention for layer in layers] == [own] + [fused_attention] * len(rest)


def noted(name, attention, calls, wait=0.0):
    """Attend, note the name and whether in autocast's precision, and take so many seconds more."""

    def attend(q, k, v, *rest):
        calls.append((name, q.dtype))
        time.sleep(wait)
        return attention(q, k, v, *rest)

    return attend


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("slow", ["fused", "explicit"])
def test_the_faster_attention_is_chosen(slow, precision, monkeypatch):
    calls, passes, maps = [], [], []
    ways = {"fused": fused_attention, "explicit": explicit_attention}
    for name, way in ways.items():
        ways[name] = noted(name, way, calls, 0.003 * (name == slow))
        for module in ("autotune", "precision"):
            target = f"tinytf.training.{module}.{name}_attention"
            monkeypatch.setattr(target, ways[name], raising=False)

    def objective(model, batch, smoothing):
        loss, count = sequence_loss(model, batch, smoothing)
        maps.append(model.decoder.layers[0].feed_forward.w_1(torch.ones(1, 8)).dtype)
        loss.register_hook(lambda gradient: passes.append(len(maps)))
        return loss, count

    model = small_model(dtype=torch.float32, d_model=8, num_heads=2)
    layers = attention_layers(model).values()
    for layer in layers:
        layer.attention = ways["fused"]
    config = TrainingConfig(attention="auto", precision=precision)
    run = Trainer(model, batch_of, config, objective=objective)
    assert {run.config.attention} == ways.keys() - {slow}
    names = [name for name, _ in calls]
    assert names == (["fused"] * len(layers) + ["explicit"] * len(layers)) * 5
    assert {kind for _, kind in calls} == {torch.float32}
    assert passes == [*range(1, 11)]  # each was followed back too
    assert set(maps) == {getattr(torch, precision)}


@pytest.mark.parametrize("quick", ["fused", "explicit"])
def test_a_disturbed_turn_does_not_count(quick, monkeypatch):
    """The best turn of the quick one is the first: later ones took longer than the slow one's."""
    quickly, slowly = iter([1.0, 9.0, 9.0, 9.0, 9.0]), iter([2.0, 2.0, 3.0, 2.0, 2.0])
    turns = (quickly, slowly) if quick == "fused" else (slowly, quickly)
    taken = [seconds for pair in zip(*turns, strict=True) for seconds in pair]
    ticks = iter([t for seconds in taken for t in (0.0, seconds)])
    monkeypatch.setattr("tinytf.training.autotune.time.perf_counter", lambda: next(ticks))
    assert trainer(attention="auto").config.attention == quick


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_choosing_leaves_no_trace(precision, monkeypatch):
    """Not in weights, gradients, random state, mode, nor in what is dropped afterwards."""
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    run = trainer(dropout=0.3, precision=precision, attention="auto")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(p.grad is None for p in run.model.parameters())
    assert {layer.attention for layer in attention_layers(run.model).values()} == {fused_attention}
    other = trainer(dropout=0.3, precision=precision, attention=run.config.attention)
    run.run()
    other.run()
    assert_same_bits(bits(run), bits(other))


@pytest.mark.parametrize(("words", "measured"), [(63, True), (64, False)])  # and a mark at an end
def test_long_sequences_get_the_kernel_unmeasured(words, measured):
    calls, rows = [], [[3] * words]

    def objective(model, batch, smoothing):
        calls.append(batch)
        return sequence_loss(model, batch, smoothing)

    run = Trainer(
        small_model(max_len=70), lambda step: make_batch(rows, rows),
        TrainingConfig(attention="auto"), objective=objective,
    )  # fmt: skip
    assert bool(calls) == measured
    if not measured:
        assert run.config.attention == "fused"


def test_where_there_is_nothing_to_choose_nothing_is_measured(device, monkeypatch):
    model = small_model(device)
    if model.device.type == "cpu":  # on a GPU the kernel is taken
        for layer in attention_layers(model).values():
            layer.attention = explicit_attention
    monkeypatch.setattr("tinytf.training.autotune.attending", None)
    run = Trainer(model, batch_of, TrainingConfig(attention="auto"))
    assert run.config.attention == "fused"


class Others(Team):
    """A team of `size` in which so many found something."""

    def __init__(self, votes, size):
        super().__init__(rank=0, world_size=size)
        self.votes = votes

    def total(self, values, device):
        return [self.votes]

    def wrap(self, model, objective, parallel):
        return objective


@pytest.mark.parametrize(
    ("votes", "size", "chosen"),
    [(0, 3, "fused"), (1, 3, "fused"), (2, 3, "explicit"), (1, 2, "fused"), (2, 2, "explicit")],
)
def test_a_team_takes_the_attention_that_most_find_faster(votes, size, chosen):
    timed = []

    def objective(model, batch, smoothing):
        timed.append(len(batch.src))
        return sequence_loss(model, batch, smoothing)

    run = Trainer(
        small_model(), batch_of, TrainingConfig(attention="auto"), objective, Others(votes, size)
    )
    assert run.config.attention == chosen
    assert set(timed) == {6 // size}  # each times the rows that it will train on


def test_what_fails_while_choosing_leaves_the_model_as_it_was():
    model, calls = small_model(), []

    def objective(model, batch, smoothing):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return sequence_loss(model, batch, smoothing)

    model.eval()
    with pytest.raises(KeyboardInterrupt):
        Trainer(model, batch_of, TrainingConfig(attention="auto"), objective=objective)
    assert not model.training
    assert all(p.grad is None for p in model.parameters())
    assert {layer.attention for layer in attention_layers(model).values()} == {fused_attention}


# ---- stopping and resuming


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_resumed_run_ends_in_the_same_bits(dropout, device, tmp_path):
    whole = trainer(device, dropout=dropout)
    whole.run()
    path = tmp_path / "run.safetensors"
    first = trainer(device, dropout=dropout)
    first.run(until=5, save_to=path, header={"note": "kept"})
    torch.rand(17)  # what else draws random numbers has no part in it
    second = trainer(device, dropout=dropout)
    for p in second.model.parameters():
        p.data.zero_()
    assert second.load(path)["note"] == "kept"
    assert second.step == 5
    assert second.history == first.history
    second.run()
    assert_same_bits(bits(second), bits(whole))
    first.run()  # nor does it matter whether the process lived on
    assert_same_bits(bits(first), bits(whole))


def test_a_save_in_the_middle_resumes_to_the_same_bits(device, tmp_path):
    """As after kill -9: all there is is the last file written while training ran."""
    path, kept = tmp_path / "run.safetensors", {}

    def batches(step):
        if path.exists() and step == 7:
            kept["file"] = path.read_bytes()
        return batch_of(step)

    whole = trainer(device, batches, dropout=0.3)
    whole.run(save_to=path, save_every=0.0)
    path.write_bytes(kept["file"])
    second = trainer(device, dropout=0.3)
    second.load(path)
    assert second.step == 7
    second.run()
    assert_same_bits(bits(second), bits(whole))


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_the_step_finish_and_saves(number, device, tmp_path):
    path = tmp_path / "run.safetensors"
    whole = trainer(device, dropout=0.3)
    whole.run()

    def batches(step):
        if step == 4:
            signal.raise_signal(number)
        return batch_of(step)

    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run = trainer(device, batches, dropout=0.3)
    with pytest.raises(KeyboardInterrupt, match="stopped after step 5 of 12"):
        run.run(save_to=path)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert run.step == 5
    second = trainer(device, dropout=0.3)
    second.load(path)
    for one in (run, second):
        one.run()
        assert_same_bits(bits(one), bits(whole))


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


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_model_is_left_as_it_was(training, device):
    run = trainer(device)
    run.model.train(training)
    run.run(until=1)
    assert run.model.training is training


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


def test_a_failed_run_leaves_a_whole_trainer(device):
    """After an error in a batch the run goes on as if it had not happened."""
    whole = trainer(device, dropout=0.3)
    whole.run()
    faults = [4]

    def batches(step):
        if step in faults:
            faults.remove(step)
            raise OSError("the disk is gone")
        return batch_of(step)

    run = trainer(device, batches, dropout=0.3)
    run.model.eval()
    with pytest.raises(OSError, match="the disk is gone"):
        run.run()
    assert run.step == 4
    assert not run.model.training
    run.run()
    assert_same_bits(bits(run), bits(whole))


def test_an_interrupt_does_not_change_the_history():
    """Rows of the log cover the same steps whether or not the run was stopped between them."""
    whole, parts = trainer(), trainer()
    whole.run(log_every=4)
    parts.run(until=6, log_every=4)
    parts.run(log_every=4)
    rows = {row["step"]: row["loss"] for row in parts.history}
    assert {row["step"]: row["loss"] for row in whole.history}.items() <= rows.items()


def test_the_bar_moves_once_a_step():
    moves = []

    class Bar:
        def update(self, n):
            moves.append(n)

        def set_postfix_str(self, text, refresh):
            assert "loss" in text

    trainer().run(bar=Bar(), log_every=5)
    assert moves == [1] * 12


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_is_seen_by_record_in_every_precision(precision):
    run = trainer(precision=precision)
    functions = [layer.attention for layer in attention_layers(run.model).values()]
    with record(run.model) as seen:
        run.run(until=1)
    assert len(seen) == len(functions)
    run.run(until=2)
    assert [layer.attention for layer in attention_layers(run.model).values()] == functions


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_record_inside_a_run_sees_the_attention_that_is_trained(precision):
    """The batches are made inside the run: a look from there must find RoPE, not plain scores."""
    inside = {}

    def look(step):
        batch = batch_of(step)
        with record(run.model) as seen, torch.no_grad():
            run.model(batch.src, batch.tgt_in)
        inside.update(seen)
        return batch

    run = trainer(batches=look, precision=precision)
    for layer in [*run.model.encoder.layers, *run.model.decoder.layers]:
        layer.self_attention.attention = RotaryAttention()
    batch = batch_of(0)
    with record(run.model) as outside:
        run.model(batch.src, batch.tgt_in)
    run.run(until=1)
    assert inside.keys() == outside.keys()
    for name, weights in outside.items():
        torch.testing.assert_close(inside[name], weights, atol=1e-6, rtol=0)


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


# ---- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"accumulate": 0}, "accumulate must be at least 1, got 0"),
        ({"warmup": 0}, r"warmup=0 must lie in 1..steps=12"),
        ({"warmup": 13}, r"warmup=13 must lie in 1..steps=12"),
        ({"warmup": 13}, "warm up for fewer steps, or train for more"),
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
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        trainer(**settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 15}, "d_model=12, but this run has d_model=15"),
        ({"num_layers": 1}, "num_layers=2, but this run has num_layers=1"),
        ({"num_heads": 4}, "num_heads=3, but this run has num_heads=4"),  # the shapes would fit
        ({"norm": "pre", "activation": "gelu"}, "has norm=pre, activation=gelu"),
    ],
    ids=str,
)
def test_a_checkpoint_of_another_model_is_refused(changes, message, tmp_path):
    path = tmp_path / "run.safetensors"
    trainer().run(until=1, save_to=path)
    other = trainer()
    config = other.model.config.__dict__ | changes
    other = Trainer(Transformer(type(other.model.config)(**config)), batch_of, other.config)
    before = [p.clone() for p in other.model.parameters()]
    with pytest.raises(CheckpointError, match=message):
        other.load(path)
    assert all(map(torch.equal, other.model.parameters(), before))
    assert other.step == 0


def test_ids_beyond_the_models_vocabulary_are_refused(device):
    run = trainer(device, lambda _: Batch(*(random_ids([3], 40) for _ in range(3))))
    with pytest.raises(ValueError, match="is outside the vocabulary of"):
        run.run()


def test_a_checkpoint_that_is_refused_changes_nothing(tmp_path):
    trainer(attention="explicit").run(until=1, save_to=tmp_path / "run")
    other = trainer()
    other.model = small_model(dtype=torch.float32, d_ff=24)
    with pytest.raises(
        CheckpointError,
        match="d_ff=20, attention=explicit, but this run has d_ff=24, attention=fused",
    ):
        other.load(tmp_path / "run")
    assert other.config.attention == "fused"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 0.5}, "lr=0.002, but this run has lr=0.5"),
        ({"steps": 20, "schedule": "constant"}, "steps=20, schedule=constant"),
        ({"attention": "explicit"}, "attention=fused, but this run has attention=explicit"),
    ],
    ids=str,
)
def test_a_run_of_other_settings_is_refused(changes, message, tmp_path):
    trainer().run(until=1, save_to=tmp_path / "run")
    with pytest.raises(CheckpointError, match=message):
        trainer(**changes).load(tmp_path / "run")


def test_a_precision_chosen_by_measurement_stays_as_the_run_began(tmp_path, monkeypatch):
    monkeypatch.setattr("tinytf.training.autotune.choose_precision", lambda kind: "float32")
    trainer(dtype=torch.float32, precision="bfloat16").run(until=1, save_to=tmp_path / "run")
    resumed = trainer(dtype=torch.float32, precision="auto")
    resumed.load(tmp_path / "run")
    assert resumed.config.precision == "bfloat16"


@pytest.mark.parametrize("began", ["fused", "explicit"])
def test_an_attention_chosen_by_measurement_stays_as_the_run_began(began, tmp_path, monkeypatch):
    trainer(attention=began).run(until=2, save_to=tmp_path / "run")
    other = {"fused": "explicit", "explicit": "fused"}[began]
    monkeypatch.setattr("tinytf.training.autotune.choose_attention", lambda *_: other)
    resumed = trainer(attention="auto")
    assert resumed.config.attention == other
    resumed.load(tmp_path / "run")
    assert resumed.config.attention == began
    resumed.run()
    whole = trainer(attention=began)
    whole.run()
    assert_same_bits(bits(resumed), bits(whole))


def test_a_run_from_before_attention_could_be_chosen_goes_on(tmp_path):
    trainer().run(until=1, save_to=tmp_path / "run")
    tensors, header = checkpointing.read(tmp_path / "run")
    del header["training"]["attention"]
    checkpointing.write(tmp_path / "run", tensors, header)
    trainer().load(tmp_path / "run")
    with pytest.raises(CheckpointError, match="trained with attention=fused, but this run"):
        trainer(attention="explicit").load(tmp_path / "run")


def test_a_model_with_other_padding_is_refused():
    """Its padding would count as words, and words as padding."""
    with pytest.raises(ValueError, match="pad_id=3, but batches are padded with 0"):
        Trainer(small_model(pad_id=3), batch_of, TrainingConfig())


# ---- modes


def test_a_part_in_evaluation_mode_stays_there_while_the_rest_trains():
    """What a user freezes, dropout too, is not thawed by training, nor afterwards."""
    run, during = trainer(dropout=0.3), []

    def look(step):
        during.append({name: m.training for name, m in run.model.named_modules()})
        return batch_of(step)

    run.batches = look
    run.model.encoder.eval()
    before = {name: m.training for name, m in run.model.named_modules()}
    assert before["encoder.layers.0"] is False
    assert before["decoder.layers.0"] is True
    run.run(until=2)
    assert during == [before, before]
    assert {name: m.training for name, m in run.model.named_modules()} == before


def test_a_model_in_evaluation_mode_trains_as_a_whole_and_returns_to_it():
    """As loaders give models: nobody who fine-tunes one means to do so without dropout."""
    run, during = trainer(dropout=0.3), []
    run.batches = lambda step: (
        during.append(all(m.training for m in run.model.modules())) or batch_of(step)
    )
    run.model.eval()
    run.run(until=1)
    assert during == [True]
    assert not any(m.training for m in run.model.modules())


def test_choosing_an_attention_leaves_each_part_in_its_mode():
    with seeded(7):
        model = small_model(dtype=torch.float32, dropout=0.3)
    model.decoder.layers[1].eval()
    before = {name: m.training for name, m in model.named_modules()}
    Trainer(model, batch_of, TrainingConfig(attention="auto"))
    assert {name: m.training for name, m in model.named_modules()} == before
