"""BERT's heads."""

import pytest
import torch
from torch import nn

from tinytf.bert import Bert, BertConfig
from tinytf.related.bert_heads import (
    MaskedWordHead,
    SentenceClassifier,
    TokenTagger,
)


def test_heads_need_classes():
    bert = Bert(BertConfig(11, 8, 2, 1))
    with pytest.raises(ValueError, match="num_classes must be at least 1, got 0"):
        SentenceClassifier(bert, 0)
    with pytest.raises(ValueError, match="num_tags must be at least 1, got -1"):
        TokenTagger(bert, -1)
    assert MaskedWordHead(nn.Parameter(torch.zeros(5, 8))).output.out_features == 5
