"""Scores of heads, and silencing them: against loops, and against other ways to the same number."""

import math
from contextlib import ExitStack

import matplotlib.pyplot as plt
import pytest
import torch
from support import random_ids, randomise, small_model

from tinytf import viz
from tinytf.apps.translator import Translator
from tinytf.data.phrasebook import Phrasebook
from tinytf.inspect import ablate_heads, attention_layers, record, replace
from tinytf.interpret.ablation import damage, mean_outputs, silenced, teacher_forced
from tinytf.interpret.coreference import antecedent_scores, noun_preferences, nouns_said
from tinytf.interpret.head_roles import (
    ROLES,
    Head,
    heads_of,
    mean_weight,
    role_scores,
    role_targets,
    uniform_weights,
)
from tinytf.metrics.translation import batch_of, grade_alignment, is_exact
from tinytf.studies.heads import answers, describe, noun_rows, unseen_twins
from tinytf.text.words import BOS, EOS, PAD
from tinytf.training.losses import Batch, sequence_loss


@pytest.fixture(scope="module")
def shipped():
    return Translator.load(device="cpu")


@pytest.fixture(scope="module")
def pairs():
    return Phrasebook().sample(30, "test", seed=1)


@pytest.fixture(scope="module")
def twins():
    return [tuple(sorted(p, key=lambda p: p.antecedent[1])) for p in Phrasebook().twins(12, 3)]


@pytest.fixture
def model():
    return randomise(small_model()).eval()


@pytest.fixture
def batch():
    src, out = random_ids([6, 3], 11), random_ids([4, 5], 9)
    return Batch(src, torch.cat([torch.full((2, 1), BOS), out[:, :-1]], dim=1), out)


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


@pytest.mark.parametrize("role", ROLES)
def test_a_head_made_for_a_role_scores_one(role):
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    targets = role_targets(real, real)
    weights = torch.zeros(2, 1, 6, 6)
    weights[:, 0].scatter_(-1, targets[role].clamp(min=0)[..., None], 1.0)
    assert mean_weight(weights, targets[role]).item() == 1.0
    others = [mean_weight(weights, targets[r]).item() for r in ROLES if r != role]
    assert max(others) < 0.7


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
    scores = role_scores(shipped, pairs)
    kinds = {role: {head.kind for head in of} for role, of in scores.items()}
    assert kinds["alignment"] == {"cross"}
    assert kinds["next"] == {"enc"}
    assert kinds["last"] == {"enc", "cross"}
    assert kinds["previous"] == {"enc", "dec"}
    mass = grade_alignment(shipped, pairs)["mass"]
    assert scores["alignment"][Head("decoder.layers.1.cross_attention", 2)] == mass[1, 2].item()


def test_uniform_scores_are_those_of_even_weights(shipped, pairs):
    one = pairs[:1]
    length = len(one[0].source) + 1
    scores = role_scores(shipped, one, uniform=True)
    for role in ("previous", "itself", "next", "first", "last"):
        for head, score in scores[role].items():
            if head.kind == "enc":
                assert score == pytest.approx(1 / length, abs=1e-6)
    written = len(one[0].target) + 1
    expected = sum(1 / (t + 1) for t in range(written)) / written
    dec = next(h for h in scores["itself"] if h.kind == "dec")
    assert scores["itself"][dec] == pytest.approx(expected, abs=1e-6)


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


def test_no_pairs_to_score(shipped):
    with pytest.raises(ValueError):
        role_scores(shipped, [])


def test_antecedent_scores_of_made_up_heads(shipped, twins):
    """A head fixed on the first noun scores about -1, one that finds the right noun 1."""
    model, name = shipped.model, "decoder.layers.1.cross_attention"
    first = {False: torch.tensor([two[0].antecedent[1] for two in twins])}
    right = {i: torch.tensor([two[i].antecedent[1] for two in twins]) for i in (0, 1)}
    calls = []

    def looks(at):
        def change(weights):
            calls.append(1)
            where = at[(len(calls) - 1) % len(at)] if len(at) > 1 else at[False]
            weights = torch.zeros_like(weights)
            weights.scatter_(-1, where[:, None, None, None].expand(*weights.shape[:3], 1), 1.0)
            return weights

        return change

    with replace(model, name, looks(first)):
        assert antecedent_scores(shipped, twins)[Head(name, 0)] == pytest.approx(-1)
    calls.clear()
    with replace(model, name, looks(right)):
        assert antecedent_scores(shipped, twins)[Head(name, 3)] == pytest.approx(1)
    swapped = [two[::-1] for two in twins]
    assert antecedent_scores(shipped, swapped) == antecedent_scores(shipped, twins)
    assert noun_preferences(shipped, swapped) == noun_preferences(shipped, twins)
    with pytest.raises(ValueError, match="no twins"):
        antecedent_scores(shipped, [])


@pytest.mark.parametrize("kind", ["encoder.self", "decoder.self", "decoder.cross"])
def test_preferences_of_a_layer_made_to_look_at_the_second_noun(shipped, twins, kind):
    """Read at `it`, or where the noun is about to be said again: elsewhere it looks away."""
    name, calls = "{}.layers.0.{}_attention".format(*kind.split(".")), []

    def change(weights):
        weights = torch.zeros_like(weights)
        for row, two in enumerate(twins):
            pair, second = two[len(calls)], two[1]
            query, key = pair.antecedent[2], second.antecedent[1]
            if kind == "encoder.self":
                query = pair.source.index("it")
            elif kind == "decoder.self":
                key = ("<bos>", *pair.target).index(second.target[second.antecedent[2]])
            weights[row, 1:, query, key] = 1.0
        calls.append(1)
        return weights

    with replace(shipped.model, name, change):
        first, second = noun_preferences(shipped, twins)
    heads = [Head(name, index) for index in range(4)]
    assert [first[head] for head in heads] == pytest.approx([0, -1, -1, -1])
    assert [second[head] for head in heads] == pytest.approx([0, 1, 1, 1])


def test_nouns_said_against_a_loop(shipped, twins):
    model = shipped.model
    silent = [h for h in heads_of(model) if h.depth == 1 and h.kind == "cross" and h.index < 3]
    silent += [h for h in heads_of(model) if h.depth == 0 and h.kind == "cross"]
    right = other = 0
    for two in twins:
        for pair, twin in (two, two[::-1]):
            again = pair.antecedent[2]
            src = torch.tensor([[*shipped.source.encode(pair.source), EOS]])
            read = torch.tensor([[BOS, *shipped.target.encode(pair.target[:again])]])
            with torch.no_grad(), silenced(model, silent):
                scores = model.output(model.decode(read, model.encode(src)))[0, -1]
            (word,) = shipped.target.decode([scores.argmax().item()])
            right += word == pair.target[again]
            other += word == twin.target[twin.antecedent[2]]
    found = nouns_said(shipped, twins, iter(silent))
    assert found == pytest.approx((right / 24, other / 24))
    assert found.right > 0.2
    assert found.other > 0.2
    assert nouns_said(shipped, twins) == (1, 0)
    with pytest.raises(ValueError, match="no twins"):
        nouns_said(shipped, [])


@pytest.mark.parametrize("layer", ["encoder.layers.0.self", "decoder.layers.1.cross"])
def test_silenced_to_zero_is_ablation_of_the_weights(model, batch, layer):
    name = f"{layer}_attention"
    with replace(model, name, ablate_heads(0, 2)):
        expected = model(batch.src, batch.tgt_in)
    with silenced(model, [Head(name, 0), Head(name, 2)]):
        found = model(batch.src, batch.tgt_in)
    torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)
    assert (found - model(batch.src, batch.tgt_in)).abs().max() > 1e-3  # and it is over


def test_silenced_leaves_what_the_layer_was_given_alone(model, batch):
    name, given = "encoder.layers.0.self_attention", []
    layer = model.get_submodule(name).w_o
    hook = layer.register_forward_pre_hook(lambda _, args: given.extend([args[0], args[0] + 0]))
    with silenced(model, [Head(name, 1)]):
        model(batch.src, batch.tgt_in)
    hook.remove()
    assert torch.equal(given[0], given[1])


def test_silenced_to_the_mean_keeps_the_mean(model, batch):
    name = "encoder.layers.0.self_attention"
    before = mean_outputs(model, batch)
    width = 12 // 3
    with silenced(model, [Head(name, 1)], to=before):
        after = mean_outputs(model, batch)
        inputs = {}
        hook = model.get_submodule(name).w_o.register_forward_pre_hook(
            lambda _, args: inputs.update(joined=args[0])
        )
        model(batch.src, batch.tgt_in)
        hook.remove()
    torch.testing.assert_close(after[name], before[name])
    part = inputs["joined"][..., width : 2 * width]
    torch.testing.assert_close(part, before[name][width : 2 * width].expand_as(part))
    other = "decoder.layers.0.cross_attention"
    assert not torch.allclose(after[other], before[other])  # those that follow hear of it


def test_mean_outputs_leave_padding_out(model, batch):
    def padded(ids):
        return torch.nn.functional.pad(ids, (0, 4))

    longer = Batch(*map(padded, batch))
    for name, mean in mean_outputs(model, batch).items():
        torch.testing.assert_close(mean_outputs(model, longer)[name], mean)


def test_silenced_refuses_what_is_not_there_and_cleans_up(model, batch):
    plain = model(batch.src, batch.tgt_in)
    name = "encoder.layers.0.self_attention"
    refused = pytest.raises(ValueError, match=r"head 3 is not among .* 0\.\.2")
    with refused, silenced(model, [Head(name, 0), Head(name, 3)]):
        pass
    with pytest.raises(KeyError, match="nowhere"), silenced(model, [Head("nowhere", 0)]):
        pass
    with pytest.raises(RuntimeError), silenced(model, [Head(name, 0)]):
        raise RuntimeError
    assert torch.equal(model(batch.src, batch.tgt_in), plain)


def test_teacher_forced_is_greedy_decoding(shipped, pairs):
    """With a head silenced, so that some sentences are wrong."""
    head = Head("decoder.layers.0.self_attention", 0)
    others = [Head(head.layer, i) for i in range(3)]
    with silenced(shipped.model, others):
        decoded = is_exact(shipped, pairs)
        forced, loss = teacher_forced(shipped.model, batch_of(shipped, pairs))
        batch = batch_of(shipped, pairs)
        with torch.no_grad():
            total, tokens = sequence_loss(shipped.model, batch)
    assert forced.tolist() == decoded
    assert 0 < sum(decoded) < len(pairs)
    assert loss == pytest.approx((total / tokens).item(), rel=1e-5)


def test_teacher_forced_takes_no_word_that_decoding_may_not_write(shipped, pairs):
    def tempted(scores):
        return scores.index_fill(-1, torch.tensor([PAD, BOS]), 99.0)

    batch = batch_of(shipped, pairs)
    right, _ = teacher_forced(shipped.model, batch)
    with replace(shipped.model, "output", tempted):
        still_right, loss = teacher_forced(shipped.model, batch)
    assert right.any()
    assert torch.equal(still_right, right)
    assert loss > 50  # the loss is the model's own


def test_damage_compares_with_the_intact_model(shipped, pairs):
    model, batch = shipped.model, batch_of(shipped, pairs)
    intact = teacher_forced(model, batch)
    none = damage(model, batch, [])
    assert none == (0, 0)
    group = [Head("decoder.layers.1.cross_attention", i) for i in range(4)]
    found = damage(model, batch, group, intact=intact)
    with silenced(model, group):
        right, loss = teacher_forced(model, batch)
    assert found.loss == pytest.approx(loss - intact[1])
    assert found.exact == pytest.approx((intact[0].sum() - right.sum()).item() / len(pairs))
    assert found.exact > 0.5
    assert found == damage(model, batch, group)
    means = mean_outputs(model, batch)
    with silenced(model, group, means):
        right, loss = teacher_forced(model, batch)
    found = damage(model, batch, group, means)
    assert found.loss == pytest.approx(loss - intact[1])
    assert found.exact == pytest.approx((intact[0].sum() - right.sum()).item() / len(pairs))


def test_scoring_leaves_the_mode_as_it_was(shipped, pairs):
    model = shipped.model.train()
    try:
        role_scores(shipped, pairs[:2])
        teacher_forced(model, batch_of(shipped, pairs[:2]))
        assert model.training
    finally:
        model.eval()


def test_answers_go_round_the_ring():
    found = answers(torch.tensor([[5, 6, 7, 8]]), (-1, 2))
    assert found.tolist() == [[[8, 7], [5, 8], [6, 5], [7, 6]]]


def test_twins_of_the_studies_were_never_trained_on():
    book = Phrasebook()
    for first, second in unseen_twins(book):
        assert first.antecedent[1] < second.antecedent[1]
        assert first.source[:-1] == second.source[:-1]
        assert "train" not in {book.split_of(first.source), book.split_of(second.source)}


def test_rows_of_the_studies(shipped, pairs, twins):
    heads = heads_of(shipped.model)
    rows = noun_rows(shipped, twins)
    assert list(rows)[:7] == ["nothing", "enc 0", "enc 1", "dec 0", "dec 1", "cross 0", "cross 1"]
    assert list(rows)[7:] == [str(head) for head in heads]
    assert rows["cross 0"] == pytest.approx(nouns_said(shipped, twins, heads[16:20]), abs=1e-4)
    row, batch = describe(shipped, pairs[:6], twins[:3]), batch_of(shipped, pairs[:6])

    def cost(*silent):
        found = damage(shipped.model, batch, silent)
        return pytest.approx([100 * found.exact, found.loss], abs=0.01)

    assert row["test"]["zero"][9] == cost(heads[9])
    assert row["test"]["all but"][9] == cost(heads[8], heads[10], heads[11])
    assert row["test"]["pairs"]["cross 1.0, cross 1.3"] == cost(heads[20], heads[23])
    assert row["test"]["layers"]["dec 0"] == cost(*heads[8:12])
    assert row["scores"]["next"][8:] == [None] * 16
    assert row["scores"]["antecedent"][23] > 0.5


def test_the_table_of_heads():
    scores = {"previous": [0.5, math.nan, 0.1], "alignment": [math.nan, 0.9, 0.2]}
    costs = {"test": torch.tensor([[1.0, 3.0], [0.0, 0.5], [-1.0, 2.0]])}
    left, right = viz.head_table(["a", "b", "c"], scores, costs, xlabel="points")
    assert [t.get_text() for t in left.get_yticklabels()] == ["a", "b", "c"]
    assert len(left.patches) == 2  # hatched: the two roles that can't be played
    points = {tuple(xy) for line in right.lines for xy in zip(*line.get_data(), strict=True)}
    assert {(1, 0), (3, 0), (0, 1), (0.5, 1), (-1, 2), (2, 2)} <= points
    plt.close("all")
    with pytest.raises(ValueError, match="3 scores for 2 rows"):
        viz.head_table(["a", "b"], scores, costs)
    with pytest.raises(ValueError, match="1 costs of 'test' for 3 rows"):
        viz.head_table(["a", "b", "c"], scores, {"test": [[1.0]]})
    plt.close("all")
