"""BERT against Hugging Face's, its start, its padding, and sizes that do not fit."""

import pytest
import torch
import torch.nn.functional as F
from bert_support import HEADS, our_twin, padded, their_model, their_outputs, transformers
from support import TOLERANCE, randomise

from tinytf.bert import Bert, BertConfig
from tinytf.metrics.counting import count_parameters
from tinytf.pretrained import bert as bert_weights
from tinytf.related.bert_heads import (
    BertForPretraining,
)

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])

# ---- the same model


@pytest.mark.parametrize("where", ["embeddings", "all layers"])
def test_in_training_what_is_dropped_is_hugging_faces(where):
    """From one seed the same units fall, in the embeddings and after each sublayer."""
    changes = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.0}
    theirs = their_model("BertModel", torch.float64, **changes)
    ours = our_twin(theirs)
    ids, segments, real = padded()
    outputs = []
    for model in (ours.train(), theirs.train()):
        torch.manual_seed(5)
        if where == "embeddings":
            embed = model.embed if model is ours else model.embeddings
            outputs.append(embed(ids, segments))
        elif model is ours:
            outputs.append(model(ids, segments))
        else:
            outputs.append(their_outputs(model, ids, segments, real)[0])
    one, other = (x[real] for x in outputs)
    if where == "embeddings":
        assert 0.2 < (one == 0).double().mean() < 0.4
    torch.testing.assert_close(one, other, rtol=0, atol=TOLERANCE[torch.float64])


@DTYPES
@pytest.mark.parametrize("kind", HEADS)
def test_outputs_and_gradients_are_hugging_faces(kind, dtype):
    torch.manual_seed(1)
    theirs = their_model(kind, dtype)
    ours = our_twin(theirs)
    ids, segments, real = padded()
    limit = TOLERANCE[dtype]
    a = ours(ids, segments)
    pairs = list(zip([a] if torch.is_tensor(a) else a, their_outputs(theirs, ids, segments, real),
                     strict=True))  # fmt: skip
    losses = [0.0, 0.0]
    for pair in pairs:
        one, other = (x[real] if x.dim() == 3 else x for x in pair)  # a pad's state says nothing
        assert other.std() > 0.1  # there is something to be equal to
        torch.testing.assert_close(one, other, atol=limit, rtol=limit)
        weight = torch.randn(other.shape, dtype=dtype)
        losses = [total + (x * weight).sum() for total, x in zip(losses, (one, other), strict=True)]
    for loss in losses:
        loss.backward()
    grads = {name: torch.zeros_like(p) if p.grad is None else p.grad
             for name, p in theirs.named_parameters()}  # fmt: skip
    expected = bert_weights.from_state(grads, ours)
    own = dict(ours.named_parameters())
    assert own.keys() == expected.keys()
    scale = max(1.0, max(g.abs().max().item() for g in expected.values()))
    for name, p in own.items():
        torch.testing.assert_close(
            p.grad / scale, expected[name] / scale, atol=limit, rtol=limit, msg=name
        )


def test_without_segments_and_with_another_pad_id():
    theirs = their_model(dtype=torch.float64, pad_token_id=7)
    ours = our_twin(theirs)
    assert ours.config.pad_id == 7
    ids, _, real = padded(pad_id=7)
    expected = theirs(input_ids=ids, attention_mask=real.long()).prediction_logits
    torch.testing.assert_close(ours(ids)[0][real], expected[real], atol=1e-10, rtol=1e-10)


def test_bert_base_has_the_published_number_of_parameters():
    with torch.device("meta"):
        base = Bert(BertConfig())
        large = Bert(BertConfig(d_model=1024, num_heads=16, num_layers=24))
        theirs = transformers.BertModel(transformers.BertConfig())
    pooler = 768 * 768 + 768
    assert count_parameters(base) + pooler == sum(p.numel() for p in theirs.parameters())
    assert count_parameters(base) + pooler == 109_482_240  # the paper says 110M
    assert count_parameters(large) + 1024 * 1024 + 1024 == 335_141_888  # and 340M


def test_it_starts_as_it_says():
    torch.manual_seed(0)
    model = BertForPretraining(BertConfig(400, 64, 4, 2))
    for name, p in model.named_parameters():
        if p.dim() > 1:
            assert p.std().item() == pytest.approx(0.02, rel=0.15), name
        elif "norm" in name and name.endswith("weight"):
            assert torch.equal(p, torch.ones_like(p)), name
        else:
            assert not p.any(), name
    assert model.words.output.weight is model.bert.embedding.weight


# ---- padding


def test_padding_and_its_amount_change_nothing_and_get_no_gradient():
    torch.manual_seed(0)
    model = randomise(Bert(BertConfig(41, 24, 4, 2, max_len=30, dropout=0.0)).double())
    ids, segments, real = padded()
    more = F.pad(ids, (0, 9))
    states, wide = model(ids, segments), model(more, F.pad(segments, (0, 9), value=1))
    torch.testing.assert_close(wide[:, :14][real], states[real], atol=1e-12, rtol=0)
    alone = model(ids[2:, :3], segments[2:, :3])
    torch.testing.assert_close(alone[0], states[2, :3], atol=1e-12, rtol=0)
    embedded = model.embed(ids, segments).detach().requires_grad_()
    out = model.encoder(embedded, real[:, None, None])
    (gradient,) = torch.autograd.grad(out[real].square().sum(), embedded)
    assert not gradient[~real].any()
    assert gradient[real].abs().sum(dim=-1).min() > 0


def test_both_sides_are_seen_and_segments_matter():
    torch.manual_seed(0)
    model = randomise(Bert(BertConfig(41, 24, 4, 2, max_len=30, dropout=0.0)))
    ids, segments, _ = padded(lengths=(12, 12))
    states = model(ids, segments)
    for place in (0, 11):  # a change at either end reaches every place
        other = ids.clone()
        other[:, place] = other[:, place] % 40 + 1
        assert (model(other, segments) - states).abs().amax(dim=-1).min() > 1e-4
    assert (model(ids) - states).abs().amax(dim=-1).min() > 1e-4


# ---- bad input


def test_bad_ids_and_segments_are_named():
    model = Bert(BertConfig(11, 8, 2, 1, max_len=6))
    ids = torch.ones(2, 4, dtype=torch.long)
    with pytest.raises(ValueError, match="non-empty batch"):
        model(ids[:0])
    with pytest.raises(ValueError, match="id 11 is outside the vocabulary of 11"):
        model(ids * 11)
    with pytest.raises(TypeError, match=r"int64 or int32, got torch\.float32"):
        model(ids.float())
    with pytest.raises(ValueError, match="length 7 is longer than max_len=6"):
        model(torch.ones(1, 7, dtype=torch.long))
    with pytest.raises(ValueError, match=r"shape of ids \(2, 4\), got \(2, 3\)"):
        model(ids, ids[:, :3])
    with pytest.raises(ValueError, match="segments: id 2 is outside"):
        model(ids, ids * 2)
    with pytest.raises(TypeError, match="segments: ids must be"):
        model(ids, ids.bool())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 10, "num_heads": 4}, "d_model=10 is not divisible by num_heads=4"),
        ({"num_segments": 0}, "num_segments must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"pad_id": 30522}, "pad_id=30522 is outside the vocabulary of 30522"),
    ],
)
def test_bad_sizes_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        BertConfig(**changes)
