"""Chapter 25: patches made into an image again, and which of them an answer needs."""

import torch

from tinytf.related.vit import ImageClassifier, ImageConfig, split_patches
from tinytf.support.randomness import seeded
from tinytf_course.expect import (
    Mismatch,
    agrees,
    expect,
    gradients,
    numbers,
    precise,
    same,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import short

# 25.1 the image again


def my_join_patches(patches, size, shape):
    """Join patches (B, N, channels · size²) to images (B, channels, height, width).

    The inverse of `split_patches(images, size)`: patches come in reading order, the numbers of each
    by channel, then row, then column. `shape` is (channels, height, width), and the images keep
    the patches' dtype and device.
    """
    raise NotImplementedError


_WHERE = "for six patches of 2 × 2, patch n filled with n, and shape=(1, 4, 6)"


def _pixel_by_pixel(patches, size, shape):
    """Each number of each patch to its pixel."""
    images = patches.new_zeros(len(patches), *shape)
    across = shape[2] // size
    for n in range(patches.size(1)):
        numbers_left = iter(patches[:, n].unbind(-1))
        for channel in range(shape[0]):
            for row in range(size):
                for column in range(size):
                    at = n // across * size + row, n % across * size + column
                    images[:, channel, at[0], at[1]] = next(numbers_left)
    return images


def _numbered():
    return torch.arange(6.0)[None, :, None].repeat(1, 1, 4)


def _shape(answer):
    """the images have the right shape"""
    got = tensor(answer(torch.zeros(2, 6, 12), 2, (3, 4, 6)), "the answer")
    where = "for patches (2, 6, 12), size=2, shape=(3, 4, 6)"
    message = f"{where}, the shape is {tuple(got.shape)}, expected (2, 3, 4, 6)"
    expect(got.shape == (2, 3, 4, 6), message)


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
    note = "Pixel 1 is to the right of pixel 0, pixel 2 below it."
    where = "for one patch [0, 1, 2, 3], size=2, shape=(1, 2, 2)"
    agrees(answer, _pixel_by_pixel, torch.arange(4.0)[None, None], 2, (1, 2, 2), note=note,
           where=where)  # fmt: skip


def _channels(answer):
    """the channels of a patch are separated"""
    note = "Of its eight numbers the first four are channel 0."
    where = "for one patch [0, 1, … 7], size=2, shape=(2, 2, 2)"
    agrees(answer, _pixel_by_pixel, torch.arange(8.0)[None, None], 2, (2, 2, 2), note=note,
           where=where)  # fmt: skip
    agrees(answer, _pixel_by_pixel, torch.arange(6.0).view(1, 2, 3), 1, (3, 1, 2),
           note="Patches of one pixel: its numbers are the channels.")  # fmt: skip


def _batch(answer):
    """each image has its own patches"""
    note = "The first image is all 1, the second all 2."
    patches = torch.tensor([1.0, 2.0])[:, None, None].expand(2, 2, 1)
    agrees(answer, _pixel_by_pixel, patches, 1, (1, 1, 2), note=note)
    where = "for a batch of 3 images (2, 6, 4) split with size=2"
    images = numbers(3, 2, 6, 4, seed=3)
    same(answer(split_patches(images, 2), 2, (2, 6, 4)), images, where)


def _any_sizes(answer):
    """patches of any size, and any number of them each way"""
    for size, shape in ((3, (2, 6, 15)), (2, (3, 8, 2)), (4, (1, 4, 12)), (1, (5, 3, 2))):
        count = shape[1] * shape[2] // size**2
        patches = numbers(2, count, shape[0] * size**2, seed=size)
        agrees(answer, _pixel_by_pixel, patches, size, shape)


def _joined_kinds(answer):
    """pixels keep their dtype and device, and gradients reach the patches"""
    bytes_ = torch.arange(36, dtype=torch.uint8).view(1, 4, 9)
    agrees(answer, _pixel_by_pixel, bytes_, 3, (1, 6, 6), note="Bytes, as in image files.")
    whole = torch.tensor([[[2**24 + 1], [2**53 + 1]]])
    where = "for patches=[[[2²⁴ + 1], [2⁵³ + 1]]] (int64), size=1, shape=(1, 1, 2)"
    got = agrees(answer, _pixel_by_pixel, whole, 1, (1, 1, 2), where=where)
    apart = [int(one - other) for one, other in zip(got.flatten(), whole.flatten(), strict=True)]
    expect(apart == [0, 0], f"{where}, the pixels are off by {apart}: no float on the way")
    fine = numbers(2, 6, 12, seed=5, dtype=torch.float64)
    precise(answer, _pixel_by_pixel, fine, 2, (3, 4, 6), dtype=torch.float64)
    gradients(answer, _pixel_by_pixel, numbers(2, 6, 12, seed=6), 2, (3, 4, 6))
    travels(answer, numbers(2, 6, 12, seed=6), 2, (3, 4, 6))


PATCHES = Exercise(
    id="25.1",
    title="the image again",
    difficulty=2,
    minutes=12,
    statement=(
        "Write the inverse of `split_patches` by reshaping and permuting axes: "
        "`my_join_patches(patches, size, shape)`, where `shape` is `(channels, height, width)`. "
        "For any images whose sides are divisible by `size`, "
        "`my_join_patches(split_patches(images, size), size, images.shape[1:])` equals `images`."
    ),
    hint=(
        "Give the patches six axes first: (B, down, across, channels, size, size). A line of the "
        "image runs through a row of patches. Which two axes make up its height, and which two its "
        "width?"
    ),
    function=my_join_patches,
    tests=(_shape, _lines, _inside, _channels, _batch, _any_sizes, _joined_kinds),
)


# 25.2 what does the answer need?


def my_occlusion(model, image, num_patches):
    """Return how much the model's prediction needs each patch of an image: (N,), in nats.

    `image` is (1, height, width), and N is `num_patches`. `model(images, visible)` returns logits
    (B, classes) for images (B, 1, height, width); `visible`, boolean (B, N) and on the images'
    device, says which patches it may read. The prediction is the class with the highest logit
    when all patches are visible.
    """
    raise NotImplementedError


class Adding:
    """A model that adds up its visible patches' logits, (N, classes), times a pixel of each."""

    def __init__(self, says, name=""):
        self.says, self.name = torch.as_tensor(says), name

    def __call__(self, images, visible=None):
        """Score the classes; a patch is a pixel of an image one pixel high."""
        batch, patches = len(images), len(self.says)
        if visible is None:
            visible = torch.ones(batch, patches, dtype=torch.bool)
        shapes = images.shape == (batch, 1, 1, patches) and visible.shape == (batch, patches)
        kind = str(visible.dtype).removeprefix("torch.")
        expect(
            shapes and visible.dtype == torch.bool,
            f"the model gets images {tuple(images.shape)} and visible {tuple(visible.shape)} "
            f"({kind}), expected (B, 1, 1, {patches}) and a boolean (B, {patches})",
        )
        return (visible * images[:, 0, 0]).to(self.says.dtype) @ self.says


def _one_by_one(model, image, num_patches):
    """Patch by patch, a run of the model each, in float64."""
    nothing_hidden = torch.ones(1, num_patches, dtype=torch.bool)
    whole = model(image[None], nothing_hidden)[0].double()
    answer, falls = int(whole.argmax()), []
    for patch in range(num_patches):
        visible = nothing_hidden.clone()
        visible[0, patch] = False
        scores = model(image[None], visible)[0].double()
        log_p = [x[answer] - torch.logsumexp(x, 0) for x in (whole, scores)]
        falls.append(log_p[0] - log_p[1])
    return torch.stack(falls)


def _falls(answer, says, note="", pixels=None, where="", tolerance=1e-5):
    """Expect the right answer for a model whose patches contribute these logits."""
    says = torch.as_tensor(says)
    image = torch.ones(1, 1, len(says)) if pixels is None else torch.tensor([[pixels]])
    where = where or f"for a model that adds up its patches' logits {short(says)}"
    expected = _one_by_one(Adding(says), image, len(says))
    got = tensor(answer(Adding(says), image, len(says)), where)
    same(got.double(), expected, where, tolerance, note)


def _needed(answer):
    """hiding a patch in favour of the prediction lowers its log-probability"""
    note = "Without patch 0 the log-probability of class 1, the prediction, falls by 1 nat."
    _falls(answer, [[0.0, 2.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], note)
    _falls(answer, [[3.0, 0.0]], "Without its only patch both classes are equally likely.")


def _in_the_way(answer):
    """hiding a patch against the prediction raises its log-probability"""
    note = "Patch 0 favours class 1: without it the prediction, class 0, gains."
    _falls(answer, [[0.0, 3.0], [4.0, 0.0]], note)


def _no_matter(answer):
    """a patch that favours no class makes no difference"""
    note = "Without patch 1 both classes lose 3, and no probability changes; patch 2 adds nothing."
    _falls(answer, [[2.0, 0.0], [3.0, 3.0], [0.0, 0.0]], note)


def _any_class(answer):
    """the prediction is the class that wins when nothing is hidden, whichever it is"""
    note = "The prediction is class 2."
    _falls(answer, [[0.0, 1.0, 2.0], [1.0, 0.0, 1.5]], note)
    note = "The prediction is class 1 with all, and class 0 without patch 1. Keep to class 1."
    _falls(answer, [[2.0, 0.0], [0.0, 3.0]], note)
    note = "The prediction is class 1 with all, and class 0 without patch 0. Keep to class 1."
    _falls(answer, [[0.0, 2.0], [0.0, 2.0], [3.0, 0.0]], note)
    note = "The logits are -4 and -2, so the prediction is class 1."
    _falls(answer, [[-4.0, -1.0], [0.0, -1.0]], note)


def _this_image(answer):
    """the result depends on this image"""
    note = "Patch 1 has a pixel of 3, so its logits count three times."
    where = "for a model that adds up pixel times [1, 0], [0, 1], [1, 0], and pixels 1, 3, 1"
    _falls(answer, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], note, [1.0, 3.0, 1.0], where)


@hint("Probabilities of 0 and 1 have lost what a log-probability still contains.")
def _very_sure(answer):
    """for a model that is very certain, no log-probability is infinite"""
    note = "Without patch 0 the log-probability of class 0 falls from 0 to -150: "
    note += "probabilities that are 0 have no logarithm."
    _falls(answer, [[250.0, 0.0], [0.0, 150.0]], note, tolerance=1e-4)


def _seeing(image_size=6, **changes):
    """A small image classifier whose weights hide nothing, and an image."""
    with seeded(5):
        sizes = {"d_model": 8, "num_heads": 2, "num_layers": 1, "num_classes": 3} | changes
        model = ImageClassifier(ImageConfig(image_size=image_size, **sizes)).eval()
        for p in model.parameters():
            torch.nn.init.normal_(p, std=0.7)
        return model, torch.randn(1, image_size, image_size)


def _real(answer):
    """a classifier of images, patch by patch"""
    for sizes, count in (({}, 9), ({"image_size": 8, "num_classes": 5}, 16)):
        model, image = _seeing(**sizes)
        where = f"for an ImageClassifier that reads {count} patches"
        got = tensor(answer(model, image, count), where)
        note = "Hidden does not mean painted over: a patch of any colour can still be read."
        with torch.no_grad():
            expected = _one_by_one(model, image, count)
        same(got.double(), expected, where, 1e-4, note)


def _its_device(answer):
    """`visible` is on the image's device"""

    def elsewhere(images, visible=None):
        here = images.device if visible is None else visible.device
        expect(here == images.device, f"for an image on another device ({images.device})"
               f", `visible` is on {here}: give it `device=image.device`")  # fmt: skip
        return torch.zeros(len(images), 2)

    try:
        answer(elsewhere, torch.zeros(1, 1, 4, device="meta"), 4)
    except Mismatch:
        raise
    except (RuntimeError, NotImplementedError):  # what it then does with the scores is not asked
        return


OCCLUSION = Exercise(
    id="25.2",
    title="what does the answer need?",
    difficulty=2,
    minutes=12,
    statement=(
        "Find out which patches a model's prediction needs. Write "
        "`my_occlusion(model, image, num_patches)`, which returns for each patch how much the "
        "log-probability of the predicted class falls when that patch alone is hidden. Hide it "
        "with the mask `visible` of `model(images, visible)`. The predicted class is the one that "
        "wins when nothing is hidden."
    ),
    hint=(
        "One batch is enough: the same image N times, and a `visible` that is False on its "
        "diagonal. Take the predicted class from a run in which nothing is hidden, and keep to it."
    ),
    function=my_occlusion,
    tests=(
        _needed,
        _in_the_way,
        _no_matter,
        _any_class,
        _this_image,
        _very_sure,
        _real,
        _its_device,
    ),
)


EXERCISES = (PATCHES, OCCLUSION)
