"""An encoder-decoder learns to say a line of digits backwards; lines are padded to one length."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS, VOCAB, LONGEST = 0, 1, 2, 13, 6  # digits are 3 to 12
MEASURE, BETTER = "lines written without an error, long and short in one batch", "higher"


class MultiHeadAttention(nn.Module):
    """Attention from x to memory; mask is True where a query may look."""

    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.out = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, memory, mask):
        """(B, T, C), (B, S, C), mask broadcast to (B, 1, T, S) -> (B, T, C)."""
        q, k, v = (
            layer(y).view(y.size(0), y.size(1), self.heads, self.width).transpose(1, 2)
            for layer, y in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.width)
        weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
        out = self.drop(weights) @ v
        return self.out(out.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """One Pre-LN layer; with `cross` it also looks at a memory."""

    def __init__(self, dim, heads, dropout, cross):
        super().__init__()
        self.attention = MultiHeadAttention(dim, heads, dropout)
        self.cross = MultiHeadAttention(dim, heads, dropout) if cross else None
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3 if cross else 2))
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask, memory=None, memory_mask=None):
        """(B, T, C) -> (B, T, C)."""
        y = self.norms[0](x)
        x = x + self.drop(self.attention(y, y, mask))
        if self.cross is not None:
            x = x + self.drop(self.cross(self.norms[2](x), memory, memory_mask))
        return x + self.drop(self.net(self.norms[1](x)))


class PositionalEncoding(nn.Module):
    """Add sines and cosines."""

    def __init__(self, dim, dropout, longest=64):
        super().__init__()
        angle = torch.arange(longest)[:, None] * torch.exp(
            torch.arange(0, dim, 2) * (-math.log(10000.0) / dim)
        )
        self.register_buffer("table", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        """(B, T, C) -> (B, T, C)."""
        return self.drop(x + self.table[None, : x.size(1)])


class Transformer(nn.Module):
    """Source and target ids to scores for the next target token."""

    def __init__(self, dim=48, heads=4, layers=1, dropout=0.1):
        super().__init__()
        self.dim = dim
        self.embed = nn.Embedding(VOCAB, dim)
        self.positions = PositionalEncoding(dim, dropout)
        self.encoder = nn.ModuleList(Layer(dim, heads, dropout, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(dim, heads, dropout, True) for _ in range(layers))
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)
        nn.init.normal_(self.embed.weight, std=dim**-0.5)

    def encode(self, src):
        """(B, S) -> memory (B, S, C) and its mask (B, 1, 1, S)."""
        mask = (src != PAD)[:, None, None, :]
        x = self.positions(self.embed(src) * math.sqrt(self.dim))
        for layer in self.encoder:
            x = layer(x, mask)
        return self.norm1(x), mask

    def decode(self, tgt, memory, memory_mask):
        """(B, T) and a memory -> (B, T, VOCAB)."""
        T = tgt.size(1)
        mask = torch.tril(torch.ones(T, T, dtype=torch.bool)) & (tgt != PAD)[:, None, None, :]
        x = self.positions(self.embed(tgt) * math.sqrt(self.dim))
        for layer in self.decoder:
            x = layer(x, mask, memory, memory_mask)
        return self.head(self.norm2(x))

    def forward(self, src, tgt):
        """(B, S), (B, T) -> (B, T, VOCAB)."""
        return self.decode(tgt, *self.encode(src))


def make_model(seed):
    """Build the model with weights drawn from `seed`."""
    torch.manual_seed(seed)
    return Transformer()


def lines(lengths, generator):
    """Draw a line of each length: {"src": digits, "tgt": <bos> backwards <eos>}, padded."""
    longest = int(lengths.max())
    src = torch.randint(3, VOCAB, (len(lengths), longest), generator=generator)
    tgt = torch.full((len(lengths), longest + 2), PAD)
    for b, n in enumerate(lengths.tolist()):
        src[b, n:] = PAD
        tgt[b, : n + 2] = torch.cat([torch.tensor([BOS]), src[b, :n].flip(0), torch.tensor([EOS])])
    return {"src": src, "tgt": tgt}


def batch(generator, size=48):
    """Draw lines of one length, sorted into their bucket: nothing is padded."""
    length = torch.randint(3, LONGEST + 1, (1,), generator=generator)
    return lines(length.expand(size), generator)


def outputs(model, batch):
    """Give the scores for the next target token at each position."""
    return model(batch["src"], batch["tgt"][:, :-1])


def loss_of(model, batch):
    """Cross-entropy of the next target token, in nats."""
    logits, target = outputs(model, batch), batch["tgt"][:, 1:]
    return F.cross_entropy(logits.reshape(-1, VOCAB), target.reshape(-1), ignore_index=PAD)


def make_optimizer(model):
    """Adam as the paper sets it."""
    return torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.98), eps=1e-9)


def train(seed, steps=400):
    """Train a model; give it and its losses."""
    model, generator = make_model(seed), torch.Generator().manual_seed(seed)
    optimizer, losses = make_optimizer(model), []
    model.train()
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 4e-3 * min(1, (step + 1) / 50, 2 * (1 - step / steps))
        loss = loss_of(model, batch(generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@torch.no_grad()
def write(model, src):
    """Write the target of each source (B, S), the most likely token first: (B, T) ids."""
    model.eval()
    memory, mask = model.encode(src)
    tgt = torch.full((len(src), 1), BOS)
    for _ in range(src.size(1) + 1):
        best = model.decode(tgt, memory, mask)[:, -1].argmax(-1, keepdim=True)
        over = (tgt == EOS).any(dim=1, keepdim=True)
        tgt = torch.cat([tgt, best.masked_fill(over, PAD)], dim=1)
    return tgt


def score(model, seed, size=400):
    """Share of new lines of all lengths, in one batch, that are written without an error."""
    generator = torch.Generator().manual_seed(10_000 + seed)
    test = lines(torch.randint(3, LONGEST + 1, (size,), generator=generator), generator)
    return (write(model, test["src"]) == test["tgt"]).all(dim=1).float().mean().item()
