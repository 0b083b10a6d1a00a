"""What the tests of GPT share: a text, a small model that writes texts, and prompts."""

import torch

from tinytf.gpt import GPT, GPTConfig

TEXT = "the cat sat on the mat and the dog sat on the log.\n\n" * 40


def decided_gpt(seed, device="cpu", dtype=torch.float64, **changes):
    """A model with opinions, whose texts differ by prompt and position; the same on each device."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "num_layers": 2, "max_len": 12}
    model = GPT(GPTConfig(**sizes | changes)).to(dtype)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.4)
        model.positions.table.mul_(3)
        model.decoder.final_norm.weight.mul_(3)
    return model.to(device)


def prompts(rows, length, device="cpu"):
    return torch.randint(11, (rows, length)).to(device)


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


# of a pretraining that is over in a second
TINY = [
    "--steps", "6", "--warmup", "2", "--batch-size", "2", "--precision", "float32", "--max-len",
    "16", "--d-model", "12", "--num-heads", "3", "--num-layers", "1", "--vocab-size", "280",
]  # fmt: skip
