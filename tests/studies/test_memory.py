"""The small studies of reading: their data, their readers, and the tables that ship."""

import pytest
import torch
import torch.nn.functional as F
from support import assert_equal_with_gradients

from tinytf import studies
from tinytf.studies import memory, reversal
from tinytf.studies.readers import RelativeAttention, SmallEncoder, largest, last, recurrent
from tinytf.studies.threads import one_thread


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("count", [1, 2, 7, 400])
def test_half_of_the_rows_hold_ab(count):
    ids, classes = memory.draw_pairs(count, generator())
    held = ["ab" in "".join("abcdefgh"[i] for i in row) for row in ids.tolist()]
    assert ids.shape == (count, memory.LENGTH)
    assert held == classes.bool().tolist()
    assert sum(held) == count // 2


def test_rows_are_random_but_for_their_class():
    ids, classes = memory.draw_pairs(2000, generator())
    assert len(ids.unique(dim=0)) == 2000
    assert 0 < classes[:1000].sum() < 1000  # shuffled: no class comes first
    shares = torch.bincount(ids.flatten(), minlength=memory.LETTERS) / ids.numel()
    assert shares.min() > 0.1, "a letter hardly occurs"
    again, _ = memory.draw_pairs(2000, generator())
    assert again.equal(ids)


def test_forget_bias_moves_the_forget_gate_alone():
    torch.manual_seed(0)
    plain = recurrent("LSTM", 4)
    torch.manual_seed(0)
    biased = recurrent("LSTM", 4, 3.0)
    moved = biased.bias_ih_l0 - plain.bias_ih_l0
    assert torch.allclose(moved, torch.tensor([0.0] * 4 + [3.0] * 4 + [0.0] * 8), atol=1e-6)
    assert biased.weight_hh_l0.equal(plain.weight_hh_l0)
    assert biased.bias_hh_l0.equal(plain.bias_hh_l0)


def test_pools():
    x = torch.tensor([[[1.0, 5.0], [3.0, 2.0]]])
    assert last(x).tolist() == [[3.0, 2.0]]
    assert largest(x).tolist() == [[3.0, 5.0]]


def test_relative_attention_adds_a_number_per_offset():
    torch.manual_seed(0)
    attention = RelativeAttention(2, 6).double()
    torch.nn.init.normal_(attention.offsets)
    inputs = [torch.randn(3, 2, 5, 4, dtype=torch.double) for _ in range(3)]

    def by_hand(q, k, v):
        rows = []
        for t in range(5):
            bias = torch.stack([attention.offsets[:, s - t + 5] for s in range(5)], dim=-1)
            scores = (q[:, :, t, None] * k).sum(dim=-1) / 2 + bias  # D = 4
            rows.append((scores.softmax(dim=-1)[..., None] * v).sum(dim=-2))
        return torch.stack(rows, dim=-2)

    assert_equal_with_gradients(lambda q, k, v: attention(q, k, v, None, 0.0), by_hand, inputs)


def test_relative_attention_starts_as_plain_attention():
    q, k, v = (torch.randn(3, 2, 5, 4) for _ in range(3))
    plain = F.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(RelativeAttention(2, 5)(q, k, v, None, 0.0), plain, atol=1e-6)
    with pytest.raises(ValueError, match="6 words, but there are offsets for 5"):
        RelativeAttention(2, 5)(*(torch.randn(1, 2, 6, 4) for _ in range(3)), None, 0.0)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative"])
def test_encoder_knows_the_order(positions):
    torch.manual_seed(0)
    encoder = SmallEncoder(8, 6, positions)
    if positions == "relative":  # at 0 the offsets say nothing yet
        for layer in encoder.encoder.layers:
            torch.nn.init.normal_(layer.self_attention.attention.offsets)
    x = torch.randn(1, 6, 8)
    swapped = encoder(x.flip(1)).flip(1)
    assert (swapped - encoder(x)).abs().max() > 1e-3
    assert all(p.requires_grad for p in encoder.parameters())
    encoder(x).square().sum().backward()
    # a key's bias adds one number to all scores of a query, which the softmax ignores
    idle = [n for n, p in encoder.named_parameters() if p.grad is None]
    assert not idle


def test_only_learned_positions_are_trained():
    names = {kind: dict(SmallEncoder(8, 6, kind).named_parameters()) for kind in memory_positions()}
    assert "table" in names["learned"]
    assert "table" not in names["sinusoidal"]
    assert sum("offsets" in name for name in names["relative"]) == 2
    with pytest.raises(ValueError, match="positions='rotary' is not one of"):
        SmallEncoder(8, 6, "rotary")


def memory_positions():
    return ("sinusoidal", "learned", "relative")


def test_recall_learns_what_is_near_and_repeats():
    share = memory.recall("attention", 3, steps=80)
    assert share > 0.9
    assert memory.recall("attention", 3, steps=80) == share
    assert memory.recall("attention", 3, steps=0) < 0.4
    with pytest.raises(KeyError, match="Mamba"):
        memory.recall("Mamba", 3)


def test_detect_learns_and_leaves_the_global_seed_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    shares = memory.detect("CNN", 100, steps=100)
    assert shares["train"] > 0.95
    assert shares["test"] > 0.9
    assert torch.get_rng_state().equal(before)
    assert memory.detect("CNN", 100, steps=0)["test"] < 0.7


def test_reversal_rows():
    batch = reversal.draw(5, 4, generator())
    words = batch.src[:, :-1]
    assert words.min() >= reversal.FIRST
    assert (batch.src[:, -1] == 2).all()
    assert (batch.tgt_in[:, 0] == 1).all()
    assert batch.tgt_in[:, 1:].equal(words.flip(1))
    assert batch.tgt_out[:, :-1].equal(words.flip(1))
    assert (batch.tgt_out[:, -1] == 2).all()


def test_offsets_and_mass_by_hand():
    # three symbols and <eos>; to be written first is symbol 2, then 1, then 0
    weights = torch.tensor([[[0.0, 0.1, 0.7, 0.2], [0.1, 0.2, 0.6, 0.1], [0.3, 0.2, 0.1, 0.4]]])
    assert reversal.offsets(weights).tolist() == [[0, 1, 3]]
    assert reversal.mass(weights, 0) == pytest.approx((0.7 + 0.2 + 0.3) / 3)
    assert reversal.mass(weights, 1) == pytest.approx((1.0 + 0.9 + 0.5) / 3)


def test_reversal_trains_and_grades():
    batch = reversal.draw(100, 3, generator(9))
    model = reversal.train("additive", 3, steps=80)
    assert reversal.right(model, batch).float().mean() > 0.8
    assert reversal.right(reversal.train("none", 3, steps=0), batch).float().mean() < 0.4
    weights = reversal.alignment(model, batch)
    assert weights.shape == (100, 3, 4)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(100, 3), atol=1e-5)
    with pytest.raises(ValueError, match="attention='dot' is not one of"):
        reversal.train("dot", 3, steps=1)


@pytest.mark.parametrize(
    ("name", "key", "cells"),
    [
        ("memory_recall", ("reader", "distance", "lr"), 6 * 5 + 2 * 2),
        ("memory_data", ("reader", "size", "lr"), 4 * 5 + 2 + 2),
        ("memory_reversal", ("attention", "length"), 2 * 3),
    ],
)
def test_shipped_tables_are_complete(name, key, cells):
    rows = studies.load(name)["rows"]
    seeds = {}
    for row in rows:
        seeds.setdefault(tuple(row[k] for k in key), []).append(row["seed"])
        shares = [row[k] for k in ("test", "train", "right") if k in row]
        assert shares
        assert all(0 <= share <= 1 for share in shares)
    assert len(seeds) == cells
    assert all(sorted(found) == list(range(5)) for found in seeds.values())


def test_the_shipped_table_of_translators_is_complete():
    rows = studies.load("recurrence_phrasebook")["rows"]
    seeds = {}
    for row in rows:
        seeds.setdefault((row["part"], row["run"]), []).append(row.get("seed"))
        if row["part"] == "speed":
            continue
        assert row["steps"] == {"run": 800, "longer": 2400}[row["part"]]
        assert row["curve"][-1]["step"] == row["steps"]
        assert ("alignment" in row) == (row["run"] != "one vector")
        assert len(row["by_length_without_because"]) == 7
    for name in ("one vector", "Bahdanau", "Transformer"):
        assert sorted(seeds["run", name]) == [0, 1, 2, 3, 4]
        assert sorted(seeds["longer", name]) == [0, 1]
        assert seeds["speed", name] == [None]
    runs = [row for row in rows if row["part"] != "speed"]
    assert len({(row["lr"], row["batch"]) for row in runs}) == 1
    assert max(r["parameters"] for r in runs) < 1.03 * min(r["parameters"] for r in runs)


def test_one_thread_is_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert one_thread()(torch.get_num_threads)() == 1
        with pytest.raises(ZeroDivisionError):
            one_thread()(lambda: 1 / 0)()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
