"""More features than dimensions: a toy model that packs them, and one that takes them apart.

Sources: Elhage et al. 2022, "Toy models of superposition", section 2, and Bricken et al. 2023,
"Towards monosemanticity", for the sparse autoencoder.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf_course.studies.optimise import optimise

__all__ = ["Bottleneck", "SparseAutoencoder", "sparse_features", "train_bottleneck", "train_sparse"]


def sparse_features(
    count: int, features: int, present: float, generator: torch.Generator
) -> Tensor:
    """Draw rows (count, features): each feature is there with a chance, then from 0 to 1."""
    there = torch.rand(count, features, generator=generator) < present
    return torch.rand(count, features, generator=generator) * there


class Bottleneck(nn.Module):
    """Squeeze features into fewer dimensions and read them back: ReLU(x W Wᵀ + b)."""

    def __init__(self, features: int, width: int, seed: int = 0) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(seed)
        start = torch.randn(features, width, generator=draws) / features**0.5
        self.w = nn.Parameter(start)  # a row a feature: its direction
        self.b = nn.Parameter(torch.zeros(features))

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, features) to (N, features)."""
        return F.relu(x @ self.w @ self.w.T + self.b)


def train_bottleneck(
    present: float, features: int = 5, width: int = 2, seed: int = 0, steps: int = 1500
) -> Bottleneck:
    """Train a bottleneck on features that are there with a chance; the first counts most.

    Feature i's error is weighted with 0.9 to the i.
    """
    model, draws = Bottleneck(features, width, seed), torch.Generator().manual_seed(1000 + seed)
    weight = 0.9 ** torch.arange(features)

    def loss(_: int) -> Tensor:
        x = sparse_features(512, features, present, draws)
        return (weight * (model(x) - x).square()).mean()

    optimise(torch.optim.Adam(model.parameters(), lr=1e-2), loss, steps)
    return model


class SparseAutoencoder(nn.Module):
    """Write states as sums of few directions out of many: codes ReLU(x A + a), then codes D + d."""

    def __init__(self, width: int, codes: int, seed: int = 0) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(seed)
        directions = F.normalize(torch.randn(codes, width, generator=draws), dim=-1)
        self.directions = nn.Parameter(directions)
        self.read = nn.Parameter(directions.T.clone())
        self.threshold = nn.Parameter(torch.zeros(codes))
        self.offset = nn.Parameter(torch.zeros(width))

    def codes(self, x: Tensor) -> Tensor:
        """How much of each direction is in x: (N, width) -> (N, codes), none below 0."""
        return F.relu((x - self.offset) @ self.read + self.threshold)

    def forward(self, x: Tensor) -> Tensor:
        """Put x together again from its codes: (N, width) -> (N, width)."""
        return self.codes(x) @ F.normalize(self.directions, dim=-1) + self.offset


def train_sparse(
    states: Tensor, codes: int, penalty: float, seed: int = 0, steps: int = 2000
) -> SparseAutoencoder:
    """Fit a sparse autoencoder: squared error, and `penalty` times the sum of the codes."""
    model = SparseAutoencoder(states.size(1), codes, seed)
    draws = torch.Generator().manual_seed(2000 + seed)

    def loss(_: int) -> Tensor:
        x = states[torch.randint(len(states), (512,), generator=draws)]
        error = (model(x) - x).square().sum(dim=-1).mean()
        return error + penalty * model.codes(x).sum(dim=-1).mean()

    optimise(torch.optim.Adam(model.parameters(), lr=3e-3), loss, steps)
    return model
