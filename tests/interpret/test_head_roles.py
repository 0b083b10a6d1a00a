"""Scores of heads, and silencing them: against loops, and against other ways to the same number."""

from contextlib import ExitStack

import pytest
import torch

from tinytf.inspect import attention_layers, record, replace
from tinytf.interpret.head_roles import (
    ROLES,
    Head,
    heads_of,
    mean_weight,
    role_scores,
    role_targets,
    uniform_weights,
)
from tinytf.metrics.translation import batch_of, grade_alignment, teacher_forced


def test_names_of_heads(model):
    heads = heads_of(model)
    assert len(heads) == len(set(heads)) == 2 * 3 * 3
    assert [str(h) for h in heads[::6]] == ["enc 0.0", "dec 0.0", "cross 0.0"]
    last = heads[-1]
    assert (last.layer, last.index) == ("decoder.layers.1.cross_attention", 2)
    assert (last.kind, last.depth) == ("cross", 1)


def test_mean_weight_against_a_loop():
    weights = torch.rand(2, 3, 4, 5)
    target = torch.tensor([[0, 4, -1, 2], [-1, -1, 1, -1]])
    picked = [(0, 0, 0), (0, 1, 4), (0, 3, 2), (1, 2, 1)]
    for head in range(3):
        expected = sum(weights[b, head, t, s] for b, t, s in picked) / 4
        torch.testing.assert_close(mean_weight(weights, target)[head], expected)
    assert mean_weight(weights, torch.full((2, 4), -1)).isnan().all()
    with pytest.raises(ValueError, match=r"target \(2, 5\) does not fit weights \(2, 3, 4, 5\)"):
        mean_weight(weights, torch.zeros(2, 5, dtype=torch.long))
    with pytest.raises(ValueError, match="target names key 5, and there are only 5 keys"):
        mean_weight(weights, torch.full((2, 4), 5))


def test_role_targets_keep_to_real_tokens():
    queries = torch.tensor([[True] * 4, [True, True, False, False]])
    targets = {role: t.tolist() for role, t in role_targets(queries, queries).items()}
    assert tuple(targets) == ROLES
    assert targets["previous"] == [[-1, 0, 1, 2], [-1, 0, -1, -1]]
    assert targets["itself"] == [[0, 1, 2, 3], [0, 1, -1, -1]]
    assert targets["next"] == [[1, 2, 3, -1], [1, -1, -1, -1]]
    assert targets["first"] == [[-1, 0, 0, 0], [-1, 0, -1, -1]]
    assert targets["last"] == [[3, 3, 3, -1], [1, -1, -1, -1]]
    longer = role_targets(queries[1:], torch.tensor([[True, True, True, False]]))
    assert longer["next"].tolist() == [[1, 2, -1, -1]]  # keys of their own length


def test_uniform_weights():
    mask = torch.tensor([[True, True, False], [False] * 3])
    assert uniform_weights(mask).tolist() == [[0.5, 0.5, 0], [0, 0, 0]]


def test_role_scores_against_a_loop(shipped, pairs):
    few = pairs[:4]
    scores = role_scores(shipped, few)
    found = {}
    for pair in few:  # one by one, so that nothing is padding
        batch = batch_of(shipped, [pair])
        with torch.no_grad(), record(shipped.model) as seen:
            shipped.model(batch.src, batch.tgt_in)
        for head in heads_of(shipped.model):
            rows = seen[head.layer][0, head.index].tolist()
            for t, row in enumerate(rows):
                if head.kind != "cross" and t > 0:
                    found.setdefault(("previous", head), []).append(row[t - 1])
                    found.setdefault(("first", head), []).append(row[0])
                if head.kind == "enc" and t < len(row) - 1:
                    found.setdefault(("last", head), []).append(row[-1])
    assert len(found) == 16 + 16 + 8
    for (role, head), values in found.items():
        assert scores[role][head] == pytest.approx(sum(values) / len(values), abs=1e-5)


def test_role_scores_leave_out_what_a_head_cannot_do(shipped, pairs):
    with pytest.raises(ValueError):
        role_scores(shipped, [])
    model = shipped.model.train()
    scores = role_scores(shipped, pairs)
    teacher_forced(model, batch_of(shipped, pairs[:2]))
    assert model.training  # the mode is left as it was
    model.eval()
    kinds = {role: {head.kind for head in of} for role, of in scores.items()}
    assert kinds["alignment"] == {"cross"}
    assert kinds["next"] == {"enc"}
    assert kinds["last"] == {"enc", "cross"}
    assert kinds["previous"] == {"enc", "dec"}
    mass = grade_alignment(shipped, pairs)["mass"]
    assert scores["alignment"][Head("decoder.layers.1.cross_attention", 2)] == mass[1, 2].item()


def test_uniform_scores_of_a_batch_are_those_of_heads_made_even(shipped, pairs):
    """Padding included, and alignment, whose chance is counted from the links."""

    def even(weights):
        return uniform_weights(weights > 0)

    expected = role_scores(shipped, pairs, uniform=True)
    with ExitStack() as stack:
        for name in attention_layers(shipped.model):
            stack.enter_context(replace(shipped.model, name, even))
        found = role_scores(shipped, pairs)
    for role, of in expected.items():
        assert of
        for head, score in of.items():
            assert found[role][head] == pytest.approx(score, abs=1e-5)
