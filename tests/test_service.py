"""What models do for their users: the mask of a target, also beside a cache.

That a model made anew gets its table of positions back is in `test_every_model.py`.
"""

import pytest
import torch

from tinytf.attention import KeyValueCache
from tinytf.blocks import LayerCache
from tinytf.masks import CAUSAL, causal_mask, padding_mask
from tinytf.service import target_mask

PADDED = torch.tensor([[1, 5, 6, 7], [1, 5, 4, 4]])  # 4 is padding, as the test says


def test_without_a_cache_it_hides_what_is_later_and_padding(device):
    ids = PADDED.to(device)
    expected = causal_mask(4, device) & padding_mask(ids, 4)
    assert torch.equal(target_mask(ids, 4), expected)
    assert not torch.equal(expected, causal_mask(4, device).expand(2, 1, 4, 4))


def test_where_nothing_is_padding_the_kernel_needs_no_mask(device):
    assert target_mask(PADDED.to(device)) is CAUSAL  # 0 is padding, and there is none


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_with_a_cache_it_remembers_the_padding(cut, device):
    ids, cache = PADDED.to(device), [LayerCache(KeyValueCache(), KeyValueCache())]
    rows = []
    for part in (ids[:, :cut], ids[:, cut:]):
        mask = target_mask(part, 4, cache)
        rows.append(mask)
        new = torch.zeros(2, 1, part.size(1), 3, device=device)
        cache[0].self_attention.append(new, new)
    whole = target_mask(ids, 4)
    assert torch.equal(rows[1].expand(2, 1, 4 - cut, 4), whole[:, :, cut:])
    if rows[0] is not CAUSAL:
        assert torch.equal(rows[0], whole[:, :, :cut, :cut])
    assert (rows[0] is CAUSAL) == (cut < 3)
