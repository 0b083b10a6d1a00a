"""Time a training step of GPT against its peers, interleaved in one process.

Run by hand: `python tests/benchmarks/gpt_training_step.py [--threads 2] [--rounds 9] [--small]`.
Sizes: width 192, 6 heads, 6 layers, vocabulary 4096, 16 texts of 256; with --small GPT-2 small and
one text of 256. All begin with the same weights and the same batch, and the first loss must be the
same. Prints medians, and the ratio of each to each peer (median of the ratios, round by round).
"reference" is the shape of nanoGPT written plainly. --cpu counts the processor's time instead of
the clock's, for a machine that is busy (then use one thread). The Hugging Face row needs `pip
install transformers`, which the course itself does not.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf import gpt2_weights
from tinytf.gpt import GPT, GPTConfig
from tinytf.objective import TextBatch, next_token_loss
from tinytf.training import Trainer, TrainingConfig

SIZES = {False: (GPTConfig(4096, 192, 6, 6, max_len=256), 16), True: (GPTConfig(), 1)}
LENGTH = 256
RECIPE = {"lr": 1e-4, "weight_decay": 0.01, "betas": (0.9, 0.98), "eps": 1e-9}


class Layer(nn.Module):
    """Attention with joined projections and the causal kernel, then a feed-forward with GELU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(c, dim=2)
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Reference(nn.Module):
    """What nanoGPT has: learned positions, pre-norm layers, a head that is the embedding."""

    def __init__(self, model: GPT) -> None:
        super().__init__()
        c = model.config
        self.wte = nn.Embedding(c.vocab_size, c.d_model)
        self.wpe = nn.Embedding(c.max_len, c.d_model)
        self.layers = nn.ModuleList(Layer(c.d_model, c.num_heads) for _ in range(c.num_layers))
        self.ln_f = nn.LayerNorm(c.d_model)
        self.head = nn.Linear(c.d_model, c.vocab_size, bias=False)
        self.head.weight = self.wte.weight
        self.load(model)

    def load(self, model: GPT) -> None:
        """Take a model's weights."""
        self.wte.load_state_dict(model.embedding.state_dict())
        self.wpe.load_state_dict({"weight": model.positions.table.detach()})
        self.ln_f.load_state_dict(model.decoder.final_norm.state_dict())
        for mine, layer in zip(self.layers, model.decoder.layers, strict=True):
            a, f = layer.self_attention, layer.feed_forward
            joined = [m.state_dict() for m in (a.w_q, a.w_k, a.w_v)]
            mine.qkv.load_state_dict({n: torch.cat([j[n] for j in joined]) for n in joined[0]})
            for one, other in (
                (mine.ln_1, layer.residual_1.norm), (mine.proj, a.w_o),
                (mine.ln_2, layer.residual_2.norm), (mine.up, f.w_1), (mine.down, f.w_2),
            ):  # fmt: skip
                one.load_state_dict(other.state_dict())

    def forward(self, ids: Tensor) -> Tensor:
        """Ids (B, T) to logits (B, T, V)."""
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln_f(x))


def plain_step(
    model: nn.Module, forward: Callable[[Tensor], Tensor], batch: TextBatch
) -> Callable[[], float]:
    """Make a step with the recipe of ours, which returns its loss."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1]},
        {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, **RECIPE, fused=True)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(forward(batch.ids_in).flatten(0, 1), batch.ids_out.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def our_step(model: GPT, batch: TextBatch) -> Callable[[], float]:
    """Make a step of the trainer itself."""
    config = TrainingConfig(
        steps=10**6, warmup=1, schedule="constant", label_smoothing=0.0, clip=1.0, **RECIPE
    )
    trainer = Trainer(model, lambda step: batch, config, objective=next_token_loss)
    model.train()

    def step() -> float:
        loss, tokens, _ = trainer._train_step()
        trainer.step += 1
        return loss / tokens

    return step


def peers(small: bool) -> dict[str, Callable[[], float]]:
    """Build a step of each model, from the same weights and on the same ids."""
    config, batch_size = SIZES[small]
    model = GPT(config)
    ids = torch.randint(config.vocab_size, (batch_size, LENGTH + 1))
    batch = TextBatch(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
    reference = Reference(model)
    steps = {"reference": plain_step(reference, reference, batch)}
    try:
        from transformers import GPT2Config, GPT2LMHeadModel

        zero = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "use_cache": False}
        theirs = GPT2LMHeadModel(GPT2Config(**gpt2_weights.to_config(config) | zero)).train()
        theirs.load_state_dict(gpt2_weights.to_state(model), strict=False)
        theirs.tie_weights()
        steps["Hugging Face"] = plain_step(theirs, lambda ids: theirs(ids).logits, batch)
    except ImportError:
        pass
    return {"tinytf": our_step(model, batch)} | steps


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    clock = time.process_time if options.cpu else time.perf_counter
    steps = peers(options.small)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(options.rounds + 2):
        losses = {}
        names = [*steps][i % len(steps) :] + [*steps][: i % len(steps)]  # each is first in turn
        for name in names:
            begin = clock()
            losses[name] = steps[name]()
            if i >= 2:  # the first rounds warm up
                times[name].append(clock() - begin)
        for name, loss in losses.items():  # the same at first; the same but for rounding later
            limit = 1e-6 if i == 0 else 1e-3
            assert math.isclose(loss, losses["tinytf"], rel_tol=limit), (i, name, losses)
    for name, t in times.items():
        ratios = "  ".join(
            f"/{peer} {statistics.median(a / b for a, b in zip(t, times[peer], strict=True)):.3f}"
            for peer in times
            if peer != "tinytf"
        )
        print(f"{name:14} {1000 * statistics.median(t):8.1f} ms   {ratios}")


if __name__ == "__main__":
    main()
