"""The studies of a small GPT: each run changes what its name says, and nothing else."""

import pytest
import torch

from tinytf.data.corpus import Corpus
from tinytf_course.studies.gpt import PARTS, RATES, prepare, repeat, start_plainly

TEXTS = Corpus(["the animal did not cross the street because it was too tired. " * 40], ["the"])
CHANGED = {
    "all of it": {},
    "no warm-up": {"warmup": 1},
    "constant rate": {"schedule": "constant"},
    "no clipping": {"clip": float("inf")},
    "no decay": {"weight_decay": 0.0},
    "decay on everything": {},
    "small batches": {"steps": 1200, "warmup": 120},
    "default start": {},
}


@pytest.fixture(scope="module")
def whole():
    return prepare(TEXTS)


@pytest.mark.parametrize("part", PARTS)
def test_each_run_changes_one_part(part, whole):
    trainer, writer = prepare(TEXTS, part)
    one, other = vars(whole[0].config), vars(trainer.config)
    assert {k: other[k] for k in one if one[k] != other[k]} == CHANGED[part]
    decays = [group["weight_decay"] for group in trainer.optimizer.param_groups]
    assert decays == {"no decay": [0, 0], "decay on everything": [0.1, 0.1]}.get(part, [0.1, 0])
    same = all(
        torch.equal(a, b)
        for a, b in zip(writer.model.parameters(), whole[1].model.parameters(), strict=True)
    )
    assert same == (part != "default start")
    read = trainer.batches.size * trainer.batches.length * trainer.config.steps
    assert read == 16 * 64 * 300


def test_a_plain_start_is_torchs_and_leaves_the_head_tied(whole):
    _, writer = prepare(TEXTS, "default start")
    model = writer.model
    assert model.embedding.weight.std().item() == pytest.approx(1, abs=0.05)
    assert model.output.weight is model.embedding.weight
    w_1 = model.decoder.layers[0].feed_forward.w_1
    assert w_1.weight.abs().max().item() == pytest.approx(64**-0.5, rel=0.02)
    assert whole[1].model.embedding.weight.std().item() == pytest.approx(0.02, abs=0.002)


def test_the_recipe_is_what_the_chapter_says(whole):
    config = whole[0].config
    assert (config.steps, config.warmup, config.schedule) == (300, 30, "cosine")
    assert (config.lr, config.clip, config.weight_decay) == (RATES[0], 1, 0.1) == (3e-3, 1, 0.1)
    assert prepare(TEXTS, lr=RATES[1])[0].config.lr == 1e-2
    assert [prepare(TEXTS, dropout=p)[1].model.config.dropout for p in (0.0, 0.2)] == [0.0, 0.2]


@pytest.mark.parametrize("part", ["all of it", "default start"])
def test_the_seed_decides_the_start(part):
    starts = []
    for seed, outside in ((1, 5), (1, 6), (2, 6)):
        torch.manual_seed(outside)
        starts.append(prepare(TEXTS, part, seed)[1].model.decoder.layers[0].feed_forward.w_1.weight)
        after = torch.rand(1)
        assert torch.equal(after, torch.rand(1, generator=torch.Generator().manual_seed(outside)))
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


def test_a_plain_start_does_not_depend_on_what_was_there(whole):
    one, other = (prepare(TEXTS)[1].model for _ in range(2))
    torch.nn.init.zeros_(other.embedding.weight)
    for model in (one, other):
        torch.manual_seed(3)
        start_plainly(model)
    assert torch.equal(one.embedding.weight, other.embedding.weight)


def test_repeat_reads_only_the_beginning():
    trainer, _ = prepare(TEXTS, seed=3)
    ids = trainer.batches.ids
    repeat(trainer, 200)
    assert trainer.batches.seed == 3
    assert trainer.batches.ids.tolist() == ids[:200].tolist()
    assert (trainer.batches.length, trainer.batches.size) == (64, 16)
    trainer.run(until=1)
    assert trainer.history == []
    assert trainer.step == 1
