"""What an answer does is seen: results, and changes to what it was given."""

import torch
from torch import nn

from tinytf_course.evidence import Watched, alike, copied, printed, start_evidence


def function(x, rows=None, model=None):
    """The function that an answer stands for."""


def side_effects(answer, *arguments, changes=()):
    watched = Watched(answer, function, changes)
    watched(*arguments)
    return watched.side_effects


def test_in_place_is_told_and_harms_nobody():
    x = torch.tensor([1.0, 2.0])
    (words,) = side_effects(lambda x, rows: x.add_(1), x, [])
    assert words == "your code changes the caller's `x`: it was [1.0, 2.0], and is [2.0, 3.0]"
    assert x.tolist() == [1, 2]
    (words,) = side_effects(lambda x, rows: x.mul_(1), torch.zeros(5, 3), [])
    assert "`x` in place (a tensor of shape (5, 3))" in words
    (words,) = side_effects(lambda x, rows: x.mul_(1), torch.tensor([11]), [])
    assert "it was" not in words
    assert "`x` in place (a tensor of shape (1,))" in words


def test_every_way_of_changing_a_tensor_is_seen():
    ways = (
        lambda x: x.t_(),
        lambda x: x.requires_grad_(),
        lambda x: x.data.fill_(3),
        lambda x: x.view(-1)[0:1].zero_(),
        lambda x: x.unsqueeze_(0),
        lambda x: x.numpy().fill(4),
    )
    for way in ways:
        assert len(side_effects(way, torch.ones(2, 3))) == 1, way
    for way in (lambda x: x + 1, lambda x: x.requires_grad, lambda x: x.clone().add_(1)):
        assert not side_effects(way, torch.tensor([[1.0, torch.nan]])), way


def test_lists_and_dicts_are_seen_all_the_way_down():
    def change(rows, at):
        rows[at][0] = 9

    inner = [torch.ones(2), [1, 2]]
    assert (
        "`rows[1][0]`: it was 1, and is 9"
        in side_effects(lambda x, rows: change(rows, 1), 1, inner)[0]
    )
    assert "`rows['a'][0]`" in side_effects(
        lambda x, rows: change(rows, "a"), 1, {"a": [torch.ones(2)]}
    )[0].replace("it was", "")
    assert "it had 2 parts, and has 3" in side_effects(lambda x, rows: rows.append(1), 1, inner)[0]
    assert inner[1] == [1, 2]


def test_modules_are_compared_and_put_back():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    weight = model[0].weight.detach().clone()

    def eval_mode(x, rows, model):
        model.eval()

    def trained(x, rows, model):
        model(torch.ones(1, 2)).sum().backward()

    def zeroed(x, rows, model):
        nn.init.zeros_(model[0].weight)

    for way, words in ((eval_mode, "its mode"), (trained, "a gradient"), (zeroed, "`0.weight`")):
        (found,) = side_effects(way, 1, 2, model)
        assert words in found
    assert torch.equal(model[0].weight, weight)
    assert model.training
    assert model[0].weight.grad is None


def test_what_may_change_is_passed_as_it_is():
    rows = [1]
    assert not side_effects(lambda x, rows: rows.append(2), 0, rows, changes=("rows",))
    assert rows == [1, 2]


def test_results_are_evidence_as_they_were():
    trail, out = start_evidence(), torch.ones(2)
    Watched(lambda x: out, function)(1)
    out.zero_()
    assert trail[0].tolist() == [1, 1]


def test_a_copy_stays_in_the_graph():
    x = torch.ones(2, requires_grad=True)
    same, again = copied([x, x])
    assert same is again
    assert same is not x
    same.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_alike_is_up_to_rounding():
    assert alike(
        [torch.tensor([1.0]), "you get 0.3333"], [torch.tensor([1.0 + 1e-7]), "you get 0.3334"]
    )
    assert not alike("you get 0.33", "you get 0.43")
    assert not alike("the shape is 3", "the size is 3")
    assert not alike(torch.ones(2), torch.ones(3))
    assert not alike(None, torch.ones(1))
    assert alike({"a": torch.tensor(torch.nan)}, {"a": torch.tensor(torch.nan)})
    assert not alike([1], [1, 2])


def test_calls_are_told_apart_by_what_is_given_and_returned():
    def calls(answer, *given):
        watched = Watched(answer, function)
        for x in given:
            watched(x)
        return watched.calls

    assert len(calls(lambda x: 7, 1, 2)) == 2
    assert len({result for _, result in calls(lambda x: torch.ones(2), 1, 2)}) == 1
    assert len({result for _, result in calls(lambda x: torch.full((2,), x), 1, 2)}) == 2
    assert len({result for _, result in calls(lambda x: nn.Linear(1, 1), 1, 2)}) == 2
    assert {result for _, result in calls(lambda x: None, 1, 2)} == {None}
    assert len(calls(lambda x: 7, torch.ones(2), torch.ones(2))) == 1


def test_prints_are_equal_where_values_are():
    def both(make):
        return printed(make()) == printed(make())

    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.int64):
        assert both(lambda dtype=dtype: [torch.ones(2, 3).to(dtype), {"a": (1.5, "b")}])
    assert both(lambda: torch.ones(3).expand(2, 3).mT.requires_grad_())
    assert both(lambda: torch.zeros(2, device="meta"))
    assert printed(torch.zeros(2)) != printed(torch.zeros(2, 1))
    assert printed(torch.zeros(2)) != printed(torch.tensor([0.0, 1.0]))
    assert printed([1, 2]) != printed([2, 1])
