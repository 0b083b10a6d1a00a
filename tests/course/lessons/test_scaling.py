"""What many GPUs need, by formulas; `tests/training/test_sharded.py` holds them to what is used."""

from dataclasses import replace

import pytest

from tinytf.gpt import GPTConfig
from tinytf_course.lessons.scaling import H100, memory_per_gpu, sent_per_step, step_seconds
from tinytf_course.lessons.storage import activation_bytes

XL = GPTConfig.preset("gpt2-xl")
COUNT = 1_557_611_200


def test_one_gpu_holds_sixteen_bytes_a_weight_and_sends_nothing():
    for parallel in ("ddp", "fsdp"):
        held = memory_per_gpu(XL, 1, parallel)
        assert sum(held.values()) - held["activations"] == 16 * COUNT
        assert sent_per_step(XL, 1, parallel, batches=4) == 0


def test_sharded_state_is_divided_and_what_is_fetched_is_not():
    held, more = (memory_per_gpu(XL, gpus, "fsdp") for gpus in (8, 64))
    assert [held[p] for p in ("weights", "gradients", "moments")] == [
        4 * COUNT / 8, 4 * COUNT / 8, 8 * COUNT / 8,
    ]  # fmt: skip
    assert more["moments"] == COUNT / 8
    tables, layer = 51281 * 1600 + 3200, 30_740_800  # 50,257 tokens and 1,024 positions; a norm
    assert tables + 48 * layer == COUNT
    assert held["fetched"] == more["fetched"] == 4 * (2 * tables + 3 * layer)
    assert memory_per_gpu(XL, 8, "ddp")["fetched"] == 0


def test_recomputing_keeps_a_layer_and_the_inputs_of_all():
    sizes = {"texts": 2, "length": 512}
    one = replace(XL, num_layers=1)
    kept = memory_per_gpu(XL, 8, "ddp", **sizes, recompute=True)["activations"]
    assert kept == sum(activation_bytes(one, 512, 2).values()) + 48 * 4 * 2 * 512 * 1600
    assert kept < 0.2 * memory_per_gpu(XL, 8, "ddp", **sizes)["activations"]


def test_sharding_sends_half_as_much_again_and_more_with_many_batches():
    plain, sharded = (sent_per_step(XL, 8, parallel) for parallel in ("ddp", "fsdp"))
    assert plain == 2 * 7 / 8 * 4 * COUNT
    assert 1.45 < sharded / plain < 1.5  # the embeddings are fetched once, not twice
    assert sent_per_step(XL, 8, "ddp", batches=3) == plain
    assert sent_per_step(XL, 8, "fsdp", batches=3) > 2 * sharded


def test_seconds_follow_from_the_card():
    a = step_seconds(XL, 8, "fsdp", texts=2)
    b = step_seconds(XL, 16, "fsdp", texts=2, batches=2, recompute=True)
    assert a["computing"] == pytest.approx(6 * 1.6e9 * 2048 / (0.4 * 989e12), rel=0.1)
    assert b["computing"] == pytest.approx(a["computing"] * 2 * 4 / 3)
    assert a["sending"] == sent_per_step(XL, 8, "fsdp") / H100.inside
    assert b["sending"] == sent_per_step(XL, 16, "fsdp", 2) / H100.between


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="parallel='zero' is not one of"):
        memory_per_gpu(XL, 8, "zero")
    with pytest.raises(ValueError, match="gpus must be at least 1, got 0"):
        sent_per_step(XL, 0, "ddp")
    with pytest.raises(ValueError, match="batches must be at least 1, got 0"):
        step_seconds(XL, 8, "ddp", 1, batches=0)
