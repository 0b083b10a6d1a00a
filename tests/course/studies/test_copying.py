"""The study of copying: which tokens are graded apart, and how its models are initialised."""

import pytest
import torch
from torch import nn

from tinytf_course.stories import tell
from tinytf_course.stories.words import KINDS, THINGS
from tinytf_course.studies import copying
from tinytf_course.studies.copying import RUNS, Grades, story_gpt, texts, train


@pytest.fixture(scope="module")
def told():
    before = copying.STORIES
    copying.STORIES = 300
    yield texts()
    copying.STORIES = before


@pytest.fixture(scope="module")
def grades(told):
    return Grades(told[0], count=6)


def test_every_name_and_every_thing_is_one_token(told):
    for word in (*KINDS, *THINGS):
        assert len(told[0].encode(f" {word}")) == 1, word


def test_kinds_are_what_the_words_say(told, grades):
    tokenizer, _ = told
    for number in range(6):
        length = len(tokenizer.encode(tell(f"held out/{number}").text)) + 1
        row, seen = grades.rows[number].tolist(), set()
        for at, target in enumerate(row[1:]):
            seen.add(row[at])
            word = tokenizer.decode([target]).removeprefix(" ")
            kind = None
            if at < length:
                old = target in seen
                if word in KINDS:
                    kind = "names" if old else None
                elif word in THINGS:
                    kind = "things" if old else "new things"
                else:
                    kind = "other"
            found = {name for name, chosen in grades.kinds.items() if chosen[number, at]}
            assert found - {"all"} == ({kind} if kind else set()), (number, at, word)
            assert ("all" in found) == (at < length)


def test_grades_are_mean_losses(told, grades):
    class Certain(nn.Module):
        """Predicts the token after each, but for things, where it predicts the token itself."""

        device = torch.device("cpu")

        def forward(self, ids):
            logits = torch.full((*ids.shape, copying.VOCABULARY), -20.0)
            targets = grades.rows[: len(ids), 1:].clone()
            targets[grades.kinds["things"]] = ids[grades.kinds["things"]]
            return logits.scatter_(-1, targets[..., None], 20.0)

    found = grades(Certain())
    assert found["things"] == pytest.approx(40, abs=0.1)
    assert found["names"] < 1e-3
    assert found["new things"] < 1e-3


@pytest.mark.parametrize("run", RUNS)
def test_weights_have_the_spread_that_the_run_names(run):
    layers, std = RUNS[run]
    model = story_gpt(layers, std)
    assert len(model.decoder.layers) == layers
    assert model.output.weight is model.embedding.weight
    for weight in (model.table, model.decoder.layers[0].feed_forward.w_2.weight):
        assert weight.std().item() == pytest.approx(std, rel=0.05)


def test_a_row_holds_what_was_measured_on_the_way(told, grades, monkeypatch):
    monkeypatch.setattr(copying, "EVERY", 2)
    row = train(story_gpt(1), told[1], grades, steps=40)
    assert row["step"] == list(range(2, 41, 2))
    assert set(row) == {"step", *grades.kinds}
    assert all(len(values) == 20 for values in row.values())
    assert row["all"][-1] < row["all"][0]
