"""Figures of positions draw what they are given."""

import numpy as np
import pytest
import torch

from tinytf_course import drawings as viz


def test_rotations_draws_an_arrow_per_vector(device):
    turned = torch.tensor([[3.0, 0.0], [0.0, 3.0], [-3.0, 0.0]], device=device)
    ax = viz.rotations({"query": turned, "key": [0.0, -1.0]}, title="pair 0")
    ends = {a.xy: a.arrow_patch.get_edgecolor() for a in ax.texts if hasattr(a, "arrow_patch")}
    assert set(ends) == {(3, 0), (0, 3), (-3, 0), (0, -1)}
    assert len(set(ends.values())) == 2  # a colour per name
    assert [t.get_text() for t in ax.texts if t.get_text()] == ["0", "1", "2", "key"]
    assert ax.patches[0].radius == 3
    assert ax.get_title() == "pair 0"


def test_rotations_refuses_what_is_not_a_pair():
    with pytest.raises(ValueError, match=r"vector 'query' must be \(2,\) or \(T, 2\)"):
        viz.rotations({"query": torch.zeros(3)})


def test_a_scheme_keeps_its_colour_and_its_band_spans_the_seeds(device):
    nan, seeds = float("nan"), torch.tensor([[0.2, 1.0, 0.5], [0.4, 0.0, 0.1]], device=device)
    first = viz.scheme_curves(range(3), {"none": seeds, "RoPE": seeds}, ylabel="right")
    second = viz.scheme_curves([1, 2, 4], {"RoPE, base 9": [nan, 1.0, 2.0]}, doubling=True)
    assert first.lines[1].get_color() == second.lines[0].get_color()
    assert first.lines[0].get_color() != first.lines[1].get_color()
    assert first.lines[0].get_ydata().tolist() == pytest.approx([0.3, 0.5, 0.3])
    band = first.collections[0].get_datalim(first.transData)
    assert (band.ymin, band.ymax) == (0, 1)
    assert not second.collections  # one run has no spread
    assert second.get_xscale() == "log"


def test_scheme_curves_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="no scheme 'rope'; there are none, sinusoidal, learned"):
        viz.scheme_curves(range(2), {"rope": [0.0, 1.0]})
    with pytest.raises(ValueError, match=r"curve 'RoPE' of shape \(2, 3\) does not fit 2 places"):
        viz.scheme_curves(range(2), {"RoPE": torch.zeros(2, 3)})


def test_positional_figures_draw_the_table():
    table = np.sin(np.arange(20)[:, None] / 10 ** (np.arange(8) / 8))
    ax = viz.positional_heatmap(table)
    np.testing.assert_allclose(ax.collections[0].get_array(), table)
    low, high = ax.collections[0].get_clim()
    assert low == -high
    ax = viz.positional_curves(table, [0, 7])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), table[:, 7])


def test_position_similarity_draws_cosines():
    table = np.array([[3.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, 0.0]])
    ax = viz.position_similarity(table)
    cosines = [[1, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(ax.collections[0].get_array(), cosines)
    assert ax.collections[0].get_clim() == (-1, 1)
