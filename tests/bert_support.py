"""What the tests of BERT share: Hugging Face's with random weights, our twins, and padded rows."""

import pytest
import torch
from support import randomise

from tinytf.bert import Bert
from tinytf.pretrained import bert as bert_weights
from tinytf.related.bert_heads import (
    BertForPretraining,
    SentenceClassifier,
    SpanFinder,
    TokenTagger,
)

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 41, "hidden_size": 24, "num_attention_heads": 4, "num_hidden_layers": 3,
         "intermediate_size": 56, "max_position_embeddings": 20}  # fmt: skip


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
