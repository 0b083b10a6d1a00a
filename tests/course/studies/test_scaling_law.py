"""The study of a scaling law: models of the sizes it names, and a fit that finds a known law."""

import numpy as np
import pytest

from tinytf_course.studies import scaling_law as study


def test_weights_are_counted_without_the_table_of_positions():
    model = study.story_gpt(width=16)
    per_layer = 4 * (16 * 16 + 16) + (16 * 64 + 64) + (64 * 16 + 16) + 4 * 16
    assert study.weights(model) == 1024 * 16 + 2 * per_layer + 2 * 16


def test_a_fit_finds_the_law_that_made_the_losses():
    sizes = (10_000, 30_000, 90_000)
    a, b = study.fit(sizes, [0.2 + 50 * n**-0.6 for n in sizes], 0.2)
    assert (a, b) == pytest.approx((50, 0.6))


def test_fits_leave_one_width_out_and_spread_as_the_seeds_do():
    def rows(spread):
        sizes = {16: 20_000, 32: 60_000, 64: 200_000, 96: 500_000}
        laws = {width: 0.2 + 50 * n**-0.6 for width, n in sizes.items()}
        return [
            {
                "width": width,
                "weights": n,
                "loss": laws[width] * (1 + spread * seed) + 9 * (n > 4e5),
            }
            for width, n in sizes.items()
            for seed in (-1, 0, 1)
        ]

    sharp = study.fits(rows(0), 0.2, left_out=96, draws=20)
    assert sharp == pytest.approx(np.tile([50, 0.6], (20, 1)))
    spread = study.fits(rows(0.05), 0.2, left_out=96, draws=200)
    assert spread[:, 1].min() < 0.6 < spread[:, 1].max()
    assert np.array_equal(spread, study.fits(rows(0.05), 0.2, left_out=96, draws=200))
