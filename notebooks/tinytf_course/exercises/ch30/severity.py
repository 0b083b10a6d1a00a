"""30.4 how bad is it? (★☆☆, 8 minutes)

Order four patients by the share of the score that they cost. Write `my_severity()`, without
arguments, which returns the list of the four names, from the one that costs least to the one that
costs most.

* *scale_by_model* divides the scores by √d_model in place of √d_k, in training and at inference.
* *pads_as_keys*, an encoder trained without any padding, attends to the padding of short lines.
* *top_p_drops_all* drops the most likely token where its probability exceeds p, and a third of its
  score is for sampling with top-p.
* *cache_off_by_one* gives each new token the position of the one before, and only when it uses its
  cache.

Hint: For each patient, ask first whether the mistake is there in training, too.

Hint: Training often makes up for a mistake that is there in training.

Hint: Of the others, the first concerns short lines only, the second a third of the score, and the
third every token.
"""

from itertools import pairwise

from tinytf_course.expect import expect
from tinytf_course.grading import hint
from tinytf_course.words import short


def my_severity():
    """Return the names of four patients, from the one that costs least to the one that costs most.

    The names are "cache_off_by_one", "pads_as_keys", "scale_by_model" and "top_p_drops_all".
    """
    return ["scale_by_model", "pads_as_keys", "top_p_drops_all", "cache_off_by_one"]


FOUR = ("scale_by_model", "pads_as_keys", "top_p_drops_all", "cache_off_by_one")


def test_names(answer):
    """it returns the four names, each once"""
    got = answer()
    fine = isinstance(got, list | tuple) and sorted(map(str, got)) == sorted(FOUR)
    expect(fine, f"you return {short(got)}, expected a list of the four names, each once")
    return list(got)


@hint("Which of them can training make up for, because it is there in training, too?")
def test_least(answer):
    """the first costs least"""
    got = test_names(answer)
    expect(
        got[0] == FOUR[0],
        f"{got[0]} does not cost least: training can't make up for it",
    )


@hint("How often does each matter: at every token, at every sample, in some batches?")
def test_order(answer):
    """each costs more than the one before"""
    got = test_names(answer)
    for one, other in pairwise(got):
        expect(FOUR.index(one) < FOUR.index(other), f"{one} costs more than {other}")


MISTAKES = r"""
the scale taken for the worst
    ["scale_by_model", => [
    "cache_off_by_one"] => "cache_off_by_one", "scale_by_model"]
    says: pads_as_keys does not cost least
    The scale is the same in training and at inference, so the weights grow to make up for it.
    Training can't make up for a mistake that is there at inference only.
padding taken for deadlier than drawing
    "pads_as_keys", "top_p_drops_all" => "top_p_drops_all", "pads_as_keys"
    says: pads_as_keys
    Only the short lines of a batch have padding, and they still attend to their own tokens.
    Top-p without the most likely token is wrong wherever the model is certain.
drawing taken for the worst
    "top_p_drops_all", "cache_off_by_one"] => "cache_off_by_one", "top_p_drops_all"]
    says: top_p_drops_all
    Top-p concerns one of three ways of generating; the cache is in all of them, and at every
    token.
one name left out
    "top_p_drops_all", "cache_off_by_one"] => "cache_off_by_one"]
    says: expected a list of the four names
    The list has to contain all four, each once.
"""
