"""A run's file is checked whole before anything changes; own loops save and resume by it too."""

import json
import math
import shutil

import pytest
import torch
from safetensors.torch import save
from support import small_model
from torch import nn
from training_support import assert_same_bits, batch_of, bits, trainer

from tinytf.support.randomness import random_state
from tinytf.training import checkpointing
from tinytf.training.checkpointing import CheckpointError
from tinytf.training.losses import sequence_loss
from tinytf.training.state import load_training_state, save_training_state
from tinytf.training.trainer import Trainer, TrainingConfig

WEIGHT = "decoder.layers.0.feed_forward.w_1.weight"  # (20, 12)
LONG = "layer." * 20_000 + "weight"
MOMENT = f"optimizer/{WEIGHT}/exp_avg"
STEP = f"optimizer/{WEIGHT}/step"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The file of a run after 7 of its 12 steps."""
    path = tmp_path_factory.mktemp("kept") / "run"
    trainer(dtype=torch.float32).run(until=7, save_to=path, log_every=4)
    return path


@pytest.fixture
def path(kept, tmp_path):
    """A copy of it."""
    return shutil.copy(kept, tmp_path / "run")


@pytest.fixture(scope="module")
def end():
    """All that a run is in the end."""
    whole = trainer(dtype=torch.float32)
    whole.run()
    return bits(whole)


def rewritten(path, change):
    """Forge the file: something is changed in it, and its digest is right."""
    tensors, header = checkpointing.read(path)
    change(tensors, header)
    text = json.dumps(header)
    digest = checkpointing._digest(tensors, text)
    said = {"format": checkpointing.FORMAT, "header": text, "digest": digest}
    path.write_bytes(save(tensors, metadata=said))


def put(name, tensor):
    return lambda tensors, header: tensors.__setitem__(name, tensor)


def drop(name):
    return lambda tensors, header: tensors.pop(name)


def say(name, value, part=None):
    return lambda tensors, header: (header[part] if part else header).__setitem__(name, value)


def unsay(name):
    return lambda tensors, header: header.pop(name)


def fill(name, value):
    """Put one number into a tensor."""
    return lambda tensors, header: tensors[name].view(-1)[-1:].fill_(value)


ROW = {"step": 4, "loss": 1.0, "lr": 1e-3, "grad_norm": 1.0, "seconds": 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # the attack that corrupted the heap: the fused kernel trusts the sizes of moments
        (put(MOMENT, torch.zeros(3)),
         f"{MOMENT} is torch.float32 of shape (3,), expected torch.float32 of shape (20, 12)"),
        (put(f"{MOMENT}_sq", torch.zeros(20, 12, dtype=torch.float64)),
         "exp_avg_sq is torch.float64 of shape (20, 12), expected torch.float32 of shape (20, 12)"),
        (put(f"optimizer/{WEIGHT}/step", torch.zeros(2)),
         "step is torch.float32 of shape (2,), expected torch.float32 of shape ()"),
        (put(f"optimizer/{WEIGHT}/step", torch.tensor(3)), "step is torch.int64 of shape ()"),
        (drop(MOMENT), f"missing {MOMENT}"),
        (put("optimizer/stranger/exp_avg", torch.zeros(3)),
         "unexpected optimizer/stranger/exp_avg"),
        (put(f"model/{WEIGHT}", torch.zeros(20, 13)),
         f"{WEIGHT} has shape (20, 13), the model expects (20, 12)"),
        (put(f"model/{WEIGHT}", torch.zeros(20, 12).half()),
         f"{WEIGHT} is of torch.float16, the model expects torch.float32"),
        (drop(f"model/{WEIGHT}"), f"missing {WEIGHT}"),
        (put("else/where", torch.zeros(1)), "unexpected else/where"),
        (put("bare", torch.zeros(1)), "unexpected bare"),
        (put("random/cpu", torch.zeros(7, dtype=torch.uint8)),
         "random/cpu is torch.uint8 of shape (7,), expected torch.uint8 of shape (5056,)"),
        (put("random/cpu", torch.zeros(5056)), "random/cpu is torch.float32 of shape (5056,)"),
        (put("random/cpu", torch.zeros(5056, dtype=torch.uint8)),
         "random/cpu is not a random state"),
        (drop("random/cpu"), "missing random/cpu"),
        (put("random/dice", torch.zeros(5)), "unexpected random/dice"),
        (unsay("step"), "step is None, expected an integer in 0..12"),
        (say("step", "7"), "step is '7', expected an integer in 0..12"),
        (say("step", 13), "step is 13, expected an integer in 0..12"),
        (say("step", -1), "step is -1, expected an integer"),
        (say("step", True), "step is True, expected an integer"),
        (say("step", 10**400), "expected an integer in 0..12"),
        (unsay("seconds"), "seconds is None, expected a number of at least 0"),
        (say("seconds", math.nan), "seconds is nan, expected a number"),
        (say("seconds", -1.0), "seconds is -1.0"),
        (unsay("history"), "history is None, expected a list of rows"),
        (say("history", [ROW, 3]), "row 1 of history is 3, expected numbers for step, loss"),
        (say("history", [ROW | {"loss": None}]), "row 0 of history"),
        (say("history", [ROW | {"more": 1}]), "row 0 of history"),
        (say("history", [ROW | {"step": 1.5}]), "row 0 of history"),
        (unsay("unlogged"), "unlogged is None, expected a loss and a number of tokens"),
        (say("unlogged", [1.0]), "unlogged is [1.0]"),
        (say("unlogged", [1.0, 2.5]), "unlogged is [1.0, 2.5]"),
        (unsay("model"), "model is None, expected named settings"),
        (say("training", []), "training is [], expected named settings"),
        (say("colour", "red", "model"), "written by a later version: unknown setting colour"),
        (say("tempo", 3, "training"), "written by a later version: unknown setting tempo"),
        (say("steps", "12", "training"), "was trained with steps='12', but this run has steps=12"),
        (say("without_moments", 3), "without_moments is not a list of names"),
        (say("kind", "writer"), "holds 'writer', not a training run"),
        (fill(f"model/{WEIGHT}", math.nan),
         f"model/{WEIGHT}[19, 11] is nan, expected a finite number"),
        (fill(f"model/{WEIGHT}", -math.inf), f"model/{WEIGHT}[19, 11] is -inf, expected a finite"),
        (fill(MOMENT, math.nan), f"{MOMENT}[19, 11] is nan, expected a finite number"),
        (fill(f"{MOMENT}_sq", math.inf), f"{MOMENT}_sq[19, 11] is inf, expected a finite number"),
        (fill(f"{MOMENT}_sq", -1.0), f"{MOMENT}_sq[19, 11] is -1.0, expected at least 0"),
        (fill(STEP, math.nan), f"{STEP} is nan, expected a finite number"),
        (fill(STEP, -3.0), f"{STEP} is -3.0, expected at least 0"),
        (fill(STEP, 2.5), f"{STEP} is 2.5, expected a whole number"),
        (fill(STEP, 8.0), f"{STEP} is 8.0, expected at most 7, the steps of the run"),
    ],
)  # fmt: skip
def test_every_fault_is_named_before_anything_changes(path, end, change, message):
    rewritten(path, change)
    run = trainer(dtype=torch.float32)
    run.run(until=2, log_every=1)
    before, history, random = bits(run), list(run.history), run.random["cpu"].clone()
    with pytest.raises(CheckpointError) as error:
        run.load(path)
    assert message in str(error.value)
    assert str(error.value).startswith("run ")
    assert_same_bits(bits(run), before)
    assert (run.step, run.history, len(run.unlogged)) == (2, history, 2)
    assert torch.equal(run.random["cpu"], random)
    run.run()  # and goes on as if nothing had been tried
    assert_same_bits(bits(run), end)


def test_many_faults_are_one_error(path):
    def change(tensors, header):
        for name in [name for name in tensors if name.endswith("exp_avg")]:
            tensors[name] = torch.zeros(3)

    rewritten(path, change)
    with pytest.raises(CheckpointError, match=r"of shape \(3,\).*; and \d+ more$"):
        trainer(dtype=torch.float32).load(path)


@pytest.mark.parametrize(
    "change",
    [
        put("model/" + LONG, torch.ones(1)),
        put(f"optimizer/{LONG}/exp_avg", torch.ones(1)),
        put(LONG, torch.ones(1)),
        put("random/" + LONG, torch.ones(1)),
        put("model/" + LONG, torch.full((1,), math.nan)),
        say(LONG, 3, "training"),
        say("kind", LONG),
    ],
)
def test_a_name_of_any_length_is_quoted_shortened(path, change):
    rewritten(path, change)
    with pytest.raises(CheckpointError, match=r"layer.*…") as caught:
        trainer(dtype=torch.float32).load(path)
    assert len(str(caught.value)) < 800


def test_a_resumed_runs_history_is_that_of_an_unbroken_one(path):
    """Also the row whose steps lie on both sides of the break."""
    whole, resumed = (trainer(dtype=torch.float32) for _ in range(2))
    whole.run(log_every=4)
    resumed.load(path)
    assert resumed.unlogged[1] > 0
    resumed.run(log_every=4)
    keys = ("step", "loss", "lr", "grad_norm")
    histories = [[[row[key] for key in keys] for row in run.history] for run in (whole, resumed)]
    assert histories[0] == histories[1]
    assert [row[0] for row in histories[0]] == [4, 8, 12]


def test_frozen_parts_have_no_moments(tmp_path):
    run, again, thawed = (trainer(dtype=torch.float32) for _ in range(3))
    for one in (run, again):
        one.model.encoder.requires_grad_(False)
    run.run(until=3, save_to=tmp_path / "run")
    assert not any("/encoder." in n for n in checkpointing.read(tmp_path / "run")[0]
                   if n.startswith("optimizer"))  # fmt: skip
    again.load(tmp_path / "run")
    again.run()
    run.run()
    assert_same_bits(bits(again), bits(run))
    thawed.load(tmp_path / "run")  # its moments begin at 0
    thawed.run()


def test_a_run_saved_before_its_first_step_loads(tmp_path):
    run, again = trainer(dropout=0.2), trainer(dropout=0.2)
    run.save(tmp_path / "run")
    again.load(tmp_path / "run")
    run.run()
    again.run()
    assert_same_bits(bits(again), bits(run))


def test_weights_that_are_not_finite_are_never_saved(path):
    run = trainer(dtype=torch.float32)
    run.load(path)
    held = path.read_bytes()
    with torch.no_grad():
        run.model.get_parameter(WEIGHT)[0, 0] = math.nan
    with pytest.raises(CheckpointError) as error:
        run.save(path)
    assert str(error.value) == (
        f"{path} is not written: 1 of 240 values of model/{WEIGHT} are not finite in torch.float32"
    )
    assert path.read_bytes() == held


# ---- a training loop of one's own


class EarlyAdagrad(torch.optim.Adagrad):
    """As torch 2.11 has it: the sums are there from the start, and no step makes them."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        for p in self.param_groups[0]["params"]:
            self.state[p].update(step=torch.tensor(0.0), sum=torch.zeros_like(p))

    def _init_group(self, group, *lists):
        assert all(self.state[p] for p in group["params"])
        return super()._init_group(group, *lists)


OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "fused AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
    "AMSGrad": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=1e-2),
    "momentum": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-2),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
    "early Adagrad": lambda p: EarlyAdagrad(p, lr=1e-2),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=1e-2),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=1e-2),
}


def own_loop(model, optimizer, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        loss, tokens = sequence_loss(model, batch_of(step))
        (loss / tokens).backward()
        optimizer.step()


def fresh(kind):
    torch.manual_seed(1)
    model = small_model(dtype=torch.float32, dropout=0.2)
    return model, OPTIMIZERS[kind](model.parameters())


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_own_loop_resumes_to_the_same_bits(kind, tmp_path):
    model, optimizer = fresh(kind)
    own_loop(model, optimizer, 0, 3)
    save_training_state(tmp_path / "run", model, optimizer, 3, {"note": [1, "a"]})
    own_loop(model, optimizer, 3, 6)
    again, other = fresh(kind)
    torch.manual_seed(9)
    header = load_training_state(tmp_path / "run", again, other)
    assert (header["step"], header["note"]) == (3, [1, "a"])
    own_loop(again, other, header["step"], 6)
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", [k for k in OPTIMIZERS if k != "SGD"])
def test_an_own_loop_refuses_moments_that_do_not_fit(kind, tmp_path):
    model, optimizer = fresh(kind)
    own_loop(model, optimizer, 0, 1)
    save_training_state(tmp_path / "run", model, optimizer, 1)
    tensors, header = checkpointing.read(tmp_path / "run")
    name = next(n for n in tensors if n.startswith("optimizer") and tensors[n].dim() == 2)
    tensors[name] = tensors[name].flatten()
    checkpointing.write(tmp_path / "run", tensors, header)
    again, other = fresh(kind)
    random, weights = random_state(torch.device("cpu"))["cpu"], next(again.parameters()).clone()
    untouched = str(other.state_dict())
    with pytest.raises(CheckpointError, match=r"run does not fit this run: optimizer/.* expected"):
        load_training_state(tmp_path / "run", again, other)
    assert torch.equal(next(again.parameters()), weights)
    assert torch.equal(torch.get_rng_state(), random)
    assert str(other.state_dict()) == untouched


SQUARES = {  # what each optimiser divides by
    "AdamW": "exp_avg_sq",
    "fused AdamW": "exp_avg_sq",
    "AMSGrad": "max_exp_avg_sq",
    "RMSprop": "square_avg",
    "Adagrad": "sum",
    "early Adagrad": "sum",
    "Adadelta": "acc_delta",
    "Adamax": "exp_inf",
}


@pytest.mark.parametrize("kind", SQUARES)
def test_an_own_loop_refuses_numbers_that_no_training_makes(kind, tmp_path):
    model, optimizer = fresh(kind)
    own_loop(model, optimizer, 0, 1)
    entry = f"optimizer/{WEIGHT}/{SQUARES[kind]}"
    for change, fault in (
        (fill(entry, -1e-3), rf"{entry}\[19, 11\] is -0.001.*, expected at least 0"),
        (fill(STEP, -3.0), f"{STEP} is -3.0, expected at least 0"),
        (fill(f"model/{WEIGHT}", math.nan), rf"model/{WEIGHT}\[19, 11\] is nan, expected a finite"),
        (say("step", -1), "holds kind 'training' at step -1"),
    ):
        save_training_state(tmp_path / "run", model, optimizer, 1)
        rewritten(tmp_path / "run", change)
        again, other = fresh(kind)
        weights = next(again.parameters()).clone()
        with pytest.raises(CheckpointError, match=rf"^run .*{fault}"):
            load_training_state(tmp_path / "run", again, other)
        assert torch.equal(next(again.parameters()), weights)
        assert str(other.state_dict()) == str(fresh(kind)[1].state_dict())


def test_an_own_loop_counts_its_steps_as_it_likes(tmp_path):
    """The step that is saved may be an epoch: it says nothing of the optimiser's steps."""
    model, optimizer = fresh("AdamW")
    own_loop(model, optimizer, 0, 3)
    save_training_state(tmp_path / "run", model, optimizer, 1)
    assert load_training_state(tmp_path / "run", *fresh("AdamW"))["step"] == 1


def test_an_own_loop_keeps_running_statistics(tmp_path):
    """Buffers that a module keeps belong to it as its weights do."""
    models = [nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    models[0](torch.randn(5, 3))
    save_training_state(tmp_path / "run", models[0], optimizers[0], 0)
    load_training_state(tmp_path / "run", models[1], optimizers[1])
    assert torch.equal(models[0][1].running_mean, models[1][1].running_mean)
    assert models[1][1].num_batches_tracked == 1


def test_what_is_no_state_of_a_training_is_refused(tmp_path):
    model, optimizer = fresh("AdamW")
    checkpointing.write(tmp_path / "w", {"a": torch.ones(1)}, {"kind": "writer"})
    with pytest.raises(CheckpointError, match="holds kind 'writer' at step None, not the state"):
        load_training_state(tmp_path / "w", model, optimizer)
    save_training_state(tmp_path / "w", model, optimizer, 2)
    with pytest.raises(CheckpointError, match="model is None, expected named settings"):
        Trainer(model, batch_of, TrainingConfig()).load(tmp_path / "w")
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        load_training_state(tmp_path / "none", model, optimizer)


def test_an_own_loop_may_go_on_from_a_trainers_file(path):
    model, optimizer = fresh("AdamW")
    assert load_training_state(path, model, optimizer)["step"] == 7
