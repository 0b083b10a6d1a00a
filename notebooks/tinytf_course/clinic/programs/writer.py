"""A small GPT learns sequences whose entropy is known: each token repeats the one three before."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, BLOCK, HEADS, WIDTH, LAYERS = 12, 8, 8, 32, 1
LAG, FAITH = 3, 0.9  # a token is the one LAG before, except for one in ten
MEASURE, BETTER = "bits per token above the entropy", "lower"


class Norm(nn.Module):
    """Layer normalisation: each position by itself."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.gain, self.bias, self.eps = (
            nn.Parameter(torch.ones(dim)),
            nn.Parameter(torch.zeros(dim)),
            eps,
        )

    def forward(self, x):
        """(B, T, C) -> (B, T, C)."""
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.gain * (x - mean) / torch.sqrt(var + self.eps) + self.bias


class SelfAttention(nn.Module):
    """Causal attention with several heads."""

    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        """(B, T, C) -> (B, T, C)."""
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(C // self.heads)
        future = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
        future = future.unsqueeze(0)
        scores = scores.masked_fill(future, float("-inf"))
        out = self.drop(scores.softmax(dim=-1)) @ v
        return self.proj(out.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """Attention, then a feed-forward net, each with its norm and its residual."""

    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = Norm(dim), Norm(dim)
        self.attention = SelfAttention(dim, heads, dropout)
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        """(B, T, C) -> (B, T, C)."""
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.net(self.norm2(x)))


class GPT(nn.Module):
    """Token ids to scores for the next token."""

    def __init__(self, dim=WIDTH, heads=HEADS, layers=LAYERS, dropout=0.0):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, dim)
        self.positions = nn.Embedding(BLOCK, dim)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(dim, heads, dropout) for _ in range(layers))
        self.norm = Norm(dim)
        self.head = nn.Linear(dim, VOCAB, bias=False)
        self.apply(self.start)

    def start(self, module):
        """Start small, as GPT-2 does."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, ids):
        """(B, T) -> (B, T, VOCAB)."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        x = self.drop(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make_model(seed):
    """Build the model with weights drawn from `seed`."""
    torch.manual_seed(seed)
    return GPT()


def batch(generator, size=48):
    """Draw sequences of BLOCK + 1 tokens: {"ids": (size, BLOCK + 1)}."""
    ids = torch.randint(VOCAB, (size, BLOCK + 1), generator=generator)
    faithful = torch.rand(size, BLOCK + 1, generator=generator) < FAITH
    for t in range(LAG, BLOCK + 1):
        ids[:, t] = torch.where(faithful[:, t], ids[:, t - LAG], ids[:, t])
    return {"ids": ids}


def entropy():
    """Give the mean bits per predicted token of the best possible model."""
    right, wrong = FAITH + (1 - FAITH) / VOCAB, (1 - FAITH) / VOCAB
    later = -right * math.log2(right) - (VOCAB - 1) * wrong * math.log2(wrong)
    return ((LAG - 1) * math.log2(VOCAB) + (BLOCK - LAG + 1) * later) / BLOCK


def outputs(model, batch):
    """Give the scores for the next token at each position: (B, BLOCK, VOCAB)."""
    return model(batch["ids"][:, :-1])


def loss_of(model, batch):
    """Cross-entropy of the next token, in nats."""
    logits, targets = outputs(model, batch), batch["ids"][:, 1:]
    return F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))


def make_optimizer(model):
    """AdamW as GPT-2's descendants set it."""
    return torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.01)


def train(seed, steps=250):
    """Train a model; give it and its losses."""
    model, generator = make_model(seed), torch.Generator().manual_seed(seed)
    optimizer, losses = make_optimizer(model), []
    model.train()
    for _ in range(steps):
        loss = loss_of(model, batch(generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@torch.no_grad()
def next_token(model, prefix):
    """Scores for the token after `prefix` (B, t): the rest of the window is filled with zeros."""
    model.eval()
    window = F.pad(prefix, (0, BLOCK - prefix.size(1)))
    return model(window)[:, prefix.size(1) - 1]


def write(model, prompt, count):
    """Continue prompts (B, t) greedily, token by token, up to the window."""
    for _ in range(count):
        best = next_token(model, prompt[:, -BLOCK:]).argmax(-1, keepdim=True)
        prompt = torch.cat([prompt, best], dim=1)
    return prompt


def score(model, seed, size=500):
    """Bits per token above the entropy on new sequences, asked one token at a time."""
    ids, bits = batch(torch.Generator().manual_seed(10_000 + seed), size)["ids"], 0.0
    for t in range(1, BLOCK + 1):
        bits += F.cross_entropy(next_token(model, ids[:, :t]), ids[:, t]).item() / math.log(2)
    return bits / BLOCK - entropy()
