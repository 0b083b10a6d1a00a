"""Images as the encoder reads them: patches, attention maps, and learned positions."""

import math

import matplotlib.pyplot as plt
import numpy as np

from tinytf.viz.style import ATTENTION, CYCLE, INK, SIGNED, as_array, new_axes

from .diagram import SMALL, Diagram


def patch_row(image, patches, *, title=None):
    """Draw an image (height, width) with its cuts, and its patches (N, size²) as a row of words.

    The patches come in reading order and are numbered by it. Returns the two Axes. Raises
    ValueError where the patches do not have as many pixels as the image.
    """
    image, patches = as_array(image, "image", ndim=2), as_array(patches, "patches", ndim=2)
    if image.size != patches.size:
        raise ValueError(f"{patches.size} pixels in the patches, {image.size} in the image")
    size = math.isqrt(patches.shape[1])
    low, high = image.min(), image.max()
    whole, row = plt.subplots(
        1, 2, figsize=(12.5, 3.1), width_ratios=(1, 3.6), layout="constrained"
    )[1]
    look = {"cmap": "gray_r", "vmin": low, "vmax": high}
    whole.imshow(image, **look)
    _cuts(whole, image.shape, size)
    across = math.ceil(len(patches) / 2)
    for number, patch in enumerate(patches):
        line, place = divmod(number, across)
        left, top = place * (size + 0.8), line * (size + 1.6)
        row.imshow(patch.reshape(size, size), extent=(left, left + size, top + size, top), **look)
        frame = plt.Rectangle((left, top), size, size, fill=False, edgecolor=CYCLE[0], linewidth=1)
        row.add_patch(frame)
        row.text(left + size / 2, top - 0.2, str(number), ha="center", va="bottom", fontsize=11)
    row.set(xlim=(-0.2, across * (size + 0.8)), ylim=(2 * size + 1.9, -1))
    row.set_aspect("equal")
    row.axis("off")
    if title:
        whole.set_title(title)
    return whole, row


def draw_patches(image, size):
    """Draw a small image (height, width) as numbers, and its square patches as rows.

    Returns the Axes. Raises ValueError if `size` does not divide height and width.
    """
    image = as_array(image, "image", ndim=2)
    height, width = image.shape
    if height % size or width % size:
        raise ValueError(f"patches of {size} × {size} do not tile an image of {height} × {width}")
    corners = [(i, j) for i in range(0, height, size) for j in range(0, width, size)]
    cell = 0.7
    d = Diagram(
        14.4, max(height * cell, len(corners) * 0.95) + 1.1,
        alt=f"An image of {height} by {width} numbers is cut into {len(corners)} squares; each "
        "square, read line by line, becomes a row of its own, and the rows are in reading order.",
    )  # fmt: skip
    middle = (max(height * cell, len(corners) * 0.95) + 0.4) / 2
    whole = d.matrix(3.0, middle, image, role="input", digits=0, cell=cell)
    left, top = whole.left[0], whole.top[1]
    for k, (i, j) in enumerate(corners):
        frame = plt.Rectangle(
            (left + j * cell, top - (i + size) * cell), size * cell, size * cell, fill=False,
            edgecolor=INK, linewidth=2.2, zorder=5,
        )  # fmt: skip
        d.ax.add_patch(frame)
        y = middle + (len(corners) - 1) * 0.475 - 0.95 * k
        pixels = image[i : i + size, j : j + size].reshape(1, -1)
        d.matrix(10.4, y, pixels, rows=[f"patch {k}"], role="embedding", digits=0, cell=cell)
    end = 10.4 - size * size * cell / 2 - 1.3  # left of the rows and their words
    d.arrow((whole.right[0] + 0.15, middle), (end, middle), "cut")
    head = max(height * cell, len(corners) * 0.95) + 0.75
    d.text(3.0, head, "an image, (4, 4)" if image.shape == (4, 4) else f"an image, {image.shape}")
    d.text(10.4, head, f"patches, ({len(corners)}, {size * size})")
    return d.ax


def draw_vit(placeholders=()):
    """Draw an image on its way through a Vision Transformer; returns the Axes.

    The parts named in `placeholders` ("class token", "positions") are pale: not there yet.
    """
    token, places = ("class token" in placeholders), ("positions" in placeholders)
    missing, row = " and ".join(placeholders), "(B, 16, C)" if token else "(B, 17, C)"
    d = Diagram(
        16.6, 8.5,
        alt="From below: an image is cut into 16 patches, a linear layer makes a vector of each; a "
        "class token precedes them, each gets its position, chapter 12's encoder makes a state "
        "of each, and the output layer scores the classes from "
        + ("the mean of the states." if token else "the first state.")
        + (f" Not there yet: {missing}." if missing else ""),
    )  # fmt: skip
    xs = [4.9 + 1.75 * i for i in range(7)]
    middle, wide = (xs[0] + xs[-1]) / 2, xs[-1] - xs[0] + 1.5
    for y, name, shape in (
        (2.4, "a vector each", row), (3.6, "+ positions", row), (6.1, "states", row)
    ):  # fmt: skip
        d.text(3.8, y + 0.15, name, align="right")
        d.text(3.8, y - 0.2, shape, size=SMALL, align="right")
    image = d.box(3.9, 0.75, "image", "(B, 1, 8, 8)", role="input", size=(2.3, 0.9))
    cut = d.box(7.4, 0.75, "patches", "(B, 16, 4)", role="input", size=(2.3, 0.9))
    mapped = d.box(11.0, 0.75, "linear layer", role="embedding", size=(2.3, 0.9))
    d.arrow(image, cut, "cut")
    d.arrow(cut, mapped)
    encoder = d.box(middle, 4.85, "encoder", role="encoder", size=(wide, 0.8))
    states = []
    for x, name in zip(xs, ("class\ntoken", "patch 0", "1", "2", "…", "14", "15"), strict=True):
        first = x == xs[0]
        pale = token and first
        below = d.box(x, 2.4, name, role="embedding", size=(1.5, 0.75), faint=pale)
        place = d.box(x, 3.6, "…" if name == "…" else "+", role="position", size=(1.5, 0.5),
                      faint=places)  # fmt: skip
        state = d.box(x, 6.1, "…" if name == "…" else "", role="encoder", size=(1.5, 0.6),
                      faint=pale)  # fmt: skip
        d.arrow(below, place, dashed=places or pale)
        d.arrow(place, (x, encoder.bottom[1]), dashed=pale)
        d.arrow((x, encoder.top[1]), state, dashed=pale)
        states.append(state)
        if not first:
            d.arrow(mapped.top, below.bottom)
    output = d.box(middle if token else xs[0], 7.8, "output", "(B, 10)", role="output",
                   size=(2.4, 0.9))  # fmt: skip
    for state in states[1:] if token else states[:1]:
        d.arrow(state.top, output.bottom)
    x = middle + 1.4 if token else xs[0] + 1.4
    d.text(x, 7.8, "mean state" if token else "first state", size=SMALL, align="left")
    return d.ax


def digit_attention(image, weights, ax=None, *, title=None, top=None, colorbar=True):
    """Tint each patch of an image (S, S) by its weight (N,), the ink drawn over it as dots.

    The larger a dot, the more ink in that pixel, from the image's least to its greatest. `top` is
    the weight of the darkest tint (by default the greatest there is). Returns the Axes. Raises
    ValueError where the patches are not a square grid that divides the image.
    """
    image, weights = as_array(image, "image", ndim=2), as_array(weights, "weights", ndim=1)
    side = math.isqrt(len(weights))
    if side**2 != len(weights) or image.shape[0] % side or image.shape[0] != image.shape[1]:
        raise ValueError(f"{len(weights)} patches do not tile an image of shape {image.shape}")
    size = image.shape[0] // side
    ax = new_axes(ax, (4.6, 3.8))
    tint = weights.reshape(side, side).repeat(size, 0).repeat(size, 1)
    shown = ax.imshow(tint, cmap=ATTENTION, vmin=0, vmax=top or weights.max())
    spread = image.max() - image.min()
    ink = (image - image.min()) / (spread or 1)
    rows, columns = np.nonzero(ink > 0.05)
    dots = 150 * ink[rows, columns] * (8 / image.shape[0]) ** 2
    ax.scatter(columns, rows, dots, color=CYCLE[1], edgecolor=INK, linewidth=0.6, zorder=3)
    _cuts(ax, image.shape, size)
    if colorbar:
        bar = ax.figure.colorbar(shown, ax=ax, shrink=0.85)
        bar.set_label("attention weight")
    if title:
        ax.set_title(title)
    return ax


def similarity_grid(similarity, *, title=None, most=1.0):
    """Draw a (N, N) similarity of places of a square grid as N maps, each where its place is.

    Map i shows how alike place i is to every place; its own is outlined. Colours run from -most to
    most. Returns the Axes, in reading order. Raises ValueError if N is not a square.
    """
    similarity = as_array(similarity, "similarity", ndim=2)
    side = math.isqrt(len(similarity))
    if similarity.shape != (side**2, side**2):
        raise ValueError(f"a similarity of {similarity.shape} is not that of a square grid")
    width, height = 1.3 * side + 1.2, 1.3 * side
    figure, axes = plt.subplots(side, side, figsize=(width, height), layout="constrained")
    axes = np.ravel(axes)
    for place, ax in enumerate(axes):
        field = similarity[place].reshape(side, side)
        shown = ax.imshow(field, cmap=SIGNED, vmin=-most, vmax=most)
        row, column = divmod(place, side)
        own = plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=2)
        ax.add_patch(own)
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
    bar = figure.colorbar(shown, ax=list(axes), shrink=0.8)
    bar.set_label("cosine")
    if title:
        figure.suptitle(title, fontsize=13, fontweight=plt.rcParams["axes.titleweight"])
    return axes


def _cuts(ax, shape, size):
    """Lines where the patches meet, and no ticks."""
    for at in range(0, shape[0] + 1, size):
        ax.axhline(at - 0.5, color=CYCLE[0], linewidth=1)
    for at in range(0, shape[1] + 1, size):
        ax.axvline(at - 0.5, color=CYCLE[0], linewidth=1)
    ax.set(xlim=(-0.5, shape[1] - 0.5), ylim=(shape[0] - 0.5, -0.5), xticks=[], yticks=[])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
