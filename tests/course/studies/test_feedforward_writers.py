"""Swapping words by the units that write them: against the edited model."""

from types import SimpleNamespace

import pytest
import torch
from support import randomise

from tinytf.cli.train import build
from tinytf.interpret.ffn_units import (
    edited,
    mirrored,
    word_directions,
)
from tinytf.metrics.translation import batch_of
from tinytf.training.trainer import TrainingConfig
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import feedforward_writers as study


@pytest.fixture(scope="module")
def swap():
    """One swap in a small untrained translator, with the pairs it is graded on."""
    sizes = {"d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 24}
    _, translator = build(TrainingConfig(steps=2, warmup=1), 8, "cpu", **sizes)
    randomise(translator.model.double())
    pairs = Phrasebook().sample(60, "train", seed=3)
    seen = study.positions(translator, pairs, size=25)
    cat, dog = pairs[0].target[0], pairs[1].target[-1]
    seen = seen._replace(written=seen.gold)  # as if the model were right everywhere
    return study.Swap(translator, cat, dog, seen, seen), translator, pairs


def test_positions_are_those_of_the_model(swap):
    found, translator, pairs = swap
    batch = batch_of(translator, pairs)
    real = batch.tgt_out != 0
    with torch.no_grad():
        logits = translator.model(batch.src, batch.tgt_in)[real]
    logits[:, :2] = -torch.inf
    assert torch.equal(found.test.gold, batch.tgt_out[real])
    assert torch.equal(study.likeliest(translator, found.test.stream), logits.argmax(-1))
    assert torch.equal(found.test.row, real.nonzero()[:, 0])


@pytest.mark.parametrize("by", ["contribution", "value", "key", "random"])
def test_a_swap_equals_the_edited_model(swap, by):
    found, translator, pairs = swap
    units = found.ranked(by)[:9]
    layer = translator.model.decoder.layers[-1].feed_forward
    directions = word_directions(translator.model)
    new = mirrored(found.values, directions[found.word], directions[found.other])
    batch = batch_of(translator, pairs)
    with torch.no_grad(), edited(layer, units, new[units]):
        logits = translator.model(batch.src, batch.tgt_in)[batch.tgt_out != 0]
    logits[:, :2] = -torch.inf
    moves = found.edit(units)
    everywhere = torch.ones_like(found.due)
    assert torch.equal(found._written(everywhere, moves, None), logits.argmax(-1))
    written = logits.argmax(-1)
    shares = [
        (written[found.due] == word).double().mean().item() for word in (found.other, found.word)
    ]
    assert found.there(moves) == pytest.approx(shares)
    wrong = (written != found.test.gold) & found.elsewhere
    assert found.lost(moves) == len(found.test.row[wrong].unique()) / found.sentences


def test_elsewhere_is_without_the_two_words(swap):
    found, _, pairs = swap
    rows = found.test.row[found.elsewhere].unique().tolist()
    words = [found.translator.target.tokens[i] for i in (found.word, found.other)]
    assert rows == [i for i, pair in enumerate(pairs) if not set(words) & set(pair.target)]
    assert found.sentences == len(rows) > 0
    assert found.due.sum() == sum(pair.target.count(words[0]) for pair in pairs)


def test_an_overwritten_value_moves_by_its_length(swap):
    found, *_ = swap
    moves = found.overwrite(torch.tensor([5]), 3)
    assert moves[5] == pytest.approx(-3 * found.values[5].norm().item())
    assert moves.count_nonzero() == 1


def test_units_needed():
    assert study.units_needed([0, 0.2, 0.5, 1], (1, 2, 4, 8)) == 4
    assert study.units_needed([0, 0.2], (1, 2)) is None


def test_every_word_is_swapped_for_another_of_its_kind(swap):
    found, translator, _ = swap
    kinds = study.content_words(translator)
    rows = study.swaps(translator, found.test, least=3)
    assert len(rows) > 10
    assert all(word != other and kinds[word] == kinds[other] == kind for word, other, kind in rows)
    count = {
        word: int((found.test.gold == translator.target.encode(word)[0]).sum()) for word in kinds
    }
    assert {word for word, *_ in rows} == {word for word, n in count.items() if n >= 3}


def test_a_description_tells_what_the_swap_measures():
    units, says, none = torch.arange(24), torch.arange(24.0, 0, -1), torch.zeros(24)
    orders = {"contribution": units, "value": units.flip(0), "random": units[::2]}
    fake = SimpleNamespace(
        says=says,
        activity=torch.ones(24),
        ranked=lambda by="contribution": orders[by],
        edit=lambda units: none.index_fill(0, units, 1),
        overwrite=lambda unit, times: none.index_fill(0, unit, times),
        there=lambda moves, along=None: (
            (moves @ says / 300).item() if along is None else 0.25,
            0.5,
        ),
        lost=lambda moves, along=None: (moves @ units.float() / 1000).item(),
        anywhere=lambda: "elsewhere",
    )
    row = study.describe(fake)
    assert row["there"] == [0.08, 0.157, 0.3, 0.547, 0.74, 0.88, 1]
    assert (row["needed"], row["needed_by_value"]) == (8, 24)
    assert (row["top_unit"], row["one"], row["lost"]) == (0.08, [0.08, 0.5, 0], 0.028)
    assert row["random_units"] == [0.453, 0.056]
    assert row["random_direction"] == [0.25, 0.5, 0.028]
    assert row["dose_there"][:4] == [0.08, 0.16, 0.32, 0.48]
    assert row["dose_lost"] == [0] * 7
    assert set(study.describe(fake, full=False)) == {
        "needed", "needed_by_value", "top_unit", "there", "one"
    }  # fmt: skip


def test_a_random_direction_is_one_that_a_norm_keeps(swap):
    found, *_ = swap
    along = found.anywhere()
    assert along.norm().item() == pytest.approx(1)
    assert along.mean().item() == pytest.approx(0, abs=1e-12)
    assert abs((along @ found.across).item()) < 0.9
