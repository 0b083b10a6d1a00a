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

from tinytf.training import checkpointing
from tinytf.training.checkpointing import CheckpointError
from tinytf.training.losses import sequence_loss
from tinytf.training.state import load_training_state, save_training_state
from tinytf.training.trainer import Trainer, TrainingConfig

WEIGHT = "decoder.layers.0.feed_forward.w_1.weight"  # (20, 12)
LONG = "layer." * 20_000 + "weight"
MOMENT = f"optimizer/{WEIGHT}/exp_avg"
STEP = f"optimizer/{WEIGHT}/step"
ROW = {"step": 4, "loss": 1.0, "lr": 1e-3, "grad_norm": 1.0, "seconds": 1.0}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The file of a run after 7 of its 12 steps, and all that the run is in the end."""
    path = tmp_path_factory.mktemp("kept") / "run"
    run = trainer()
    run.run(until=7, save_to=path, log_every=4)
    run.run()
    return path, bits(run)


@pytest.fixture
def path(kept, tmp_path):
    """A copy of that file."""
    return shutil.copy(kept[0], tmp_path / "run")


def rewritten(path, change):
    """Forge the file: something is changed in it, and its digest is right."""
    tensors, header = checkpointing.read(path)
    change(tensors, header)
    text = json.dumps(header)
    digest = checkpointing._digest(tensors, text)
    said = {"format": "tinytf-2", "header": text, "digest": digest}
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # the attack that corrupted the heap: the fused kernel trusts the sizes of moments
        (put(MOMENT, torch.zeros(3)),
         f"{MOMENT} is torch.float32 of shape (3,), expected torch.float32 of shape (20, 12)"),
        (put(f"{MOMENT}_sq", torch.zeros(20, 12, dtype=torch.float64)),
         "exp_avg_sq is torch.float64 of shape (20, 12), expected torch.float32 of shape (20, 12)"),
        (put(STEP, torch.zeros(2)),
         "step is torch.float32 of shape (2,), expected torch.float32 of shape ()"),
        (drop(MOMENT), f"missing {MOMENT}"),
        (put("optimizer/stranger/exp_avg", torch.zeros(3)),
         "unexpected optimizer/stranger/exp_avg"),
        (put(f"model/{WEIGHT}", torch.zeros(20, 13)),
         f"{WEIGHT} has shape (20, 13), the model expects (20, 12)"),
        (put(f"model/{WEIGHT}", torch.zeros(20, 12).half()),
         f"{WEIGHT} is of torch.float16, the model expects torch.float32"),
        (drop(f"model/{WEIGHT}"), f"missing {WEIGHT}"),
        (put("bare", torch.zeros(1)), "unexpected bare"),
        (put("random/cpu", torch.zeros(7, dtype=torch.uint8)), "random/cpu is not a random state"),
        (put("random/cpu", torch.zeros(5056)), "random/cpu is not a random state"),
        (put("random/cpu", torch.zeros(5056, dtype=torch.uint8)), "is not a random state"),
        (drop("random/cpu"), "missing random/cpu"),
        (put("random/dice", torch.zeros(5)), "unexpected random/dice"),
        (unsay("step"), "step is None, expected an integer in 0..12"),
        (say("step", "7"), "step is '7', expected an integer in 0..12"),
        (say("step", 13), "step is 13, expected an integer in 0..12"),
        (say("step", -1), "step is -1, expected an integer"),
        (say("step", True), "step is True, expected an integer"),
        (say("step", 10**400), "expected an integer in 0..12"),
        (say("seconds", math.nan), "seconds is nan, expected a number of at least 0"),
        (say("seconds", -1.0), "seconds is -1.0"),
        (unsay("history"), "history is None, expected rows of numbers for step, loss"),
        (say("history", [ROW, 3]), "expected rows of numbers for step, loss"),
        (say("history", [ROW | {"loss": None}]), "expected rows of numbers"),
        (say("history", [ROW | {"more": 1}]), "expected rows of numbers"),
        (say("history", [ROW | {"step": 1.5}]), "expected rows of numbers"),
        (unsay("unlogged"), "unlogged is None, expected a loss and a number of tokens"),
        (say("unlogged", [1.0]), "unlogged is [1.0]"),
        (say("unlogged", [1.0, 2.5]), "unlogged is [1.0, 2.5]"),
        (unsay("model"), "model is None, expected named settings"),
        (say("training", []), "training is [], expected named settings"),
        (say("colour", "red", "model"), "written by a later version: unknown setting colour"),
        (say("tempo", 3, "training"), "written by a later version: unknown setting tempo"),
        (say("steps", "12", "training"), "trained with steps='12', but this run has steps=12"),
        (say("without_moments", [WEIGHT]), f"unexpected {MOMENT}"),
        (say("kind", "writer"), "it holds 'writer', not a training run"),
        (fill(f"model/{WEIGHT}", math.nan),
         f"model/{WEIGHT}[19, 11] is nan, expected a finite number"),
        (fill(MOMENT, -math.inf), f"{MOMENT}[19, 11] is -inf, expected a finite number"),
        (fill(f"{MOMENT}_sq", math.inf), f"{MOMENT}_sq[19, 11] is inf, expected a finite number"),
        (fill(f"{MOMENT}_sq", -1.0), f"{MOMENT}_sq[19, 11] is -1.0, expected a finite number of a"),
        (fill(STEP, -3.0), f"{STEP} is -3.0, expected a finite number of at least 0"),
    ],
)  # fmt: skip
def test_every_fault_is_named_before_anything_changes(kept, path, change, message):
    rewritten(path, change)
    run = trainer()
    run.run(until=2, log_every=1)
    before, history, random = bits(run), list(run.history), run.random["cpu"].clone()
    with pytest.raises(CheckpointError) as error:
        run.load(path)
    assert message in str(error.value)
    assert str(error.value).startswith("run")
    assert_same_bits(bits(run), before)
    assert (run.step, run.history, len(run.unlogged)) == (2, history, 2)
    assert torch.equal(run.random["cpu"], random)
    run.run()  # and goes on as if nothing had been tried
    assert_same_bits(bits(run), kept[1])


def test_many_faults_are_one_error(path):
    def change(tensors, header):
        for name in [name for name in tensors if name.endswith("exp_avg")]:
            tensors[name] = torch.zeros(3)

    rewritten(path, change)
    with pytest.raises(CheckpointError, match=r"of shape \(3,\).*; and \d+ more$"):
        trainer().load(path)


@pytest.mark.parametrize(
    "change",
    [
        put("model/" + LONG, torch.ones(1)),
        put(LONG, torch.ones(1)),
        put("model/" + LONG, torch.full((1,), math.nan)),
        say(LONG, 3, "training"),
        say("kind", LONG),
    ],
)
def test_a_name_of_any_length_is_quoted_shortened(path, change):
    rewritten(path, change)
    with pytest.raises(CheckpointError, match=r"layer.*…") as caught:
        trainer().load(path)
    assert len(str(caught.value)) < 800


def test_a_file_of_the_first_form_goes_on_to_the_same_bits(kept, tmp_path):
    """Written here by hand, entry by entry, as files were before any setting could be chosen."""
    run = trainer()
    run.run(until=7)
    tensors = {"random/cpu": run.random["cpu"]}
    for name, parameter in run.model.named_parameters():
        tensors[f"model/{name}"] = parameter.detach().clone()
        state = run.optimizer.state[parameter]
        tensors |= {f"optimizer/{name}/{key}": value.clone() for key, value in state.items()}
    header = {
        "kind": "training", "step": 7, "seconds": 1.5, "history": [ROW], "unlogged": [9.0, 4],
        "model": run.model.config.__dict__,
        "training": {"steps": 12, "warmup": 3, "lr": 2e-3, "betas": [0.9, 0.98]},
    }  # fmt: skip
    text = json.dumps(header)
    said = {"format": "tinytf-2", "header": text, "digest": checkpointing._digest(tensors, text)}
    (tmp_path / "old").write_bytes(save(tensors, metadata=said))
    again = trainer()
    again.load(tmp_path / "old")
    assert (again.step, again.history, again.unlogged) == (7, [ROW], (9.0, 4))
    again.run()
    assert_same_bits(bits(again), kept[1])


def test_frozen_parts_have_no_moments(tmp_path):
    run, again, thawed = (trainer() for _ in range(3))
    for one in (run, again):
        one.model.encoder.requires_grad_(False)
    run.run(until=3, save_to=tmp_path / "run")
    moments = [n for n in checkpointing.read(tmp_path / "run")[0] if n.startswith("optimizer")]
    assert not any("/encoder." in name for name in moments)
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
    run = trainer()
    run.load(path)
    held = path.read_bytes()
    with torch.no_grad():
        run.model.get_parameter(WEIGHT)[0, 0] = math.nan
    said = f"{path} is not written: 1 of 240 values of model/{WEIGHT} are not finite in torch.fl"
    with pytest.raises(CheckpointError) as error:
        run.save(path)
    assert said in str(error.value)
    assert path.read_bytes() == held


# ---- a training loop of one's own

OPTIMIZERS = {  # and what each divides by
    "AdamW": (lambda p: torch.optim.AdamW(p, lr=1e-2), "exp_avg_sq"),
    "fused AdamW": (lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True), "exp_avg_sq"),
    "AMSGrad": (lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True), "max_exp_avg_sq"),
    "SGD": (lambda p: torch.optim.SGD(p, lr=1e-2), None),
    "momentum": (lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9), None),
    "RMSprop": (lambda p: torch.optim.RMSprop(p, lr=1e-2), "square_avg"),
    "Adagrad": (lambda p: torch.optim.Adagrad(p, lr=1e-2), "sum"),
    "Adadelta": (lambda p: torch.optim.Adadelta(p, lr=1e-2), "acc_delta"),
    "Adamax": (lambda p: torch.optim.Adamax(p, lr=1e-2), "exp_inf"),
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
    return model, OPTIMIZERS[kind][0](model.parameters())


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_own_loop_resumes_to_the_same_bits(kind, tmp_path):
    """The step that is saved may be an epoch: it says nothing of the optimiser's steps."""
    model, optimizer = fresh(kind)
    own_loop(model, optimizer, 0, 3)
    save_training_state(tmp_path / "run", model, optimizer, 1, {"note": [1, "a"]})
    own_loop(model, optimizer, 3, 6)
    again, other = fresh(kind)
    torch.manual_seed(9)
    header = load_training_state(tmp_path / "run", again, other)
    assert (header["step"], header["note"]) == (1, [1, "a"])
    own_loop(again, other, 3, 6)
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("kind", [k for k in OPTIMIZERS if k != "SGD"])
def test_an_own_loop_refuses_what_no_training_makes(kind, tmp_path):
    model, optimizer = fresh(kind)
    own_loop(model, optimizer, 0, 1)
    names = [*optimizer.state[model.get_parameter(WEIGHT)]]
    moment = f"optimizer/{WEIGHT}/{names[-1]}"
    changes = [
        (put(moment, torch.zeros(20)), rf"{moment} is torch.float32 of shape \(20,\), expected"),
        (fill(f"model/{WEIGHT}", math.nan), rf"model/{WEIGHT}\[19, 11\] is nan, expected a finite"),
        (say("step", -1), "holds kind 'training' at step -1"),
        (say("kind", "writer"), "holds kind 'writer' at step 1, not the state of a training"),
    ]
    if square := OPTIMIZERS[kind][1]:
        entry = f"optimizer/{WEIGHT}/{square}"
        changes.append((fill(entry, -1e-3), rf"{entry}\[19, 11\] is -0.001.*of at least 0"))
    for change, fault in changes:
        save_training_state(tmp_path / "run", model, optimizer, 1)
        rewritten(tmp_path / "run", change)
        again, other = fresh(kind)
        weights, untouched = next(again.parameters()).clone(), str(other.state_dict())
        random = torch.get_rng_state()
        with pytest.raises(CheckpointError, match=rf"^run .*{fault}"):
            load_training_state(tmp_path / "run", again, other)
        assert torch.equal(next(again.parameters()), weights)
        assert torch.equal(torch.get_rng_state(), random)
        assert str(other.state_dict()) == untouched


def test_an_own_loop_keeps_running_statistics(tmp_path):
    """Buffers that a module keeps belong to it as its weights do."""
    models = [nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    models[0](torch.randn(5, 3))
    save_training_state(tmp_path / "run", models[0], optimizers[0], 0)
    load_training_state(tmp_path / "run", models[1], optimizers[1])
    assert torch.equal(models[0][1].running_mean, models[1][1].running_mean)
    assert models[1][1].num_batches_tracked == 1


def test_a_loop_may_go_on_from_a_trainers_file_but_not_a_trainer_from_a_loops(path, tmp_path):
    model, optimizer = fresh("AdamW")
    assert load_training_state(path, model, optimizer)["step"] == 7
    save_training_state(tmp_path / "own", model, optimizer, 2)
    with pytest.raises(CheckpointError, match="own: model is None, expected named settings"):
        Trainer(model, batch_of, TrainingConfig()).load(tmp_path / "own")
