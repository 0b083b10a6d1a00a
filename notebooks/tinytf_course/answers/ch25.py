"""Answers to chapter 25: references and mistakes."""

import torch
import torch.nn.functional as F

from tinytf_course.grading import Answers, WrongAnswer

# 25.1 the image again


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


def _one_batch_axis_lost(patches, size, shape):
    return my_join_patches(patches[:1], size, shape).expand(len(patches), *shape).clone()


def _square_grid(patches, size, shape):
    side = round(patches.size(1) ** 0.5)
    grid = patches.reshape(len(patches), side, -1, shape[0], size, size)
    return grid.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), *shape)


def _pasted(patches, size, shape):
    """Patch by patch into images that are float32 and on the CPU."""
    images, across = torch.zeros(len(patches), *shape), shape[2] // size
    for n in range(patches.size(1)):
        row, column = n // across * size, n % across * size
        patch = patches[:, n].reshape(-1, shape[0], size, size)
        images[:, :, row : row + size, column : column + size] = patch
    return images


PATCHES = Answers(
    reference=my_join_patches,
    equivalent={
        "grid = … => grid = patches.view(…": "patches lie in memory as their axes say",
        "… => …len(patches.detach())…": "only the length is asked",
        "… => …len(patches.float())…": "only the length is asked",
    },
    wrong=(
        WrongAnswer(
            "reshaped without a permute",
            lambda patches, size, shape: patches.reshape(len(patches), *shape),
            "line 1, you get [1, 1, 2, 2, 2, 2]",
            "The shape is right and no error is raised, but a patch has become a piece of one "
            "line.",
        ),
        WrongAnswer(
            "patches by columns",
            _counted_across_first,
            "line 1, you get [0, 0, 2, 2, 4, 4]",
            "Patches come row by row, so the axis that counts down precedes the one across.",
        ),
        WrongAnswer(
            "patches turned over",
            _in_order(0, 3, 1, 5, 2, 4),
            "Pixel 1 is to the right of pixel 0",
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
            "The image lies on its side. With square images the shape would not have shown it.",
        ),
        WrongAnswer(
            "batch and patches mixed",
            lambda patches, size, shape: my_join_patches(
                patches.transpose(0, 1).reshape(patches.shape), size, shape
            ),
            "The first image is all 1",
            "With one image it is right. With more, an image holds patches of several: the batch "
            "must stay the first axis.",
        ),
        WrongAnswer(
            "the first image for all",
            _one_batch_axis_lost,
            "The first image is all 1",
            "Every image of the batch has patches of its own.",
        ),
        WrongAnswer(
            "as many patches down as across",
            _square_grid,
            "for a batch of 3 images",
            "Images need not be square: how many patches there are each way is in `shape`.",
        ),
        WrongAnswer(
            "into new float32 images on the CPU",
            _pasted,
            "the dtype is float32, expected uint8",
            "`torch.zeros(...)` is float32 and on the CPU, whatever `patches` are: "
            "`patches.new_zeros(...)`, or reshapes, which keep both.",
        ),
        WrongAnswer(
            "cut off from the graph",
            lambda patches, size, shape: my_join_patches(patches.detach(), size, shape),
            "no gradient reaches `patches`",
            "The pixels are right, but no gradient reaches whatever produced the patches.",
        ),
        WrongAnswer(
            "by way of float32",
            lambda patches, size, shape: my_join_patches(patches.float(), size, shape).to(patches),
            "you get [[[[16777216, 9007199254740992]]]]",
            "The dtype comes back, but not the numbers: float32 has 24 bits. Reshapes need no "
            "other "
            "dtype.",
        ),
    ),
)


# 25.2 what does the answer need?


def my_occlusion(model, image, num_patches):
    """Return how much the model's prediction needs each patch of an image: (N,), in nats.

    `image` is (1, height, width), and N is `num_patches`. `model(images, visible)` returns logits
    (B, classes) for images (B, 1, height, width); `visible`, boolean (B, N) and on the images'
    device, says which patches it may read. The prediction is the class with the highest logit
    when all patches are visible.
    """
    visible = torch.ones(1 + num_patches, num_patches, dtype=torch.bool, device=image.device)
    visible[1:].fill_diagonal_(False)  # row 0 hides nothing, row 1 + n hides patch n
    images = image.expand(1 + num_patches, -1, -1, -1)
    log_p = F.log_softmax(model(images, visible), dim=-1)
    answer = log_p[0].argmax()
    return log_p[0, answer] - log_p[1:, answer]


def _hidden_runs(model, image, num_patches, hidden=True):
    """Scores with all patches, and with each patch hidden (or each alone)."""
    visible = torch.eye(num_patches, device=image.device).bool()
    images = image.expand(num_patches, -1, -1, -1)
    whole = model(image[None], visible[:1] | True)[0]
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
    height, width = image.shape[1:]
    size = round((height * width / num_patches) ** 0.5)
    images = image.repeat(num_patches, 1, 1, 1)
    for n in range(num_patches):
        row, column = n // (width // size) * size, n % (width // size) * size
        images[n, :, row : row + size, column : column + size] = 0.0
    visible = torch.ones(1 + num_patches, num_patches, dtype=torch.bool, device=image.device)
    log_p = model(torch.cat([image[None], images]), visible).log_softmax(-1)
    return log_p[0].max() - log_p[1:, log_p[0].argmax()]


def _without_the_whole(model, image, num_patches):
    whole, found = (x.log_softmax(-1) for x in _hidden_runs(model, image, num_patches))
    return -found[:, whole.argmax()]


def _class_0(model, image, num_patches):
    whole, found = (x.log_softmax(-1) for x in _hidden_runs(model, image, num_patches))
    return whole[0] - found[:, 0]


def _first_hidden(model, image, num_patches):
    whole, found = (x.log_softmax(-1) for x in _hidden_runs(model, image, num_patches))
    answer = found[0].argmax()
    return whole[answer] - found[:, answer]


def _log_of_softmax(model, image, num_patches):
    whole, found = (x.softmax(-1).log() for x in _hidden_runs(model, image, num_patches))
    return whole.max() - found[:, whole.argmax()]


def _blank_image(model, image, num_patches):
    return my_occlusion(model, torch.ones_like(image), num_patches)


def _one_after_another(model, image, num_patches):
    """Hides patch n and all before it."""
    visible = torch.ones(1 + num_patches, num_patches, device=image.device).triu(1).bool()
    visible = torch.cat([visible[:1] | True, visible[:-1]])
    log_p = model(image.expand(1 + num_patches, -1, -1, -1), visible).log_softmax(-1)
    return log_p[0].max() - log_p[1:, log_p[0].argmax()]


def _mask_on_the_cpu(model, image, num_patches):
    visible = torch.ones(1 + num_patches, num_patches, dtype=torch.bool)
    visible[1:].fill_diagonal_(False)
    log_p = model(image.expand(1 + num_patches, -1, -1, -1), visible).log_softmax(-1)
    return log_p[0].max() - log_p[1:, log_p[0].argmax()]


OCCLUSION = Answers(
    reference=my_occlusion,
    equivalent={
        "… => ….detach()…": "it is a measurement, and nothing is trained by it",
        "… => ….double()…": "float64 holds whatever the model says",
        "… => ….float()…": "seven digits of a measurement are enough",
        "answer = … => answer = log_p[0].argmax().item()": "a number is as good a place",
        "… => log_p = F.log_softmax(model(images, visible))": (
            "torch takes the last of two axes, and warns"
        ),
        "… => log_p = F.log_softmax(model(images, visible), dim=1)": (
            "scores have two axes, and the last is 1"
        ),
        "images = … => images = image.expand(1 + num_patches, 1, -1, -1)": (
            "an image has one channel, as is promised"
        ),
    },
    wrong=(
        WrongAnswer(
            "turned round",
            _turned_round,
            "Without patch 0 the log-probability of class 1",
            "A fall is before minus after: patches that the prediction needs have positive "
            "numbers.",
        ),
        WrongAnswer(
            "all hidden but one",
            _alone,
            "Without patch 0 the log-probability of class 1",
            "This shows one patch at a time. What a patch contributes alone is another question.",
        ),
        WrongAnswer(
            "all hidden up to this one",
            _one_after_another,
            "falls",
            "Each patch is hidden alone, with all others visible.",
        ),
        WrongAnswer(
            "scores for log-probabilities",
            _scores,
            "Without patch 1 both classes lose 3",
            "Only differences of logits matter: raising all classes changes no prediction. Take "
            "the log-softmax first.",
        ),
        WrongAnswer(
            "probabilities",
            _plain_probabilities,
            "Without patch 0 the log-probability of class 1",
            "In probabilities nothing seems needed once a model is certain. Log-probabilities "
            "still "
            "distinguish .999 from .9999.",
        ),
        WrongAnswer(
            "the logarithm of a softmax",
            _log_of_softmax,
            "probabilities that are 0 have no logarithm",
            "A softmax rounds small probabilities to 0, whose logarithm is -∞. `log_softmax` "
            "never leaves the logarithms.",
        ),
        WrongAnswer(
            "the best class each time",
            _best_each_time,
            "Keep to class 1",
            "If hiding a patch changes the prediction, the new winner may be as certain as the old "
            "one. Follow the class that was predicted with all patches.",
        ),
        WrongAnswer(
            "class 0 always",
            _class_0,
            "The prediction is class 2",
            "The prediction is the class with the largest logit when all is visible: `argmax`.",
        ),
        WrongAnswer(
            "the answer taken from a run with a patch hidden",
            _first_hidden,
            "and class 0 without patch 0",
            "The task is about the prediction that the model makes when everything is visible.",
        ),
        WrongAnswer(
            "what speaks against it cut off",
            lambda model, image, n: my_occlusion(model, image, n).clamp(min=0),
            "you get [1, 0, 0, 0]",
            "A patch can be against the prediction: without it the log-probability rises, and the "
            "fall is negative.",
        ),
        WrongAnswer(
            "shares of the whole loss",
            lambda model, image, n: (lost := my_occlusion(model, image, n)) / lost.sum(),
            "you get [1.229, 0, -0.229, 0]",
            "The result is in nats, not in shares that add up to 1.",
        ),
        WrongAnswer(
            "a blank image",
            _blank_image,
            "so its logits count three times",
            "The model has to read the image itself: pass `image` to it.",
        ),
        WrongAnswer(
            "painted over with paper",
            _painted,
            "Hidden does not mean painted over",
            "Blank paper is a patch, too: the model reads it, and in some positions white is what "
            "distinguishes two digits.",
        ),
        WrongAnswer(
            "never compared with the whole",
            _without_the_whole,
            "Without patch 0 the log-probability of class 1",
            "That is how uncertain the model is without the patch. How uncertain was it with all?",
        ),
        WrongAnswer(
            "what is visible said on the CPU",
            _mask_on_the_cpu,
            "give it `device=image.device`",
            "`torch.ones(...)` is on the CPU, and the image may be on a GPU: the model would "
            "refuse, as matrices on two devices can't meet.",
        ),
    ),
)

ANSWERS = {
    "25.1": PATCHES,
    "25.2": OCCLUSION,
}
