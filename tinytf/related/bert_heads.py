"""BERT's heads, which turn its states into predictions (Devlin et al. 2019).

Each head has one or two linear layers. The first token of a text represents the whole of it. Their
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
    """Summarise a text by its first token: a linear layer (`dense`) on its state, then tanh."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)

    def forward(self, states: Tensor) -> Tensor:
        """Map states (B, S, C) to one vector for each text, (B, C)."""
        return torch.tanh(self.dense(states[:, 0]))


class MaskedWordHead(nn.Module):
    """Predict the original word: a linear layer, GELU, a norm, then the transposed embedding table.

    `table` (V, C) is the model's own and becomes the weight of the output layer, one parameter with
    two names; the bias of each word is the head's. The parts are `dense`, `norm` (a `NORM`) and
    `output`. The linear layers are initialised by `normal`
    before the table is assigned. Source: BERT's released code; the paper says "an output softmax",
    section 3.1.
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
        """Return logits of all words: states (..., C) -> (..., V)."""
        return self.output(self.norm(F.gelu(self.dense(states))))


class NextSentenceHead(nn.Module):
    """Classify a pair: class 0 if the second sentence followed the first, 1 if it did not.

    The parts are `pooler`, a `Pooler`, and `output`, a linear layer, initialised by `normal`.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.pooler = Pooler(d_model)
        self.output = nn.Linear(d_model, 2)
        normal(self, std=0.02)

    def forward(self, states: Tensor) -> Tensor:
        """Map states (B, S, C) to logits (B, 2)."""
        return self.output(self.pooler(states))


class BertForPretraining(nn.Module):
    """A `Bert` with the two heads of its pretraining (section 3.1).

    The parts are `bert`, `words` (a `MaskedWordHead`) and `next_sentence` (a `NextSentenceHead`).
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.bert = Bert(config)
        self.words = MaskedWordHead(self.bert.embedding.weight)
        self.next_sentence = NextSentenceHead(config.d_model)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map ids (B, S) to logits of the word at each position (B, S, V) and of the pair (B, 2).

        Raises as `Bert` does.
        """
        states = self.bert(ids, segments)
        return self.words(states), self.next_sentence(states)

    @property
    def device(self) -> torch.device:
        """The device the parameters are on."""
        return self.bert.device


class SentenceClassifier(nn.Module):
    """Classify a text, or a pair of texts, into one of `num_classes` (section 4.1).

    The parts are `bert`, `pooler`, `dropout` (at the rate of `bert`) and `output`, a linear layer;
    it and the pooler are initialised by `normal`. The `bert` given is used and not copied: training
    the classifier trains it too (fine-tuning).
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
    """Classify each token into one of `num_tags` (section 5.3, names in news text).

    The parts are `bert`, `dropout` (at the rate of `bert`) and `output`, a linear layer initialised
    by `normal`. The `bert` given is used and not copied.
    """

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
    """Score each token as the first and as the last one of an answer (section 4.2)."""

    def __init__(self, bert: Bert) -> None:
        super().__init__()
        self.bert = bert
        self.output = nn.Linear(bert.config.d_model, 2)
        normal(self.output, std=0.02)

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """Map ids (B, S) to logits (B, S, 2): of the start, and of the end."""
        return self.output(self.bert(ids, segments))
