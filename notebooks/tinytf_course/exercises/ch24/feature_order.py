"""24.2 order or computation? (★★☆, 10 minutes)

Two programs have read the same tokens, and you have the states that each computed, but neither
program's code. Do the states differ only in the order of their features? Write
`my_feature_order(ours, theirs)`, which returns that order, or None if something else has been
computed.

<details><summary>The rule in detail</summary>

Both are (N, C), a row of C features for each of N tokens. The order is a list of all numbers from 0
to C - 1, in which `order[j]` is the number that their feature j has in ours. Equal means within
1e-4, as two programs round differently. No two features of ours are equal for all tokens.

</details>

Hint: At one token two features may happen to be equal. So what do you compare to find out whether
their feature 3 is our feature 5?

Hint: Make a table (C, C) of how far each of their features is from each of ours, at the token where
it is furthest. Each of theirs belongs to the nearest of ours. Two things can still be wrong then.
"""

import torch
import torch.nn.functional as F

from tinytf_course.expect import agrees, numbers
from tinytf_course.words import short


def my_feature_order(ours, theirs):
    """Return for each feature of theirs its number in ours, a list, or None if there is no order.

    ours and theirs are (N, C): what two programs computed for the same N tokens. With the order,
    `ours[:, order]` equals theirs to within 1e-4.
    """
    gaps = (theirs.T[:, None] - ours.T).abs().amax(dim=-1)  # (C, C), theirs by ours
    nearest, order = gaps.min(dim=1)
    if nearest.max() > 1e-4 or len(order.unique()) < len(order):
        return None
    return order.tolist()


NONE_IS_A_RESULT = True
ORDER = [2, 0, 3, 1]
OURS = torch.tensor([[10.0, 20.0, 30.0, 40.0], [4.0, 0.0, 1.0, 2.0]])
STATES = numbers(50, 4, seed=1)


def test_found(answer):
    """an order is found, and told in the right direction"""
    note = "Their feature 0 is our feature 2."
    agrees(answer, ORDER, OURS, OURS[:, ORDER], note=note)
    agrees(answer, [0, 1, 2, 3], OURS, OURS, note="Nothing has moved.")
    agrees(answer, [0], OURS[:, :1], OURS[:, :1])


def test_rounded(answer):
    """a rounding error is no other computation"""
    rounded = OURS[:, ORDER] + torch.tensor([[3e-5, -3e-5, 2e-5, 0.0]])
    where = f"for {short(OURS)} in the order {ORDER}, each number rounded by up to 0.00003"
    agrees(answer, ORDER, OURS, rounded, where=where)
    ours = OURS + torch.tensor([[0.0, 0.00046, 0.00496, 0.04996]])
    theirs = (ours + torch.tensor([[8e-5], [-8e-5]]))[:, ORDER]
    where = f"for {short(ours, 7)} in the order {ORDER}, each number moved by 0.00008"
    note = "Numbers that are near may be rounded apart: 0.00046 and 0.00054 to 0 and 0.001."
    agrees(answer, ORDER, ours, theirs, where=where, note=note)


def test_all_tokens(answer):
    """features that agree at one token are told apart at another"""
    ours = torch.tensor([[5.0, 5.0, 1.0], [1.0, 3.0, 6.0]])
    agrees(answer, [2, 1, 0], ours, ours[:, [2, 1, 0]], note="At the first token two are 5.")
    agrees(answer, [1, 0, 2], ours, ours[:, [1, 0, 2]], note="At the first token two are 5.")


def test_means(answer):
    """features of the same mean are told apart"""
    ours = torch.tensor([[5.0, 4.0, 1.0], [1.0, 2.0, 5.0]])
    agrees(answer, [2, 0, 1], ours, ours[:, [2, 0, 1]], note="The mean of each feature is 3.")


def test_other_numbers(answer):
    """where one feature is none of ours, something else was computed"""
    theirs = OURS[:, ORDER] + torch.tensor([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    agrees(answer, None, OURS, theirs, note="None of ours is 21.")
    theirs = STATES[:, ORDER].clone()
    theirs[30, 1] += 1.5e-4
    where = "for 50 tokens of four features, one number of theirs wrong by 0.00015"
    agrees(answer, None, STATES, theirs, where=where)
    theirs = STATES[:, ORDER].clone()
    theirs[0, 1] += 4e-3
    where = "for 50 tokens of four features, one number of theirs wrong by 0.004"
    agrees(answer, None, STATES, theirs, where=where)
    ours = 10 * OURS
    theirs = ours[:, ORDER]
    theirs[0, 0] += 1e-3
    where = f"for {short(ours)} in the order {ORDER}, one number of theirs wrong by 0.001"
    note = "Within 1e-4, however large the numbers are."
    agrees(answer, None, ours, theirs, where=where, note=note)


def test_scaled(answer):
    """a factor is a computation"""
    where = "for 50 tokens of four features, theirs twice as large"
    note = "That is what a forgotten scale of the embeddings does."
    agrees(answer, None, STATES, 2 * STATES[:, ORDER], where=where, note=note)


def test_twice(answer):
    """an order has each feature once"""
    theirs = OURS[:, [2, 2, 3, 1]]
    agrees(answer, None, OURS, theirs, note="Each of theirs is one of ours, and our 10 is lost.")


def test_one_order(answer):
    """all tokens have the same order"""
    theirs = torch.tensor([[3.0, 2.0, 1.0], [4.0, 6.0, 5.0]])
    ours = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    note = "At each token the same numbers, but another order."
    agrees(answer, None, ours, theirs, note=note)


def test_any_states(answer):
    """states of any width and length"""
    for width, tokens in ((7, 3), (12, 20)):
        ours = numbers(tokens, width, seed=width)
        order = numbers(width, seed=width + 1).argsort().tolist()
        where = f"for {tokens} tokens of {width} features, moved"
        agrees(answer, order, ours, ours[:, order], where=where)
        where = f"for {tokens} tokens of {width} features, GELU for ReLU"
        agrees(answer, None, F.relu(ours), F.gelu(ours)[:, order], where=where)


MISTAKES = r"""
the inverse order
    order.tolist() => order.argsort().tolist()
    says: Their feature 0 is our feature 2
    That is for each of ours its number in theirs. The task asks for each of theirs.
equal to the last bit
    nearest.max() > 1e-4 => nearest.max() > 0
    says: each number rounded by up to 0.00003
    Sums in another order round differently. A comparison that allows no rounding takes every port
    for another computation.
only the first token compared
    .amax(dim=-1) => [..., 0]
    says: for ours=[[5, 5, 1], [1, 3, 6]]
    Two features may agree at one token by chance. The same feature agrees at all of them.
only the means compared
    .abs().amax(dim=-1) => .mean(dim=-1).abs()
    says: for ours=[[5, 4, 1], [1, 2, 5]]
    Different features may have the same mean over the tokens. Compare them token by token.
one wrong number lost in an average
    .amax(dim=-1) => .mean(dim=-1)
    says: one number of theirs wrong by 0.00015
    A difference at one token of many is small on average. Look at the largest one.
too forgiving
    nearest.max() > 1e-4 => nearest.max() > 1e-2
    says: one number of theirs wrong by 0.00015
    With a tolerance far wider than the 1e-4 that is asked for, another computation passes.
a tolerance that grows with the numbers
    nearest.max() > 1e-4 => (nearest > 1e-4 + 1e-5 * theirs.abs().amax(dim=0)).any()
    says: one number of theirs wrong by 0.001
    `torch.allclose` adds `rtol` times the numbers, 1e-5 of them if you don't say otherwise: give it
    `rtol=0`.
rounded and looked up
    gaps = =>
        keys = [tuple(column.mul(1e4).round().tolist()) for column in ours.T]
        asked = [tuple(column.mul(1e4).round().tolist()) for column in theirs.T]
        found = [keys.index(key) if key in keys else None for key in asked]
        return None if None in found or len({*found}) < len(found) else found
        gaps =
    says: each number moved by 0.00008
    Two numbers may be near and still be rounded to different ones. Compare their difference with
    the tolerance.
the nearest, however far
    nearest.max() > 1e-4 or =>
    says: None of ours is 21
    There is always a nearest feature. Whether it is the same one is another question.
one feature that fits
    nearest.max() => nearest.min()
    says: None of ours is 21
    All features have to be found, not just one.
a feature taken twice
     or len(order.unique()) < len(order) =>
    says: our 10 is lost
    If two of theirs are the same one of ours, then another one of ours is lost: no reordering does
    that.
the scale ignored
    gaps = =>
        ours, theirs = (x / x.norm(dim=0) for x in (ours, theirs))
        gaps =
    says: theirs twice as large
    Features of one direction but another length have been multiplied by something, and no order
    of the weights undoes that.
each token sorted by itself
    gaps = =>
        if (ours.sort(dim=-1).values - theirs.sort(dim=-1).values).abs().max() > 1e-4:
            return None
        return ours[0].argsort()[theirs[0].argsort().argsort()].tolist()
        gaps =
    says: At each token the same numbers
    Each row has the same numbers, but a weight can be moved only once, for all tokens alike.
"""

HARMLESS = r"""
return order.tolist() => return order
    a tensor holds the same numbers
… => …nearest.max() >= …
    no two numbers differ by exactly 1e-4
… => …len(order.unique()) < len(gaps):
    there is a row of gaps for each feature
… => …len(order.unique()) < len(nearest):
    there is a nearest for each feature
"""
