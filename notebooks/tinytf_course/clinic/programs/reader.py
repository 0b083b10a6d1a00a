"""An encoder fills masked tokens in lines where each token repeats the one three before it."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, MASK, VOCAB, LAG, LONGEST = 0, 1, 14, 3, 12  # words are 2 to 13
MEASURE, BETTER = "masked tokens filled rightly, long and short lines in one batch", "higher"


class Attention(nn.Module):
    """Self-attention that sees every real token."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.out = nn.Linear(dim, dim)

    def forward(self, x, real):
        """(B, T, C), real (B, T) -> (B, T, C)."""
        B, T, C = x.shape
        split = lambda y: y.view(B, T, self.heads, self.width).transpose(1, 2)  # noqa: E731
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.width)
        scores = scores.masked_fill(~real[:, None, None, :], -1e9)
        out = scores.softmax(dim=-1) @ v
        return self.out(out.transpose(1, 2).reshape(B, T, C))


class Layer(nn.Module):
    """Attention and a feed-forward net, Pre-LN."""

    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, real):
        """(B, T, C) -> (B, T, C)."""
        y = self.norm1(x)
        x = x + self.attention(y, real)
        y = self.norm2(x)
        return x + self.net(y)


class Encoder(nn.Module):
    """Token ids to scores for the token at each position."""

    def __init__(self, dim=32, heads=4, layers=1):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.places = nn.Embedding(2 * LONGEST, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        """(B, T) -> (B, T, VOCAB)."""
        x = self.words(ids) + self.places(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x, ids != PAD)
        return self.head(self.norm(x))


def make_model(seed):
    """Build the model with weights drawn from `seed`."""
    torch.manual_seed(seed)
    return Encoder()


def hide(ids, generator):
    """Mask some of the real tokens: {"ids": with masks, "labels": the tokens, -100 elsewhere}."""
    chosen = (torch.rand(ids.shape, generator=generator) < 0.2) & (ids != PAD)
    masked = ids.clone()
    masked[chosen] = MASK
    return {"ids": masked, "labels": ids.masked_fill(~chosen, -100)}


def lines(lengths, generator):
    """Draw one line of each length, padded: (B, T)."""
    start = torch.randint(2, VOCAB, (len(lengths), LAG), generator=generator)
    ids = start.repeat(1, LONGEST // LAG)[:, : int(lengths.max())]
    return ids * (torch.arange(ids.size(1)) < lengths[:, None])


def batch(generator, size=48):
    """Draw masked lines of one length, sorted into their bucket."""
    length = torch.randint(2 * LAG, LONGEST + 1, (1,), generator=generator)
    return hide(lines(length.expand(size), generator), generator)


def outputs(model, batch):
    """Give the scores for the token at each position: (B, T, VOCAB)."""
    return model(batch["ids"])


def loss_of(model, batch):
    """Cross-entropy of the masked tokens, in nats."""
    return F.cross_entropy(outputs(model, batch).flatten(0, 1), batch["labels"].flatten())


def make_optimizer(model):
    """AdamW with no decay to speak of."""
    return torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)


def train(seed, steps=250):
    """Train a model; give it and its losses."""
    model, generator = make_model(seed), torch.Generator().manual_seed(seed)
    optimizer, losses = make_optimizer(model), []
    model.train()
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / 30, 2 * (1 - step / steps))
        loss = loss_of(model, batch(generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@torch.no_grad()
def score(model, seed, size=400):
    """Share of masked tokens filled rightly in new lines of all lengths, in one batch."""
    generator = torch.Generator().manual_seed(10_000 + seed)
    lengths = torch.randint(2 * LAG, LONGEST + 1, (size,), generator=generator)
    ids = lines(lengths, generator)
    asked = hide(ids.clone(), generator)["ids"]
    model.eval()
    return (model(asked).argmax(-1) == ids)[asked == MASK].float().mean().item()
