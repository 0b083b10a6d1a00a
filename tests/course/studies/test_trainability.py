"""How deep a stack still trains: the task, the settings, the map that ships."""

import math

import pytest
import torch
from support import draws

from tinytf.norm import LayerNorm
from tinytf_course.studies import trainability


def test_rows_are_sorted():
    ids, targets = trainability.draw(50, draws())
    assert ids.shape == targets.shape == (50, 8)
    assert (ids.min(), ids.max()) == (0, 9)
    assert [sorted(row) for row in ids.tolist()] == targets.tolist()


def test_the_best_answer_by_place_is_that_of_many_rows():
    _, targets = trainability.draw(100_000, draws())
    counts = torch.stack([targets[:, k].bincount(minlength=10) for k in range(8)]) / 100_000
    loss, accuracy = trainability.by_place()
    assert loss == pytest.approx(-counts.xlogy(counts).sum(1).mean().item(), abs=2e-3)
    assert accuracy == pytest.approx(counts.amax(1).mean().item(), abs=3e-3)


@pytest.mark.parametrize(("norm", "norms"), [("post", 6), ("pre", 7), ("none", 0)])
def test_sorters_differ_in_their_norms_only(norm, norms):
    model = trainability.Sorter(norm, 3, gain=0.1)
    found = [m for m in model.modules() if isinstance(m, LayerNorm)]
    assert len(found) == norms
    assert all((m.weight == 0.1).all() for m in found)
    assert len(model.encoder.layers) == 3
    assert all((p == 0).all() for n, p in model.named_parameters() if n.endswith("bias"))


def test_a_scaled_sorter_differs_in_what_writes_to_the_stream():
    torch.manual_seed(0)
    plain = dict(trainability.Sorter("none", 8).named_parameters())
    torch.manual_seed(0)
    scaled = dict(trainability.Sorter("none", 8, scaled=True).named_parameters())
    for name, weight in plain.items():
        writes = name.endswith(("w_o.weight", "w_2.weight"))
        torch.testing.assert_close(scaled[name], weight / 4 if writes else weight)
    assert sum(name.endswith(("w_o.weight", "w_2.weight")) for name in plain) == 16


def test_the_settings_reach_the_model():
    usual, scaled, soft = (
        trainability.train_cell("none" if kind == "scaled" else "post", 2, 1e-3, steps=0, **more)
        for kind, more in (("", {}), ("scaled", {"scaled": True}), ("gain", {"gain": 0.1}))
    )
    assert (usual["scaled"], scaled["scaled"], soft["gain"]) == (False, True, 0.1)
    assert (
        scaled["alike_before"] < trainability.train_cell("none", 2, 1e-3, steps=0)["alike_before"]
    )
    assert usual["alike_before"] != soft["alike_before"]


def test_a_shallow_stack_learns_and_repeats():
    row = trainability.train_cell("pre", 1, 1e-2, steps=150)
    assert row["accuracy"] > 0.8
    assert row["loss"] < 0.5
    assert row["curve"][-1] == row["loss"] < row["curve"][0]
    short = trainability.train_cell("pre", 1, 1e-2, steps=50)
    assert short == trainability.train_cell("pre", 1, 1e-2, steps=50)
    other = trainability.train_cell("pre", 1, 1e-2, seed=1, steps=50)
    assert short["accuracy"] != other["accuracy"]
    with pytest.raises(KeyError, match="both"):
        trainability.train_cell("both", 1, 1e-2)


def test_untrained_runs_know_nothing():
    row = trainability.train_cell("post", 1, 1e-3, steps=0)
    assert row["accuracy"] < 0.25
    assert row["loss"] is None
    assert row["curve"] == []
    assert row["alike_before"] == row["alike"]


def test_warm_up_starts_at_small_steps():
    """A learning rate of 1 breaks a stack within 50 steps; on a long way up to it, they do not."""
    at_once, on_the_way = (
        trainability.train_cell("post", 1, 1.0, warmup=warmup, steps=50)["loss"]
        for warmup in (1, 10**5)
    )
    assert at_once > 10
    assert on_the_way < 3.5


def test_what_is_not_finite_is_none():
    assert trainability.short(math.inf) is trainability.short(math.nan) is None
    assert trainability.short(0.123456) == 0.1235
    row = trainability.train_cell("none", 2, 1e12, steps=50)
    assert row["curve"] == [None]


def test_a_cell_lists_what_it_measures_over_seeds():
    row = trainability.cell([3, 1], norm="pre", depth=1, lr=1e-3, steps=50)
    assert row["seed"] == [3, 1]
    assert (row["norm"], row["depth"], row["warmup"], row["gain"]) == ("pre", 1, 1, 1.0)
    one = trainability.train_cell("pre", 1, 1e-3, seed=1, steps=50)
    assert [row[k][1] for k in ("accuracy", "curve", "alike")] == [
        one[k] for k in ("accuracy", "curve", "alike")
    ]
