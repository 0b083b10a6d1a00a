"""Chapters 21: BERT with its heads, Marian's positions, patches."""

import dataclasses

import torch
from torch import nn

from tinytf.bert import Bert, BertConfig
from tinytf.course.parts import Part, arrived, frozen, says, shapes, twin
from tinytf.course.parts.ch05 import learned, wide
from tinytf.related.bert_heads import BertForPretraining

IDS = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 0]])
BERT = BertConfig(12, d_model=6, num_heads=2, num_layers=2, max_len=8)
IMAGES = torch.arange(2 * 2 * 4 * 6, dtype=torch.float64).reshape(2, 2, 4, 6)


def _bert_gradients(model):
    module = twin(model, BERT)
    return arrived(module(IDS, SEGMENTS), module=module)


# BERT's heads, each on the package's body


def _head(head, *sizes):
    """The reader's head around a package's body."""
    return twin(lambda: head(Bert(dataclasses.replace(BERT, dropout=0.0)), *sizes))


def _head_gradients(head, *sizes):
    module = _head(head, *sizes)
    return arrived(module(IDS, SEGMENTS), module=module)


def _head_started(head, *sizes):
    torch.manual_seed(0)
    module = head(Bert(BertConfig(200, d_model=64, num_heads=2, num_layers=1, max_len=50)), *sizes)
    own = {n: p for n, p in module.named_parameters() if not n.startswith("bert.") and p.dim() > 1}
    return [p.std().round(decimals=2) for p in own.values()]


def _same_body(head, *sizes):
    bert = Bert(BERT)
    return "it is the one given" if head(bert, *sizes).bert is bert else "it is another"


def _table():
    return nn.Parameter(wide(9, 6, seed=4))


def _words(head):
    """The head on a table of its own, which `twin` fills too."""
    return twin(lambda: head(_table()))


def _words_gradients(head):
    module, states = _words(head), learned(2, 3, 6, seed=2)
    return arrived(module(states), states, module=module)


def _one_table(head):
    table = _table()
    made = head(table)
    return "it is the one given" if made.output.weight is table else "it is another"


def _words_started(head):
    torch.manual_seed(0)
    table = nn.Parameter(wide(40, 64, seed=4))
    made = head(table)
    return [made.dense.weight.std().round(decimals=2), table.detach()]


CHOSEN = torch.tensor([[False, True, True, False], [True, False, False, False]])


def _word_loss(loss, chosen=CHOSEN):
    model, states = twin(BertForPretraining, BERT), learned(2, 4, 6, seed=3)
    out = loss(model, states, IDS, chosen)
    return [out, arrived(out, states, model.words.output.bias)]


def _tag_loss(loss):
    logits = learned(2, 4, 3, seed=5)
    out = loss(logits, torch.tensor([[-1, 0, 2, -1], [1, -1, -1, -1]]))
    return [out, arrived(out, logits)]


def _pooled_gradients(head):
    module, states = twin(head, 6), learned(2, 3, 6, seed=2)
    return arrived(module(states), states, module=module)


def _pretraining(model, segments=None):
    return list(twin(model, BERT)(IDS, segments))


def _pretraining_shares(model):
    made = model(BERT)
    return "one" if made.words.output.weight is made.bert.embedding.weight else "two"


def _started(model):
    torch.manual_seed(0)
    module = model(BertConfig(200, d_model=64, num_heads=2, num_layers=1, max_len=50))
    return {name: p.std() for name, p in module.named_parameters() if p.dim() > 1}


def _patches_gradients(f):
    images = IMAGES.clone().requires_grad_()
    return arrived(f(images, 2), images)


PARTS = (
    Part(
        "tinytf.bert.BertConfig",
        {
            "only the vocabulary is given": lambda config: says(config, 7),
            "nothing is given": says,
            "the width is given, and not d_ff": lambda config: says(
                config, 9, d_model=10, num_heads=5
            ),
            "all is given": lambda config: says(config, 9, 10, 5, 3, 7, 8, 4, 0.5, 2),
            "somebody wants to change it": lambda f: frozen(f, 5),
        },
    ),
    Part(
        "tinytf.bert.Bert",
        {
            "its weights are counted": lambda model: shapes(model(BERT)),
            "it reads two texts, one padded": lambda model: twin(model, BERT)(IDS),
            "each has two segments": lambda model: twin(model, BERT)(IDS, SEGMENTS),
            "words, positions and segments are added": lambda model: twin(model, BERT).embed(
                IDS, SEGMENTS
            ),
            "it starts": lambda model: [v.round(decimals=2) for v in _started(model).values()],
            "gradients go back to every weight": _bert_gradients,
        },
    ),
    Part(
        "tinytf.related.bert_heads.MaskedWordHead",
        {
            "its weights are counted": lambda head: shapes(head(_table())),
            "it reads one state": lambda head: _words(head)(wide(6, seed=2)),
            "it reads two texts": lambda head: _words(head)(wide(2, 3, 6, seed=2)),
            "the table is looked for": _one_table,
            "it starts": _words_started,
            "gradients go back to the states, the table and every weight": _words_gradients,
        },
    ),
    Part(
        "tinytf.related.bert_losses.masked_word_loss",
        {
            "one word is chosen": lambda loss: _word_loss(loss, CHOSEN & (IDS == 6)),
            "words of two texts are chosen": _word_loss,
            "no word is chosen": lambda loss: _word_loss(loss, CHOSEN & False),
        },
    ),
    Part(
        "tinytf.related.bert_heads.Pooler",
        {
            "its weights are counted": lambda head: shapes(head(6)),
            "it reads two texts": lambda head: twin(head, 6)(wide(2, 3, 6, seed=2)),
            "gradients go back to the states and every weight": _pooled_gradients,
        },
    ),
    Part(
        "tinytf.related.bert_heads.SentenceClassifier",
        {
            "its weights are counted": lambda head: shapes(head(Bert(BERT), 3)),
            "it reads two texts, one padded": lambda head: _head(head, 3)(IDS),
            "each has two segments": lambda head: _head(head, 3)(IDS, SEGMENTS),
            "the body is looked for": lambda head: _same_body(head, 3),
            "it starts": lambda head: _head_started(head, 40),
            "gradients go back to every weight": lambda head: _head_gradients(head, 3),
        },
    ),
    Part(
        "tinytf.related.bert_heads.TokenTagger",
        {
            "its weights are counted": lambda head: shapes(head(Bert(BERT), 5)),
            "it reads two texts, one padded": lambda head: _head(head, 5)(IDS),
            "each has two segments": lambda head: _head(head, 5)(IDS, SEGMENTS),
            "the body is looked for": lambda head: _same_body(head, 5),
            "it starts": lambda head: _head_started(head, 40),
            "gradients go back to every weight": lambda head: _head_gradients(head, 5),
        },
    ),
    Part(
        "tinytf.related.bert_losses.tag_loss",
        {"some words have no tag": _tag_loss},
    ),
    Part(
        "tinytf.related.bert_heads.NextSentenceHead",
        {
            "its weights are counted": lambda head: shapes(head(6)),
            "it reads two texts": lambda head: twin(head, 6)(wide(2, 3, 6, seed=2)),
            "gradients go back to the states and every weight": _pooled_gradients,
        },
    ),
    Part(
        "tinytf.related.bert_heads.BertForPretraining",
        {
            "its weights are counted": lambda model: shapes(model(BERT)),
            "it reads two texts, one padded": _pretraining,
            "each has two segments": lambda model: _pretraining(model, SEGMENTS),
            "the tables of both ends are looked for": _pretraining_shares,
        },
    ),
)
