"""CBOW against torch's EmbeddingBag, its windows, and what is asked of its vectors."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import TOLERANCE, bounded
from torch import nn

from tinytf.related.word2vec import CBOW, align, analogy, context_windows, nearest, train_cbow
from tinytf.text.words import PAD


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_equals_embedding_bag_with_gradients(device, dtype):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("no float64 there")
    ours = CBOW(11, 6).to(device, dtype)
    bag = nn.EmbeddingBag(11, 6, mode="mean", padding_idx=PAD).to(device, dtype)
    linear = nn.Linear(6, 11, bias=False).to(device, dtype)
    with torch.no_grad():
        ours.output.normal_()
        bag.weight.copy_(ours.vectors)
        linear.weight.copy_(ours.output)
    context = torch.randint(1, 11, (7, 4), device=device)
    context[2, 1:] = context[4, 0] = PAD
    logits, theirs = ours(context), linear(bag(context))
    limit = TOLERANCE[dtype]
    torch.testing.assert_close(logits, theirs, atol=limit, rtol=limit)
    probe = torch.randn_like(logits)
    logits.backward(probe)
    theirs.backward(probe)
    torch.testing.assert_close(ours.vectors.grad, bag.weight.grad, atol=limit, rtol=limit)
    torch.testing.assert_close(ours.output.grad, linear.weight.grad, atol=limit, rtol=limit)


def test_no_neighbours_is_finite():
    model = CBOW(5, 3)
    model(torch.full((2, 4), PAD)).sum().backward()
    assert model.vectors.grad.isfinite().all()


def test_windows():
    contexts, centres = context_windows([[3, 4, 5], [9], [6, 7]], window=2)
    assert centres.tolist() == [3, 4, 5, 6, 7]
    assert contexts.tolist() == [
        [0, 0, 4, 5],
        [0, 3, 5, 0],
        [3, 4, 0, 0],
        [0, 0, 7, 0],
        [0, 6, 0, 0],
    ]


@bounded
@given(
    st.lists(st.lists(st.integers(1, 50), min_size=2, max_size=8), min_size=1), st.integers(1, 4)
)
def test_windows_hold_the_neighbours(rows, window):
    contexts, centres = context_windows(rows, window)
    assert centres.tolist() == [word for row in rows for word in row]
    found = iter(contexts.tolist())
    for row in rows:
        for i in range(len(row)):
            around = row[max(0, i - window) : i] + row[i + 1 : i + 1 + window]
            assert [word for word in next(found) if word != PAD] == around


def test_learns_that_words_in_one_place_are_alike(device):
    # a and b stand between the same words, c between others
    a, b, c = 1, 2, 3
    rows = [[4, a, 5], [4, b, 5], [6, c, 7]] * 20
    model = CBOW(8, 8).to(device)
    losses = train_cbow(model, *context_windows(rows, 1), steps=200, batch_size=32, lr=0.05)
    assert losses[-1] < losses[0]
    close, far = (F.cosine_similarity(model.output[a], model.output[x], 0) for x in (b, c))
    assert close > 0.9 > 0.3 > far


def test_training_repeats_and_leaves_the_generator_alone():
    pairs = context_windows([[1, 2, 3, 4]], 1)
    models = []
    for _ in range(2):
        torch.manual_seed(5)
        models.append(CBOW(5, 4))
        train_cbow(models[-1], *pairs, steps=5, batch_size=4)
        after = torch.rand(1)
        torch.manual_seed(5)
        CBOW(5, 4)
        assert torch.equal(after, torch.rand(1))
    assert torch.equal(models[0].vectors, models[1].vectors)


def test_nearest():
    vectors = torch.tensor([[1.0, 0.0], [9.0, 1.0], [0.0, 1.0], [-1.0, 0.0], [0.1, 0.0]])
    ids, cosines = nearest(vectors, 0, 3)
    assert ids.tolist() == [4, 1, 2]  # by angle: length does not count
    torch.testing.assert_close(cosines, torch.tensor([1.0, 9 / 82**0.5, 0.0]))
    assert nearest(vectors, vectors[3], 1)[0].tolist() == [3]  # a vector may find its own row


def test_analogy():
    # gender along the second axis, age along the third
    man, woman, boy, girl = [1.0, 0, 0], [1.0, 1, 0], [1.0, 0, 1], [1.0, 1, 1]
    vectors = torch.tensor([man, woman, boy, girl])
    assert analogy(vectors, 0, 1, 2) == 3
    near = torch.tensor([[1.0, 0, 0], [1.0, 0.1, 0], [0, 0, 1.0], [0, 0.5, 1.0]])
    assert analogy(near, 0, 1, 2, exclude=False) == 2  # the answer is c itself
    assert analogy(near, 0, 1, 2) == 3


def test_align_finds_a_rotation(exact):
    x = torch.randn(20, 5, dtype=torch.float64, device=exact)
    rotation, _ = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, device=exact))
    found = align(x, x @ rotation)
    torch.testing.assert_close(found, rotation)
    y = torch.randn(20, 5, dtype=torch.float64, device=exact)
    best = align(x, y)
    torch.testing.assert_close(best @ best.T, torch.eye(5, dtype=torch.float64, device=exact))
    for _ in range(20):
        other, _ = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, device=exact))
        assert (x @ best - y).norm() <= (x @ other - y).norm()


def test_refuses_bad_input():
    with pytest.raises(ValueError, match="vocab_size=0 and d_model=4 must be at least 1"):
        CBOW(0, 4)
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        context_windows([[1, 2]], 0)
    with pytest.raises(ValueError, match="none of the 2 sentences has two words"):
        context_windows([[1], []])
    with pytest.raises(ValueError, match="2 contexts do not match 1 centres"):
        train_cbow(CBOW(3, 4), torch.ones(2, 4).long(), torch.ones(1).long())
    with pytest.raises(ValueError, match=r"source \(2, 3\) and target \(2, 4\) need one shape"):
        align(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(ValueError, match="k=3 must lie between 1 and 2"):
        nearest(torch.ones(3, 2), 0, 3)
    with pytest.raises(ValueError, match="k=0 must lie between 1 and 3"):
        nearest(torch.ones(3, 2), torch.ones(2), 0)
