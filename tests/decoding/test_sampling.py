"""Sampling: each function against Hugging Face's, by its definition, row by row, on bad input."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.decoding.sampling import (
    Sampling,
    min_p,
    presence_penalty,
    repetition_penalty,
    sample,
    temperature,
    top_k,
    top_p,
)

INF, NAN = math.inf, math.nan
seeds = st.integers(0, 2**20)


def draw(seed, rows=4, vocab=30, scale=3.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, vocab, generator=generator, dtype=dtype)


def said(seed, rows=4, vocab=30, length=7):
    return torch.randint(vocab, (rows, length), generator=torch.Generator().manual_seed(seed))


def logits_of(*probs):
    return torch.tensor([probs]).log()


def kept(logits):
    return logits.isfinite().nonzero()[:, 1].tolist()


EVERY = {
    "temperature": lambda z, ids: temperature(z, 0.7),
    "top_k": lambda z, ids: top_k(z, 5),
    "top_p": lambda z, ids: top_p(z, 0.8),
    "min_p": lambda z, ids: min_p(z, 0.1),
    "repetition": lambda z, ids: repetition_penalty(z, ids, 1.3),
    "presence": lambda z, ids: presence_penalty(z, ids, 1.5),
    "all": lambda z, ids: Sampling(1.2, 0.5, 0.8, 20, 0.9, 0.02)(z, ids),
}
every = pytest.mark.parametrize("name", EVERY)


# ---- Hugging Face


THEIRS = {  # ours, the name of theirs, and values
    "temperature": (temperature, "TemperatureLogitsWarper", (0.1, 0.7, 1.0, 2.5)),
    "top_k": (top_k, "TopKLogitsWarper", (1, 2, 7, 30)),
    "top_p": (top_p, "TopPLogitsWarper", (0.01, 0.3, 0.5, 0.9, 0.999, 1.0)),
    "min_p": (min_p, "MinPLogitsWarper", (0.01, 0.3, 0.9, 1.0)),
    "repetition": (repetition_penalty, "RepetitionPenaltyLogitsProcessor", (0.5, 1.0, 1.2, 3.0)),
}


@pytest.mark.parametrize("name", THEIRS)
@bounded
@given(seeds, st.sampled_from([0.1, 3.0, 9.0]))
def test_each_equals_hugging_faces(name, seed, scale):
    transformers = pytest.importorskip("transformers")
    ours, theirs, values = THEIRS[name]
    z, ids = draw(seed, scale=scale), said(seed)
    history = (ids,) if name == "repetition" else ()
    for value in values:
        expected = getattr(transformers, theirs)(value)(ids, z.clone())
        torch.testing.assert_close(ours(z, *history, value), expected, atol=0, rtol=0)


@bounded
@given(seeds)
def test_the_composition_equals_hugging_face(seed):
    """All that both have, in the order in which `generate` there applies them."""
    hf = pytest.importorskip("transformers")
    theirs = [
        hf.RepetitionPenaltyLogitsProcessor(1.3),
        hf.TemperatureLogitsWarper(0.6),
        hf.TopKLogitsWarper(12),
        hf.TopPLogitsWarper(0.8),
        hf.MinPLogitsWarper(0.05),
    ]
    ours = Sampling(repetition_penalty=1.3, temperature=0.6, top_k=12, top_p=0.8, min_p=0.05)
    z, ids = draw(seed), said(seed)
    expected = z.clone()
    for process in theirs:
        expected = process(ids, expected)
    torch.testing.assert_close(ours(z, ids), expected, atol=1e-12, rtol=0)


# ---- what all of them promise


@every
def test_arguments_are_left_alone(name):
    z, ids = draw(0), said(0)
    before, ids_before = z.clone(), ids.clone()
    out = EVERY[name](z, ids)
    assert torch.equal(z, before)
    assert torch.equal(ids, ids_before)
    assert out.data_ptr() != z.data_ptr()
    assert not torch.equal(out, z)


@every
def test_rows_do_not_see_each_other(name):
    z, ids = draw(1), said(1)
    together = EVERY[name](z, ids)
    for row in range(len(z)):
        alone = EVERY[name](z[row : row + 1], ids[row : row + 1])
        assert torch.equal(together[row : row + 1], alone)


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtype_is_kept_and_something_is_left(name, dtype):
    out = EVERY[name](draw(2).to(dtype), said(2))
    assert out.dtype == dtype
    assert (out.isfinite().any(-1)).all()
    assert not out.isnan().any()


@every
def test_what_was_ruled_out_stays_out(name):
    z = draw(3)
    z[:, ::3] = -INF
    assert (EVERY[name](z, said(3))[:, ::3] == -INF).all()


@every
def test_the_likeliest_token_survives_filters(name):
    if name in ("top_k", "top_p", "min_p", "temperature"):
        z = draw(4)
        assert torch.equal(EVERY[name](z, None).argmax(-1), z.argmax(-1))


# ---- each by its definition


def test_temperature_moves_entropy_as_the_derivative_says():
    """dH/dT = Var(z) / T³ under the distribution at T, and so more entropy at higher T."""
    z, value, step = draw(0, rows=1), 0.8, 1e-4

    def entropy(t):
        log_p = temperature(z, t).log_softmax(-1)
        return -(log_p.exp() * log_p).sum()

    p = temperature(z, value).softmax(-1)
    variance = (p * z.square()).sum() - (p * z).sum().square()
    slope = (entropy(value + step) - entropy(value - step)) / (2 * step)
    assert slope == pytest.approx(float(variance / value**3), rel=1e-5)
    assert slope > 0
    assert torch.equal(temperature(z, 1.0), z)


@bounded
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_top_k_keeps_exactly_k_the_lowest_ids_of_ties(values, data):
    k = data.draw(st.integers(1, len(values)))
    ranked = sorted(range(len(values)), key=lambda i: (-values[i], i))
    assert kept(top_k(torch.tensor([values]).float(), k)) == sorted(ranked[:k])


def test_ties_at_the_last_place_differ_from_hugging_face_as_documented():
    hf = pytest.importorskip("transformers")
    z = torch.tensor([[2.0, 1.0, 1.0, 0.0]])
    assert kept(top_k(z, 2)) == [0, 1]
    assert kept(hf.TopKLogitsWarper(2)(None, z.clone())) == [0, 1, 2]


def test_top_k_does_not_call_back_what_is_out():
    assert kept(top_k(torch.tensor([[1.0, -INF, 0.0, -INF]]), 3)) == [0, 2]


@pytest.mark.parametrize(
    ("probs", "p", "expected"),
    [
        ((0.5, 0.25, 0.25), 0.5, [0]),  # exactly p is enough
        ((0.25, 0.25, 0.5), 0.5, [2]),
        ((0.25, 0.25, 0.25, 0.25), 0.5, [0, 1]),  # of ties the lowest ids
        ((0.25, 0.25, 0.25, 0.25), 0.51, [0, 1, 2]),
        ((0.5, 0.25, 0.25), 0.51, [0, 1]),
        ((0.5, 0.25, 0.25), 1e-9, [0]),  # never empty
        ((0.5, 0.25, 0.25), 1.0, [0, 1, 2]),
        ((0.125, 0.625, 0.25), 0.75, [1, 2]),
    ],
)
def test_top_p_keeps_the_smallest_set(probs, p, expected):
    assert kept(top_p(logits_of(*probs), p)) == expected


@bounded
@given(seeds, st.floats(0.01, 1.0))
def test_no_smaller_set_holds_as_much(seed, p):
    z = draw(seed, rows=3)
    probs = z.softmax(-1)
    nucleus = top_p(z, p).isfinite()
    mass = (probs * nucleus).sum(-1)
    least = probs.masked_fill(~nucleus, INF).amin(-1)
    most_outside = probs.masked_fill(nucleus, 0).amax(-1)
    assert (mass >= p - 1e-12).all()
    assert (mass - least < p).all()
    assert (least >= most_outside).all()


def test_many_that_tie_stay_by_their_ids():
    """A sort that is not stable leaves a short row in order, and a long one not."""
    z = torch.tensor([[0.0, -200.0]])  # the second's probability is 0 in float32
    assert kept(top_p(z, 1.0)) == [0, 1]
    assert kept(top_p(torch.zeros(1, 2048), 0.5)) == list(range(1024))
    assert kept(top_k(torch.zeros(1, 2048), 1024)) == list(range(1024))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_vocabulary_is_summed_in_float32(dtype):
    flat = torch.zeros(1, 4096, dtype=dtype)
    assert len(kept(top_p(flat, 0.75))) == 3072
    steps = torch.linspace(0, 4, 4096)[None].to(dtype)
    assert torch.equal(top_p(steps, 0.9).isfinite(), top_p(steps.float(), 0.9).isfinite())
    rows = steps.repeat(500, 1)
    half, single = (sample(z, torch.Generator().manual_seed(0)) for z in (rows, rows.float()))
    assert torch.equal(half, single)


def test_top_p_adapts_where_top_k_does_not():
    flat, peaked = torch.zeros(1, 1000), torch.zeros(1, 1000)
    peaked[0, 3] = 20.0
    assert [len(kept(top_p(z, 0.9))) for z in (flat, peaked)] == [900, 1]
    assert [len(kept(top_k(z, 40))) for z in (flat, peaked)] == [40, 40]


def test_min_p_is_relative_to_the_likeliest():
    z = logits_of(0.5, 0.25, 0.2, 0.05)
    assert kept(min_p(z, 0.5)) == [0, 1]
    assert kept(min_p(z, 0.39)) == [0, 1, 2]
    assert kept(min_p(z, 1.0)) == [0]


def test_repetition_penalty_lowers_both_signs_and_depends_on_the_origin():
    z, ids = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([[0, 1, 1]])
    out = repetition_penalty(z, ids, 2.0)
    assert out.tolist() == [[1.0, -2.0, 0.5]]
    moved = repetition_penalty(z + 5, ids, 2.0).softmax(-1)
    assert (moved - out.softmax(-1)).abs().max() > 0.1


def test_presence_penalty_divides_odds_once_wherever_the_origin_lies():
    z, once, thrice = draw(0, 1), torch.tensor([[4]]), torch.tensor([[4, 4, 4]])

    def odds(logits):
        p = logits.softmax(-1)[0, 4]
        return float(p / (1 - p))

    for ids in (once, thrice):
        out = presence_penalty(z, ids, 1.2)
        assert odds(out) / odds(z) == pytest.approx(math.exp(-1.2))
    moved = presence_penalty(z + 5, once, 1.2).softmax(-1)
    torch.testing.assert_close(moved, presence_penalty(z, once, 1.2).softmax(-1))


FIELDS = {
    "repetition_penalty": (1.2, lambda z, ids: repetition_penalty(z, ids, 1.2)),
    "presence_penalty": (0.4, lambda z, ids: presence_penalty(z, ids, 0.4)),
    "temperature": (0.5, lambda z, ids: temperature(z, 0.5)),
    "top_k": (12, lambda z, ids: top_k(z, 12)),
    "top_p": (0.7, lambda z, ids: top_p(z, 0.7)),
    "min_p": (0.2, lambda z, ids: min_p(z, 0.2)),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_alone_is_the_function_of_its_name(name):
    value, function = FIELDS[name]
    z, ids = draw(5), said(5)
    assert torch.equal(Sampling(**{name: value})(z, ids), function(z, ids))
    assert torch.equal(Sampling()(z, ids), z)


def test_sampling_applies_its_fields_in_the_stated_order():
    sampling = Sampling(**{name: value for name, (value, _) in FIELDS.items()})
    other_orders = 0
    for seed in range(20):
        z, ids = draw(seed, scale=1.0), said(seed)
        steps = backwards = z
        for _, function in FIELDS.values():
            steps = function(steps, ids)
        for _, function in reversed(FIELDS.values()):
            backwards = function(backwards, ids)
        assert torch.equal(sampling(z, ids), steps)
        other_orders += not torch.equal(backwards, steps)
    assert other_orders > 10  # the order does matter


# ---- drawing


def test_draws_follow_the_distribution_and_the_seed(device):
    z = logits_of(0.6, 0.3, 0.1, 0.0).repeat(20_000, 1).to(device)
    first = sample(z, torch.Generator().manual_seed(3))
    assert first.device.type == device.type
    share = torch.bincount(first.cpu(), minlength=4) / len(first)
    torch.testing.assert_close(share, torch.tensor([0.6, 0.3, 0.1, 0.0]), atol=0.02, rtol=0)
    assert share[3] == 0
    assert torch.equal(first, sample(z, torch.Generator().manual_seed(3)))
    assert not torch.equal(first, sample(z, torch.Generator().manual_seed(4)))


def test_without_a_generator_the_global_seed_decides():
    z = draw(0, rows=50)
    torch.manual_seed(1)
    first = sample(z)
    torch.manual_seed(1)
    assert torch.equal(first, sample(z))


# ---- bad input


@every
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([-INF, -INF], "row 1 of the logits has no token that is not -inf"),
        ([0.0, NAN], "row 1 of the logits has a logit of nan"),
        ([INF, 0.0], "row 1 of the logits has a logit of inf"),
    ],
)
def test_rows_without_a_choice_are_refused(name, row, message):
    z = torch.zeros(2, 30)
    z[1] = row[0]
    z[1, 3] = row[1]
    with pytest.raises(ValueError, match=message):
        EVERY[name](z, said(0, rows=2))
    with pytest.raises(ValueError, match=message):
        sample(z)


ABOVE_ZERO, A_SHARE = "must be positive and finite, got", r"must lie in \(0, 1\], got"
BAD = {  # what each refuses, called as well as kept for later
    "temperature": (temperature, ABOVE_ZERO, (0, 0.0, -1.0, NAN, INF)),
    "top_k": (top_k, r"=(0|-1) must lie in 1\.\.(30|the size of the vocabulary)", (0, -1)),
    "top_p": (top_p, A_SHARE, (0.0, -0.1, 1.01, NAN, 90)),
    "min_p": (min_p, A_SHARE, (0.0, -0.1, 1.01, NAN, 90)),
    "repetition_penalty": (repetition_penalty, ABOVE_ZERO, (0.0, -1.0, INF, NAN)),
    "presence_penalty": (presence_penalty, "must be finite, got", (INF, NAN)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values_are_refused_by_name(name):
    function, message, values = BAD[name]
    history = (said(0),) if "penalty" in name else ()
    for value in values:
        with pytest.raises(ValueError, match=rf"{name} ?{message}"):
            function(draw(0), *history, value)
        with pytest.raises(ValueError, match=rf"{name} ?{message}"):
            Sampling(**{name: value})


def test_k_beyond_the_vocabulary_is_refused_when_used():
    assert top_k(draw(0), 30).isfinite().all()
    with pytest.raises(ValueError, match=r"top_k=31 must lie in 1..30"):
        Sampling(top_k=31)(draw(0), said(0))
    for k in (2.5, True, "3"):
        with pytest.raises(ValueError, match="top_k must be a whole number"):
            Sampling(top_k=k)


@pytest.mark.parametrize(
    "logits", [torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 0), torch.tensor(1.0)]
)
def test_what_are_no_logits_is_refused(logits):
    with pytest.raises(ValueError, match=r"logits must be floats of shape \(..., V\)"):
        temperature(logits, 1.0)


@pytest.mark.parametrize("penalise", [repetition_penalty, presence_penalty])
@pytest.mark.parametrize("ids", [said(0, rows=3), said(0)[0], said(0)[:, :, None]])
def test_penalties_need_the_history_of_the_same_batch(penalise, ids):
    with pytest.raises(ValueError, match=r"must be of one batch, got \(4, 30\) and"):
        penalise(draw(0), ids, 1.2)


@pytest.mark.parametrize("penalise", [repetition_penalty, presence_penalty])
def test_penalties_need_ids_of_the_vocabulary(penalise):
    ids = said(0)
    for bad in (30, -1):
        ids[2, 3] = bad
        with pytest.raises(ValueError, match=f"id {bad} is outside the vocabulary of 30"):
            penalise(draw(0), ids, 1.2)
    with pytest.raises(TypeError, match="ids must be int64 or int32, got"):
        penalise(draw(0), said(0).float(), 1.2)
    assert torch.equal(penalise(draw(0), ids[:, :0], 1.2), draw(0))  # nothing said yet


@pytest.mark.parametrize("shape", [(30,), (2, 3, 30)])
def test_a_draw_needs_a_batch_of_rows(shape):
    with pytest.raises(ValueError, match=r"logits must be of shape \(B, V\), got \("):
        sample(torch.zeros(shape))
