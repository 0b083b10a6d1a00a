"""Images: an encoder, a CNN and others on the digits; training, shuffling, looking inside."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.inspect import record
from tinytf.related.vit import ImageClassifier, ImageConfig, split_patches
from tinytf.support.modes import evaluation_mode
from tinytf.support.randomness import seeded
from tinytf_course.lessons.digits import PAPER, Digits, shift
from tinytf_course.studies.optimise import optimise

STEPS = {False: 400, True: 1500}  # without and with shifts; `longer` has four times as many
BATCH = 32
SIZES = (20, 80, 320, 1280)  # examples


# The models: about 26,500 parameters each


class NoPositions(ImageClassifier):
    """The encoder with nothing that says where a patch was."""

    def __init__(self, config: ImageConfig) -> None:
        super().__init__(config)
        nn.init.zeros_(self.positions.table)
        self.positions.table.requires_grad_(False)


def encoder() -> nn.Module:
    """Make chapter 12's encoder over 16 patches of 2 × 2 pixels."""
    return ImageClassifier(ImageConfig())


def convolutional() -> nn.Module:
    """Make a small CNN: three convolutions of 3 × 3, the map halved twice, one linear map."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 65, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * 65, 10),
    )  # fmt: skip


def perceptron() -> nn.Module:
    """Make a network of two hidden layers on the pixels in a row."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 129), nn.ReLU(), nn.Linear(129, 129), nn.ReLU(),
        nn.Linear(129, 10),
    )  # fmt: skip


MODELS: dict[str, Callable[[], nn.Module]] = {
    "encoder": encoder,
    "CNN": convolutional,
    "MLP": perceptron,
    "encoder, no positions": lambda: NoPositions(ImageConfig()),
}
# The best by `digits_rates` (the lower loss where two are equal): without shifts, with shifts.
LEARNING_RATE: dict[str, tuple[float, float]] = {
    "encoder": (8e-3, 4e-3),
    "CNN": (8e-3, 8e-3),
    "MLP": (4e-3, 8e-3),
    "encoder, no positions": (8e-3, 4e-3),  # the encoder's
}


# Training


class Trained(NamedTuple):
    """A model with what its training and its test gave."""

    model: nn.Module
    accuracy: float  # of the test images
    loss: float  # nats, mean of the last fifty training batches


def train(
    name: str,
    data: Digits,
    test: Digits,
    *,
    shifts: bool = False,
    seed: int = 0,
    lr: float | None = None,
    steps: int | None = None,
    order: Tensor | None = None,
    device: str | torch.device = "cpu",
) -> Trained:
    """Train a model of `MODELS` with AdamW on batches of 32, and test it.

    With shifts, each image is moved by up to a pixel each time it is met; with an `order`, the
    patches of all images are then put into it, in the test too. The learning rate rises over a
    tenth of the steps and falls as a cosine. Raises KeyError for an unknown model.
    """
    steps = steps or STEPS[shifts]
    lr = lr or LEARNING_RATE[name][shifts]
    draws = torch.Generator().manual_seed(seed)
    with seeded(seed):
        model = MODELS[name]().train()
    model = (model if order is None else Shuffled(model, order)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.05, fused=True)
    batches = _batches(len(data.labels), steps, draws)

    def loss(_: int) -> Tensor:
        rows = next(batches)
        images, labels = data.images[rows], data.labels[rows]
        images = shift(images, draws) if shifts else images
        return F.cross_entropy(model(images.to(device)), labels.to(device))

    losses = optimise(optimizer, loss, steps, lambda step: lr * _share(step, steps))
    return Trained(model, accuracy(model, test), losses[-50:].mean().item())


def _share(step: int, steps: int) -> float:
    """What part of the learning rate this step has, counted from 1."""
    rise = step / max(1, steps // 10)
    return min(rise, (1 + math.cos(math.pi * (step - 1) / steps)) / 2)


def _batches(size: int, steps: int, draws: torch.Generator) -> Iterator[Tensor]:
    """Rows for each step; every image is met once before any is met again."""
    rows = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        while len(rows) < min(BATCH, size):
            rows = torch.cat([rows, torch.randperm(size, generator=draws)])
        yield rows[:BATCH]
        rows = rows[BATCH:]


@torch.no_grad()
def accuracy(model: nn.Module, test: Digits, visible: Tensor | None = None) -> float:
    """Give the share of test images put into the right class."""
    device = next(model.parameters()).device
    more = [] if visible is None else [visible.to(device)]
    with evaluation_mode(model):
        guesses = model(test.images.to(device), *more).argmax(dim=-1)
    return (guesses == test.labels.to(device)).float().mean().item()


# Without training


def nearest(data: Digits, test: Digits, shifts: bool = False) -> float:
    """Give the accuracy of the label of the nearest training image, by Euclidean distance.

    With shifts, each training image is there nine times: moved by up to a pixel each way.
    """
    images, labels = data.images, data.labels
    if shifts:
        images, labels = _all_shifts(images), labels.repeat(9)
    distance = torch.cdist(test.images.flatten(1), images.flatten(1))
    return (labels[distance.argmin(dim=1)] == test.labels).float().mean().item()


def _all_shifts(images: Tensor) -> Tensor:
    padded = F.pad(images, (1, 1, 1, 1), value=PAPER)
    height, width = images.shape[2:]
    moved = [padded[:, :, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return torch.cat(moved)


def logistic(data: Digits, test: Digits) -> float:
    """Give the accuracy of scikit-learn's logistic regression, its regularisation as it comes."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(max_iter=5000).fit(data.images.flatten(1).numpy(), data.labels)
    return float(fitted.score(test.images.flatten(1).numpy(), test.labels))


# Shuffling


def patch_order(seed: int) -> Tensor:
    """Draw an order of the 16 patches, the same for all images of a seed."""
    return torch.randperm(16, generator=torch.Generator().manual_seed(seed))


def shuffled(images: Tensor, order: Tensor, size: int = 2) -> Tensor:
    """Move the patches of images (B, 1, S, S): what was patch order[i] stands at place i."""
    side = images.size(-1) // size
    patches = split_patches(images, size)[:, order].unflatten(2, (size, size))
    grid = patches.unflatten(1, (side, side))  # (B, side, side, size, size)
    return grid.transpose(2, 3).reshape(images.shape)


class Shuffled(nn.Module):
    """A model behind a fixed shuffle of the patches, so that shifts still move whole images."""

    def __init__(self, model: nn.Module, order: Tensor) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("order", order)

    def forward(self, images: Tensor) -> Tensor:
        """Classify images (B, 1, S, S) whose patches are moved first."""
        return self.model(shuffled(images, self.order))


# Looking inside


@torch.no_grad()
def class_attention(model: ImageClassifier, images: Tensor) -> Tensor:
    """Say how much the class token looks at each patch: (B, layers, H, N)."""
    with evaluation_mode(model), record(model) as seen:
        model(images)
    return torch.stack([weights[:, :, 0, 1:] for weights in seen.values()], dim=1)


def position_similarity(model: ImageClassifier) -> Tensor:
    """Cosines between the learned positions of the patches, less their mean: (N, N)."""
    table = model.positions.table[1:].detach()
    unit = F.normalize(table - table.mean(dim=0), dim=-1)
    return unit @ unit.T


def neighbours(side: int = 4) -> Tensor:
    """Which patches of a square grid share an edge: boolean (N, N)."""
    at = torch.cartesian_prod(torch.arange(side), torch.arange(side))
    return (at[:, None] - at[None]).abs().sum(dim=-1) == 1


def nearness(similarity: Tensor) -> float:
    """Mean cosine of patches that share an edge, less the mean of all other pairs."""
    near = neighbours(math.isqrt(len(similarity))).to(similarity.device)
    far = ~near & ~torch.eye(len(near), dtype=torch.bool, device=near.device)
    return (similarity[near].mean() - similarity[far].mean()).item()


def hide(scores: Tensor, count: int) -> Tensor:
    """Make `visible` (B, N) that leaves out the `count` patches of highest score in each image."""
    worst = scores.topk(count, dim=1).indices
    return torch.ones_like(scores, dtype=torch.bool).scatter(1, worst, False)


@torch.no_grad()
def missed(model: ImageClassifier, images: Tensor) -> Tensor:
    """Say how much the model's answer needs each patch: (B, N).

    It is what the log-probability of that answer loses when the patch alone is hidden, in nats.
    """
    number = model.config.num_patches
    with evaluation_mode(model):
        whole = model(images).log_softmax(dim=-1)
        given, lost = whole.argmax(dim=-1, keepdim=True), []
        for patch in range(number):
            visible = torch.ones(len(images), number, dtype=torch.bool, device=images.device)
            visible[:, patch] = False
            without = model(images, visible).log_softmax(dim=-1)
            lost.append((whole - without).gather(1, given))
    return torch.cat(lost, dim=1)


def occlusions(model: ImageClassifier, test: Digits, count: int = 4, seed: int = 0) -> dict:
    """Hide `count` patches of each image, chosen in several ways, and give the accuracies."""
    device = model.class_token.device
    images = test.images.to(device)
    maps = class_attention(model, images).mean(dim=2)  # (B, layers, N), mean of the heads
    looks, both = maps[:, -1], maps.mean(dim=1)
    ink = split_patches(images, model.config.patch_size).sum(dim=-1)
    draws = torch.Generator().manual_seed(seed)
    chance = [torch.rand(looks.shape, generator=draws).to(device) for _ in range(10)]
    guesses = [accuracy(model, test, hide(scores, count)) for scores in chance]
    return {
        "nothing hidden": accuracy(model, test),
        "least ink": accuracy(model, test, hide(-ink, count)),
        "least attention, last layer": accuracy(model, test, hide(-looks, count)),
        "at random": sum(guesses) / len(guesses),
        "most attention, last layer": accuracy(model, test, hide(looks, count)),
        "most attention, all layers": accuracy(model, test, hide(both, count)),
        "most ink": accuracy(model, test, hide(ink, count)),
        "occlusion": accuracy(model, test, hide(missed(model, images), count)),
    }
