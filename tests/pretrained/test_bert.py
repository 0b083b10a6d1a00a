"""BERT's files, both ways, and those that do not fit."""

import json

import pytest
import torch
from bert_support import HEADS, our_twin, padded, their_model, their_outputs, transformers
from safetensors.torch import load_file, save_file
from support import assert_same_tensors
from torch import nn

from tinytf.bert import Bert
from tinytf.pretrained import bert as bert_weights
from tinytf.support.files import CheckpointError


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
