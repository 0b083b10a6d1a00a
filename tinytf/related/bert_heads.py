"""What BERT is asked: heads that read its states (Devlin et al. 2019).

Each head is a linear map or two. The first token of a text stands for the whole of it. Their
losses, and the search for an answer's span, are in `tinytf.related.bert_losses`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.bert import NORM, Bert, BertConfig
from tinytf.initialisation import normal

__all__ = [
    "BertForPretraining",
    "MaskedWordHead",
    "NextSentenceHead",
    "Pooler",
    "SentenceClassifier",
    "SpanFinder",
    "TokenTagger",
]


class Pooler(nn.Module):
    """Sum up a text by its first token: tanh of a linear map of that token's state."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)

    def forward(self, states: Tensor) -> Tensor:
        """Map states (B, S, C) to one vector a text, (B, C)."""
        return torch.tanh(self.dense(states[:, 0]))


class MaskedWordHead(nn.Module):
    """Say which word stood there: a linear map, GELU, a norm, then the embedding table turned.

    `table` (V, C) is the model's own, one parameter with the output's matrix; the bias per word is
    the head's. Source: BERT's released code; the paper says "an output softmax", section 3.1.
    """

    def __init__(self, table: nn.Parameter) -> None:
        super().__init__()
        vocab_size, d_model = table.shape
        self.dense = nn.Linear(d_model, d_model)
        self.norm = NORM(d_model)
        self.output = nn.Linear(d_model, vocab_size)
        normal(self, std=0.02)
        self.output.weight = table

    def forward(self, states: Tensor) -> Tensor:
        """Score the words: states (..., C) -> logits (..., V)."""
        return self.output(self.norm(F.gelu(self.dense(states))))


class NextSentenceHead(nn.Module):
    """Say whether the second sentence followed the first: class 0 if it did, 1 if it did not."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.pooler = Pooler(d_model)
        self.output = nn.Linear(d_model, 2)
        normal(self, std=0.02)

    def forward(self, states: Tensor) -> Tensor:
        """Map states (B, S, C) to logits (B, 2)."""
        return self.output(self.pooler(states))


class BertForPretraining(nn.Module):
    """A `Bert` with the two heads it is pretrained with (section 3.1)."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.bert = Bert(config)
        self.words = MaskedWordHead(self.bert.embedding.weight)
        self.next_sentence = NextSentenceHead(config.d_model)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map ids (B, S) to logits of the word at each place (B, S, V) and of the pair (B, 2).

        Raises as `Bert` does.
        """
        states = self.bert(ids, segments)
        return self.words(states), self.next_sentence(states)

    @property
    def device(self) -> torch.device:
        """The device the parameters are on."""
        return self.bert.device


class SentenceClassifier(nn.Module):
    """Put a text, or a pair of texts, into one of `num_classes` (section 4.1).

    The `bert` given is used, not copied: training the classifier trains it too (fine-tuning).
    """

    def __init__(self, bert: Bert, num_classes: int) -> None:
        super().__init__()
        if num_classes < 1:
            raise ValueError(f"num_classes must be at least 1, got {num_classes}")
        self.bert = bert
        self.pooler = Pooler(bert.config.d_model)
        self.dropout = nn.Dropout(bert.config.dropout)
        self.output = nn.Linear(bert.config.d_model, num_classes)
        normal(self.output, std=0.02)
        normal(self.pooler, std=0.02)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Map ids (B, S) to logits (B, classes)."""
        return self.output(self.dropout(self.pooler(self.bert(ids, segments))))


class TokenTagger(nn.Module):
    """Put each token into one of `num_tags` (section 5.3, names in news text)."""

    def __init__(self, bert: Bert, num_tags: int) -> None:
        super().__init__()
        if num_tags < 1:
            raise ValueError(f"num_tags must be at least 1, got {num_tags}")
        self.bert = bert
        self.dropout = nn.Dropout(bert.config.dropout)
        self.output = nn.Linear(bert.config.d_model, num_tags)
        normal(self.output, std=0.02)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Map ids (B, S) to logits (B, S, tags)."""
        return self.output(self.dropout(self.bert(ids, segments)))


class SpanFinder(nn.Module):
    """Score each token as the first and as the last of an answer (section 4.2)."""

    def __init__(self, bert: Bert) -> None:
        super().__init__()
        self.bert = bert
        self.output = nn.Linear(bert.config.d_model, 2)
        normal(self.output, std=0.02)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Map ids (B, S) to logits (B, S, 2): of the start, and of the end."""
        return self.output(self.bert(ids, segments))
