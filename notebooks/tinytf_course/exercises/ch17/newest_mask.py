"""17.5 the mask of the newest tokens (★★☆, 15 minutes)

With a cache the decoder receives only the new tokens, while its keys are all tokens. Write
`my_newest_mask(ids, new, pad_id=0)`, where `ids` `(B, S)` are all tokens so far: the boolean mask
`(B, 1, new, S)` for the last `new` of them as queries. A query may attend to a key that is not
later than itself and is not padding. (A query that is padding follows the same rule, since its
output is not used.)

Hint: The rows you want are the last `new` of the whole causal mask.
"""

import torch

from tinytf_course.expect import agrees, expect, same, short, tensor, travels


def my_newest_mask(ids, new, pad_id=0):
    """What the last `new` of the tokens ids (B, S) may attend to: boolean (B, 1, new, S).

    True where the key is not padding and not later than the query.
    """
    S = ids.size(1)
    causal = torch.ones(S, S, dtype=torch.bool, device=ids.device).tril()
    return causal[S - new :] & (ids != pad_id)[:, None, None, :]


IDS = torch.tensor([[0, 5, 6, 7, 8], [4, 5, 0, 7, 8]])
_IDS = f"for ids={short(IDS)}, new=2"


def test_mask_shape(answer):
    """a row for each new token, a column for every token, an axis for heads"""
    got = tensor(answer(IDS, 2), _IDS)
    axes = "expected (2, 1, 2, 5): sentences, an axis of 1 for the heads, new tokens, all tokens"
    expect(got.shape == (2, 1, 2, 5), f"{_IDS}, the shape is {tuple(got.shape)}, {axes}")
    expect(got.dtype == torch.bool, f"{_IDS}, the dtype is {got.dtype}, expected torch.bool")


def _cell(answer, b, query, key, wanted, note, new=2):
    got = tensor(answer(IDS, new), _IDS)
    got = got.expand(2, 1, new, 5)[b, 0, query, key]
    where = f"for ids={short(IDS)}, new={new}, sentence {b}, new token {query}, key {key}"
    expect(bool(got) == wanted, f"{where}: {bool(got)}; {note}")


def test_no_future(answer):
    """a new token does not see a newer one"""
    _cell(answer, 0, 0, 4, False, "token 3 may not see token 4")


def test_sees_itself(answer):
    """a new token sees itself"""
    _cell(answer, 0, 0, 3, True, "new token 0 is token 3, and sees itself")
    _cell(answer, 0, 1, 4, True, "new token 1 is token 4, and sees itself")


def test_sees_old(answer):
    """a new token sees the old ones, which are cached"""
    for key in (1, 2):
        _cell(answer, 0, 0, key, True, "it is an earlier word")
    _cell(answer, 1, 1, 3, True, "it is an earlier word")


def test_no_padding(answer):
    """no token sees padding"""
    _cell(answer, 0, 0, 0, False, "key 0 is padding")
    _cell(answer, 1, 1, 2, False, "key 2 is padding")


def test_padded_query(answer):
    """a sentence that has ended keeps its rows"""
    where = "for ids=[[5, 6, 7, 0, 0]], new=2"
    got = tensor(answer(torch.tensor([[5, 6, 7, 0, 0]]), 2), where)
    wanted = [[[[True, True, True, False, False]] * 2]]
    same(got, wanted, where, note="Padding is hidden as a key; as a query it has the same rule.")


def test_all_new(answer):
    """with every token new it is the mask of training"""
    got = tensor(answer(torch.tensor([[3, 4, 5]]), 3), "for ids=[[3, 4, 5]], new=3")
    wanted = torch.ones(3, 3, dtype=torch.bool).tril()[None, None]
    same(got, wanted, "for ids=[[3, 4, 5]], new=3")


def test_other_pad(answer):
    """the padding id is the argument"""
    where = "for ids=[[9, 0, 3]], new=1, pad_id=9"
    got = tensor(answer(torch.tensor([[9, 0, 3]]), 1, 9), where).reshape(-1)
    same(got, [False, True, True], where, note="Here 9 is padding and 0 is a word.")


def _pair_by_pair(ids, new, pad_id=0):
    """Each new token and each token."""
    batch, length = ids.shape
    mask = torch.zeros(batch, 1, new, length, dtype=torch.bool)
    for b in range(batch):
        for i in range(new):
            for key in range(length - new + i + 1):
                mask[b, 0, i, key] = ids[b, key].item() != pad_id
    return mask


def test_any_ids(answer):
    """any batch, any number of new tokens"""
    for case in (((1, 1), 1), ((2, 1), 1), ((1, 6), 1), ((3, 4), 2), ((2, 5), 4), ((3, 4), 4)):
        (shape, new), made = case, torch.Generator().manual_seed(sum(case[0]))
        ids = torch.randint(0, 4, shape, generator=made)
        agrees(answer, _pair_by_pair, ids, new)
        agrees(answer, _pair_by_pair, ids, new, 2)


def test_mask_travels(answer):
    """the mask is on the device of the ids"""
    travels(answer, IDS, 2)


MISTAKES = r"""
the triangle starts in the corner
    causal[S - new :] => causal[:new]
    says: new token 0 is token 3, and sees itself
    The first rows of the triangle take the first new token for token 0. It is token S - new, and
    everything before it may be seen.
everything visible
    .tril() =>
    says: token 3 may not see token 4
    One new token may see everything before it, so no causal mask is needed. Two may not see
    each other both ways.
diagonal excluded
    .tril() => .tril(-1)
    says: and sees itself
    The input is already shifted by one: a position may see itself.
inverted
    causal[S - new :] => ~causal[S - new :]
    says: token 3 may not see token 4
    Here True means “may attend”. This one sees the future only: the mistake of one of the
    tutorials.
padding forgotten
    causal[S - new :] & (ids != pad_id)[:, None, None, :] =>
        causal[S - new :].expand(len(ids), 1, -1, -1)
    says: key 0 is padding
    Padding in the future is hidden by the causal mask; padding on the left, or in the middle of
    what is cached, is not.
padded queries see nothing
    [:, None, None, :] => [:, None, None, :] & (ids[:, -new:] != pad_id)[:, None, :, None]
    says: as a query it has the same rule
    Rows with nothing allowed are what attention has trouble with; a padded query does no harm,
    since nothing reads its output.
a square mask
    causal[S - new :] => causal
    says: the shape is (2, 1, 5, 5), expected (2, 1, 2, 5)
    The queries are only the new tokens; the output at the old ones is known already.
the new tokens only
    causal[S - new :] & (ids => causal[S - new :, S - new :] & (ids[:, -new:]
    says: the shape is (2, 1, 2, 2), expected (2, 1, 2, 5)
    The keys of earlier steps are in the cache and are attended to again.
no axis for the heads
    [:, None, None, :] => [:, None, :]
    says: the shape is (2, 2, 5), expected (2, 1, 2, 5)
    Broadcast against (B, H, new, S), its batch meets the heads.
made on the CPU
    , device=ids.device =>
    says: on another device than the CPU it fails
    The ids may be on a GPU, and the triangle has to be there, too: give it `device=ids.device`.
padding id fixed
    ids != pad_id => ids != 0
    says: Here 9 is padding and 0 is a word
    Use the argument `pad_id`.
"""
