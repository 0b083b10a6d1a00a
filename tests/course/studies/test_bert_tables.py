"""The tables of BERT that ship are whole."""

import itertools

from tinytf_course import studies
from tinytf_course.studies import bert_tables
from tinytf_course.studies.bert_tasks import LABELS


def keys(name, *columns):
    rows = studies.load(name)["rows"]
    return sorted(tuple(row[c] for c in columns) for row in rows if all(c in row for c in columns))


def test_every_start_is_tried_on_both_tasks_with_every_number_of_labels():
    starts = ("pretrained", "frozen", "from scratch")
    expected = set(itertools.product(starts, ("dates", "answers"), LABELS, bert_tables.SEEDS))
    expected |= set(itertools.product(["100/0/0"], ("dates", "answers"), [128], bert_tables.SEEDS))
    assert keys("bert_tasks", "run", "task", "n", "seed") == sorted(expected)


def test_every_kind_of_pair_and_every_classifier_of_sections_has_five_seeds():
    runs = ("masked words", "next sentence", "sentence order")
    assert keys("bert_pairs", "run", "seed") == sorted(itertools.product(runs, bert_tables.SEEDS))
    runs = ("bag of words", "pretrained", "from scratch")
    expected = itertools.product(runs, (64, 1000), bert_tables.SEEDS)
    assert keys("bert_sections", "run", "n", "seed") == sorted(expected)
