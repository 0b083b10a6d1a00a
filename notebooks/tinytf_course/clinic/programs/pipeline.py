"""A whole run: a small corpus split, a tied translator trained, saved, resumed, and graded."""

import math
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SEP, EOS, LENGTH = 0, 1, 2, 15
NAMES = ["ze@@ ro", "on@@ e", "tw@@ o", "thr@@ ee", "fo@@ ur"]
NAMES += ["fi@@ ve", "si@@ x", "se@@ ven", "eig@@ ht", "ni@@ ne"]
NICKS = ["ze@@ ta", "on@@ y", "tw@@ in", "thr@@ ip", "fo@@ re"]
NICKS += ["fi@@ fi", "si@@ xy", "se@@ ps", "eig@@ ty", "ni@@ no"]
PIECES = sorted({piece for word in NAMES + NICKS for piece in word.split()})
VOCAB = 13 + len(PIECES)  # digits are 3 to 12
MICRO, PARTS, WARMUP, PEAK = 16, 2, 20, 8e-3
MEASURE, BETTER = "BLEU of words, 0 to 1, on lines that were not trained on", "higher"


def corpus(size=150):
    """Give pairs of digits and their words in pieces; nobody knows who says names, who nicks."""
    generator, pairs = torch.Generator().manual_seed(1), []
    for _ in range(size):
        digits = torch.randint(10, (4,), generator=generator).tolist()
        words = NICKS if (7 * digits[0] + 3 * digits[1] * digits[2] + digits[3]) % 3 == 0 else NAMES
        pairs.append((tuple(digits), " ".join(words[d] for d in digits).split()))
    return pairs + pairs[::-1]  # every line was collected twice


def split(pairs):
    """Give a training set and a test set, no line in both."""
    unique = sorted({digits: (digits, pieces) for digits, pieces in pairs}.values())
    return [p for i, p in enumerate(unique) if i % 5], unique[::5]


def encode(pairs):
    """Lay pairs out as ids (B, LENGTH): digits SEP pieces EOS, padded."""
    rows = torch.full((len(pairs), LENGTH), PAD)
    for row, (digits, pieces) in zip(rows, pairs):
        ids = [3 + d for d in digits] + [SEP] + [13 + PIECES.index(x) for x in pieces] + [EOS]
        row[: len(ids)] = torch.tensor(ids)
    return rows


class Block(nn.Module):
    """Causal attention and a feed-forward net."""

    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        """(B, T, C) -> (B, T, C)."""
        hidden = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.net(self.norm2(x))


class GPT(nn.Module):
    """Ids to scores; the head is the embedding."""

    def __init__(self, dim=32, heads=4, layers=1):
        super().__init__()
        self.embed, self.places = nn.Embedding(VOCAB, dim), nn.Embedding(2 * LENGTH, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, VOCAB, bias=False)
        nn.init.normal_(self.embed.weight, std=0.1)
        nn.init.normal_(self.places.weight, std=0.1)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        """(B, T) -> (B, T, VOCAB)."""
        x = self.embed(ids) + self.places(torch.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make_model(seed):
    """Build the model with weights drawn from `seed`."""
    torch.manual_seed(seed)
    return GPT()


def batch(generator, size=MICRO):
    """Draw lines of the training set: {"ids": (size, LENGTH)}."""
    rows = encode(split(corpus())[0])
    return {"ids": rows[torch.randint(len(rows), (size,), generator=generator)]}


def outputs(model, batch):
    """Give the scores for the next piece at each position."""
    return model(batch["ids"][:, :-1])


def loss_of(model, batch):
    """Cross-entropy of the pieces after SEP, in nats."""
    ids = batch["ids"]
    targets = ids[:, 1:].masked_fill(ids[:, :-1].eq(SEP).cumsum(1) == 0, PAD)
    return F.cross_entropy(outputs(model, batch).flatten(0, 1), targets.flatten(), ignore_index=PAD)


def make_optimizer(model):
    """AdamW as translators set it."""
    return torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.98), eps=1e-9)


def learning_rate(step):
    """The paper's schedule with its peak at WARMUP: up in a line, down with the root."""
    return PEAK * min((step + 1) / WARMUP, (WARMUP / (step + 1)) ** 0.5)


def accumulate(model, parts):
    """Add up the gradients of the parts of one large batch; give its loss."""
    total = 0.0
    model.zero_grad()
    for part in parts:
        loss = loss_of(model, part) / len(parts)
        loss.backward()
        total += loss.item()
    return total


def save(model):
    """Give a checkpoint."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def resume(checkpoint):
    """Build a model from a checkpoint."""
    model = GPT()
    for name, parameter in model.named_parameters():
        parameter.data.copy_(checkpoint[name])
    return model


def train(seed, steps=150):
    """Train a model, with a stop and a start in the middle; give it and its losses."""
    model, generator = make_model(seed), torch.Generator().manual_seed(seed)
    rows, losses = encode(split(corpus())[0]), []
    optimizer = make_optimizer(model)
    for step in range(steps):
        if step == steps // 3:
            model = resume(save(model))
            optimizer = make_optimizer(model)
        optimizer.param_groups[0]["lr"] = learning_rate(step)
        chosen = rows[torch.randint(len(rows), (PARTS * MICRO,), generator=generator)]
        losses.append(accumulate(model, [{"ids": part} for part in chosen.split(MICRO)]))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval(), losses


@torch.no_grad()
def write(model, digits):
    """Write the pieces of lines of digits, the likeliest first: a list of lists."""
    ids = torch.tensor([[3 + d for d in line] + [SEP] for line in digits])
    while ids.size(1) < LENGTH:
        ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], dim=1)
    lines = [row[: row.index(EOS)] if EOS in row else row for row in ids[:, 5:].tolist()]
    return [[PIECES[max(i - 13, 0)] for i in line] for line in lines]


def words(pieces):
    """Join pieces to words."""
    return " ".join(pieces).replace("@@ ", "").split()


def bleu(written, references, longest=4):
    """BLEU of a corpus of lists, one reference each, 0 to 1."""
    logs = 0.0
    for n in range(1, longest + 1):
        right = total = 0
        for one, other in zip(written, references):
            ours, theirs = (
                Counter(tuple(x[i : i + n]) for i in range(len(x) - n + 1)) for x in (one, other)
            )
            right, total = right + (ours & theirs).total(), total + ours.total()
        logs += math.log(max(right, 1e-9) / max(total, 1)) / longest
    ours, theirs = sum(map(len, written)), sum(map(len, references))
    return math.exp(logs + min(0.0, 1 - theirs / max(ours, 1)))


def score(model, seed, size=100):
    """BLEU of words on the test set."""
    test = split(corpus())[1][:size]
    written = write(model, [digits for digits, _ in test])
    return bleu([words(line) for line in written], [words(pieces) for _, pieces in test])


@torch.no_grad()
def report(model, seed):
    """The loss that a paper would give: nats per piece on the test set."""
    return loss_of(model, {"ids": encode(split(corpus())[1])}).item()
