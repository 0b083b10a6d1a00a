"""Chapter 14c: patches made into an image again, and which of them an answer needs."""

import torch

from tinytf.course.expect import expect, same, tensor
from tinytf.course.grading import Exercise, reference
from tinytf.related.vit import ImageClassifier, ImageConfig, split_patches
from tinytf.support.randomness import seeded

# 14c.2 the image again


def my_join_patches(patches, size, shape):
    """Put patches together again: (B, N, channels · size²) -> images (B, channels, height, width).

    The inverse of `split_patches(images, size)`: patches come in reading order, the numbers of each
    by channel, then row, then column. `shape` is (channels, height, width).
    """
    raise NotImplementedError


_WHERE = "for six patches of 2 × 2, patch n filled with n, and shape=(1, 4, 6)"


def _numbered():
    return torch.arange(6.0)[None, :, None].repeat(1, 1, 4)


def _shape(answer):
    """the images have the shape asked for"""
    got = tensor(answer(torch.zeros(2, 6, 12), 2, (3, 4, 6)), "the answer")
    expect(
        got.shape == (2, 3, 4, 6),
        f"for patches (2, 6, 12), size=2, shape=(3, 4, 6), the shape is {tuple(got.shape)}, "
        "expected (2, 3, 4, 6)",
    )


def _lines(answer):
    """a line of pixels runs through neighbouring patches"""
    got = tensor(answer(_numbered(), 2, (1, 4, 6)), _WHERE)
    expect(got.shape == (1, 1, 4, 6), f"{_WHERE}, the shape is {tuple(got.shape)}")
    for row, patches in ((1, "0, 1 and 2"), (2, "3, 4 and 5")):
        first = 3.0 * (row - 1)
        line = [first, first, first + 1, first + 1, first + 2, first + 2]
        note = f"It runs through patches {patches}."
        same(got[0, 0, row], line, f"{_WHERE}, line {row}", note=note)


def _inside(answer):
    """the pixels of a patch come in reading order"""
    patches = _numbered() * 10 + torch.arange(4.0)
    got = tensor(answer(patches, 2, (1, 4, 6)), "for patches that count their pixels")
    expect(got.dim() == 4, f"for patches that count their pixels, the shape is {tuple(got.shape)}")
    note = "In patch 0, pixel 1 stands to the right of pixel 0, pixel 2 below it."
    where = "for a patch [0, 1, 2, 3] in the corner, the corner"
    same(got[0, 0, :2, :2], [[0.0, 1], [2, 3]], where, note=note)


def _channels(answer):
    """the channels of a patch are taken apart"""
    patches = torch.arange(32.0).view(1, 4, 8)
    got = tensor(answer(patches, 2, (2, 4, 4)), "for two channels")
    expect(got.shape == (1, 2, 4, 4), f"for two channels, the shape is {tuple(got.shape)}")
    note = "Of its eight numbers the first four are channel 0."
    expected = [[[0.0, 1], [2, 3]], [[4, 5], [6, 7]]]
    same(got[0, :, :2, :2], expected, "for two channels, patch 0", note=note)


def _back(answer):
    """images cut up and joined are as they were"""
    with seeded(3):
        images = torch.randn(3, 2, 6, 4)
    got = answer(split_patches(images, 2), 2, (2, 6, 4))
    same(got, images, "for a batch of 3 images (2, 6, 4) cut up with size=2")


PATCHES = Exercise(
    id="14c.2",
    title="the image again",
    difficulty=2,
    minutes=12,
    statement=(
        "`split_patches` cuts images up. Write its inverse with reshapes and permutes: "
        "`my_join_patches(patches, size, shape)`, where `shape` is `(channels, height, width)`, "
        "so that `my_join_patches(split_patches(images, 2), 2, images.shape[1:])` is `images`."
    ),
    hint=(
        "Give patches six axes first: (B, down, across, channels, size, size). A line of the image "
        "runs through a row of patches: which two axes make up its height, which its width?"
    ),
    function=my_join_patches,
    tests=(_shape, _lines, _inside, _channels, _back),
)


# 14c.3 what does the answer need?


def my_occlusion(model, image, num_patches):
    """How much the model's answer needs each patch of an image (1, height, width): (N,), in nats.

    `model(images, visible)` scores classes, (B, classes), for images (B, 1, height, width);
    `visible`, boolean (B, N), says which patches it may read. The answer is the class it scores
    highest when it reads them all; N is `num_patches`.
    """
    raise NotImplementedError


# What each of four patches says for two classes: for the first, for the second, for both, nothing.
_EVIDENCE = torch.tensor([[2.0, 0], [0, 1], [3, 3], [0, 0]])
_TALK = (
    "a model that adds up what its four patches say: [2, 0] for the two classes, [0, 1], [3, 3] "
    "and [0, 0]"
)


def _talking(images, visible=None):
    """A model whose scores are what the visible patches say, whatever the image."""
    if visible is None:
        visible = torch.ones(len(images), 4, dtype=torch.bool)
    expect(
        images.dim() == 4 and visible.shape == (len(images), 4) and visible.dtype == torch.bool,
        f"the model gets images {tuple(images.shape)} and visible {tuple(visible.shape)} "
        f"{visible.dtype}, expected (B, 1, 4, 4) and a boolean (B, 4)",
    )
    return visible.float() @ _EVIDENCE


def _seeing(classes=3):
    """A small image classifier whose weights hide nothing, and an image."""
    with seeded(5):
        sizes = {"image_size": 6, "d_model": 8, "num_heads": 2, "num_layers": 1}
        model = ImageClassifier(ImageConfig(num_classes=classes, **sizes)).eval()
        for p in model.parameters():
            torch.nn.init.normal_(p, std=0.7)
        return model, torch.randn(1, 6, 6)


def _needs(answer):
    got = tensor(answer(_talking, torch.zeros(1, 4, 4), 4), f"for {_TALK}")
    expect(
        got.shape == (4,), f"for 4 patches, the shape is {tuple(got.shape)}, expected (4,): N falls"
    )
    return got


def _needed(answer):
    """a patch that speaks for the answer is missed"""
    note = "With all, the answer is class 0. Without patch 0 its log-probability is 1 nat less."
    same(_needs(answer)[0], 1.0, f"for {_TALK}, for patch 0", note=note)


def _in_the_way(answer):
    """a patch that speaks against the answer is missed less than nothing"""
    expected = reference("14c.3")(_talking, torch.zeros(1, 4, 4), 4)[1]
    note = "It speaks for the other class: without it the answer gains."
    same(_needs(answer)[1], expected, f"for {_TALK}, for patch 1", note=note)


def _no_matter(answer):
    """a patch that speaks for all classes alike is not missed"""
    note = "Both classes lose 3, and no probability changes."
    same(_needs(answer)[2], 0.0, f"for {_TALK}, for patch 2", note=note)
    same(_needs(answer)[3], 0.0, f"for {_TALK}, for patch 3", note="It says nothing.")


def _real(answer):
    """a classifier of three classes, patch by patch"""
    model, image = _seeing()
    got = tensor(answer(model, image, 9), "for a classifier of 3 × 3 patches")
    expected = reference("14c.3")(model, image, 9)
    note = "Hidden is not painted over: a patch of any colour can still be read."
    same(got, expected, "for an ImageClassifier of 3 × 3 patches", tolerance=1e-4, note=note)


OCCLUSION = Exercise(
    id="14c.3",
    title="what does the answer need?",
    difficulty=2,
    minutes=12,
    statement=(
        "Attention says where a model looks. Ask instead what its answer needs. Write "
        "`my_occlusion(model, image, num_patches)`: for each patch, how much the log-probability "
        "of the model's answer falls when that patch alone is hidden. Hide it with the model's "
        "second argument: `model(images, visible)`, `visible` boolean `(B, N)`."
    ),
    hint=(
        "One batch does it: the same image N times, and a `visible` that is false on its diagonal. "
        "Take the answer from a run in which nothing is hidden, and keep to that class."
    ),
    function=my_occlusion,
    tests=(_needed, _in_the_way, _no_matter, _real),
)


EXERCISES = (PATCHES, OCCLUSION)
