"""What is faster here; matrices cast once a step, which train as autocast trains them."""

from types import SimpleNamespace

import pytest
import torch
from support import small_model
from torch import nn
from training_support import assert_same_bits, batch_of, bits, trainer

from tinytf.gpt import GPT, GPTConfig
from tinytf.llama import Llama, LlamaConfig
from tinytf.support.randomness import seeded
from tinytf.training import checkpointing
from tinytf.training.distributed import Team
from tinytf.training.losses import TextBatch, make_batch, next_token_loss, sequence_loss
from tinytf.training.precision import Bfloat16Matrices, autocast, settled
from tinytf.training.trainer import Trainer, TrainingConfig

SIZES = {"vocab_size": 40, "d_model": 24, "num_heads": 3, "num_layers": 2, "max_len": 12}


def texts(step, rows=3, distinct=False):
    """Texts in which words repeat, or none does."""
    g = torch.Generator().manual_seed(step)
    ids = torch.randint(40, (rows, 13), generator=g)
    if distinct:
        ids = torch.randperm(40, generator=g)[:13][None]
    return TextBatch(ids[:, :-1], ids[:, 1:])


def gpt(**changes):
    with seeded(5):
        return GPT(GPTConfig(**SIZES | changes))


def gpt_trainer(once=True, batches=texts, model=None, **settings):
    """A run of a GPT in bfloat16; without `once`, all casts are autocast's."""
    settings = {"steps": 12, "warmup": 3, "label_smoothing": 0.0, "precision": "bfloat16",
                **settings}  # fmt: skip
    run = Trainer(
        gpt() if model is None else model, batches, TrainingConfig(**settings), next_token_loss
    )
    if not once:
        run.matrices.prepare = lambda model, config: None
    return run


def matrices_of(model):
    matrices = Bfloat16Matrices(Team())
    matrices.prepare(model, TrainingConfig(precision="bfloat16"))
    return matrices


def gradients(model, batches, objective, once):
    """The last batch's loss, and what all their gradients add up to."""
    model.zero_grad()
    matrices = matrices_of(model) if once else Bfloat16Matrices(Team())
    with matrices.in_use():
        for batch in batches:
            with autocast("bfloat16", torch.device("cpu")):
                loss, _ = objective(model, batch)
            (loss / 7).backward()
    return loss.item(), {n: p.grad.clone() for n, p in model.named_parameters()}


MODELS = {
    "GPT": (gpt, next_token_loss, texts),
    "untied": (lambda: gpt(tie_output=False), next_token_loss, texts),
    "Llama": (lambda: Llama(LlamaConfig(40, 24, 4, 2, 2, 48, 16)), next_token_loss, texts),
    "encoder-decoder": (lambda: small_model(dtype=torch.float32), sequence_loss, batch_of),
}


# ---- a step


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("accumulate", [1, 3])
def test_losses_and_gradients_are_autocasts(name, accumulate):
    """To the bit, but for tables, whose repeated words are added up in another order."""
    make, objective, batches = MODELS[name]
    model = make()
    micro = [batches(step) for step in range(accumulate)]
    (loss, want), (ours, found) = (
        gradients(model, micro, objective, once) for once in (False, True)
    )
    assert ours == loss
    tables = {n for n in want if "embedding" in n}
    assert len(tables) >= 1
    for n, gradient in want.items():
        assert found[n].dtype == torch.float32
        if n in tables:
            torch.testing.assert_close(found[n], gradient, rtol=1e-5, atol=1e-6, msg=n)
        else:
            assert torch.equal(found[n], gradient), n


def test_without_repeated_words_every_bit_is_the_same():
    runs = [gpt_trainer(once, lambda step: texts(step, distinct=True)) for once in (True, False)]
    for run in runs:
        run.run(log_every=1)
    assert_same_bits(*map(bits, runs))
    assert [r["loss"] for r in runs[0].history] == [r["loss"] for r in runs[1].history]


def test_linear_maps_compute_with_the_copies_and_norms_in_float32():
    model, seen = gpt(), {}

    def look(model, batch, smoothing):
        layer = model.decoder.layers[0]
        seen["weight"] = layer.feed_forward.w_1.weight
        seen["bias"] = layer.feed_forward.w_1.bias
        seen["norm"] = layer.residual_1.norm(torch.ones(1, 24))
        seen["output"], seen["table"] = model.output.weight, model.embedding.weight
        loss, count = next_token_loss(model, batch, smoothing)
        seen["loss"] = loss
        return loss, count

    config = TrainingConfig(12, warmup=3, precision="bfloat16")
    Trainer(model, texts, config, look).run(until=1)
    half = {name for name, tensor in seen.items() if tensor.dtype == torch.bfloat16}
    assert half == {"weight", "output"}
    assert all(t.dtype == torch.float32 for n, t in seen.items() if n not in half)


def test_memory_is_kept_and_weights_are_cast_as_they_are_at_each_step():
    run, other, places = gpt_trainer(), gpt_trainer(once=False), []

    def look(step):
        kept = [*run.matrices._copies.values(), *run.matrices._gradients.values()]
        places.append([t.data_ptr() for t in kept])
        if step == 2:  # somebody changes weights, without torch's noticing
            for one in (run, other):
                one.model.decoder.layers[0].feed_forward.w_2.weight.data.zero_()
        return texts(step)

    run.batches = look
    other.run(until=2)
    run.run(until=3)
    other.run(until=3)
    assert run.unlogged[0] == pytest.approx(other.unlogged[0], rel=1e-5)
    run.run(until=5)
    assert len(places[1]) == 2 * 13  # six maps in each of two layers, and the tied one
    assert places[1] == places[2] == places[3] == places[4]


def test_a_map_that_is_not_used_has_no_gradient_left_from_the_step_before():
    model = nn.Module()
    model.first, model.second = nn.Linear(3, 1), nn.Linear(3, 1)
    matrices = matrices_of(model)
    for one, other in ((model.first, model.second), (model.second, model.first)):
        model.zero_grad()
        with matrices.in_use(), autocast("bfloat16", torch.device("cpu")):
            one(torch.ones(2, 3)).sum().backward()
        assert torch.equal(one.weight.grad, torch.full((1, 3), 2.0))
        assert other.weight.grad is None


def test_what_autocast_would_not_cast_is_left_alone():
    """Maps in float64, and those that do more than multiply: a hook's, and a subclass's."""
    assert matrices_of(gpt().double())._maps == []
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), type("LoRA", (nn.Linear,), {})(2, 2))
    model[1].register_forward_hook(lambda *_: None)
    assert matrices_of(model)._maps == [model[0]]


def test_a_table_used_alone_gets_a_dense_gradient():
    """Tied to a map that this batch does not use, and then to one that the second batch does."""
    model = gpt()
    matrices = matrices_of(model)
    ids = torch.tensor([[1, 2, 1]])
    with matrices.in_use():
        model.embedding(ids).sum().backward()
    assert not model.embedding.weight.grad.is_sparse
    assert model.embedding.weight.grad[:4, 0].tolist() == [0, 2, 1, 0]
    model.zero_grad()
    with matrices.in_use(), autocast("bfloat16", torch.device("cpu")):
        model.embedding(ids).sum().backward()
        model.output(torch.ones(1, 24)).sum().backward()
    assert model.embedding.weight.grad[:4, 0].tolist() == [1, 3, 2, 1]


def test_a_hook_on_a_parameter_sees_its_gradient():
    run, seen = gpt_trainer(clip=1e9), []
    weight = run.model.output.weight
    weight.register_hook(lambda g: seen.append((g.dtype, g.is_sparse)) or g * 2)
    after = run.model.decoder.layers[0].feed_forward.w_1.weight
    after.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.dtype))
    plain = gpt_trainer(clip=1e9)
    for one in (run, plain):
        one.run(until=1)
    assert sorted(seen, key=str) == [(torch.float32, False), torch.float32]
    torch.testing.assert_close(weight.grad, 2 * plain.model.output.weight.grad)


@pytest.mark.parametrize("fault", [None, ValueError("in the objective")])
def test_afterwards_the_model_is_as_it_was(fault):
    model = gpt()
    before = dict(model.named_parameters())

    def objective(model, batch, smoothing):
        if fault:
            raise fault
        return next_token_loss(model, batch, smoothing)

    config = TrainingConfig(12, warmup=3, precision="bfloat16")
    run = Trainer(model, texts, config, objective)
    if fault:
        with pytest.raises(ValueError, match="in the objective"):
            run.run(until=1)
    else:
        run.run(until=1)
    after = dict(model.named_parameters())
    assert after.keys() == before.keys()
    assert all(after[name] is p and p.dtype == torch.float32 for name, p in before.items())
    assert model.output.weight is model.embedding.weight
    assert not model.embedding.sparse


def test_weights_in_half_precision_are_refused():
    said = "keeps the weights in float32, but embedding.weight is of torch.bfloat16.*model.float"
    with pytest.raises(ValueError, match=said):
        gpt_trainer(model=gpt().bfloat16())
    gpt_trainer(model=gpt().bfloat16().requires_grad_(False))  # a frozen part may be


# ---- a run


def test_a_resumed_run_ends_in_the_same_bits_recomputed_or_not(tmp_path):
    def begin(recompute):
        model = gpt(dropout=0.3)
        return gpt_trainer(model=model, clip=0.5, accumulate=2, recompute=recompute)

    whole, first, second = begin(False), begin(True), begin(True)
    whole.run()
    first.run(until=5, save_to=tmp_path / "run")
    second.load(tmp_path / "run")
    for run in (first, second):
        run.run()
        assert_same_bits(bits(run), bits(whole))


def test_files_hold_float32_and_either_precision_goes_on_from_them(tmp_path):
    kinds = {}
    for precision in ("float32", "bfloat16"):
        run = trainer(precision=precision)
        run.run(until=2, save_to=tmp_path / precision)
        tensors, _ = checkpointing.read(tmp_path / precision)
        kinds[precision] = {name: (t.dtype, t.shape) for name, t in tensors.items()}
    assert kinds["float32"] == kinds["bfloat16"]
    for began, other in (("float32", "bfloat16"), ("bfloat16", "float32")):
        run = trainer(precision=other)
        run.load(tmp_path / began)
        assert run.config.precision == other
        run.run()
        assert run.step == 12


def test_a_compiled_model_is_compiled_once_and_learns_the_same():
    torch._dynamo.reset()
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    model = gpt()
    plain = gpt_trainer(attention="explicit")
    run = gpt_trainer(model=torch.compile(model, backend=backend), attention="explicit")
    for one in (plain, run):
        one.run(log_every=1)
    assert len(graphs) == 1
    losses = [[row["loss"] for row in one.history] for one in (plain, run)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert run.matrices._copies


# ---- what is left to us


class Second(Team):
    """One of two processes; the main one says whether it finds something faster."""

    def __init__(self, rank, main_finds):
        super().__init__(rank, world_size=2)
        self.main_finds = main_finds

    def total(self, values, device):
        return [values[0] if self.is_main else self.main_finds]


@pytest.mark.parametrize(
    ("threads", "words", "device", "chosen"),
    [
        (2, 20, "cpu", "explicit"),
        (2, 63, "cpu", "explicit"),  # and a mark at an end
        (2, 64, "cpu", "fused"),
        (1, 20, "cpu", "fused"),
        (2, 20, "cuda", "fused"),
    ],
)
def test_the_attention_is_chosen_by_device_and_length(threads, words, device, chosen, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rows = make_batch([[3], [3] * words], [[4], [4]])
    model = SimpleNamespace(device=torch.device(device), named_parameters=lambda: [])
    for team in (Team(), Second(0, None)):
        config = settled(TrainingConfig(attention="auto"), model, lambda step: rows, team)
        assert config == TrainingConfig(attention=chosen)
    for main_finds, name in ((0.0, "fused"), (1.0, "explicit")):
        team = Second(1, main_finds)
        assert settled(TrainingConfig(attention="auto"), model, lambda step: rows, team) == (
            TrainingConfig(attention=name)
        )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_was_chosen_stays_as_the_run_began(precision, tmp_path, monkeypatch):
    other = {"float32": "bfloat16", "bfloat16": "float32"}[precision]
    attention = {"float32": "fused", "bfloat16": "explicit"}[precision]
    whole = trainer(precision=precision, attention=attention)
    whole.run(until=2, save_to=tmp_path / "run")
    whole.run()
    monkeypatch.setattr("tinytf.training.precision.choose_precision", lambda kind: other)
    threads = 2 if attention == "fused" else 1  # so that the other one would be taken
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    resumed = trainer(precision="auto", attention="auto")
    assert (resumed.config.precision, resumed.config.attention == attention) == (other, False)
    resumed.load(tmp_path / "run")
    assert resumed.config == whole.config
    resumed.run()
    assert_same_bits(bits(resumed), bits(whole))
