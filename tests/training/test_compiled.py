"""A model that torch.compile has compiled trains compiled, and its files are a plain model's."""

import pytest
import torch
from support import small_model
from training_support import batch_of

from tinytf.gpt import GPT, GPTConfig
from tinytf.support.compiled import is_compiled
from tinytf.support.randomness import seeded
from tinytf.training import checkpointing
from tinytf.training.losses import TextBatch, next_token_loss, sequence_loss
from tinytf.training.trainer import Trainer, TrainingConfig

OBJECTIVES = {"encoder-decoder": sequence_loss, "GPT": next_token_loss}


def model_and_batches(kind):
    with seeded(7):
        if kind == "GPT":
            ids = torch.randint(11, (3, 7))
            model = GPT(GPTConfig(11, 12, 3, 2, max_len=8))
            return model, lambda step: TextBatch(ids[:, :-1], ids[:, 1:])
        return small_model(dtype=torch.float32), lambda step: batch_of(step % 2)


def train(kind, compiling, path):
    """A short run; returns the model as it was made, and the number of products compiled."""
    torch._dynamo.reset()
    products = []

    def backend(graph, _inputs):
        products.extend(n for n in graph.graph.nodes if "linear" in str(n.target))
        return graph.forward

    model, batches = model_and_batches(kind)
    trained = compiling(model, backend)
    assert is_compiled(trained) is (compiling is not plainly)
    config = TrainingConfig(steps=4, warmup=1, attention="explicit", label_smoothing=0.0)
    Trainer(trained, batches, config, OBJECTIVES[kind]).run(save_to=path, log_every=1)
    return model, len(products)


def plainly(model, backend):
    return model


def wrapped(model, backend):
    return torch.compile(model, backend=backend)


def in_place(model, backend):
    model.compile(backend=backend)
    return model


@pytest.mark.parametrize("compiling", [wrapped, in_place])
@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_compiled_model_trains_compiled_to_the_same_file(kind, compiling, tmp_path):
    _, nothing = train(kind, plainly, tmp_path / "plain")
    model, compiled = train(kind, compiling, tmp_path / "compiled")
    assert nothing == 0
    assert compiled >= 9  # at least four in each layer, and the logits
    (theirs, head), (ours, header) = (
        checkpointing.read(tmp_path / name) for name in ("compiled", "plain")
    )
    assert theirs.keys() == ours.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(theirs[name], tensor, atol=2e-5, rtol=1e-4, msg=name)
    losses = [[row["loss"] for row in h["history"]] for h in (head, header)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, p in checkpointing.model_tensors(model).items():  # the model inside has learned
        assert torch.equal(p, theirs[f"model/{name}"])


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_files_go_both_ways(kind, tmp_path):
    train(kind, wrapped, tmp_path / "run")
    model, batches = model_and_batches(kind)
    config = TrainingConfig(steps=4, warmup=1, attention="explicit", label_smoothing=0.0)
    for one in (model, torch.compile(model, backend="eager")):
        run = Trainer(one, batches, config, OBJECTIVES[kind])
        run.load(tmp_path / "run")
        assert run.step == 4


def test_compiled_parts_have_their_plain_names():
    model = small_model()
    names = list(checkpointing.model_tensors(model))
    model.encoder = torch.compile(model.encoder, backend="eager")
    assert list(checkpointing.model_tensors(model)) == names


def test_a_compiled_model_keeps_its_modes(tmp_path):
    model, batches = model_and_batches("GPT")
    compiled = torch.compile(model, backend="eager")
    model.decoder.layers[1].eval()
    before = [m.training for m in model.modules()]
    Trainer(compiled, batches, TrainingConfig(steps=1, warmup=1), next_token_loss).run()
    assert [m.training for m in model.modules()] == before
