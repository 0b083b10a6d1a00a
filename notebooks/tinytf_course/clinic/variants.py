"""Healthy programs that look otherwise: on none of them may a check raise an alarm."""

from tinytf_course.clinic.disguise import disguised
from tinytf_course.clinic.patients import PROGRAMS, healthy
from tinytf_course.exercise_source import edited

__all__ = ["HARMLESS", "variants"]

# Edits that leave a program healthy: what is there once, and what stands there instead.
HARMLESS = {
    "writer": {
        "twice as wide": ("= 12, 8, 8, 32, 1", "= 12, 8, 8, 64, 1"),
        "two layers": ("= 12, 8, 8, 32, 1", "= 12, 8, 8, 32, 2"),
        "four heads": ("= 12, 8, 8, 32, 1", "= 12, 8, 4, 32, 1"),
        "a longer window": ("= 12, 8, 8, 32, 1", "= 12, 10, 8, 32, 1"),
        "more tokens": ("= 12, 8, 8, 32, 1", "= 15, 8, 8, 32, 1"),
        "larger start": ("std=0.02", "std=0.04"),
        "ReLU": ("nn.GELU()", "nn.ReLU()"),
        "plain beta2": ("betas=(0.9, 0.95)", "betas=(0.9, 0.999)"),
        "smaller steps": ("lr=4e-3", "lr=3e-3"),
        "a little dropout": ("dropout=0.0", "dropout=0.02"),
    },
    "translator": {
        "wider": ("dim=48, heads=4", "dim=64, heads=4"),
        "two layers": ("layers=1", "layers=2"),
        "three heads": ("dim=48, heads=4", "dim=48, heads=3"),
        "less dropout": ("dropout=0.1", "dropout=0.05"),
        "GELU": ("nn.ReLU()", "nn.GELU()"),
        "more digits": ("= 0, 1, 2, 13, 6", "= 0, 1, 2, 15, 6"),
        "longer lines": ("= 0, 1, 2, 13, 6", "= 0, 1, 2, 13, 7"),
        "plain beta2": ("betas=(0.9, 0.98)", "betas=(0.9, 0.999)"),
        "smaller steps": ("lr=4e-3", "lr=3e-3"),
        "a longer table": ("longest=64", "longest=128"),
    },
    "reader": {
        "wider": ("dim=32, heads=4", "dim=48, heads=4"),
        "two layers": ("layers=1", "layers=2"),
        "two heads": ("dim=32, heads=4", "dim=32, heads=2"),
        "ReLU": ("nn.GELU()", "nn.ReLU()"),
        "more masks": ("< 0.2", "< 0.3"),
        "more words": ("= 0, 1, 14, 3, 12", "= 0, 1, 18, 3, 12"),
        "longer lines": ("= 0, 1, 14, 3, 12", "= 0, 1, 14, 3, 15"),
        "plain beta2": ("betas=(0.9, 0.98)", "betas=(0.9, 0.999)"),
        "smaller steps": ("lr=3e-3", "lr=2e-3"),
        "no padding row": (", padding_idx=PAD)", ")"),
    },
    "pipeline": {
        "wider": ("dim=32, heads=4", "dim=48, heads=4"),
        "two layers": ("layers=1", "layers=2"),
        "two heads": ("dim=32, heads=4", "dim=32, heads=2"),
        "ReLU": ("nn.GELU()", "nn.ReLU()"),
        "longer warm-up": ("= 16, 2, 20, 8e-3", "= 16, 2, 40, 8e-3"),
        "four parts": ("= 16, 2, 20, 8e-3", "= 8, 4, 20, 8e-3"),
        "a lower peak": ("= 16, 2, 20, 8e-3", "= 16, 2, 20, 5e-3"),
        "smaller start": ("self.embed.weight, std=0.1", "self.embed.weight, std=0.08"),
        "another corpus": ("manual_seed(1), []", "manual_seed(2), []"),
        "plain beta2": ("betas=(0.9, 0.98)", "betas=(0.9, 0.999)"),
    },
    "speaker": {
        "wider": ("dim=32, heads=4", "dim=48, heads=4"),
        "three layers": ("layers=2", "layers=3"),
        "two heads": ("dim=32, heads=4", "dim=32, heads=2"),
        "ReLU": ("nn.GELU()", "nn.ReLU()"),
        "a narrower beam": ("width=5", "width=4"),
        "a wider beam": ("width=5", "width=8"),
        "smaller steps": ("lr=4e-3", "lr=3e-3"),
        "plain beta2": ("betas=(0.9, 0.95)", "betas=(0.9, 0.999)"),
        "more decay": ("betas=(0.9, 0.95))", "betas=(0.9, 0.95), weight_decay=0.05)"),
        "another size of batch": ("size=48", "size=40"),
    },
}


def variants(program: str, count: int = 20) -> list[tuple[str, str]]:
    """Give `count` healthy variants of a program: (what is other, source), each time the same.

    First the ten of `HARMLESS`, then the program disguised, then variants of both kinds at once.
    ValueError if there is no such program.
    """
    plain = healthy(program)
    found = [(what, edited(plain, [edit])) for what, edit in HARMLESS[program].items()]
    seed = 100 * PROGRAMS.index(program)
    while len(found) < count:
        here = len(found)
        if here < 15:
            found.append((f"other names, {here - 9}", disguised(plain, seed + here)))
        else:
            what, text = found[(here - 15) % 10]
            found.append((f"{what}, other names, {here - 14}", disguised(text, seed + here)))
    return found[:count]
