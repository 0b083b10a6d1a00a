"""T5's and BART's noises: what goes in can be rebuilt, shares are right, nothing else changes."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.training.denoising import (
    corrupt_spans,
    cut_at_random,
    delete_words,
    drop_spans,
    infill_spans,
    mask_words,
    permute_sentences,
    restore_spans,
    rotate_document,
    span_noise,
)

SENTINELS = range(999, 899, -1)
MASK, STOP = 500, 7


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def text(n, seed=0):
    """Distinct ids, so that where a token went can be seen."""
    return torch.randperm(n, generator=draws(seed)) + 10


lengths, seeds = st.integers(2, 120), st.integers(0, 10_000)


@bounded
@given(n=lengths, seed=seeds, share=st.floats(0.05, 0.5), mean=st.floats(1, 6), roll=st.booleans())
def test_a_text_can_be_rebuilt_from_what_is_left_and_the_target(n, seed, share, mean, roll):
    ids = text(n, seed)
    before = ids.clone()
    left, target = corrupt_spans(ids, SENTINELS, draws(seed), share, mean, roll)
    assert torch.equal(restore_spans(left, target, SENTINELS), ids)
    assert torch.equal(ids, before)


def test_all_cuts_are_as_likely():
    g, trials = draws(), 6000
    found = Counter(tuple(cut_at_random(5, 3, g)) for _ in range(trials))
    assert set(found) == {(1, 1, 3), (1, 3, 1), (3, 1, 1), (1, 2, 2), (2, 1, 2), (2, 2, 1)}
    for count in found.values():
        assert count / trials == pytest.approx(1 / 6, abs=4 * math.sqrt(5 / 36 / trials))
    assert cut_at_random(4, 4, g) == [1, 1, 1, 1]
    assert cut_at_random(4, 1, g) == [4]


@bounded
@given(n=lengths, seed=seeds, share=st.floats(0.05, 0.5), mean=st.floats(1, 6))
def test_how_much_is_dropped_is_fixed_by_rounding(n, seed, share, mean):
    noise = span_noise(n, draws(seed), share, mean)
    dropped = min(max(round(n * share), 1), n - 1)
    assert noise.sum() == dropped
    runs = [key for key, _ in itertools.groupby(noise.tolist())]
    assert runs.count(True) == max(round(dropped / mean), 1)
    assert not noise[0]
    assert noise[-1]


def test_the_papers_figure():
    text = "Thank you for inviting me to your party last week ."
    words = dict(enumerate(text.split(), 10))
    ids = torch.tensor(list(words))
    noise = torch.tensor([w in ("for", "inviting", "last") for w in words.values()])
    left, target = drop_spans(ids, noise, [99, 98, 97])
    assert left.tolist() == [10, 11, 99, 14, 15, 16, 17, 98, 19, 20]
    assert target.tolist() == [99, 12, 13, 98, 18, 97]


def test_all_ways_to_lay_the_spans_are_as_likely():
    """7 tokens, 3 of them in 2 spans: 2 ways to cut the dropped, 3 to cut the kept."""
    g, trials = draws(), 6000
    found = Counter(tuple(span_noise(7, g, 3 / 7, 1.5).tolist()) for _ in range(trials))
    assert len(found) == 6
    for count in found.values():
        assert count / trials == pytest.approx(1 / 6, abs=4 * math.sqrt(5 / 36 / trials))


def test_rolled_every_place_is_as_likely():
    g = draws()
    share = torch.stack([span_noise(20, g, roll=True) for _ in range(8000)]).float().mean(0)
    assert (share - 3 / 20).abs().max() < 0.02


def test_the_mean_length_is_that_of_the_spans():
    noise = span_noise(4000, draws()).tolist()
    spans = [len(list(run)) for dropped, run in itertools.groupby(noise) if dropped]
    assert sum(spans) == 600
    assert sum(spans) / len(spans) == 3
    assert len(set(spans)) > 4


@bounded
@given(n=st.integers(1, 60), seed=seeds, share=st.floats(0, 1))
def test_masked_or_deleted_the_rest_stays_in_order(n, seed, share):
    ids = text(n, seed)
    masked = mask_words(ids, MASK, draws(seed), share)
    kept = masked != MASK
    assert torch.equal(masked[kept], ids[kept])
    assert masked.shape == ids.shape
    rest = delete_words(ids, draws(seed), share)
    assert len(rest) >= 1
    assert rest.tolist() == [t for t in ids.tolist() if t in set(rest.tolist())]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.8])
def test_shares_in_expectation(share):
    ids = text(20_000)
    gone = (mask_words(ids, MASK, draws(), share) == MASK).float().mean().item()
    assert gone == pytest.approx(share, abs=0.015)
    assert len(delete_words(ids, draws(1), share)) / 20_000 == pytest.approx(1 - share, abs=0.015)


@bounded
@given(n=st.integers(1, 60), seed=seeds, share=st.floats(0, 1), mean=st.floats(0.5, 6))
def test_infilling_hides_just_its_share_and_keeps_the_rest_in_order(n, seed, share, mean):
    ids = text(n, seed)
    out = infill_spans(ids, MASK, draws(seed), share, mean)
    rest = out[out != MASK]
    assert len(rest) == n - round(share * n)
    assert rest.tolist() == [t for t in ids.tolist() if t in set(rest.tolist())]


def test_infilling_draws_poisson_lengths_and_inserts_masks_for_empty_spans():
    ids = text(30_000)
    masks = int((infill_spans(ids, MASK, draws(), 0.3, 3.0) == MASK).sum())
    assert 9000 / masks == pytest.approx(3.0, rel=0.04)
    one = torch.tensor([10, 11])  # half of two: one token, after as many empty spans as come
    counts = [int((infill_spans(one, MASK, draws(s), 0.5, 0.7) == MASK).sum()) for s in range(4000)]
    assert min(counts) == 1
    more = sum(c > 1 for c in counts) / len(counts)  # the first length drawn is 0
    assert more == pytest.approx(math.exp(-0.7), abs=0.03)


def test_infilling_lays_its_spans_anywhere():
    ids, hits = text(12), torch.zeros(12)
    for seed in range(4000):
        left = set(infill_spans(ids, MASK, draws(seed), 0.25).tolist())
        hits += torch.tensor([t not in left for t in ids.tolist()]).float()
    assert ((hits / 4000 - 0.25).abs() < 0.16).all()
    assert hits.min() > 0.1 * 4000


@bounded
@given(
    seed=seeds, sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6), rest=st.integers(0, 3)
)
def test_sentences_move_whole(seed, sizes, rest):
    names = iter(range(10, 400))
    sentences = [[*itertools.islice(names, n), STOP] for n in sizes]
    sentences += [list(itertools.islice(names, rest))] if rest else []
    ids = torch.tensor([t for s in sentences for t in s])
    out = permute_sentences(ids, [STOP], draws(seed)).tolist()
    assert sorted(out) == sorted(ids.tolist())
    heads = {s[0]: s for s in sentences}
    rebuilt = []
    while len(rebuilt) < len(out):
        rebuilt += heads.pop(out[len(rebuilt)])
    assert rebuilt == out


def test_every_order_of_sentences_comes():
    ids = torch.tensor([10, STOP, 11, STOP, 12, STOP])
    found = Counter(tuple(permute_sentences(ids, {STOP}, draws(s)).tolist()) for s in range(3000))
    assert len(found) == 6
    assert min(found.values()) > 400


@bounded
@given(n=st.integers(1, 40), seed=seeds)
def test_a_rotated_text_goes_on_where_it_ends(n, seed):
    ids = text(n, seed)
    out = rotate_document(ids, draws(seed)).tolist()
    at = ids.tolist().index(out[0])
    assert out == [*ids.tolist()[at:], *ids.tolist()[:at]]


def test_a_text_may_begin_at_any_token():
    ids = text(5)
    assert {int(rotate_document(ids, draws(s))[0]) for s in range(100)} == set(ids.tolist())


def test_the_generator_decides_alone(device):
    ids = text(40)
    ways = {
        "corrupt": lambda x, g: torch.cat(corrupt_spans(x, SENTINELS, g)),
        "mask": lambda x, g: mask_words(x, MASK, g),
        "delete": delete_words,
        "infill": lambda x, g: infill_spans(x, MASK, g),
        "permute": lambda x, g: permute_sentences(x, [12, 20, 30], g),
        "rotate": rotate_document,
    }
    for name, way in ways.items():
        here = way(ids.to(device), draws(4))
        assert here.device.type == torch.device(device).type, name
        assert here.dtype == ids.dtype, name
        torch.manual_seed(9)
        assert torch.equal(here.cpu(), way(ids, draws(4))), name
        assert any(not torch.equal(way(ids, draws(s)), here.cpu()) for s in range(5)), name


def test_what_a_model_wrote_can_be_put_in():
    left = torch.tensor([10, 99, 11, 98])
    assert restore_spans(left, torch.tensor([55, 99, 12, 13]), [99, 98]).tolist() == [
        10,
        12,
        13,
        11,
    ]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: span_noise(1, draws()), "length=1: two tokens"),
        (lambda: cut_at_random(3, 4, draws()), "3 things .* into 4 parts"),
        (lambda: span_noise(9, draws(), share=0.0), "between 0 and 1, got 0.0"),
        (lambda: span_noise(9, draws(), share=1.5), r"\[0, 1\], got 1.5"),
        (lambda: span_noise(9, draws(), mean_length=0.5), "at least 1, got 0.5"),
        (lambda: span_noise(10, draws(), 0.8, 1.0), "8 spans need 8 tokens kept .* only 2"),
        (lambda: corrupt_spans(text(40), [999, 998], draws()), "2 spans need 3 sentinels, got 2"),
        (lambda: corrupt_spans(text(40), range(12, 20), draws()), "a sentinel stands in the text"),
        (lambda: corrupt_spans(text(9)[None], SENTINELS, draws()), r"one row .* got \(1, 9\)"),
        (lambda: drop_spans(text(4), torch.ones(3).bool(), SENTINELS), r"\(4,\) .* \(3,\)"),
        (lambda: drop_spans(text(4), torch.ones(4), SENTINELS), "boolean.* got torch.float32"),
        (lambda: mask_words(text(4), MASK, draws(), 1.2), r"\[0, 1\], got 1.2"),
        (lambda: delete_words(torch.empty(0).long(), draws()), r"got \(0,\)"),
        (lambda: infill_spans(text(4), MASK, draws(), mean_length=0.0), "0.1 or more, got 0.0"),
        (lambda: infill_spans(text(4), MASK, draws(), mean_length=1e-9), "more, got 1e-09"),
        (lambda: infill_spans(text(4), MASK, draws(), mean_length=math.inf), "more, got inf"),
        (lambda: corrupt_spans(text(40), [99, 98, 99], draws()), r"must differ, got \[99, 98, 99"),
        (lambda: infill_spans(text(4), MASK, draws(), share=-0.1), r"\[0, 1\], got -0.1"),
        (lambda: permute_sentences(text(4)[None], [1], draws()), r"one row"),
        (lambda: rotate_document(text(4)[:, None], draws()), r"got \(4, 1\)"),
    ],
)  # fmt: skip
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_ids_are_integers():
    with pytest.raises(TypeError, match=r"integers, got torch\.float32"):
        mask_words(torch.rand(4), MASK, draws())
