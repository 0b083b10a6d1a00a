"""Judge what is drawn at random by how often each outcome comes, not by one seed's draws."""

import math
import random
from collections import Counter

import torch

from tinytf_course.evidence import copied

__all__ = ["by_its_generator", "calling", "drawn", "often", "outcome", "poisson"]

AS_OFTEN = "each outcome comes as often as it should"
RARE = 1e-7  # a right version is told otherwise once in ten million
FEWEST = 8  # outcomes that are expected less often are counted together


def outcome(value):
    """A result as something to count: tuples of numbers for tensors and lists."""
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    return tuple(map(outcome, value)) if isinstance(value, list | tuple) else value


def often(outcomes, chances):
    """Say whether outcomes come as often as their chances {outcome: probability} say, in words.

    It is a chi-square test. What chances leave of 1 belongs to outcomes that are not listed; where
    nothing is left, any other outcome is impossible.
    """
    counts, total = Counter(outcomes), len(outcomes)
    left = max(1 - sum(chances.values()), 0.0)
    for one in counts:
        if one not in chances and left < 1e-9:
            return f"{one} comes, which is impossible"
    cells = {one: (counts[one], total * chance) for one, chance in chances.items()}
    small = [one for one, (_, expected) in cells.items() if expected < FEWEST]
    pooled = [cells.pop(one) for one in small]
    seen, expected = (sum(pair[i] for pair in pooled) for i in (0, 1))
    others = sum(count for one, count in counts.items() if one not in chances)
    if expected + total * left >= FEWEST:
        cells["any other"] = seen + others, expected + total * left
    square = sum((count - wanted) ** 2 / wanted for count, wanted in cells.values())
    freedom = max(len(cells) - 1, 1)
    chance = torch.special.gammaincc(
        torch.tensor(freedom / 2, dtype=torch.float64),
        torch.tensor(square / 2, dtype=torch.float64),
    )
    if chance >= RARE:
        return AS_OFTEN
    worst = max(cells, key=lambda one: (cells[one][0] - cells[one][1]) ** 2 / cells[one][1])
    count, wanted = cells[worst]
    return f"in {total} draws {worst} comes {count} times, and about {wanted:.0f} are expected"


def calling(f, *given, **named):
    """A draw: call f with copies of these arguments and a generator, without watching each call."""
    f = getattr(f, "answer", f)
    return lambda generator: f(*copied(given), generator=generator, **named)


def drawn(draw, chances, times=1200, seed=0):
    """Draw so many times by one generator, and say how often outcomes come."""
    generator = torch.Generator().manual_seed(seed)
    return {"draws": often([outcome(draw(generator)) for _ in range(times)], chances)}


def by_its_generator(draw, times=12):
    """Whether draws depend on the generator, and on nothing else."""

    def several(seed, elsewhere):
        torch.manual_seed(elsewhere)
        random.seed(elsewhere)
        generator = torch.Generator().manual_seed(seed)
        return [outcome(draw(generator)) for _ in range(times)]

    first = several(1, 1)
    return {
        "the same generator draws the same": first == several(1, 2),
        "another draws something else": first != several(2, 1),
        "it goes on from draw to draw": len(set(first)) > 1,
    }


def poisson(mean, count):
    """The probability of `count` under a Poisson distribution."""
    return math.exp(-mean) * mean**count / math.factorial(count)
