"""Learning rates by their formulas."""

import math

import pytest

from tinytf.training.schedules import warmup_cosine, warmup_inverse_sqrt


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (128, 1), (64, 300)])
def test_inverse_sqrt_equals_the_paper(d_model, warmup):
    for step in (1, 2, warmup - 1, warmup, warmup + 1, 10 * warmup):
        if step < 1:
            continue
        peak = 1 / math.sqrt(d_model * warmup)
        expected = peak * (step / warmup if step <= warmup else math.sqrt(warmup / step))
        assert warmup_inverse_sqrt(step, d_model, warmup) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("warmup", "steps"), [(10, 110), (1, 50), (20, 20)])
def test_cosine_equals_the_formula(warmup, steps):
    for step in range(1, steps + 1):
        rate = warmup_cosine(step, 0.3, warmup, steps)
        if step <= warmup:
            assert rate == pytest.approx(0.3 * step / warmup)
        else:
            angle = (step - warmup) / (steps - warmup) * math.pi
            assert rate == pytest.approx(0.3 * math.cos(angle / 2) ** 2, abs=1e-12)
    assert warmup_cosine(steps + 5, 0.3, warmup, steps) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("warmup", "steps"), [(10, 110), (1, 50), (20, 20)])
def test_a_cosine_with_a_floor_falls_to_it_and_stays(warmup, steps):
    for step in range(1, steps + 10):
        rate = warmup_cosine(step, 0.3, warmup, steps, floor=0.1)
        plain = warmup_cosine(step, 0.3, warmup, steps)
        mixed = plain if step < warmup else 0.1 + plain * (0.3 - 0.1) / 0.3
        assert rate == pytest.approx(mixed)
    assert rate == pytest.approx(0.1)
