"""BERT against Hugging Face's, its heads and losses, padding, and weights both ways."""

import json

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from support import TOLERANCE, assert_same_tensors, randomise
from torch import nn

from tinytf.bert import Bert, BertConfig
from tinytf.metrics.counting import count_parameters
from tinytf.pretrained import bert as bert_weights
from tinytf.related.bert_heads import (
    BertForPretraining,
    MaskedWordHead,
    SentenceClassifier,
    SpanFinder,
    TokenTagger,
)
from tinytf.related.bert_losses import best_span, masked_word_loss, span_loss, tag_loss
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 41, "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 3,
         "intermediate_size": 56, "max_position_embeddings": 20}  # fmt: skip
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
HEADS = {  # their class, and ours from the sizes
    "BertModel": Bert,
    "BertForPreTraining": BertForPretraining,
    "BertForSequenceClassification": lambda c: SentenceClassifier(Bert(c), 3),
    "BertForTokenClassification": lambda c: TokenTagger(Bert(c), 3),
    "BertForQuestionAnswering": lambda c: SpanFinder(Bert(c)),
}


def their_model(kind="BertForPreTraining", dtype=torch.float32, std=0.2, **changes):
    """A small BERT of Hugging Face with weights that hide nothing: no gain is 1, no bias 0."""
    labels = 2 if kind == "BertForQuestionAnswering" else 3
    config = transformers.BertConfig(**SIZES | {"num_labels": labels} | changes)
    return randomise(getattr(transformers, kind)(config).to(dtype).eval(), std)


def our_twin(theirs):
    config = bert_weights.from_config(theirs.config.to_dict())
    ours = HEADS[type(theirs).__name__](config).to(theirs.dtype).eval()
    ours.load_state_dict(bert_weights.from_state(theirs.state_dict(), ours), strict=False)
    return ours


def padded(vocab_size=41, pad_id=0, lengths=(14, 9, 3)):
    """Ids, segments and which are real."""
    ids = torch.full((len(lengths), max(lengths)), pad_id)
    segments = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(1, vocab_size, (length,))
        segments[row, length // 2 : length] = 1
    return ids, segments, ids != pad_id


def their_outputs(theirs, ids, segments, real):
    said = theirs(input_ids=ids, token_type_ids=segments, attention_mask=real.long())
    if isinstance(theirs, transformers.BertModel):
        return [said.last_hidden_state]
    if isinstance(theirs, transformers.BertForPreTraining):
        return [said.prediction_logits, said.seq_relationship_logits]
    if isinstance(theirs, transformers.BertForQuestionAnswering):
        return [torch.stack([said.start_logits, said.end_logits], dim=-1)]
    return [said.logits]


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


def test_the_masked_word_loss_is_hugging_faces():
    theirs = their_model(dtype=torch.float64)
    ours = our_twin(theirs)
    ids, segments, real = padded()
    chosen = real & (torch.rand(ids.shape) < 0.4)
    chosen[0, 0] = True
    read = ids.masked_fill(chosen, 40)
    labels = ids.masked_fill(~chosen, -100)
    follows = torch.tensor([0, 1, 1])
    expected = theirs(input_ids=read, token_type_ids=segments, attention_mask=real.long(),
                      labels=labels, next_sentence_label=follows).loss  # fmt: skip
    states = ours.bert(read, segments)
    loss = masked_word_loss(ours, states, ids, chosen)
    loss = loss + F.cross_entropy(ours.next_sentence(states), follows)
    torch.testing.assert_close(loss, expected, atol=1e-10, rtol=1e-10)
    assert masked_word_loss(ours, states, ids, torch.zeros_like(chosen)) == 0


def test_the_span_loss_is_hugging_faces():
    theirs = their_model("BertForQuestionAnswering", torch.float64)
    ours = our_twin(theirs)
    ids, segments, real = padded(lengths=(14, 14, 14))
    start, end = torch.tensor([2, 5, 9]), torch.tensor([2, 11, 13])
    expected = theirs(input_ids=ids, token_type_ids=segments, attention_mask=real.long(),
                      start_positions=start, end_positions=end).loss  # fmt: skip
    torch.testing.assert_close(span_loss(ours(ids, segments), start, end), expected)
    with pytest.raises(ValueError, match=r"0 <= start <= end < 14"):
        span_loss(ours(ids, segments), end, start - 1)


def test_the_tag_loss_is_hugging_faces():
    theirs = their_model("BertForTokenClassification", torch.float64)
    ours = our_twin(theirs)
    ids, segments, real = padded()
    tags = torch.randint(3, ids.shape).masked_fill(~real, -1)
    expected = theirs(input_ids=ids, token_type_ids=segments, attention_mask=real.long(),
                      labels=tags.masked_fill(~real, -100)).loss  # fmt: skip
    torch.testing.assert_close(tag_loss(ours(ids, segments), tags), expected)
    with pytest.raises(ValueError, match="no token has a tag"):
        tag_loss(ours(ids, segments), tags.fill_(-1))


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


# ---- spans


def test_the_best_span_is_the_best_of_all_that_are_allowed():
    torch.manual_seed(0)
    for _ in range(30):
        logits, allowed = torch.randn(4, 9, 2), torch.rand(4, 9) < 0.6
        allowed[:, 4] = True
        start, end = best_span(logits, allowed)
        for row in range(4):
            scores = {
                (i, j): (logits[row, i, 0] + logits[row, j, 1]).item()
                for i in range(9) for j in range(i, 9) if allowed[row, i] and allowed[row, j]
            }  # fmt: skip
            assert (start[row].item(), end[row].item()) == max(scores, key=scores.get)


def test_a_span_needs_somewhere_to_be():
    with pytest.raises(ValueError, match="nowhere to look"):
        best_span(torch.zeros(2, 3, 2), torch.tensor([[True] * 3, [False] * 3]))


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


def test_heads_need_classes():
    bert = Bert(BertConfig(11, 8, 2, 1))
    with pytest.raises(ValueError, match="num_classes must be at least 1, got 0"):
        SentenceClassifier(bert, 0)
    with pytest.raises(ValueError, match="num_tags must be at least 1, got -1"):
        TokenTagger(bert, -1)
    assert MaskedWordHead(nn.Parameter(torch.zeros(5, 8))).output.out_features == 5


# ---- files


@pytest.mark.parametrize("kind", HEADS)
def test_folders_go_both_ways(kind, tmp_path):
    torch.manual_seed(0)
    theirs = their_model(kind)
    theirs.save_pretrained(tmp_path / "theirs")
    before = torch.get_rng_state()
    ours = bert_weights.load(tmp_path / "theirs", HEADS[kind])
    assert torch.equal(before, torch.get_rng_state())  # loading draws nothing
    assert not ours.training
    ids, segments, real = padded()
    expected = their_outputs(theirs, ids, segments, real)
    said = ours(ids, segments)
    for a, b in zip([said] if torch.is_tensor(said) else said, expected, strict=True):
        where = real if b.dim() == 3 else slice(None)
        torch.testing.assert_close(a[where], b[where], atol=1e-5, rtol=1e-5)
    bert_weights.save_folder(ours, tmp_path / "ours")
    kinds = getattr(transformers, kind)
    again, report = kinds.from_pretrained(tmp_path / "ours", output_loading_info=True)
    missing = {name for name in report["missing_keys"] if "decoder" not in name}
    bare = {"pooler.dense.weight", "pooler.dense.bias"} if kind == "BertModel" else set()
    assert missing == bare
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    for a, b in zip(their_outputs(again.eval(), ids, segments, real), expected, strict=True):
        where = real if b.dim() == 3 else slice(None)
        torch.testing.assert_close(a[where], b[where], atol=1e-6, rtol=1e-6)


def test_a_round_trip_changes_no_bit():
    theirs = their_model()
    back = bert_weights.to_state(our_twin(theirs))
    state = {n: t for n, t in theirs.state_dict().items() if ".decoder." not in n}
    state.pop("bert.embeddings.position_ids", None)
    assert_same_tensors(back, state)


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    their_model().save_pretrained(tmp_path)
    return tmp_path


def rewrite(folder, change):
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    save_file(change(tensors), path, metadata={"format": "pt"})


def test_old_names_and_doubled_tensors_are_read_and_other_heads_passed_over(folder):
    expected = bert_weights.load(folder)

    def as_published(tensors):
        old = {}
        for name, t in tensors.items():
            for new, then in (("LayerNorm.weight", "LayerNorm.gamma"),
                              ("LayerNorm.bias", "LayerNorm.beta")):  # fmt: skip
                name = name.replace(new, then)
            old[name] = t
        old["bert.embeddings.position_ids"] = torch.arange(20)[None]
        table = old["bert.embeddings.word_embeddings.weight"]
        old["cls.predictions.decoder.weight"] = table.clone()
        return old

    rewrite(folder, as_published)
    ids, segments, _ = padded()
    for a, b in zip(bert_weights.load(folder)(ids, segments), expected(ids, segments), strict=True):
        assert torch.equal(a, b)
    bare = bert_weights.load(folder, Bert)
    assert torch.equal(bare(ids, segments), expected.bert(ids, segments))

    def untied(tensors):
        tensors["cls.predictions.decoder.weight"] += 1
        return tensors

    rewrite(folder, untied)
    with pytest.raises(CheckpointError, match=r"decoder.weight is not bert.*tied to it"):
        bert_weights.load(folder)


def drop(name):
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}


LONG = "bert.encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop(LONG), rf"missing {LONG}$"),
        (lambda t: t | {"bert.encoder.layer.3.x": torch.zeros(1)}, r"unexpected bert.*3.x$"),
        (lambda t: t | {LONG: torch.zeros(24, 9)}, r"has shape \(24, 9\), .* asks for \(24, 24\)$"),
        (lambda t: t | {LONG: torch.zeros(24, 24).int()}, "holds torch.int32, not floats$"),
        (lambda t: {"x": torch.zeros(1)}, "missing bert.embeddings.word_embeddings.weight, .*more"),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        bert_weights.load(folder)
    assert "vocab_size=41, hidden_size=24, num_attention_heads=4" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 4}, "missing bert.encoder.layer.3.*and 11 more"),
        ({"hidden_size": 28}, r"word_embeddings.weight has shape \(41, 24\), .* \(41, 28\)"),
        ({"type_vocab_size": 1}, r"token_type_embeddings.weight has shape \(2, 24\)"),
        ({"num_attention_heads": 5}, "d_model=24 is not divisible by num_heads=5"),
        ({"num_attention_heads": "4"}, "num_attention_heads a whole number, got '4'"),
        ({"hidden_act": "gelu_new"}, "hidden_act='gelu_new', but Bert computes hidden_act='gelu'"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps=1e-05, but Bert"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
        ({"is_decoder": True}, "is_decoder=True"),
        ({"model_type": "roberta"}, "model_type='roberta', but Bert computes model_type='bert'"),
        ({"hidden_dropout_prob": "much"}, "the config can't be used"),
        ({"pad_token_id": 99}, "can't be used: pad_id=99 is outside"),
    ],
)
def test_configs_that_disagree_are_named(folder, changes, message):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=message):
        bert_weights.load(folder)


def test_a_model_without_names_is_refused():
    with pytest.raises(CheckpointError, match="no names are known for Linear: there are Bert, "):
        bert_weights.to_state(nn.Linear(2, 2))
