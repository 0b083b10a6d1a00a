"""BERT's weights: old names and heads. What all families share: test_families.py."""

import pytest
import torch
from family_support import edit_tensors, their_bert
from torch import nn

from tinytf.bert import Bert
from tinytf.pretrained import bert
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    their_bert().save_pretrained(tmp_path)
    return tmp_path


def test_old_names_and_doubled_tensors_are_read_and_other_heads_passed_over(folder):
    expected = bert.load(folder)

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

    edit_tensors(folder, as_published)
    ids, segments = torch.randint(1, 41, (2, 14)), torch.randint(2, (2, 14))
    for a, b in zip(bert.load(folder)(ids, segments), expected(ids, segments), strict=True):
        assert torch.equal(a, b)
    bare = bert.load(folder, Bert)
    assert torch.equal(bare(ids, segments), expected.bert(ids, segments))

    def untied(tensors):
        tensors["cls.predictions.decoder.weight"] += 1
        return tensors

    edit_tensors(folder, untied)
    with pytest.raises(CheckpointError, match=r"decoder.weight is not bert.*tied to: they are"):
        bert.load(folder)


def test_a_model_without_names_is_refused():
    with pytest.raises(CheckpointError, match="no names are known for Linear: there are Bert, "):
        bert.to_state(nn.Linear(2, 2))
