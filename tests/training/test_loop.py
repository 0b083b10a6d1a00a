"""The loops on a page take the steps of a Trainer."""

import pytest
import torch

from tinytf.gpt import GPT, GPTConfig
from tinytf.training.config import TrainingConfig
from tinytf.training.loop import pretrain, train
from tinytf.training.losses import TextBatch, make_batch, next_token_loss
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


def text_batches(rows):
    """A function from a number to a batch of `rows[number % len(rows)]` rows."""

    def batch(number):
        draw = torch.Generator().manual_seed(number)
        ids = torch.randint(11, (rows[number % len(rows)], 9), generator=draw)
        return TextBatch(ids[:, :-1], ids[:, 1:])

    return batch


def small_gpt():
    torch.manual_seed(0)
    return GPT(GPTConfig(11, d_model=16, num_heads=2, num_layers=1, max_len=8))


SETTINGS = [
    {},
    {"accumulate": 4, "min_lr": 0.002},
    {"accumulate": 2, "clip": 0.05, "weight_decay": 1.0, "label_smoothing": 0.1},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("rows", [(4,), (1, 4, 2)], ids=str)
def test_pretraining_takes_the_steps_of_a_trainer(rows, settings):
    config = TrainingConfig(
        **{"steps": 12, "lr": 0.01, "warmup": 4, "label_smoothing": 0.0} | settings
    )
    one, two = small_gpt(), small_gpt()
    history = pretrain(one, text_batches(rows), config)
    logged = Trainer(two, text_batches(rows), config, next_token_loss).run(log_every=1)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        if rows == (4,):  # shares of a step's tokens that are powers of two: nothing is rounded
            assert torch.equal(a, b)
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
    for name in ("step", "loss", "grad_norm"):
        assert [row[name] for row in history] == pytest.approx(
            [row[name] for row in logged], rel=1e-4
        )
