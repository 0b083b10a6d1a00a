"""Answers to chapter 14c (images): references and mistakes."""

import torch
import torch.nn.functional as F

from tinytf.course.grading import Answers, WrongAnswer

# 14c.2 the image again


def my_join_patches(patches, size, shape):
    """Put patches together again: (B, N, channels · size²) -> images (B, channels, height, width).

    The inverse of `split_patches(images, size)`: patches come in reading order, the numbers of each
    by channel, then row, then column. `shape` is (channels, height, width).
    """
    channels, height, width = shape
    down, across = height // size, width // size
    grid = patches.reshape(len(patches), down, across, channels, size, size)
    return grid.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), channels, height, width)


def _in_order(*order):
    """A `my_join_patches` that permutes (B, down, across, channel, row, column) otherwise."""

    def join(patches, size, shape):
        channels, height, width = shape
        grid = patches.reshape(-1, height // size, width // size, channels, size, size)
        return grid.permute(*order).reshape(-1, *shape)

    return join


def _counted_across_first(patches, size, shape):
    channels, height, width = shape
    grid = patches.reshape(-1, width // size, height // size, channels, size, size)
    return grid.permute(0, 3, 2, 4, 1, 5).reshape(-1, *shape)


def _channels_last(patches, size, shape):
    channels, height, width = shape
    grid = patches.reshape(-1, height // size, width // size, size, size, channels)
    return grid.permute(0, 5, 1, 3, 2, 4).reshape(-1, *shape)


PATCHES = Answers(
    reference=my_join_patches,
    wrong=(
        WrongAnswer(
            "reshaped without a permute",
            lambda patches, size, shape: patches.reshape(len(patches), *shape),
            "line 1, you get [1, 1, 2, 2, 2, 2]",
            "The shape is right and nothing complains, but a patch became a stretch of one line.",
        ),
        WrongAnswer(
            "patches by columns",
            _counted_across_first,
            "line 1, you get [0, 0, 2, 2, 4, 4]",
            "Patches were cut row by row: the axis that counts down comes before the one across.",
        ),
        WrongAnswer(
            "patches turned over",
            _in_order(0, 3, 1, 5, 2, 4),
            "pixel 1 stands to the right of pixel 0",
            "Rows and columns inside each patch are swapped: every patch is mirrored.",
        ),
        WrongAnswer(
            "channels last",
            _channels_last,
            "Of its eight numbers the first four are channel 0",
            "With one channel you would not notice. A patch has its channels one after the other.",
        ),
        WrongAnswer(
            "patches interleaved",
            _in_order(0, 3, 4, 1, 5, 2),
            "line 1, you get [3, 4, 5, 3, 4, 5]",
            "Height is (patch down, row in it), in this order: the row varies faster.",
        ),
        WrongAnswer(
            "height and width swapped",
            lambda patches, size, shape: my_join_patches(patches, size, shape).transpose(2, 3),
            "the shape is (2, 3, 6, 4)",
            "The image lies on its side. With square images no shape would have told you.",
        ),
        WrongAnswer(
            "batch and patches mixed",
            lambda patches, size, shape: my_join_patches(
                patches.transpose(0, 1).reshape(patches.shape), size, shape
            ),
            "for a batch of 3 images",
            "With one image it is right. With more, an image holds patches of several: the batch "
            "must stay the first axis.",
        ),
    ),
)


# 14c.3 what does the answer need?


def my_occlusion(model, image, num_patches):
    """How much the model's answer needs each patch of an image (1, height, width): (N,), in nats.

    `model(images, visible)` scores classes, (B, classes), for images (B, 1, height, width);
    `visible`, boolean (B, N), says which patches it may read. The answer is the class it scores
    highest when it reads them all; N is `num_patches`.
    """
    visible = torch.ones(1 + num_patches, num_patches, dtype=torch.bool, device=image.device)
    visible[1:].fill_diagonal_(False)  # row 0 hides nothing, row 1 + n hides patch n
    images = image.expand(1 + num_patches, -1, -1, -1)
    log_p = F.log_softmax(model(images, visible), dim=-1)
    answer = log_p[0].argmax()
    return log_p[0, answer] - log_p[1:, answer]


def _hidden_runs(model, image, num_patches, hidden=True):
    """Scores with all patches, and with each patch hidden (or each alone)."""
    visible = torch.eye(num_patches, dtype=torch.bool)
    images = image.expand(num_patches, -1, -1, -1)
    whole = model(image[None], torch.ones(1, num_patches, dtype=torch.bool))[0]
    return whole, model(images, ~visible if hidden else visible)


def _turned_round(model, image, num_patches):
    return -my_occlusion(model, image, num_patches)


def _alone(model, image, num_patches):
    whole, found = (x.log_softmax(-1) for x in _hidden_runs(model, image, num_patches, False))
    return whole.max() - found[:, whole.argmax()]


def _scores(model, image, num_patches):
    whole, found = _hidden_runs(model, image, num_patches)
    return whole.max() - found[:, whole.argmax()]


def _plain_probabilities(model, image, num_patches):
    whole, found = (x.softmax(-1) for x in _hidden_runs(model, image, num_patches))
    return whole.max() - found[:, whole.argmax()]


def _best_each_time(model, image, num_patches):
    whole, found = (x.log_softmax(-1) for x in _hidden_runs(model, image, num_patches))
    return whole.max() - found.max(dim=-1).values


def _painted(model, image, num_patches):
    side = round(num_patches**0.5)
    size, images = image.size(-1) // side, image.repeat(num_patches, 1, 1, 1)
    for n in range(num_patches):
        row, column = n // side * size, n % side * size
        images[n, :, row : row + size, column : column + size] = -1.0
    log_p = model(torch.cat([image[None], images])).log_softmax(-1)
    return log_p[0].max() - log_p[1:, log_p[0].argmax()]


def _without_the_whole(model, image, num_patches):
    whole, found = (x.log_softmax(-1) for x in _hidden_runs(model, image, num_patches))
    return -found[:, whole.argmax()]


OCCLUSION = Answers(
    reference=my_occlusion,
    wrong=(
        WrongAnswer(
            "turned round",
            _turned_round,
            "for patch 0, you get -1, expected 1",
            "A fall is before less after: the patches an answer needs have positive numbers.",
        ),
        WrongAnswer(
            "all hidden but one",
            _alone,
            "for patch 0, you get -0.186",
            "This reads one patch at a time. What a patch says alone is another question.",
        ),
        WrongAnswer(
            "scores for log-probabilities",
            _scores,
            "for patch 0, you get 2, expected 1",
            "Only differences of scores matter: what raises all classes changes no answer. Take "
            "the log-softmax first.",
        ),
        WrongAnswer(
            "probabilities",
            _plain_probabilities,
            "for patch 0, you get 0.4621",
            "In probabilities nothing seems needed once a model is sure. Log-probabilities still "
            "tell .999 from .9999.",
        ),
        WrongAnswer(
            "the best class each time",
            _best_each_time,
            "for patch 0, you get 0, expected 1",
            "If hiding a patch turns the answer over, the new winner may be as sure as the old "
            "one. Follow the class that was the answer.",
        ),
        WrongAnswer(
            "painted over with paper",
            _painted,
            "Hidden is not painted over",
            "Blank paper is a patch too: the model reads it, and in some places white tells a "
            "digit from another.",
        ),
        WrongAnswer(
            "never compared with the whole",
            _without_the_whole,
            "for patch 0, you get 1.313",
            "That is how unsure the model is without the patch. How unsure was it with all?",
        ),
    ),
)

ANSWERS = {
    "14c.2": PATCHES,
    "14c.3": OCCLUSION,
}
