"""23.4 put trained heads into groups (★★☆, 10 minutes)

Ainslie et al. (2023) convert a trained model to groups by initialising the key head of a group with
the *mean* of its old heads. Write `my_grouped_map(weight, num_heads, num_kv_heads)`, which does
this for the weight `(H D, C)` of a key or value projection and returns `(G D, C)`, where H is
num_heads and G is num_kv_heads.

<details><summary>The rule in detail</summary>

The heads of a group are neighbours, and row i of a new head is the mean of the rows i of its old
heads. `weight` stays unchanged, and the result keeps its dtype and device.

</details>

Hint: Split the rows into three axes: the group, the head within the group, and the row within the
head. Over which of them do you average?
"""

import torch

from tinytf_course.expect import agrees, numbers, precise, travels


def my_grouped_map(weight, num_heads, num_kv_heads):
    """Put the heads of a key or value projection, (H D, C), into groups: (G D, C).

    The new head of a group is the mean of its old ones, which are neighbours. H is num_heads, and G
    is num_kv_heads and divides it.
    """
    width = len(weight) // num_heads
    groups = weight.view(num_kv_heads, -1, width, weight.size(1))  # (H D, C) -> (G, H/G, D, C)
    return groups.mean(dim=1).flatten(0, 1)  # (G, H/G, D, C) -> (G D, C)


def _mean_by_mean(weight, num_heads, num_kv_heads):
    """Each new row as the mean of its old ones, one by one."""
    width, size = len(weight) // num_heads, num_heads // num_kv_heads
    new = weight.new_zeros(num_kv_heads * width, weight.size(1))
    for row in range(len(new)):
        group, place = divmod(row, width)
        old = [weight[(group * size + member) * width + place] for member in range(size)]
        new[row] = sum(old) / size
    return new


def test_two_heads(answer):
    """two heads of one row each become their mean"""
    note = "The rows are 6 and 2; their mean is 4."
    agrees(answer, _mean_by_mean, torch.tensor([[6.0], [2.0]]), 2, 1, note=note)


def test_own_rows(answer):
    """row i of the new head is the mean of the rows i of the old ones"""
    weight = torch.tensor([[3.0], [10.0], [1.0], [30.0]])
    note = "Rows 0 and 2 are first rows of a head, 1 and 3 second ones: expected are 2 and 20."
    agrees(answer, _mean_by_mean, weight, 2, 1, note=note)


def test_neighbours_share(answer):
    """the heads of a group are neighbours"""
    weight = torch.tensor([[3.0], [1.0], [300.0], [100.0]])
    note = "Heads 0 and 1 make the first group, heads 2 and 3 the second: expected are 2 and 200."
    agrees(answer, _mean_by_mean, weight, 4, 2, note=note)


def test_any_heads(answer):
    """for any number of heads, groups and columns"""
    weight = numbers(12, 5, seed=1)
    agrees(answer, _mean_by_mean, weight, 6, 2, note="6 heads of 2 rows, in 2 groups of 3.")
    agrees(answer, _mean_by_mean, weight, 6, 3, note="6 heads of 2 rows, in 3 groups of 2.")
    agrees(answer, _mean_by_mean, weight, 6, 6, note="As many groups as heads: nothing changes.")
    agrees(answer, _mean_by_mean, weight, 1, 1, note="One head stays as it is.")
    agrees(answer, _mean_by_mean, numbers(24, 3, seed=2), 4, 2, note="4 heads of 6 rows.")


def test_arrives(answer):
    """dtype and device stay"""
    precise(answer, _mean_by_mean, numbers(12, 5, seed=4), 6, 2, dtype=torch.float64)
    precise(answer, _mean_by_mean, numbers(12, 5, seed=4), 6, 2, dtype=torch.bfloat16)
    travels(answer, numbers(12, 5, seed=5), 6, 2)


MISTAKES = r"""
the first head of each group
    groups.mean(dim=1) => groups[:, 0]
    says: their mean is 4
    The paper tried that as well. It forgets what the other heads have learned.
the sum
    groups.mean => groups.sum
    says: their mean is 4
    The sum makes the scores larger by the size of a group, so divide by that size.
one mean for all rows of a head
    groups.mean(dim=1) => groups.mean(dim=(1, 2), keepdim=True).expand_as(groups)[:, 0]
    says: expected are 2 and 20
    The rows of a head are different features of its keys. Average over heads, row by row.
neighbouring rows
    weight.view(num_kv_heads, -1, width, weight.size(1)) =>
        weight.unflatten(0, (-1, num_heads // num_kv_heads))
    .flatten(0, 1) =>
    says: expected are 2 and 20
    Neighbouring rows belong to one head. The same row of the next head is D rows further on.
every other head
    (num_kv_heads, -1, width => (-1, num_kv_heads, width
    mean(dim=1) => mean(dim=0)
    says: expected are 2 and 200
    The heads of a group are neighbours, as in `repeat_interleave`. With 4 heads in 2 groups,
    they are 0 and 1, then 2 and 3.
groups and their size exchanged
    (num_kv_heads, -1, width => (num_heads // num_kv_heads, -1, width
    says: The rows are 6 and 2
    num_kv_heads is the number of groups, not the number of heads in one.
float32 comes out
    weight.view => weight.float().view
    says: the dtype is float32, expected float64
    `.float()` gives float32, whatever came in. Keep the dtype of `weight`.
the mean written over the first head
    groups.mean(dim=1) => groups[:, 0].copy_(groups.mean(dim=1))
    says: your code changes the caller's `weight`
    A view shares the caller's memory, so this has changed the old model.
"""

HARMLESS = r"""
groups = … => groups = weight.reshape(num_kv_heads, -1, width, weight.size(1))
    as good as `view`, and more patient
"""
