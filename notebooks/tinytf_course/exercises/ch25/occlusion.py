"""25.2 what does the answer need? (★★☆, 12 minutes)

Find out which patches a model's prediction needs. Write `my_occlusion(model, image, num_patches)`,
which returns for each patch how much the log-probability of the predicted class falls when that
patch alone is hidden. Hide it with the mask `visible` of `model(images, visible)`. The predicted
class is the one that wins when nothing is hidden.

Hint: One batch is enough: the same image N times, and a `visible` that is False on its diagonal.
Take the predicted class from a run in which nothing is hidden, and keep to it.
"""

import torch
import torch.nn.functional as F

from tinytf.related.vit import ImageClassifier, ImageConfig
from tinytf.support.randomness import seeded
from tinytf_course.expect import Mismatch, expect, same, tensor
from tinytf_course.grading import hint
from tinytf_course.words import short


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


class Adding:
    """A model that adds up its visible patches' logits, (N, classes), times a pixel of each."""

    def __init__(self, logits):
        self.logits = torch.as_tensor(logits)

    def __call__(self, images, visible=None):
        """Score the classes; a patch is a pixel of an image one pixel high."""
        batch, patches = len(images), len(self.logits)
        if visible is None:
            visible = torch.ones(batch, patches, dtype=torch.bool)
        shapes = images.shape == (batch, 1, 1, patches) and visible.shape == (batch, patches)
        kind = str(visible.dtype).removeprefix("torch.")
        expect(
            shapes and visible.dtype == torch.bool,
            f"the model gets images {tuple(images.shape)} and visible {tuple(visible.shape)} "
            f"({kind}), expected (B, 1, 1, {patches}) and a boolean (B, {patches})",
        )
        return (visible * images[:, 0, 0]).to(self.logits.dtype) @ self.logits


class Together(Adding):
    """As `Adding`, but class 1 loses 9 as soon as a patch is hidden."""

    def __call__(self, images, visible=None):
        """Score the classes."""
        scores = super().__call__(images, visible)
        if visible is not None:
            scores[:, 1] -= 9.0 * ~visible.all(dim=1)
        return scores


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


def _falls(answer, logits, note="", pixels=None, where="", tolerance=1e-5,
           kind=Adding):  # fmt: skip
    """Expect the right answer for a model whose patches contribute these logits."""
    logits = torch.as_tensor(logits)
    image = torch.ones(1, 1, len(logits)) if pixels is None else torch.tensor([[pixels]])
    where = where or f"for a model that adds up its patches' logits {short(logits)}"
    expected = _one_by_one(kind(logits), image, len(logits))
    got = tensor(answer(kind(logits), image, len(logits)), where)
    same(got.double(), expected, where, tolerance, note)


def test_needed(answer):
    """hiding a patch in favour of the prediction lowers its log-probability"""
    note = "Without patch 0 the log-probability of class 1, the prediction, falls by 1 nat."
    _falls(answer, [[0.0, 2.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], note)
    _falls(answer, [[3.0, 0.0]], "Without its only patch both classes are equally likely.")


def test_in_the_way(answer):
    """hiding a patch against the prediction raises its log-probability"""
    note = "Patch 0 favours class 1: without it the prediction, class 0, gains."
    _falls(answer, [[0.0, 3.0], [4.0, 0.0]], note)


def test_no_matter(answer):
    """a patch that favours no class makes no difference"""
    note = "Without patch 1 both classes lose 3, and no probability changes; patch 2 adds nothing."
    _falls(answer, [[2.0, 0.0], [3.0, 3.0], [0.0, 0.0]], note)


def test_any_class(answer):
    """the prediction is the class that wins when nothing is hidden, whichever it is"""
    note = "The prediction is class 2."
    _falls(answer, [[0.0, 1.0, 2.0], [1.0, 0.0, 1.5]], note)
    note = "The prediction is class 1 with all, and class 0 without patch 1. Keep to class 1."
    _falls(answer, [[2.0, 0.0], [0.0, 3.0]], note)
    note = "The prediction is class 1 with all, and class 0 without patch 0. Keep to class 1."
    _falls(answer, [[0.0, 2.0], [0.0, 2.0], [3.0, 0.0]], note)
    note = "The prediction is class 1, though hiding any patch makes it class 0."
    where = "for a model whose class 1 loses 9 as soon as a patch is hidden"
    logits = [[1.0, 0.0], [0.0, 3.0], [0.0, 1.0], [0.0, 0.5]]
    _falls(answer, logits, note, where=where, kind=Together)
    note = "The logits are -4 and -2, so the prediction is class 1."
    _falls(answer, [[-4.0, -1.0], [0.0, -1.0]], note)


def test_this_image(answer):
    """the result depends on this image"""
    note = "Patch 1 has a pixel of 3, so its logits count three times."
    where = "for a model that adds up pixel times [1, 0], [0, 1], [1, 0], and pixels 1, 3, 1"
    _falls(answer, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], note, [1.0, 3.0, 1.0], where)


@hint("Probabilities of 0 and 1 have lost what a log-probability still contains.")
def test_very_sure(answer):
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


def test_real(answer):
    """a classifier of images, patch by patch"""
    for sizes, count in (({}, 9), ({"image_size": 8, "num_classes": 5}, 16)):
        model, image = _seeing(**sizes)
        where = f"for an ImageClassifier that reads {count} patches"
        got = tensor(answer(model, image, count), where)
        note = "Hidden does not mean painted over: a patch of any colour can still be read."
        with torch.no_grad():
            expected = _one_by_one(model, image, count)
        same(got.double(), expected, where, 1e-4, note)


def test_its_device(answer):
    """`visible` is on the image's device"""

    def elsewhere(images, visible=None):
        here = images.device if visible is None else visible.device
        expect(here == images.device, f"for an image on another device, `visible` is "
               f"on {here}: give it `device=image.device`")  # fmt: skip
        return torch.zeros(len(images), 2)

    try:
        answer(elsewhere, torch.zeros(1, 1, 4, device="meta"), 4)
    except Mismatch:
        raise
    except (RuntimeError, NotImplementedError):  # what it then does with the scores is not asked
        return


MISTAKES = r"""
turned round
    log_p[0, answer] - log_p[1:, answer] => log_p[1:, answer] - log_p[0, answer]
    says: Without patch 0 the log-probability of class 1
    A fall is before minus after: patches that the prediction needs have positive numbers.
all hidden but one
    visible[1:].fill_diagonal_(False) =>
        visible[1:] = torch.eye(num_patches, dtype=torch.bool, device=image.device)
    says: Without patch 0 the log-probability of class 1
    This shows one patch at a time. What a patch contributes alone is another question.
all hidden up to this one
    visible[1:].fill_diagonal_(False) => visible[1:].triu_(1)
    says: for a model that adds up
    Each patch is hidden alone, with all others visible.
scores for log-probabilities
    F.log_softmax(model(images, visible), dim=-1) => model(images, visible)
    says: Without patch 1 both classes lose 3
    Only differences of logits matter: raising all classes changes no prediction. Take the
    log-softmax first.
probabilities
    F.log_softmax => F.softmax
    says: Without patch 0 the log-probability of class 1
    In probabilities nothing seems needed once a model is certain. Log-probabilities still
    distinguish .999 from .9999.
the logarithm of a softmax
    F.log_softmax(model(images, visible), dim=-1) =>
        F.softmax(model(images, visible), dim=-1).log()
    says: probabilities that are 0 have no logarithm
    A softmax rounds small probabilities to 0, whose logarithm is -∞. `log_softmax` never leaves
    the logarithms.
the best class each time
    log_p[1:, answer] => log_p[1:].max(dim=-1).values
    says: Keep to class 1
    If hiding a patch changes the prediction, the new winner may be as certain as the old one.
    Follow the class that was predicted with all patches.
class 0 always
    answer = log_p[0].argmax() => answer = 0
    says: The prediction is class 2
    The prediction is the class with the largest logit when all is visible: `argmax`.
the answer taken from a run with a patch hidden
    answer = log_p[0].argmax() => answer = log_p[1].argmax()
    says: and class 0 without patch 0
    The task is about the prediction that the model makes when everything is visible.
the class that wins on average
    answer = log_p[0].argmax() => answer = log_p.mean(dim=0).argmax()
    says: hiding any patch makes it class 0
    The prediction is the one that the model makes when everything is visible, not that of most of
    your runs.
what is against it cut off
    log_p[0, answer] - log_p[1:, answer] => (log_p[0, answer] - log_p[1:, answer]).clamp(min=0)
    says: you get [1, 0, 0, 0]
    A patch can be against the prediction: without it the log-probability rises, and the fall is
    negative.
shares of the whole loss
    return log_p[0, answer] - log_p[1:, answer] =>
        falls = log_p[0, answer] - log_p[1:, answer]
        return falls / falls.sum()
    says: you get [1.229, 0, -0.229, 0]
    The result is in nats, not in shares that add up to 1.
a blank image
    image.expand => torch.ones_like(image).expand
    says: so its logits count three times
    The model has to read the image itself: pass `image` to it.
painted over with paper
    visible[1:].fill_diagonal_(False) =>
    images = image.expand(1 + num_patches, -1, -1, -1) =>
        images, side = image.repeat(1 + num_patches, 1, 1, 1), image.size(2)
        size = round((image[0].numel() / num_patches) ** 0.5)
        for n in range(num_patches):
            row, column = n // (side // size) * size, n % (side // size) * size
            images[1 + n, :, row : row + size, column : column + size] = 0.0
    says: Hidden does not mean painted over
    Blank paper is a patch, too: the model reads it, and in some positions white is what
    distinguishes two digits.
never compared with the whole
    log_p[0, answer] - log_p[1:, answer] => -log_p[1:, answer]
    says: Without patch 0 the log-probability of class 1
    That is how uncertain the model is without the patch. How uncertain was it with all?
`visible` made on the CPU
    , device=image.device =>
    says: give it `device=image.device`
    `torch.ones(...)` is on the CPU, and the image may be on a GPU: the model would refuse, as
    matrices on two devices can't meet.
"""

HARMLESS = r"""
… => ….detach()…
    it is a measurement, and nothing is trained by it
… => ….double()…
    float64 holds whatever the model says
… => ….float()…
    seven digits of a measurement are enough
answer = … => answer = log_p[0].argmax().item()
    a number is as good a place
… => log_p = F.log_softmax(model(images, visible))
    torch takes the last of two axes, and warns
… => log_p = F.log_softmax(model(images, visible), dim=1)
    scores have two axes, and the last is 1
images = … => images = image.expand(1 + num_patches, 1, -1, -1)
    an image has one channel, as is promised
"""
