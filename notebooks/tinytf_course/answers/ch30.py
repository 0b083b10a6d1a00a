"""Answers to chapter 30: references and mistakes."""

import torch.nn.functional as F

from tinytf_course.grading import Answers, WrongAnswer

# 30.1 a check of padding


def my_pads_move(read, src, pad):
    """Return True if more padding changes an output of `read` at a real token, else False.

    read maps ids (B, S) to outputs (B, S, C) of any size, for any S. The rows of src (B, S) are
    filled up with `pad` on the right. What `read` returns at the padding doesn't matter, even NaN.

    A change of up to a ten-thousandth of the largest output at a real token is rounding. A faulty
    encoder changes some output by at least a fiftieth of that when three columns are appended, or
    returns a value that is not finite.
    """
    real = src != pad
    before = read(src)[real]
    after = read(F.pad(src, (0, 3), value=pad))[:, : src.size(1)][real]
    gap = (after - before).abs().max()
    return not bool(gap <= 1e-3 * before.abs().max())  # so that NaN is ill


def _gap(read, src, pad):
    real = src != pad
    before = read(src)[real]
    after = read(F.pad(src, (0, 3), value=pad))[:, : src.size(1)][real]
    return after - before, before.abs().max()


def _everywhere(read, src, pad):
    before = read(src)
    after = read(F.pad(src, (0, 3), value=pad))[:, : src.size(1)]
    return not bool((after - before).abs().max() <= 1e-3 * before.abs().max())


def _blind_to_nan(read, src, pad):
    gap, largest = _gap(read, src, pad)
    return bool(gap.abs().max() > 1e-3 * largest)


def _mean(read, src, pad):
    gap, largest = _gap(read, src, pad)
    return not bool(gap.abs().mean() <= 1e-3 * largest)


def _signed(read, src, pad):
    gap, largest = _gap(read, src, pad)
    return not bool(gap.max() <= 1e-3 * largest)


def _fixed_limit(read, src, pad):
    return not bool(_gap(read, src, pad)[0].abs().max() <= 1e-4)


def _equal(read, src, pad):
    return bool((_gap(read, src, pad)[0] != 0).any())


def _added_up(read, src, pad):
    gap, largest = _gap(read, src, pad)
    return not bool(gap.sum().abs() <= 1e-3 * largest)


def _zero_is_padding(read, src, pad):
    before = read(src)[src != 0]
    after = read(F.pad(src, (0, 3), value=pad))[:, : src.size(1)][src != 0]
    return not bool((after - before).abs().max() <= 1e-3 * before.abs().max())


def _numpy(read, src, pad):
    gap, largest = _gap(read, src, pad)
    return not bool(abs(gap.numpy()).max() <= 1e-3 * largest)


def _padding_in_the_scale(read, src, pad):
    gap, _ = _gap(read, src, pad)
    return not bool(gap.abs().max() <= 1e-3 * read(src).abs().max())


def _masked_by_product(read, src, pad):
    real = (src != pad)[..., None].float()
    before = read(src) * real
    after = read(F.pad(src, (0, 3), value=pad))[:, : src.size(1)] * real
    return not bool((after - before).abs().max() <= 1e-3 * before.abs().max())


def _one_pad(read, src, pad):
    real = src != pad
    before = read(src)[real]
    after = read(F.pad(src, (0, 1), value=pad))[:, : src.size(1)][real]
    return not bool((after - before).abs().max() <= 1e-3 * before.abs().max())


def _each_for_itself(read, src, pad):
    real = src != pad
    before = read(src)[real]
    after = read(F.pad(src, (0, 3), value=pad))[:, : src.size(1)][real]
    return not bool(((after - before).abs() <= 0.01 * before.abs()).all())


def _turned(read, src, pad):
    return not my_pads_move(read, src, pad)


PADS = Answers(
    reference=my_pads_move,
    equivalent={
        "… => ….detach()…": "a verdict carries no gradient",
        "… => ….float()…": "the outputs are float32 already; the ids are small",
        "… => ….double()": "more digits than needed change no verdict",
        "… => ….item()": "a number in place of a tensor of one",
        "… => return not gap <= …": "`not` of a tensor of one element is a bool as well",
        "… => …0.002 * …": "any limit between a ten-thousandth and a fiftieth is right",
        "… => …(0, 4)…": "the statement lets one append any number from three on",
        "… => …after.__isub__(before)…": "`after` is a copy of the answer's own",
        "… => …real.size(1)…": "the mask has the shape of the ids",
        "… => …before.abs_()…": "`before` is a copy, and read no more",
        "… => …after.abs().max())": "of a healthy encoder both outputs have the same size",
    },
    wrong=(
        WrongAnswer(
            "the padding's own outputs compared",
            _everywhere,
            "whose outputs vary at the padded positions",
            "Outputs at padded positions are not used: compare the real tokens only.",
        ),
        WrongAnswer(
            "NaN passes",
            _blind_to_nan,
            "NaN when there is more padding",
            "Every comparison with NaN is False, so `gap > limit` acquits it. Check whether the "
            "gap "
            "is at most the limit, and return True if it is not.",
        ),
        WrongAnswer(
            "the mean of the changes",
            _mean,
            "that is faulty in row",
            "A single change is averaged away among all outputs that stay. Take the largest.",
        ),
        WrongAnswer(
            "changes without their absolute value",
            _signed,
            "that is faulty in row",
            "A change downwards is a change, too: take `.abs()` before the largest.",
        ),
        WrongAnswer(
            "one limit for outputs of every size",
            _fixed_limit,
            "",
            "Rounding grows with the numbers. Measure the change as a share of the outputs.",
        ),
        WrongAnswer(
            "equal to the last bit",
            _equal,
            "",
            "Sums of another length are rounded differently. A check with false alarms is switched "
            "off by the first person it wakes up.",
        ),
        WrongAnswer(
            "changes added up",
            _added_up,
            "",
            "Changes up and down cancel in a sum. Take the largest absolute value.",
        ),
        WrongAnswer(
            "0 taken for the padding",
            _zero_is_padding,
            "faulty only at the token 0",
            "The id of the padding is the argument `pad`; elsewhere 0 can be a token.",
        ),
        WrongAnswer(
            "numpy asked for a tensor with a gradient",
            _numpy,
            "",
            "The outputs require a gradient: stay with tensors, or `detach()` first.",
        ),
        WrongAnswer(
            "the padding's outputs taken for the largest",
            _padding_in_the_scale,
            "a million at the padded positions",
            "The largest output must be that of a real token: take it from `before[real]`, like "
            "the gap.",
        ),
        WrongAnswer(
            "the padding multiplied by 0",
            _masked_by_product,
            "NaN at the padded positions",
            "0 times NaN is NaN. Select the real tokens: `before[real]`.",
        ),
        WrongAnswer(
            "one pad appended",
            _one_pad,
            "that a third column of padding moves",
            "Some encoders show no change for one or two columns. The docstring promises one for "
            "three.",
        ),
        WrongAnswer(
            "each output measured by itself",
            _each_for_itself,
            "at small outputs as well",
            "Rounding is a share of the largest number in the sum: a small output may change by "
            "much of itself. Compare the largest gap with the largest output.",
        ),
        WrongAnswer(
            "the verdict turned round",
            _turned,
            "you return True, expected False",
            "True means that the encoder is faulty.",
        ),
    ),
)


# 30.2 the ill line


def my_diagnosis():
    """Return the faulty line of program `two`, and the lengths T at which the program runs.

    Returns (line, lengths): the line as a string, copied from the code (spaces don't matter), and
    the list of those T from 1 to 8 for which ids of shape (3, T) raise no error.
    """
    return "future = future.unsqueeze(1)", [1, 8]


DIAGNOSIS = Answers(
    reference=my_diagnosis,
    equivalent={"… => …[8, 1])": "the order of the lengths is free"},
    wrong=(
        WrongAnswer(
            "the triangle blamed",
            lambda: (
                "future = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)", [1, 8]
            ),
            "is right there",
            "`triu` with diagonal 1 is True strictly above the diagonal: the future. The triangle "
            "is right, but it is broadcast over the wrong axes.",
        ),
        WrongAnswer(
            "every length runs",
            lambda: ("future = future.unsqueeze(1)", list(range(1, 9))),
            "at T=2 the program ends in an error",
            "(T, 1, T) is broadcast against (B, H, T, T): its first axis, T, meets the heads. That "
            "works only if T is 8, or 1.",
        ),
        WrongAnswer(
            "only the length of training",
            lambda: ("future = future.unsqueeze(1)", [8]),
            "at T=1 the program runs",
            "An axis of length 1 can be broadcast to any length.",
        ),
        WrongAnswer(
            "the line alone",
            lambda: "future = future.unsqueeze(1)",
            "expected two things",
            "The lengths are part of the task: `return line, lengths`.",
        ),
    ),
)  # fmt: skip


# 30.3 the repair


def my_repair(text):
    """Return the source of a program without its mistake, given the source with the mistake."""
    line = "        out = scores.softmax(dim=-1) @ v\n"
    mask = "        scores = scores.masked_fill(~real[:, None, None, :], -1e9)\n"
    return text.replace(line, mask + line)


def _with(mask):
    line = "        out = scores.softmax(dim=-1) @ v\n"
    return lambda text: text.replace(line, f"        {mask}\n" + line)


REPAIR = Answers(
    reference=my_repair,
    equivalent={},
    wrong=(
        WrongAnswer(
            "nothing changed",
            lambda text: text,
            "an output at a real token is off",
            "The text is unchanged. `replace` changes nothing, and raises no error, if the old "
            "text "
            "does not occur.",
        ),
        WrongAnswer(
            "the mask inverted",
            _with("scores = scores.masked_fill(real[:, None, None, :], -1e9)"),
            "with three lines of 9 tokens",
            "`masked_fill` fills where the mask is True: with `real` it hides every token and "
            "keeps "
            "the padding.",
        ),
        WrongAnswer(
            "queries hidden in place of keys",
            _with("scores = scores.masked_fill(~real[:, None, :, None], -1e9)"),
            "an output at a real token is off",
            "The last axis of the scores is that of the keys, and the padded keys must be hidden. "
            "A padded query does no harm.",
        ),
        WrongAnswer(
            "weights set to zero after the softmax",
            lambda text: text.replace(
                "scores.softmax(dim=-1) @ v",
                "(scores.softmax(dim=-1) * real[:, None, None, :]) @ v",
            ),
            "an output at a real token is off",
            "The weights of the real tokens no longer sum to 1: the padding has kept its share.",
        ),
        WrongAnswer(
            "the axis of the heads forgotten",
            _with("scores = scores.masked_fill(~real[:, None, :], -1e9)"),
            "",
            "(B, 1, T) is aligned with (B, H, T, T) on the right, so its B meets the heads.",
        ),
    ),
)


# 30.4 how bad is it?


def my_severity():
    """Return the names of four patients, from the one that costs least to the one that costs most.

    The names are "cache_off_by_one", "pads_as_keys", "scale_by_model" and "top_p_drops_all".
    """
    return ["scale_by_model", "pads_as_keys", "top_p_drops_all", "cache_off_by_one"]


SEVERITY = Answers(
    reference=my_severity,
    equivalent={},
    wrong=(
        WrongAnswer(
            "the scale taken for the worst",
            lambda: ["pads_as_keys", "top_p_drops_all", "cache_off_by_one", "scale_by_model"],
            "pads_as_keys does not cost least",
            "The scale is the same in training and at inference, so the weights grow to make up "
            "for "
            "it. Training can't make up for a mistake that is there at inference only.",
        ),
        WrongAnswer(
            "padding taken for deadlier than drawing",
            lambda: ["scale_by_model", "top_p_drops_all", "pads_as_keys", "cache_off_by_one"],
            "pads_as_keys",
            "Only the short lines of a batch have padding, and they still attend to their own "
            "tokens. Top-p without the most likely token is wrong wherever the model is certain.",
        ),
        WrongAnswer(
            "drawing taken for the worst",
            lambda: ["scale_by_model", "pads_as_keys", "cache_off_by_one", "top_p_drops_all"],
            "top_p_drops_all",
            "Top-p concerns one of three ways of generating; the cache is in all of them, and at "
            "every token.",
        ),
        WrongAnswer(
            "one name left out",
            lambda: ["scale_by_model", "pads_as_keys", "cache_off_by_one"],
            "expected a list of the four names",
            "The list has to contain all four, each once.",
        ),
    ),
)

ANSWERS = {"30.1": PADS, "30.2": DIAGNOSIS, "30.3": REPAIR, "30.4": SEVERITY}
