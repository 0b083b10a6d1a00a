"""Learned positions, their figure and their study. (The sinusoids: with the small parts.)"""

import pytest
import torch
import torch.nn.functional as F
from support import assert_equal_with_gradients

from tinytf.positional import LearnedPositionalEncoding
from tinytf.studies.positions import HIDDEN, SCHEMES, SYMBOLS, CausalModel, draw, grade, train


@pytest.mark.parametrize("start", [0, 6])
def test_rows_are_added_from_start(start, exact):
    layer = LearnedPositionalEncoding(8, max_len=10, dropout=0.0).to(exact, torch.float64)
    table = torch.empty(10, 8, device=exact, dtype=torch.float64)
    x = torch.randn(3, 4, 8, device=exact, dtype=torch.float64)
    place = torch.arange(start, start + 4, device=exact)
    assert_equal_with_gradients(
        lambda x: layer(x, start),
        lambda x: x + F.embedding(place, table),
        [x],
        [([layer.table], table.requires_grad_())],
    )
    used = layer.table.grad.abs().sum(dim=-1) > 0
    assert used.nonzero()[:, 0].tolist() == place.tolist()  # the other rows learn nothing


def test_the_table_starts_small_and_is_saved():
    torch.manual_seed(1)
    layer = LearnedPositionalEncoding(64, 500)
    assert 0.019 < layer.table.std() < 0.021
    assert abs(layer.table.mean()) < 0.001
    assert list(layer.state_dict()) == ["table"]


def test_positions_are_dropped_out_in_training_only(device):
    layer = LearnedPositionalEncoding(64, 50, dropout=0.3).to(device)
    x = torch.full((8, 50, 64), 5.0, device=device)
    assert 0.27 < (layer(x) == 0).float().mean() < 0.33
    assert torch.equal(layer.eval()(x), x + layer.table)


@pytest.mark.parametrize(("length", "start"), [(11, 0), (1, 10), (4, 7)])
def test_positions_past_the_table_are_refused(length, start):
    message = f"sequence of length {start + length} is longer than max_len=10"
    with pytest.raises(ValueError, match=message):
        LearnedPositionalEncoding(4, max_len=10)(torch.zeros(1, length, 4), start)


# ---- the figure of turned pairs


def test_rotations_draws_an_arrow_per_vector(device):
    plt = pytest.importorskip("matplotlib.pyplot")
    from tinytf import viz

    turned = torch.tensor([[3.0, 0.0], [0.0, 3.0], [-3.0, 0.0]], device=device)
    ax = viz.rotations({"query": turned, "key": [0.0, -1.0]}, title="pair 0")
    ends = {a.xy: a.arrow_patch.get_edgecolor() for a in ax.texts if hasattr(a, "arrow_patch")}
    assert set(ends) == {(3, 0), (0, 3), (-3, 0), (0, -1)}
    assert len(set(ends.values())) == 2  # a colour per name
    assert [t.get_text() for t in ax.texts if t.get_text()] == ["0", "1", "2", "key"]
    assert ax.patches[0].radius == 3
    assert ax.get_title() == "pair 0"
    plt.close(ax.figure)


def test_rotations_refuses_what_is_not_a_pair():
    from tinytf import viz

    with pytest.raises(ValueError, match=r"vector 'query' must be \(2,\) or \(T, 2\)"):
        viz.rotations({"query": torch.zeros(3)})


# ---- the figure that compares schemes


def test_a_scheme_keeps_its_colour_and_its_band_spans_the_seeds(device):
    plt = pytest.importorskip("matplotlib.pyplot")
    from tinytf import viz

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
    plt.close("all")


def test_scheme_curves_refuses_what_does_not_fit():
    from tinytf import viz

    with pytest.raises(ValueError, match="no scheme 'rope'; there are none, sinusoidal, learned"):
        viz.scheme_curves(range(2), {"rope": [0.0, 1.0]})
    with pytest.raises(ValueError, match=r"curve 'RoPE' of shape \(2, 3\) does not fit 2 places"):
        viz.scheme_curves(range(2), {"RoPE": torch.zeros(2, 3)})


# ---- the study of lengths


def generator():
    return torch.Generator().manual_seed(3)


def test_tasks_ask_for_what_they_say():
    batch = draw("three back", 50, 10, generator())
    assert torch.equal(batch.targets[:, 3:], batch.ids[:, :-3])
    assert (batch.targets[:, :3] == HIDDEN).all()
    batch = draw("first symbol", 50, 10, generator())
    assert (batch.targets[:, 1:] == batch.ids[:, :1] - SYMBOLS).all()
    assert (batch.ids[:, 1:] < SYMBOLS).all()
    with pytest.raises(ValueError, match="no task 'sort'; there are three back"):
        draw("sort", 1, 8, generator())


def test_the_floor_of_the_chain_is_the_loss_of_its_own_odds():
    batch = draw("next symbol", 4000, 6, generator())
    assert torch.equal(batch.targets[:, 1:-1], batch.ids[:, 2:])
    seen = {}  # how often each symbol followed two others
    for row in batch.ids.tolist():
        for a, b, c in zip(row, row[1:], row[2:], strict=False):
            seen.setdefault((a, b), torch.zeros(SYMBOLS))[c] += 1
    pair, counts = max(seen.items(), key=lambda item: item[1].sum())
    odds = counts / counts.sum()
    here = (batch.ids[:, 2] == pair[0]) & (batch.ids[:, 3] == pair[1])
    losses = batch.floor[here, 3]
    torch.testing.assert_close((-losses).exp(), odds[batch.targets[here, 3]], atol=0.1, rtol=0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_model_of_the_study_is_causal_and_refuses_nothing_but_nonsense(scheme):
    model = CausalModel(scheme).eval()
    ids = torch.randint(SYMBOLS, (2, 20))
    changed = ids.clone()
    changed[:, 12:] = (ids[:, 12:] + 1) % SYMBOLS
    a, b = model(ids), model(changed)
    torch.testing.assert_close(a[:, :12], b[:, :12], atol=1e-5, rtol=0)
    assert not torch.allclose(a[:, 12:], b[:, 12:], atol=1e-3)
    with pytest.raises(ValueError, match="no scheme 'sines'; there are none, sinusoidal"):
        CausalModel("sines")


class Oracle(torch.nn.Module):
    """Names the symbol three back, surely, up to a place; after it, names symbol 0."""

    def __init__(self, until):
        super().__init__()
        self.until, self.unused = until, torch.nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        said = ids.roll(3, dims=1)
        said[:, self.until :] = 0
        return 50.0 * F.one_hot(said, SYMBOLS).float()


def test_grades_are_by_position():
    found = grade(Oracle(until=20), "three back", count=600, length=30)
    assert found[:3].isnan().all()
    assert (found[3:20] == 1).all()
    assert ((found[20:] - 1 / SYMBOLS).abs() < 0.05).all()


def test_training_depends_on_its_seed_alone():
    torch.rand(5)
    first = train("RoPE", "three back", seed=3, steps=3)
    torch.rand(5)
    again, other = (train("RoPE", "three back", seed, steps=3) for seed in (3, 4))
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert a.dim() < 2 or not torch.equal(a, c)
