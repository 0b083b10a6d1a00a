"""The storyteller: its batches, how it begins, how it is graded, and the command."""

import json
import math

import pytest
import torch

from tinytf.apps.writer import Writer
from tinytf_course.__main__ import main
from tinytf_course.commands import storyteller as command
from tinytf_course.stories import check, storyteller, tell

TINY = {"d_model": 16, "num_heads": 2, "num_layers": 1}


@pytest.fixture(scope="module")
def begun():
    return storyteller.begin(stories=320, steps=6, device="cpu", **TINY)


def test_a_row_is_a_story_between_two_ends(begun):
    _, writer = begun
    text = tell("train/0").text
    ids = storyteller.row(writer.tokenizer, text)
    assert ids[0] == ids[-1] == writer.end_id
    assert writer.tokenizer.decode(ids[1:-1]) == text


def test_batches_hold_every_story_once_an_epoch(begun):
    trainer, writer = begun
    batches = storyteller.StoryBatches(trainer.batches.rows, size=8, seed=3)
    steps = len(batches.rows) // 8
    seen = []
    for step in range(steps):
        batch = batches(step)
        assert torch.equal(batch.ids_in[:, 1:], batch.ids_out[:, :-1])
        for first, rest in zip(batch.ids_in[:, 0], batch.ids_out, strict=True):
            ids = [int(first), *rest.tolist()]
            assert ids[-1] == writer.end_id
            story = ids[: ids.index(writer.end_id, 1) + 1]
            assert set(ids[len(story) :]) <= {writer.end_id}
            seen.append(tuple(story))
    assert len(seen) == len(set(seen)) == 8 * steps
    assert set(seen) <= set(map(tuple, batches.rows))
    later = batches(steps + 1)
    assert not torch.equal(later.ids_in[0, :40], batches(1).ids_in[0, :40])
    assert torch.equal(batches(steps + 1).ids_in, later.ids_in)  # of its step alone


def test_it_begins_with_larger_weights_than_gpt2s(begun):
    trainer, _ = begun
    for name, weight in trainer.model.named_parameters():
        if weight.dim() > 1:
            table = name.startswith(("embedding", "positions", "output"))
            wanted = 0.05 if table else 16**-0.5
            if name.endswith(("w_o.weight", "w_2.weight")):
                wanted /= math.sqrt(2)  # one layer, two sublayers
            assert weight.std().item() == pytest.approx(wanted, rel=0.25), name


def test_a_model_that_knows_nothing_has_the_loss_of_a_guess(begun):
    _, writer = begun
    stories = storyteller.held_out(5)
    with torch.no_grad():
        blank = storyteller.begin(stories=320, steps=6, device="cpu", **TINY)[1]
        for weight in blank.model.parameters():
            weight.zero_()
    guess = math.log(len(writer.tokenizer))
    assert storyteller.loss(blank, stories) == pytest.approx(guess, rel=1e-5)
    assert 0.15 < storyteller.floor(writer.tokenizer, stories) < 0.3


def test_its_stories_are_graded_and_counted():
    good, cut = tell(1).text, " ".join(tell(1).sentences[:-1])
    found = storyteller.sense([good, good, cut, "No."])
    assert found["sense"] == 0.5
    assert found["rules"] == {"ending": 1, "grammar": 1}
    lengths = [len(check(text).sentences) for text in (good, good, cut)]
    assert found["sentences"] == pytest.approx(sum(lengths) / 4)


def test_the_command_writes_storytellers_and_their_table(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "CHECKPOINTS", (4, 99))
    monkeypatch.setattr(storyteller, "SIZES", storyteller.SIZES | TINY)
    made = tmp_path / "made"
    asked = ["--steps", "8", "--stories", "320", "--sampled", "3", "--seed", "1"]
    assert main(["storyteller", *asked, "--out", str(made)]) == 0
    files = {path.name for path in made.iterdir()}
    assert files == {"storyteller-4.safetensors", "storyteller.safetensors", "table.json"}
    table = json.loads((made / "table.json").read_text())
    assert [row["step"] for row in table["rows"]] == [4, 8]
    assert table["rows"][1]["loss"] < table["rows"][0]["loss"] < 1.1 * math.log(storyteller.VOCAB)
    assert table["rows"][1]["0.8"]["copied"] == 0
    writer = Writer.load(made / "storyteller.safetensors", "cpu")
    told = storyteller.sample(writer, 2, seed=4)
    assert told == storyteller.sample(writer, 2, seed=4) != storyteller.sample(writer, 2, seed=5)


def test_a_cold_storyteller_is_a_greedy_one(begun):
    _, writer = begun
    cold = storyteller.sample(writer, 1, temperature=1e-6)[0]
    assert cold == writer.write("", max_new_tokens=storyteller.LONGEST - 1)
