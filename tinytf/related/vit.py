"""Images for the encoder: patches in place of tokens (Dosovitskiy et al. 2021)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinytf.blocks import Encoder, EncoderLayer
from tinytf.checks import check_dropout, check_heads, check_sizes
from tinytf.initialisation import xavier
from tinytf.positional import LearnedPositionalEncoding
from tinytf.residual import PreNorm

__all__ = ["ImageClassifier", "ImageConfig", "PatchEmbedding", "split_patches"]


def split_patches(images: Tensor, size: int) -> Tensor:
    """Cut images (B, channels, height, width) into square patches (B, N, channels · size²).

    Patches come in reading order, and so do the numbers of each: by channel, row, column. Raises
    ValueError if `images` has not four axes or if `size` does not divide height and width.
    """
    _check_images(images, size)
    patches = images.unflatten(3, (-1, size)).unflatten(2, (-1, size))  # (B, ch, N_h, s, N_w, s)
    return patches.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


class PatchEmbedding(nn.Module):
    """Embed the patches of an image by a linear layer, `project`: (B, N, C).

    This equals a convolution whose kernel and stride are as long as the patch.
    """

    def __init__(self, d_model: int, size: int, channels: int = 1) -> None:
        super().__init__()
        self.size, self.channels = size, channels
        self.project = nn.Linear(channels * size**2, d_model)

    def forward(self, images: Tensor) -> Tensor:
        """Embed images (B, channels, height, width) as (B, N, C).

        Raises ValueError for another number of channels, and as `split_patches` does.
        """
        if images.dim() == 4 and images.size(1) != self.channels:
            raise ValueError(f"images have {images.size(1)} channels, expected {self.channels}")
        return self.project(split_patches(images, self.size))


@dataclass(frozen=True)
class ImageConfig:
    """The sizes of an `ImageClassifier`; the defaults suit scikit-learn's digits."""

    image_size: int = 8  # images are square
    patch_size: int = 2
    channels: int = 1
    num_classes: int = 10
    d_model: int = 32
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int | None = None  # None: four times d_model
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.d_ff is None:
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        check_sizes(self, "image_size", "patch_size", "channels", "num_classes")
        check_sizes(self, "d_model", "num_heads", "num_layers", "d_ff")
        check_heads(self.d_model, self.num_heads)
        check_dropout(self.dropout)
        if self.image_size % self.patch_size:
            raise ValueError(
                f"image_size={self.image_size} is not divisible by patch_size={self.patch_size}"
            )

    @property
    def num_patches(self) -> int:
        """The number of patches, without the class token."""
        return (self.image_size // self.patch_size) ** 2


class ImageClassifier(nn.Module):
    """Classify images with an `Encoder` over their patches and a class token.

    Pre-LN, exact GELU, learned positions. Linear layers are initialised by `xavier`, the class
    token and the output projection by zeros, and positions by N(0, 0.2²), because the 0.02 of
    larger models would be swamped by patches of so few pixels.
    Source: Dosovitskiy et al. 2021 (ViT), section 3.1.
    """

    def __init__(self, config: ImageConfig) -> None:
        super().__init__()
        c = self.config = config
        sizes = (c.d_model, c.num_heads, c.d_ff, c.dropout, PreNorm, F.gelu)
        self.embedding = PatchEmbedding(c.d_model, c.patch_size, c.channels)
        self.class_token = nn.Parameter(torch.zeros(c.d_model))
        self.positions = LearnedPositionalEncoding(c.d_model, 1 + c.num_patches, c.dropout)
        layers = [EncoderLayer(*sizes) for _ in range(c.num_layers)]
        self.encoder = Encoder(layers, PreNorm.final_norm(c.d_model))
        self.output = nn.Linear(c.d_model, c.num_classes)
        xavier(self)
        nn.init.zeros_(self.output.weight)
        nn.init.normal_(self.positions.table, std=0.2)

    def forward(self, images: Tensor, visible: Tensor | None = None) -> Tensor:
        """Return the logits (B, num_classes) of images (B, channels, height, width).

        `visible`, boolean (B, N), says which patches may be attended to; the class token always
        may.
        Raises ValueError for images of another size, as `PatchEmbedding` does, and for a `visible`
        that is not boolean or of another shape.
        """
        return self.output(self.encode(images, visible)[:, 0])

    def encode(self, images: Tensor, visible: Tensor | None = None) -> Tensor:
        """Return the states (B, 1 + N, C) of the class token and the patches of images."""
        if images.shape[2:] != 2 * (self.config.image_size,):
            raise ValueError(
                f"images must be {self.config.image_size} × {self.config.image_size} pixels, "
                f"got shape {tuple(images.shape)}"
            )
        patches = self.embedding(images)
        first = self.class_token.expand(len(patches), 1, -1)
        x = self.positions(torch.cat([first, patches], dim=1))  # (B, N, C) -> (B, 1 + N, C)
        return self.encoder(x, None if visible is None else self._mask(visible, patches))

    def _mask(self, visible: Tensor, patches: Tensor) -> Tensor:
        """Return the mask of keys that may be attended to: (B, N) -> (B, 1, 1, 1 + N)."""
        if visible.dtype != torch.bool or visible.shape != patches.shape[:2]:
            raise ValueError(
                f"visible must be boolean {tuple(patches.shape[:2])}, "
                f"got {visible.dtype} {tuple(visible.shape)}"
            )
        return F.pad(visible, (1, 0), value=True)[:, None, None]


def _check_images(images: Tensor, size: int) -> None:
    if images.dim() != 4:
        raise ValueError(f"images must be (B, channels, height, width), got {tuple(images.shape)}")
    height, width = images.shape[2:]
    if size < 1 or height % size or width % size:
        raise ValueError(f"patches of {size} × {size} do not tile images of {height} × {width}")
