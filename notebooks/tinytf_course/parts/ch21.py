"""Chapters 21: BERT with its heads, Marian's positions, patches."""

import dataclasses

import torch
from torch import nn

from tinytf.bert import Bert, BertConfig
from tinytf.related.bert_heads import BertForPretraining
from tinytf_course.parts import Part, arrived, frozen, says, shapes, twin
from tinytf_course.parts.ch05 import dtypes, learned, wide

IDS = torch.tensor([[5, 6, 7, 8], [9, 4, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 0]])
BERT = BertConfig(12, d_model=6, num_heads=2, num_layers=2, max_len=8)
DEFAULT = "0.02 is what `normal` takes by default"
HEADS = {"… => normal(self…)": DEFAULT}
LARGER = BertConfig(200, d_model=64, num_heads=2, num_layers=1, max_len=50)


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
    return _rules(head(Bert(LARGER), *sizes))


def _body_left(head, *sizes):
    """Whether the body that was given has the weights it had."""
    bert = Bert(BERT).double()
    before = [p.clone() for p in bert.parameters()]
    head(bert, *sizes)
    pairs = zip(before, bert.parameters(), strict=True)
    same = all(old.dtype == new.dtype and torch.equal(old, new) for old, new in pairs)
    return "it is as it was" if same else "it has other weights"


def _head_dropped(head, *sizes):
    body = dataclasses.replace(BERT, dropout=0.25)
    module = twin(lambda: head(Bert(body), *sizes), mode="train")
    torch.manual_seed(0)
    return module(IDS, SEGMENTS)


def _head_single(head, *sizes):
    return dtypes(head(Bert(BERT), *sizes)(IDS))


def _rules(module):
    """The rule by which each weight starts, in whatever order they were drawn."""
    return {name: _rule(p.detach()) for name, p in sorted(module.named_parameters())}


def _rule(p):
    if bool((p == p.flatten()[0]).all()):
        return f"all {p.flatten()[0]:g}"
    return "N(0, 0.02²)" if abs(p.std() / 0.02 - 1) < 0.2 else "another start"


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
    rules = _rules(made)
    return [f"{name}: {rules[name]}" for name in rules if name != "output.weight"], table.detach()


CHOSEN = torch.tensor([[False, True, True, False], [True, False, False, False]])


def _word_loss(loss, chosen=CHOSEN):
    model, states = twin(BertForPretraining, BERT), learned(2, 4, 6, seed=3)
    out = loss(model, states, IDS, chosen)
    return [out, arrived(out, states, model.words.output.bias)]


def _states_read(loss):
    """How many states the head is given."""
    model, read = twin(BertForPretraining, BERT), []
    model.words.register_forward_hook(
        lambda head, given, out: read.append(len(given[0].view(-1, 6)))
    )
    loss(model, learned(2, 4, 6, seed=3), IDS, CHOSEN)
    return {"states": sum(read)}


def _tag_loss(loss):
    logits = learned(2, 4, 3, seed=5)
    out = loss(logits, torch.tensor([[-1, 0, 2, -1], [1, -1, -100, -2]]))
    return [out, arrived(out, logits)]


def _pooled_gradients(head):
    module, states = twin(head, 6), learned(2, 3, 6, seed=2)
    return arrived(module(states), states, module=module)


def _pretraining(model, segments=None):
    return list(twin(model, BERT)(IDS, segments))


def _pretraining_shares(model):
    made = model(BERT)
    return "one" if made.words.output.weight is made.bert.embedding.weight else "two"


def _seeded_rules(model, *given):
    torch.manual_seed(0)
    return _rules(model(*given))


def _started(model):
    return _seeded_rules(model, LARGER)


def _dropped(model):
    module = twin(model, dataclasses.replace(BERT, dropout=0.25), mode="train")
    torch.manual_seed(0)
    return module(IDS, SEGMENTS)


def _kept(model):
    made = model(BERT)
    return {"device": str(made.device), "its config is kept": made.config == BERT}


def _pretraining_gradients(model):
    module = twin(model, BERT)
    words, pair = module(IDS, SEGMENTS)
    return arrived(torch.cat([words.flatten(), pair.flatten()]), module=module)


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
            "they are in float32": lambda model: {
                name: str(p.dtype) for name, p in sorted(model(BERT).named_parameters())
            },
            "it reads two texts, one padded": lambda model: twin(model, BERT)(IDS),
            "each has two segments": lambda model: twin(model, BERT)(IDS, SEGMENTS),
            "words, positions and segments are added": lambda model: twin(model, BERT).embed(
                IDS, SEGMENTS
            ),
            "padding is another id": lambda model: twin(model, dataclasses.replace(BERT, pad_id=8))(
                IDS
            ),
            "each weight starts by its rule": _started,
            "a quarter of what is said is dropped": _dropped,
            "it is asked where it is": _kept,
            "numbers are in float32": lambda model: dtypes(
                model(BERT)(IDS), model(BERT).embed(IDS)
            ),
            "gradients go back to every weight": _bert_gradients,
        },
        equivalent={
            "… => normal(self)": DEFAULT,
            "… => for table in (self.segments, self.embedding):": "in any order they are drawn",
        },
    ),
    Part(
        "tinytf.related.bert_heads.MaskedWordHead",
        {
            "its weights are counted": lambda head: shapes(head(_table())),
            "it reads one state": lambda head: _words(head)(wide(6, seed=2)),
            "it reads two texts": lambda head: _words(head)(wide(2, 3, 6, seed=2)),
            "the table is looked for": _one_table,
            "each weight starts by its rule, and the table is left": _words_started,
            "numbers are in float32": lambda head: dtypes(
                head(nn.Parameter(torch.ones(9, 6)))(torch.ones(2, 6))
            ),
            "gradients go back to the states, the table and every weight": _words_gradients,
        },
        equivalent={
            "… => normal(self)": DEFAULT,
            "… => self.output = nn.Linear(vocab_size, vocab_size)": "the table takes its place",
        },
    ),
    Part(
        "tinytf.related.bert_losses.masked_word_loss",
        {
            "one word is chosen": lambda loss: _word_loss(loss, CHOSEN & (IDS == 6)),
            "words of two texts are chosen": _word_loss,
            "no word is chosen": lambda loss: _word_loss(loss, CHOSEN & False),
            "states that the head reads are counted": _states_read,
            "numbers are in float32": lambda loss: [
                dtypes(loss(BertForPretraining(BERT), torch.ones(2, 4, 6), IDS, chosen))
                for chosen in (CHOSEN, CHOSEN & False)
            ],
        },
        equivalent={
            "… => return states.mean() * 0": "0 times either is 0",
        },
    ),
    Part(
        "tinytf.related.bert_heads.Pooler",
        {
            "its weights are counted": lambda head: shapes(head(6)),
            "it reads two texts": lambda head: twin(head, 6)(wide(2, 3, 6, seed=2)),
            "numbers are in float32": lambda head: dtypes(head(6)(torch.ones(2, 3, 6))),
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
            "each weight starts by its rule": lambda head: _head_started(head, 40),
            "the body is left as it was": lambda head: _body_left(head, 3),
            "a quarter of what is said is dropped": lambda head: _head_dropped(head, 3),
            "numbers are in float32": lambda head: _head_single(head, 3),
            "gradients go back to every weight": lambda head: _head_gradients(head, 3),
        },
        equivalent=HEADS,
    ),
    Part(
        "tinytf.related.bert_heads.TokenTagger",
        {
            "its weights are counted": lambda head: shapes(head(Bert(BERT), 5)),
            "it reads two texts, one padded": lambda head: _head(head, 5)(IDS),
            "each has two segments": lambda head: _head(head, 5)(IDS, SEGMENTS),
            "the body is looked for": lambda head: _same_body(head, 5),
            "each weight starts by its rule": lambda head: _head_started(head, 40),
            "the body is left as it was": lambda head: _body_left(head, 5),
            "a quarter of what is said is dropped": lambda head: _head_dropped(head, 5),
            "numbers are in float32": lambda head: _head_single(head, 5),
            "gradients go back to every weight": lambda head: _head_gradients(head, 5),
        },
        equivalent=HEADS,
    ),
    Part(
        "tinytf.related.bert_losses.tag_loss",
        {
            "some words have no tag": _tag_loss,
            "numbers are in float32": lambda loss: dtypes(
                loss(torch.ones(1, 2, 3), torch.tensor([[-1, 2]]))
            ),
        },
    ),
    Part(
        "tinytf.related.bert_heads.NextSentenceHead",
        {
            "its weights are counted": lambda head: shapes(head(6)),
            "it reads two texts": lambda head: twin(head, 6)(wide(2, 3, 6, seed=2)),
            "numbers are in float32": lambda head: dtypes(head(6)(torch.ones(2, 3, 6))),
            "each weight starts by its rule": lambda head: _seeded_rules(head, 64),
            "gradients go back to the states and every weight": _pooled_gradients,
        },
        equivalent=HEADS,
    ),
    Part(
        "tinytf.related.bert_heads.BertForPretraining",
        {
            "its weights are counted": lambda model: shapes(model(BERT)),
            "it reads two texts, one padded": _pretraining,
            "each has two segments": lambda model: _pretraining(model, SEGMENTS),
            "the tables of both ends are looked for": _pretraining_shares,
            "it is asked where it is": _kept,
            "each weight starts by its rule": _started,
            "a quarter of what is said is dropped": lambda model: list(_dropped(model)),
            "numbers are in float32": lambda model: dtypes(*model(BERT)(IDS)),
            "gradients go back to every weight": _pretraining_gradients,
        },
    ),
)
