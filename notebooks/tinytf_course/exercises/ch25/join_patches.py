"""25.1 the image again (★★☆, 12 minutes)

Write the inverse of `split_patches` by reshaping and permuting axes: `my_join_patches(patches,
size, shape)`, where `shape` is `(channels, height, width)`. For any images whose sides are
divisible by `size`, `my_join_patches(split_patches(images, size), size, images.shape[1:])` equals
`images`.

Hint: Give the patches six axes first: (B, down, across, channels, size, size). A line of the image
runs through a row of patches. Which two axes make up its height, and which two its width?
"""

import torch

from tinytf.related.vit import split_patches
from tinytf_course.expect import agrees, expect, gradients, numbers, precise, same, tensor, travels


def my_join_patches(patches, size, shape):
    """Join patches (B, N, channels · size²) to images (B, channels, height, width).

    The inverse of `split_patches(images, size)`: patches come in reading order, the numbers of each
    by channel, then row, then column. `shape` is (channels, height, width), and the images keep
    the patches' dtype and device.
    """
    channels, height, width = shape
    down, across = height // size, width // size
    grid = patches.reshape(len(patches), down, across, channels, size, size)
    return grid.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), channels, height, width)


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


def test_shape(answer):
    """the images have the right shape"""
    got = tensor(answer(torch.zeros(2, 6, 12), 2, (3, 4, 6)), "the answer")
    where = "for patches (2, 6, 12), size=2, shape=(3, 4, 6)"
    message = f"{where}, the shape is {tuple(got.shape)}, expected (2, 3, 4, 6)"
    expect(got.shape == (2, 3, 4, 6), message)


def test_lines(answer):
    """a line of pixels runs through neighbouring patches"""
    got = tensor(answer(_numbered(), 2, (1, 4, 6)), _WHERE)
    expect(got.shape == (1, 1, 4, 6), f"{_WHERE}, the shape is {tuple(got.shape)}")
    for row, patches in ((1, "0, 1 and 2"), (2, "3, 4 and 5")):
        first = 3.0 * (row - 1)
        line = [first, first, first + 1, first + 1, first + 2, first + 2]
        note = f"It runs through patches {patches}."
        same(got[0, 0, row], line, f"{_WHERE}, line {row}", note=note)


def test_inside(answer):
    """the pixels of a patch come in reading order"""
    note = "Pixel 1 is to the right of pixel 0, pixel 2 below it."
    where = "for one patch [0, 1, 2, 3], size=2, shape=(1, 2, 2)"
    agrees(answer, _pixel_by_pixel, torch.arange(4.0)[None, None], 2, (1, 2, 2), note=note,
           where=where)  # fmt: skip


def test_channels(answer):
    """the channels of a patch are separated"""
    note = "Of its eight numbers the first four are channel 0."
    where = "for one patch [0, 1, … 7], size=2, shape=(2, 2, 2)"
    agrees(answer, _pixel_by_pixel, torch.arange(8.0)[None, None], 2, (2, 2, 2), note=note,
           where=where)  # fmt: skip
    agrees(answer, _pixel_by_pixel, torch.arange(6.0).view(1, 2, 3), 1, (3, 1, 2),
           note="Patches of one pixel: its numbers are the channels.")  # fmt: skip


def test_batch(answer):
    """each image has its own patches"""
    note = "The first image is all 1, the second all 2."
    patches = torch.tensor([1.0, 2.0])[:, None, None].expand(2, 2, 1)
    agrees(answer, _pixel_by_pixel, patches, 1, (1, 1, 2), note=note)
    where = "for a batch of 3 images (2, 6, 4) split with size=2"
    images = numbers(3, 2, 6, 4, seed=3)
    same(answer(split_patches(images, 2), 2, (2, 6, 4)), images, where)


def test_any_sizes(answer):
    """patches of any size, and any number of them each way"""
    for size, shape in ((3, (2, 6, 15)), (2, (3, 8, 2)), (4, (1, 4, 12)), (1, (5, 3, 2))):
        count = shape[1] * shape[2] // size**2
        patches = numbers(2, count, shape[0] * size**2, seed=size)
        agrees(answer, _pixel_by_pixel, patches, size, shape)


def test_joined_kinds(answer):
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


MISTAKES = r"""
reshaped without a permute
    .permute(0, 3, 1, 4, 2, 5) =>
    says: line 1, you get [1, 1, 2, 2, 2, 2]
    The shape is right and no error is raised, but a patch has become a piece of one line.
patches by columns
    down, across, channels => across, down, channels
    permute(0, 3, 1, 4, 2, 5) => permute(0, 3, 2, 4, 1, 5)
    says: line 1, you get [0, 0, 2, 2, 4, 4]
    Patches come row by row, so the axis that counts down precedes the one across.
patches turned over
    permute(0, 3, 1, 4, 2, 5) => permute(0, 3, 1, 5, 2, 4)
    says: Pixel 1 is to the right of pixel 0
    Rows and columns inside each patch are swapped: every patch is mirrored.
channels last
    channels, size, size) => size, size, channels)
    permute(0, 3, 1, 4, 2, 5) => permute(0, 5, 1, 3, 2, 4)
    says: Of its eight numbers the first four are channel 0
    With one channel you would not notice. A patch has its channels one after the other.
patches interleaved
    permute(0, 3, 1, 4, 2, 5) => permute(0, 3, 4, 1, 5, 2)
    says: line 1, you get [3, 4, 5, 3, 4, 5]
    Height is (patch down, row in it), in this order: the row varies faster.
height and width swapped
    len(patches), channels, height, width) => len(patches), *shape).transpose(2, 3)
    says: the shape is (2, 3, 6, 4)
    The image lies on its side. With square images the shape would not have shown it.
batch and patches mixed
    grid = patches. => grid = patches.transpose(0, 1).
    says: The first image is all 1
    With one image it is right. With more, an image holds patches of several: the batch must
    stay the first axis.
the first image for all
    grid = patches. => grid = patches[:1].expand_as(patches).
    says: The first image is all 1
    Every image of the batch has patches of its own.
as many patches down as across
    height // size, width // size => round(patches.size(1) ** 0.5), -1
    says: for a batch of 3 images
    Images need not be square: how many patches there are each way is in `shape`.
into new float32 images on the CPU
    len(patches), channels, height, width) =>
        len(patches), *shape)
        return images
    return grid =>
        images = torch.zeros(len(patches), *shape)
        images[:] = grid
    says: the dtype is float32, expected uint8
    `torch.zeros(...)` is float32 and on the CPU, whatever `patches` are:
    `patches.new_zeros(...)`, or reshapes, which keep both.
cut off from the graph
    grid = patches. => grid = patches.detach().
    says: no gradient reaches `patches`
    The pixels are right, but no gradient reaches whatever produced the patches.
by way of float32
    grid = patches. => grid = patches.float().
    return grid => return grid.to(patches)
    says: you get [[[[16777216, 9007199254740992]]]]
    The dtype comes back, but not the numbers: float32 has 24 bits. Reshapes need no other
    dtype.
"""

HARMLESS = r"""
grid = … => grid = patches.view(…
    patches lie in memory as their axes say
… => …len(patches.detach())…
    only the length is asked
… => …len(patches.float())…
    only the length is asked
"""
