"""Time a training step of the encoder-decoder against its peers, interleaved in one process.

Run by hand: `python tests/benchmarks/training_step.py [--threads 2] [--rounds 15] [--base]`.
Prints medians, and the ratio of ours to each peer pair by pair (median of the ratios). The Hugging
Face row needs `pip install transformers`, which the course itself does not.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.objective import Batch
from tinytf.seq2seq import Transformer, TransformerConfig
from tinytf.training import Trainer, TrainingConfig

TOY = {"d_model": 128, "num_heads": 4, "num_layers": 2, "batch": 64, "length": 20, "vocab": 300}
BASE = {"d_model": 512, "num_heads": 8, "num_layers": 6, "batch": 8, "length": 64, "vocab": 8000}


class TorchTransformer(nn.Module):
    """`nn.Transformer` with the embeddings and the output of ours, and the masks it needs."""

    def __init__(self, d_model, num_heads, num_layers, vocab, dropout, norm_first=True) -> None:
        super().__init__()
        self.embed_src = nn.Embedding(vocab, d_model)
        self.embed_tgt = nn.Embedding(vocab, d_model)
        self.positions = nn.Parameter(torch.randn(512, d_model), requires_grad=False)
        self.core = nn.Transformer(
            d_model, num_heads, num_layers, num_layers, 4 * d_model, dropout,
            batch_first=True, norm_first=norm_first,
        )  # fmt: skip
        self.output = nn.Linear(d_model, vocab, bias=False)
        self.output.weight = self.embed_tgt.weight

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Ids (B, S) and (B, T) to logits (B, T, V)."""
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
        out = self.core(
            self.embed_src(src) + self.positions[: src.size(1)],
            self.embed_tgt(tgt) + self.positions[: tgt.size(1)],
            tgt_mask=future,
            src_key_padding_mask=src == 0,
            tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=src == 0,
        )
        return self.output(out)


def plain_step(forward: Callable[[], Tensor], model: nn.Module, labels: Tensor):
    """Make a step with AdamW, clipping and cross-entropy, as a good recipe has it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(forward().flatten(0, 1), labels.flatten(), ignore_index=0)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def peers(sizes: dict, dropout: float) -> dict[str, Callable[[], object]]:
    """Build a step of each model at one size, on the same ids."""
    s = sizes
    generator = torch.Generator().manual_seed(0)
    src, tgt, labels = (
        torch.randint(3, s["vocab"], (s["batch"], s["length"]), generator=generator)
        for _ in range(3)
    )
    config = TransformerConfig(
        s["vocab"], s["vocab"], s["d_model"], s["num_heads"], s["num_layers"], 4 * s["d_model"],
        dropout, norm="pre",
    )  # fmt: skip
    steps: dict[str, Callable[[], object]] = {}
    for precision in ("float32", "bfloat16"):
        trainer = Trainer(
            Transformer(config),
            lambda step: Batch(src, tgt, labels),
            TrainingConfig(steps=10**6, precision=precision, label_smoothing=0.0),
        )
        trainer.model.train()
        steps[f"tinytf {precision}"] = in_precision(trainer)
    theirs = TorchTransformer(s["d_model"], s["num_heads"], s["num_layers"], s["vocab"], dropout)
    steps["nn.Transformer"] = plain_step(lambda: theirs(src, tgt), theirs, labels)
    half = TorchTransformer(s["d_model"], s["num_heads"], s["num_layers"], s["vocab"], dropout)

    def half_forward() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return half(src, tgt)

    steps["nn.Transformer bf16"] = plain_step(half_forward, half, labels)
    try:
        from transformers import MarianConfig, MarianMTModel
    except ImportError:
        return steps
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=s["vocab"], d_model=s["d_model"], encoder_layers=s["num_layers"],
            decoder_layers=s["num_layers"], encoder_attention_heads=s["num_heads"],
            decoder_attention_heads=s["num_heads"], encoder_ffn_dim=4 * s["d_model"],
            decoder_ffn_dim=4 * s["d_model"], dropout=dropout, attention_dropout=0.0,
            max_position_embeddings=512, pad_token_id=0, eos_token_id=2,
            decoder_start_token_id=1, activation_function="relu", attn_implementation="sdpa",
        )
    )  # fmt: skip
    marian.train()
    mask = (src != 0).long()
    steps["Hugging Face Marian"] = plain_step(
        lambda: marian(input_ids=src, attention_mask=mask, decoder_input_ids=tgt).logits,
        marian,
        labels,
    )
    return steps


def in_precision(trainer: Trainer) -> Callable[[], object]:
    """Make one step of a trainer inside what `run` sets up once for all steps."""

    def step() -> None:
        with trainer._precision():
            trainer._train_step()
            trainer.step += 1

    return step


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--base", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    steps = peers(BASE if options.base else TOY, options.dropout)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(options.rounds + 3):
        for name, step in steps.items():
            begin = time.perf_counter()
            step()
            if i >= 3:  # the first rounds warm up
                times[name].append(time.perf_counter() - begin)
    for name, t in times.items():
        ratios = "  ".join(
            f"/{peer} {statistics.median(a / b for a, b in zip(t, times[peer], strict=True)):.2f}"
            for peer in times
            if not peer.startswith("tinytf")
        )
        print(f"{name:22} {1000 * statistics.median(t):7.1f} ms   {ratios}")


if __name__ == "__main__":
    main()
