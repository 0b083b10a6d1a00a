"""The tables of the encoder, and how layers that start alike are told."""

import pytest

from tinytf.text.words import WordTokenizer
from tinytf_course import studies
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import encoder as lab
from tinytf_course.studies import encoder_tables


@pytest.fixture(scope="module")
def book():
    return Phrasebook()


def test_starts(book):
    words = WordTokenizer(book.source_words)
    models = {kind: lab.build(words, 0, start=kind) for kind in ("own", "equal")}
    alike = {kind: encoder_tables.likeness(model) for kind, model in models.items()}
    assert abs(alike["own"]) < 0.05
    assert alike["equal"] == pytest.approx(1)
    sizes = [
        sum(p.numel() for p in lab.build(words, 0, start=kind).encoder.parameters())
        for kind in ("own", "shared")
    ]
    norm = 2 * lab.WIDTH
    assert sizes[0] - norm == 3 * (sizes[1] - norm)


@pytest.mark.parametrize("name", ["cloze", "start", "bug", "senses", "layers"])
def test_tables_ship_with_five_seeds_and_their_command(name):
    study = studies.load(f"encoder_{name}")
    assert study["command"] == f"python -m tinytf_course.studies encoder_{name}"
    assert {row["seed"] for row in study["rows"] if "seed" in row} == set(range(5))
