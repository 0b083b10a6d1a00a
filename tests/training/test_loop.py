"""The loop in ten lines takes the steps of a Trainer."""

import pytest
import torch

from tinytf.training.config import TrainingConfig
from tinytf.training.loop import train
from tinytf.training.losses import make_batch
from tinytf.training.trainer import Trainer
from tinytf.transformer import Transformer, TransformerConfig


def batches(step):
    draw = torch.Generator().manual_seed(step)
    rows = torch.randint(3, 12, (6, 5), generator=draw).tolist()
    return make_batch([row[: 2 + i % 4] for i, row in enumerate(rows)], rows)


def model(norm):
    torch.manual_seed(0)
    return Transformer(TransformerConfig(12, 12, 16, 2, 1, 32, dropout=0.0, norm=norm))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"schedule": "constant"}, {"clip": 0.05, "weight_decay": 1.0, "label_smoothing": 0.0}],
    ids=str,
)
def test_it_takes_the_steps_of_a_trainer_to_the_bit(norm, settings):
    config = TrainingConfig(steps=12, lr=0.01, warmup=4, **settings)
    one, two = model(norm), model(norm)
    history = train(one, batches, config)
    logged = Trainer(two, batches, config).run(log_every=1)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    assert [row["step"] for row in history] == list(range(1, 13))
    assert [row["loss"] for row in history] == pytest.approx([row["loss"] for row in logged])
