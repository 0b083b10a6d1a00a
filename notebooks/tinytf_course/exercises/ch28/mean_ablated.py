"""28.3 a mean over the wrong axis (★★☆, 10 minutes)

This function should replace what one head computes by its mean. `z` of shape (B, H, T, D) holds the
outputs of all heads before they are joined, and `real` of shape (B, T) is True at tokens and False
at padding. It does some damage to the model, as expected, but whichever head it ablates, the tokens
get different vectors in its place.

```python
def my_mean_ablated(z, real, head):
    z[:, head] = z.mean(dim=1)
    return z
```

Repair it: `my_mean_ablated(z, real, head)` returns a `z` in which the given head has the same
vector at every position, the mean of its vectors over all real tokens of the batch.

<details><summary>The rule in detail</summary>

Each token counts once, whichever sentence it is in, and padded positions get the mean as well. They
may hold anything at first, even NaN. At least one token is real. The other heads stay as they are,
and so does the caller's `z`, whose dtype the result has.

</details>

Hint: There are three faults: the axis of the mean, the padding in it, and what is written into.

Hint: `z[:, head]` has shape (B, T, D), and `real` picks its tokens: (tokens, D).
"""

import math

import torch

from tinytf_course.expect import agrees, numbers, precise, same, tensor
from tinytf_course.words import given


def my_mean_ablated(z, real, head):
    """Replace a head's vectors by their mean over real tokens: z (B, H, T, D), real (B, T)."""
    out = z.clone()
    out[:, head] = z[:, head][real].mean(dim=0)  # (tokens, D) -> (D,)
    return out


def _m_by_loop(z, real, head):
    """Summed token by token."""
    rows = [z[b, head, t] for b in range(len(z)) for t in range(z.size(2)) if real[b, t]]
    mean = torch.stack(rows).sum(dim=0) / len(rows)
    parts = [mean.expand_as(z[:, 0]) if h == head else z[:, h] for h in range(z.size(1))]
    return torch.stack(parts, dim=1)


def _real(*lengths, width):
    return torch.arange(width)[None] < torch.tensor(lengths)[:, None]


Z = torch.tensor([[[[1.0], [3.0]], [[10.0], [20.0]]], [[[5.0], [100.0]], [[30.0], [40.0]]]])
R = torch.tensor([[True, True], [True, False]])


def test_m_small(answer):
    """the mean is over tokens, of this head"""
    agrees(answer, _m_by_loop, Z[:1], R[:1], 0, note="Head 0's tokens are 1 and 3, mean 2.")


def test_m_sentences(answer):
    """over the tokens of all sentences together, without the padding"""
    note = "The real tokens of head 0 are 1, 3 and 5; 100 is padding."
    agrees(answer, _m_by_loop, Z, R, 0, note=note)
    agrees(answer, _m_by_loop, Z, R, 1)


def test_m_others(answer):
    """other heads keep what they had"""
    z, real = numbers(3, 4, 5, 2, seed=1), _real(5, 2, 4, width=5)
    for head in range(4):
        agrees(answer, _m_by_loop, z, real, head)


def test_m_sizes(answer):
    """for any sizes, and padding anywhere, whatever it contains"""
    agrees(answer, _m_by_loop, numbers(2, 3, 3, 3, seed=2), _real(1, 3, width=3), 2)
    agrees(answer, _m_by_loop, numbers(1, 1, 1, 4, seed=3), _real(1, width=1), 0)
    agrees(answer, _m_by_loop, numbers(4, 2, 6, 1, seed=4), _real(6, 1, 3, 2, width=6), 1)
    holes = torch.tensor([[False, True, True], [False, False, True], [False, False, False]])
    agrees(answer, _m_by_loop, numbers(3, 2, 3, 2, seed=5), holes, 0)
    spoilt = numbers(3, 2, 3, 2, seed=5).masked_fill(~holes[:, None, :, None], math.nan)
    where = given(my_mean_ablated, (spoilt, holes, 0))
    note = "Padded positions hold NaN here, and 0 times NaN is NaN."
    got = tensor(answer(spoilt, holes, 0), where)
    same(got[:, 0], _m_by_loop(spoilt, holes, 0)[:, 0], f"{where}, in head 0", note=note)


def test_m_kinds(answer):
    """in other dtypes"""
    z, real = numbers(2, 3, 4, 2, seed=6), _real(4, 2, width=4)
    agrees(answer, _m_by_loop, z.double(), real, 1)
    precise(answer, _m_by_loop, z, real, 1, dtype=torch.float16, tolerance=2e-3)


MISTAKES = r"""
the mean over heads
    z[:, head][real].mean(dim=0) => z.mean(dim=1)
    says: Head 0's tokens are 1 and 3
    Axis 1 holds the heads, so each token gets the mean of its own heads.
padding in the mean
    [real].mean(dim=0) => .mean(dim=(0, 1))
    says: 100 is padding
    What a head computes at padding belongs to no token and shifts the mean.
each sentence's own mean
    out[:, head] = z[:, head][real].mean(dim=0) =>
        sums = (z[:, head] * real[..., None]).sum(dim=1, keepdim=True)
        out[:, head] = sums / real.sum(dim=1).clamp(min=1)[:, None, None]
    says: The real tokens of head 0 are 1, 3 and 5
    A sentence's own mean still contains information about this sentence.
the mean of the sentences' means
    out[:, head] = z[:, head][real].mean(dim=0) =>
        sums = (z[:, head] * real[..., None]).sum(dim=1)
        out[:, head] = (sums / real.sum(dim=1).clamp(min=1)[:, None]).mean(dim=0)
    says: The real tokens of head 0 are 1, 3 and 5
    Then a token of a short sentence counts for more.
the caller's tensor is changed
    z.clone() => z
    says: chang
    The next ablation would start from the tensor that this one has changed.
padding keeps what it had
    out[:, head] = z => out[:, head][real] = z
    says: 100 is padding
    The statement asks for the mean at every position, including padding.
padding multiplied by 0
    z[:, head][real].mean(dim=0) =>
        (z[:, head] * real[..., None]).sum(dim=(0, 1)) / real.sum()
    says: hold NaN here
    0 times NaN is NaN. Pick the tokens out: `z[:, head][real]`.
"""
