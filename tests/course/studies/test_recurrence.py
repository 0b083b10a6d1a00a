"""The study of recurrent translators: curves, grades, lengths, a short run."""

import pytest
import torch

from tinytf.apps.translator import Translator
from tinytf.metrics.translation import grade_alignment, is_exact
from tinytf.training.trainer import TrainingConfig
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import recurrence

# What the study of recurrence measures with


def test_a_curve_reaches_a_level_on_the_line_between_two_evaluations():
    curve = [
        {"step": 100, "seconds": 10.0, "exact": 0.2},
        {"step": 200, "seconds": 20.0, "exact": 0.6},
        {"step": 300, "seconds": 30.0, "exact": 0.5},
    ]
    assert recurrence.reached(curve, 0.1, "step") == pytest.approx(50)
    assert recurrence.reached(curve, 0.5) == pytest.approx(17.5)
    assert recurrence.reached(curve, 0.6) == pytest.approx(20)
    assert recurrence.reached(curve, 0.61) is None


def test_grades_of_hand_made_rows():
    weights = torch.tensor(
        [
            [[0.7, 0.2, 0.1, 0.0], [0.1, 0.2, 0.7, 0.0]],  # gold 0: on it; two to the right
            [[0.1, 0.2, 0.6, 0.1], [0.6, 0.3, 0.1, 0.0]],  # gold 1: one right; one left
            [[0.4, 0.6, 0.0, 0.0], [0.3, 0.7, 0.0, 0.0]],  # gold 0 of two words: one right
        ]
    )
    gold = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]).bool()
    real = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]]).bool()
    right = torch.tensor([True, True, False])
    grades = recurrence.grade_rows(recurrence.Rows(weights, gold, real, right))
    expected = {
        "accuracy": [1 / 3, 0],
        "aer": [2 / 3, 1],
        "mass": [(0.7 + 0.2 + 0.4) / 3, (0.1 + 0.3 + 0.3) / 3],
        "mass_within_one": [(0.9 + 0.9 + 1.0) / 3, (0.3 + 1.0 + 1.0) / 3],
        "one_right": [2 / 3, 1 / 3],
        "one_left": [0, 1 / 3],
        "word_right": [2 / 3, 2 / 3],
        "word_right_link_wrong": [1 / 2, 2 / 3],
        "uniform_mass": [(0.25 + 0.25 + 0.5) / 3] * 2,
        "uniform_within_one": [(0.5 + 0.75 + 1.0) / 3] * 2,
    }
    assert grades.keys() == expected.keys()
    for name, values in expected.items():
        assert grades[name].tolist() == pytest.approx(values), name


def test_the_transformers_heads_get_the_grades_that_evaluation_gives(device):
    translator = Translator.load(device=device)
    pairs = Phrasebook().sample(40, "test", seed=1)
    rows = recurrence.alignment_rows(translator, pairs, batch_size=16)
    linked = [[p.target[t] for t in sorted({t for _, t in p.alignment})] for p in pairs]
    assert list(rows.words) == [word for words in linked for word in words]
    grades = recurrence.grade_rows(rows)
    for name, table in grade_alignment(translator, pairs).items():
        torch.testing.assert_close(grades[name].float(), table.flatten(), atol=1e-4, rtol=1e-4)


def test_lengths_are_those_asked_for_and_held_out():
    pairs = recurrence.pairs_by_length(each=20)
    book = Phrasebook()
    assert len({p.source for p in pairs}) == len(pairs)
    assert {book.split_of(p.source) for p in pairs} == {"test"}
    translator = Translator.load()
    table = recurrence.exact_by_length(translator, pairs)
    counts = [count for _, count in table.values()]
    assert counts[:-1] == [20] * (len(recurrence.BINS) - 1)
    assert 5 <= counts[-1] <= 20  # long sentences are rare
    right = sum(share * count for share, count in table.values())
    assert right == pytest.approx(sum(is_exact(translator, pairs)))
    assert list(recurrence.exact_by_length(translator, pairs[:20])) == ["2-4"]


def test_the_models_compared_are_of_one_size_and_see_the_same_batches():
    config = TrainingConfig(steps=2, warmup=1, seed=4)
    trainers = [a.build(config, 8)[0] for a in recurrence.architectures().values()]
    sizes = [sum(p.numel() for p in t.model.parameters()) for t in trainers]
    assert max(sizes) < 1.03 * min(sizes)
    for trainer in trainers[1:]:
        for one, other in zip(trainers[0].batches(1), trainer.batches(1), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["one vector", "Bahdanau", "Transformer"])
def test_a_short_run_of_the_study(name):
    pairs = Phrasebook().sample(5, "validation", seed=1)
    run = recurrence.train_one(name, steps=3, batch_size=4, every=2, pairs=pairs)
    assert [row["step"] for row in run.curve] == [2, 3]
    again = recurrence.train_one(name, steps=3, batch_size=4)
    assert again.curve == []
    for a, b in zip(run.trainer.model.parameters(), again.trainer.model.parameters(), strict=True):
        assert torch.equal(a, b)  # grading in between changes nothing
    if name != "one vector":
        grades = recurrence.grade_bahdanau(run.translator, pairs)
        assert all(0 <= v <= 1 for n, v in grades.items() if n != "head")


def test_grading_needs_pairs_and_attention():
    words = recurrence.build_recurrent(TrainingConfig(steps=1, warmup=1), 4, attention="none")[1]
    with pytest.raises(ValueError, match="no pairs to grade"):
        recurrence.alignment_rows(words, [])
    with pytest.raises(ValueError, match="FixedContext has no attention"):
        recurrence.grade_bahdanau(words, Phrasebook().sample(2, "test", seed=1))
