"""Each check is 0 on the right model, finds the mistake it is for, and refuses bad input."""

import pytest
import torch
from support import random_ids, randomise, small_model
from torch import nn

from tinytf.blocks import EncoderLayer
from tinytf.interpret import invariants as inv
from tinytf.masks import causal_mask, padding_mask
from tinytf.support.modes import evaluation_mode
from tinytf.text.words import BOS
from tinytf.training.losses import Batch, make_batch


@pytest.fixture
def model():
    return randomise(small_model(max_len=40)).eval()


@pytest.fixture
def batch():
    sources = [[3, 4, 5, 6, 7], [8, 9], [4, 4, 4]]
    return make_batch(sources, [[3, 4, 5], [6, 7, 8, 3], [4, 5]])


def mix(table):
    return lambda x: torch.tensor(table, dtype=x.dtype) @ x


def test_influence_is_the_norm_of_the_jacobian():
    layer = EncoderLayer(6, 2, 8, dropout=0.0).double()
    x = torch.randn(1, 4, 6, dtype=torch.double)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x, causal_mask(4)), x)
    exact = jacobian[0, :, :, 0].square().sum(dim=(1, 3)).sqrt()  # (T, C, S, C) -> (T, S)
    estimate = inv.influence(lambda x: layer(x, causal_mask(4)), x, probes=400)
    torch.testing.assert_close(estimate, exact, rtol=0.2, atol=0)
    assert torch.equal(estimate == 0, exact == 0)


def test_influence_averages_the_squares_over_the_batch():
    x = torch.randn(2, 3, 5, dtype=torch.double)
    scale = torch.tensor([1.0, 3.0], dtype=torch.double)[:, None, None]
    table = inv.influence(lambda x: x * scale, x, probes=500)
    expected = torch.full((3,), (5 * (1 + 9) / 2) ** 0.5, dtype=torch.double)
    torch.testing.assert_close(table.diagonal(), expected, rtol=0.15, atol=0)


@pytest.mark.parametrize(
    ("table", "future", "right"),
    [
        ([[1.0, 0, 0], [1, 1, 0], [1, 1, 1]], False, False),
        ([[1.0, 1, 0], [1, 1, 0], [1, 1, 1]], True, False),
        ([[1.0, 1, 1], [1, 1, 1], [1, 1, 1]], True, True),
        ([[0.0, 1, 1], [0, 0, 1], [0, 0, 0]], True, True),
    ],
)
def test_future_gradient_and_right_context(table, future, right):
    x = torch.randn(2, 3, 4)
    assert (inv.future_gradient(mix(table), x) > 0) is future
    assert (inv.right_context(mix(table), x) > 0) is right


def test_a_norm_at_the_end_does_not_hide_a_leak():
    norm = nn.LayerNorm(4, elementwise_affine=False)
    x = torch.randn(1, 3, 4)
    assert inv.future_gradient(lambda x: norm(x.flip(1)), x) > 0.01
    assert inv.future_gradient(norm, x) == 0


def test_influence_of_outputs_that_are_numbers():
    x = torch.randn(2, 3, 4)
    assert inv.future_gradient(lambda x: x.sum(-1).cumsum(1), x) == 0
    assert inv.future_gradient(lambda x: x.sum(-1).flip(1), x) > 0.1


def test_influence_refuses_what_it_can_not_measure():
    x = torch.randn(1, 3, 4)
    with pytest.raises(ValueError, match=r"shape \(B, S, C\), got \(3, 4\)"):
        inv.influence(lambda x: x, x[0])
    with pytest.raises(ValueError, match="does the function detach it"):
        inv.influence(lambda x: x.detach(), x)
    with pytest.raises(ValueError, match="probes must be at least 1, got 0"):
        inv.influence(lambda x: x, x, probes=0)
    with pytest.raises(ValueError, match=r"\(B, T, \.\.\.\), got \(3,\) for B=1"):
        inv.influence(lambda x: x[0, :, 0], x)
    with pytest.raises(ValueError, match="got 2 outputs for 3 inputs"):
        inv.future_gradient(lambda x: x[:, :2], x)


def test_target_influence_is_causal_and_leaves_the_model_alone(model, batch):
    before = model(batch.src, batch.tgt_in)
    drops = randomise(small_model(dropout=0.5))
    tables = [inv.target_influence(drops.train(), batch.src, batch.tgt_in) for _ in range(2)]
    assert torch.equal(*tables)  # measured in evaluation mode
    table = inv.target_influence(model.train(), batch.src, batch.tgt_in)
    assert model.training
    assert table.shape == (5, 5)
    assert torch.equal(table, table.tril())
    assert (table.diagonal() > 0).all()
    assert torch.equal(model.eval()(batch.src, batch.tgt_in), before)
    assert not model.tgt_embedding._forward_hooks


def test_future_change_of_ids():
    ids = torch.tensor([[3, 1, 4]])
    sums = inv.future_change(lambda ids: ids.cumsum(1)[..., None].double(), ids, ids + 1)
    assert sums == 0
    peek = inv.future_change(lambda ids: ids.roll(-1, 1)[..., None].double(), ids, ids + 5)
    assert peek == 5
    with pytest.raises(ValueError, match="differ from them everywhere"):
        inv.future_change(lambda ids: ids, ids, torch.tensor([[3, 2, 5]]))


def test_prefix_change_against_a_function_that_counts():
    ids = torch.tensor([[3, 1, 4], [1, 5, 9]])
    assert inv.prefix_change(lambda ids: ids.cumsum(1)[..., None].double(), ids) == 0
    total = inv.prefix_change(lambda ids: ids.sum(1, keepdim=True)[..., None].expand(-1, 3, -1)
                              .double()[:, : ids.size(1)], ids)  # fmt: skip
    assert total == 14  # the second row: 15 in all, 1 at the first prefix


def test_pad_change_needs_the_mask():
    def mean(ids, masked=True):
        mask = padding_mask(ids)[:, 0, 0].double() if masked else torch.ones(ids.shape).double()
        return ((ids * mask).sum(1) / mask.sum(1))[:, None, None]

    ids = torch.tensor([[2, 4], [6, 6]])
    assert inv.pad_change(mean, ids, 3) == 0
    assert inv.pad_change(lambda ids: mean(ids, masked=False), ids, 2) == 3
    with pytest.raises(ValueError, match="pads must be at least 1, got 0"):
        inv.pad_change(mean, ids, 0)


def test_pad_change_reads_only_the_real_outputs():
    def run(ids):
        out = ids.double()[..., None].clone()
        out[:, 1] = ids.size(1)
        return out

    ids = torch.tensor([[5, 0]])
    assert inv.pad_change(run, ids, 4) == 4
    assert inv.pad_change(run, ids, 4, real=ids != 0) == 0


def test_batch_change_finds_what_depends_on_the_row_or_on_the_others():
    x = torch.randn(3, 4)
    assert inv.batch_change(lambda x: 2 * x, x) == 0
    assert inv.batch_change(lambda x: x - x.mean(0), x) > 0.01
    assert inv.batch_change(lambda x: x + torch.arange(len(x))[:, None], x) >= 1
    by_the_first = inv.batch_change(
        lambda x: x + (len(x) - 1) * (x[:1] < 0), torch.tensor([[1.0], [-1.0]])
    )
    assert by_the_first == 1  # in place and alone all is well: seen only when the rows move
    with pytest.raises(ValueError, match="at least 2 rows, got 1"):
        inv.batch_change(lambda x: x, x[:1])


def test_argument_change():
    one, other = torch.tensor([1.0, 2]), torch.tensor([1.0, 5])
    assert inv.argument_change(lambda m: 2 * m, one, other) == 6
    assert inv.argument_change(lambda m: torch.ones(2), one, other) == 0


def test_a_function_that_draws_is_refused():
    drop = nn.Dropout(0.5)
    with pytest.raises(ValueError, match="put the model in evaluation mode"):
        inv.batch_change(drop, torch.randn(8, 50))


def test_outputs_of_other_shapes_and_nan():
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
        inv.argument_change(lambda m: m, torch.ones(2), torch.ones(3))
    nan = torch.tensor([1.0, float("nan")])
    assert inv.argument_change(lambda m: m, torch.ones(2), nan) == float("inf")


def test_shift_errors(batch):
    assert inv.shift_errors(batch) == 0
    assert inv.shift_errors(batch._replace(tgt_in=batch.tgt_out)) > 0.9
    late = torch.cat([torch.full((3, 1), BOS), batch.tgt_in[:, :-1]], dim=1)
    assert inv.shift_errors(batch._replace(tgt_in=late)) == pytest.approx(9 / 12)
    one_wrong = batch.tgt_in.clone()
    one_wrong[1, 2] = 5
    assert inv.shift_errors(batch._replace(tgt_in=one_wrong)) == pytest.approx(1 / 12)
    first = batch.tgt_in.clone()
    first[:, 0] = batch.tgt_out[:, 0]  # the first word is handed over
    assert inv.shift_errors(batch._replace(tgt_in=first)) == pytest.approx(3 / 12)
    nothing = torch.zeros(1, 2, dtype=torch.long)
    with pytest.raises(ValueError, match="all padding"):
        inv.shift_errors(Batch(nothing, nothing, nothing))


def test_free_running_agrees_with_a_loop(model):
    src = random_ids([5, 4, 6], 11)
    with evaluation_mode(model), torch.no_grad():
        said = torch.full((3, 1), BOS)
        for _ in range(6):
            scores = model(src, said)[:, -1]
            scores[:, :2] = -torch.inf
            said = torch.cat([said, scores.argmax(-1, keepdim=True)], dim=1)
    rows = [row[1 : row.index(2)] if 2 in row else row[1:] for row in said.tolist()]
    ended = torch.tensor([2 in row for row in said.tolist()])
    own = make_batch([row[row > 0][:-1].tolist() for row in src], rows)
    assert torch.equal(inv.free_running(model, own), ended)
    wrong = own._replace(tgt_out=own.tgt_out.clone())
    wrong.tgt_out[:, 0] = 3 + (wrong.tgt_out[:, 0] - 2) % 6
    assert not inv.free_running(model, wrong).any()


def test_free_running_gap_of_a_causal_model_is_0(model, batch):
    assert inv.free_running_gap(model, batch) == 0


def test_free_running_gap_counts_both_ways_of_disagreeing(model, batch, monkeypatch):
    forced, free = torch.tensor([True, True, False]), torch.tensor([True, False, True])
    monkeypatch.setattr(inv, "teacher_forced", lambda *_: (forced, 0.0))
    monkeypatch.setattr(inv, "free_running", lambda *_: free)
    assert inv.free_running_gap(model, batch) == pytest.approx(2 / 3)
