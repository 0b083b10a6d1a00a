"""BERT's losses against Hugging Face's, and the best span."""

import pytest
import torch
import torch.nn.functional as F
from bert_support import our_twin, padded, their_model

from tinytf.related.bert_losses import best_span, masked_word_loss, span_loss, tag_loss


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
