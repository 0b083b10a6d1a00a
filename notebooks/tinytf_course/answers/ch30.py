"""Answers to chapter 30: references and mistakes."""

import torch.nn.functional as F

from tinytf_course.grading import Answers, WrongAnswer

# 30.1 a check of padding


def my_pads_move(read, src, pad):
    """Whether more padding changes what `read` gives at a real place: True or False.

    read maps ids (B, S) to outputs (B, S, C), for any S. src (B, S) is filled up with `pad` on
    the right.
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
            "gives anything at the places of the padding",
            "What stands on a padded place is read by nobody: compare the real places only.",
        ),
        WrongAnswer(
            "NaN passes",
            _blind_to_nan,
            "NaN when there is more padding",
            "Every comparison with NaN is False, so `gap > limit` acquits it. Ask whether the gap "
            "is at most the limit, and convict if not.",
        ),
        WrongAnswer(
            "the mean of the changes",
            _mean,
            "that is ill in row",
            "A single place that moves is averaged away among all that don't. Take the largest.",
        ),
        WrongAnswer(
            "changes without their absolute value",
            _signed,
            "that is ill in row",
            "A change downwards is one, too: `.abs()` before the largest.",
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
            "Sums of another length are rounded otherwise. A check with false alarms is switched "
            "off by the first who is woken by it.",
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
            "ill only at the word 0",
            "The padding's number is an argument, `pad`; elsewhere 0 is a word.",
        ),
        WrongAnswer(
            "numpy asked for a tensor with a gradient",
            _numpy,
            "",
            "Outputs hang on the weights: stay with tensors, or `detach()` first.",
        ),
        WrongAnswer(
            "the padding's outputs taken for the largest",
            _padding_in_the_scale,
            "a million at the places of the padding",
            "The largest output is that of a token: take it of `before[real]`, like the gap.",
        ),
        WrongAnswer(
            "the padding multiplied by 0",
            _masked_by_product,
            "NaN at the places of the padding",
            "0 times NaN is NaN. Pick the real places out: `before[real]`.",
        ),
        WrongAnswer(
            "one pad appended",
            _one_pad,
            "that a third pad moves",
            "Some encoders stand a pad or two. The statement promises a change for three.",
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
            "True says that the encoder is ill.",
        ),
    ),
)


# 30.2 the ill line


def my_diagnosis():
    """The ill line of program `two` as a text, and the lengths T, 1 to 8, at which it runs.

    Returns (line, lengths): a line of the code, and the list of those lengths.
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
            "is right; it is laid over the wrong axes.",
        ),
        WrongAnswer(
            "every length runs",
            lambda: ("future = future.unsqueeze(1)", list(range(1, 9))),
            "at T=2 the program ends in an error",
            "(T, 1, T) is stretched against (B, H, T, T): its first axis, T, meets the heads. That "
            "goes only if T is 8, or 1.",
        ),
        WrongAnswer(
            "only the length of training",
            lambda: ("future = future.unsqueeze(1)", [8]),
            "at T=1 the program runs",
            "An axis of length 1 stretches to anything.",
        ),
        WrongAnswer(
            "the line alone",
            lambda: "future = future.unsqueeze(1)",
            "expected two things",
            "The lengths are asked for as well: `return line, lengths`.",
        ),
    ),
)  # fmt: skip


# 30.3 the repair


def my_repair(text):
    """Repair a program: its source text with one mistake in it, to the source text without."""
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
            "an output at a real place is off",
            "The text comes back as it was given. `replace` changes nothing, and says nothing, if "
            "the old text does not occur.",
        ),
        WrongAnswer(
            "the mask inverted",
            _with("scores = scores.masked_fill(real[:, None, None, :], -1e9)"),
            "with three lines of 9 tokens",
            "`masked_fill` fills where the mask is True: with `real` it hides every word and keeps "
            "the padding.",
        ),
        WrongAnswer(
            "queries hidden in place of keys",
            _with("scores = scores.masked_fill(~real[:, None, :, None], -1e9)"),
            "an output at a real place is off",
            "The last axis of the scores is the keys'. What has to be hidden is what may be looked "
            "at, not who looks.",
        ),
        WrongAnswer(
            "weights set to zero after the softmax",
            lambda text: text.replace(
                "scores.softmax(dim=-1) @ v",
                "(scores.softmax(dim=-1) * real[:, None, None, :]) @ v",
            ),
            "an output at a real place is off",
            "The weights of the words no longer sum to 1: the padding has kept its share.",
        ),
        WrongAnswer(
            "the axis of the heads forgotten",
            _with("scores = scores.masked_fill(~real[:, None, :], -1e9)"),
            "",
            "(B, 1, T) meets (B, H, T, T) from the right: its B falls on the heads.",
        ),
    ),
)


# 30.4 how bad is it?


def my_severity():
    """Four patients, from the one that costs least to the one that costs most.

    Returns a list of the names "cache_off_by_one", "pads_as_keys", "scale_by_model" and
    "top_p_drops_all".
    """
    return ["scale_by_model", "pads_as_keys", "top_p_drops_all", "cache_off_by_one"]


SEVERITY = Answers(
    reference=my_severity,
    equivalent={},
    wrong=(
        WrongAnswer(
            "the scale taken for the worst",
            lambda: ["pads_as_keys", "top_p_drops_all", "cache_off_by_one", "scale_by_model"],
            "pads_as_keys is not the cheapest",
            "The scale is the same in training and in use, so the weights grow to make up for it. "
            "What is only there in use, nothing makes up for.",
        ),
        WrongAnswer(
            "padding taken for deadlier than drawing",
            lambda: ["scale_by_model", "top_p_drops_all", "pads_as_keys", "cache_off_by_one"],
            "pads_as_keys",
            "Only the short lines of a batch have padding, and each still sees its own words. "
            "A top-p that drops the likeliest token is wrong wherever the model is sure.",
        ),
        WrongAnswer(
            "drawing taken for the worst",
            lambda: ["scale_by_model", "pads_as_keys", "cache_off_by_one", "top_p_drops_all"],
            "top_p_drops_all",
            "Top-p concerns one way of writing of three; the cache is in all of them, and at every "
            "token.",
        ),
        WrongAnswer(
            "one name left out",
            lambda: ["scale_by_model", "pads_as_keys", "cache_off_by_one"],
            "expected a list of the four names",
            "All four are asked for, each once.",
        ),
    ),
)

ANSWERS = {"30.1": PADS, "30.2": DIAGNOSIS, "30.3": REPAIR, "30.4": SEVERITY}
