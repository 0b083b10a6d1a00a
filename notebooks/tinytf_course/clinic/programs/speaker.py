"""A small GPT writes with a cache: greedily, by beam search, or by drawing from the top."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, LENGTH, PERIOD, FAITH = 10, 9, 3, 0.95
MEASURE, BETTER = (
    "lines written rightly: greedily, by beam search, by drawing (mean of three)",
    "higher",
)


class Block(nn.Module):
    """Causal attention with a cache, and a feed-forward net."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, cache=None):
        """(B, T, C) and keys, values (B, H, S, D) of what was read -> (B, T, C), the new cache."""
        B, T, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        S = k.size(2)
        seen = torch.ones(T, S, dtype=torch.bool).tril(diagonal=S - T)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).masked_fill(~seen, -1e9)
        y = scores.softmax(dim=-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        return x + self.net(self.norm2(x)), (k, v)


class GPT(nn.Module):
    """Token ids, and the caches of the layers, to scores for the next token."""

    def __init__(self, dim=32, heads=4, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, dim), nn.Embedding(LENGTH, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, VOCAB)

    def forward(self, ids, caches=None):
        """(B, T) -> (B, T, VOCAB) and one cache for each layer."""
        past = 0 if caches is None else caches[0][0].size(2)
        x = self.tokens(ids) + self.places(torch.arange(past, past + ids.size(1)))
        new = []
        for i, block in enumerate(self.blocks):
            x, cache = block(x, None if caches is None else caches[i])
            new.append(cache)
        return self.head(self.norm(x)), new


def make_model(seed):
    """Build the model with weights drawn from `seed`."""
    torch.manual_seed(seed)
    return GPT()


def habits():
    """Give the chances of the first three tokens: P(second | first), P(third | second)."""
    first, token = torch.arange(VOCAB), torch.arange(VOCAB)
    second = torch.full((VOCAB, VOCAB), 0.2 / (VOCAB - 2))
    second[first, 2 * first % VOCAB] = 0.45  # even: the likelier way on, to a crossroads
    second[first, (2 * first + 3) % VOCAB] = 0.35  # odd: the way on, with one road
    third = torch.full((VOCAB, VOCAB), 1 / VOCAB)
    third[1::2] = 0.1 / (VOCAB - 1)
    third[token[1::2], (token[1::2] + 4) % VOCAB] = 0.9
    return second, third


def batch(generator, size=48):
    """Draw lines: three tokens by habit, then each repeats the one three before, mostly."""
    second, third = habits()
    ids = torch.randint(VOCAB, (size, LENGTH), generator=generator)
    ids[:, 1:2] = torch.multinomial(second[ids[:, 0]], 1, generator=generator)
    ids[:, 2:3] = torch.multinomial(third[ids[:, 1]], 1, generator=generator)
    faithful = torch.rand(size, LENGTH, generator=generator) < FAITH
    for t in range(PERIOD, LENGTH):
        ids[:, t] = torch.where(faithful[:, t], ids[:, t - PERIOD], ids[:, t])
    return {"ids": ids}


def outputs(model, batch):
    """Give the scores for the next token at each position: (B, LENGTH - 1, VOCAB)."""
    return model(batch["ids"][:, :-1])[0]


def loss_of(model, batch):
    """Cross-entropy of the next token, in nats."""
    return F.cross_entropy(outputs(model, batch).flatten(0, 1), batch["ids"][:, 1:].flatten())


def make_optimizer(model):
    """AdamW with the usual settings."""
    return torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95))


def train(seed, steps=400):
    """Train a model; give it and its losses."""
    model, generator = make_model(seed), torch.Generator().manual_seed(seed)
    optimizer, losses = make_optimizer(model), []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 4e-3 * min(1, (step + 1) / 30, 2 * (1 - step / steps))
        loss = loss_of(model, batch(generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model.eval(), losses


def read(model, ids):
    """Read ids (B, T) one at a time with a cache: scores (B, T, VOCAB)."""
    caches, scores = None, []
    for t in range(ids.size(1)):
        logits, caches = model(ids[:, t : t + 1], caches)
        scores.append(logits)
    return torch.cat(scores, dim=1)


def top_p(logits, p):
    """Keep the fewest tokens whose chances reach p; the scores of the others fall to -1e9."""
    chances, order = logits.softmax(-1).sort(dim=-1, descending=True)
    before = chances.cumsum(-1) - chances
    drop = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(drop, -1e9)


@torch.no_grad()
def write(model, prompt, p=None, generator=None):
    """Continue prompts (B, t) to LENGTH: greedily, or drawing from the top p."""
    ids, (logits, caches) = prompt, model(prompt)
    while ids.size(1) < LENGTH:
        last = logits[:, -1]
        if p is None:
            new = last.argmax(-1, keepdim=True)
        else:
            new = torch.multinomial(top_p(last, p).softmax(-1), 1, generator=generator)
        ids = torch.cat([ids, new], dim=1)
        logits, caches = model(new, caches) if ids.size(1) < LENGTH else (logits, caches)
    return ids


@torch.no_grad()
def beam(model, prompt, width=5):
    """Continue one prompt (t,) to LENGTH by beam search; give the likeliest line (LENGTH,)."""
    ids = prompt.expand(width, -1)
    logits, caches = model(ids)
    total = torch.full((width,), -1e9)
    total[0] = 0.0  # all hypotheses are the prompt: count it once
    while ids.size(1) < LENGTH:
        chances = total[:, None] + logits[:, -1].log_softmax(-1)
        total, best = chances.flatten().topk(width)
        parent, new = best // VOCAB, best % VOCAB
        ids = torch.cat([ids[parent], new[:, None]], dim=1)
        caches = [(k[parent], v[parent]) for k, v in caches]
        if ids.size(1) < LENGTH:
            logits, caches = model(ids[:, -1:], caches)
    return ids[0]


def likeliest(first):
    """Give the likeliest line that starts with the token `first`."""
    second, third = habits()
    chances = second[first][:, None] * third  # (second, third): the rest repeats them
    best = int(chances.argmax())
    return torch.tensor([first, best // VOCAB, best % VOCAB]).repeat(PERIOD)


def score(model, seed):
    """Share of lines written rightly: greedy and drawn ones repeat themselves, beams are best."""
    generator = torch.Generator().manual_seed(10_000 + seed)
    prompt = batch(generator, 300)["ids"][:, :PERIOD]
    right = prompt.repeat(1, PERIOD)
    greedy = (write(model, prompt) == right).all(1).float().mean()
    drawn = (write(model, prompt, 0.9, generator) == right).all(1).float().mean()
    beams = [(beam(model, torch.tensor([i])) == likeliest(i)).all() for i in range(VOCAB)]
    return ((greedy + drawn + torch.stack(beams).float().mean()) / 3).item()
