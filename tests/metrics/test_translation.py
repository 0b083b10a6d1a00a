"""Exact match, and alignment error against hand-made links and a loop."""

from dataclasses import replace

import pytest
import torch
from translator_support import PAIRS, trained_translator

from tinytf.inspect import record
from tinytf.metrics.translation import (
    alignment_error_rate,
    exact_match,
    exact_match_by_kind,
    grade_alignment,
    is_exact,
)
from tinytf.training.losses import make_batch


@pytest.fixture(scope="module")
def trained():
    return trained_translator()


def test_exact_match_counts_whole_sentences(trained):
    wrong = replace(PAIRS[0], target=("猫",))  # a prefix is not a match
    longer = replace(PAIRS[1], target=(*PAIRS[1].target, "坐"))
    pairs = [wrong, *PAIRS[1:], longer]
    expected = [False, True, True, True, True, False]
    for size in (1, 2, 256):
        assert is_exact(trained, pairs, batch_size=size) == expected
    assert is_exact(trained, pairs, beam=2) == expected
    assert exact_match(trained, pairs) == pytest.approx(4 / 6)
    by_kind = exact_match_by_kind(trained, pairs)
    assert list(by_kind.items()) == [("plain", 1 / 3), ("object", 1.0), ("counted", 1.0)]


@pytest.mark.parametrize("grade", [is_exact, exact_match, grade_alignment])
def test_nothing_to_grade_is_refused(trained, grade):
    with pytest.raises(ValueError, match="there are no pairs to grade"):
        grade(trained, [])


@pytest.mark.parametrize(
    ("links", "gold", "expected"),
    [
        ([(0, 0), (1, 1)], [(1, 1), (0, 0)], 0),
        ([(0, 0)], [(1, 1)], 1),
        ([(0, 0), (0, 1)], [(0, 0)], 1 - 2 / 3),
        ([], [(0, 0)], 1),
        ([(0, 0), (0, 0), (2, 1)], [(0, 0), (1, 1), (2, 2)], 1 - 2 / 5),
    ],
)
def test_alignment_error_rate_equals_the_formula(links, gold, expected):
    assert alignment_error_rate(links, gold) == pytest.approx(expected)


def test_alignment_error_rate_needs_links():
    with pytest.raises(ValueError, match="there are no links to compare"):
        alignment_error_rate([], [])


def test_alignment_grades_need_links(trained):
    bare = [replace(p, alignment=()) for p in PAIRS]
    with pytest.raises(ValueError, match="no gold links to grade against"):
        grade_alignment(trained, bare)


@pytest.mark.parametrize("batch_size", [2, 128])
def test_alignment_grades_equal_a_loop_over_words(trained, batch_size):
    layers, heads = 2, 3
    found = [[[] for _ in range(heads)] for _ in range(layers)]
    gold, mass = [], torch.zeros(layers, heads)
    for number, p in enumerate(PAIRS):
        gold += [(number, *link) for link in p.alignment]
        batch = make_batch([trained.source.encode(p.source)], [trained.target.encode(p.target)])
        batch = batch.to(trained.model.device)
        with record(trained.model) as seen:
            trained.model(batch.src, batch.tgt_in)
        for layer in range(layers):
            weights = seen[f"decoder.layers.{layer}.cross_attention"][0].cpu()
            for head in range(heads):
                for t in sorted({t for _, t in p.alignment}):
                    row = weights[head, t].tolist()
                    found[layer][head].append((number, row.index(max(row)), t))
                    mass[layer, head] += sum(row[s] for s, u in p.alignment if u == t)
    words = len({(n, t) for n, _, t in gold})
    table = grade_alignment(trained, PAIRS, batch_size)
    for layer in range(layers):
        for head in range(heads):
            links = found[layer][head]
            right = len(set(links) & set(gold)) / words
            assert table["accuracy"][layer, head].item() == pytest.approx(right)
            error = alignment_error_rate(links, gold)
            assert table["aer"][layer, head].item() == pytest.approx(error, abs=1e-6)
    torch.testing.assert_close(table["mass"], mass / words)
    assert len(table["accuracy"].unique()) > 1
