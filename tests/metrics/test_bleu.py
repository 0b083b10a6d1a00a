"""BLEU: against sacrebleu on the same tokens, on cases worked by hand, on bad input."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.metrics.bleu import corpus_bleu


def theirs(translations, references, max_n=4, smoothing="none"):
    """sacrebleu, which wants strings, and the first reference of all sentences, then the second."""
    sacrebleu = pytest.importorskip("sacrebleu")
    metric = sacrebleu.BLEU(
        tokenize="none", force=True, smooth_method=smoothing, max_ngram_order=max_n
    )
    streams = [[" ".join(r) for r in column] for column in zip(*references, strict=True)]
    return metric.corpus_score([" ".join(t) for t in translations], streams)


def assert_same(translations, references, max_n=4, smoothing="none"):
    ours = corpus_bleu(translations, references, max_n, smoothing)
    expected = theirs(translations, references, max_n, smoothing)
    assert ours.score == pytest.approx(expected.score, abs=1e-9)
    assert ours.precisions == pytest.approx(expected.precisions, abs=1e-9)
    assert ours.brevity_penalty == pytest.approx(expected.bp, abs=1e-12)
    assert list(ours.matches) == expected.counts
    assert list(ours.totals) == expected.totals
    assert (ours.length, ours.reference_length) == (expected.sys_len, expected.ref_len)


sentence = st.lists(st.sampled_from("abc"), min_size=0, max_size=9)


@bounded
@given(
    st.lists(st.tuples(sentence, sentence, sentence), min_size=1, max_size=5),
    st.integers(1, 4),
    st.sampled_from(["none", "exp"]),
)
def test_equals_sacrebleu(rows, max_n, smoothing):
    translations = [row[0] for row in rows]
    assert_same(translations, [row[1:] for row in rows], max_n, smoothing)
    assert_same(translations, [row[1:2] for row in rows], max_n, smoothing)


@pytest.mark.parametrize("smoothing", ["none", "exp"])
@pytest.mark.parametrize("seed", range(5))
def test_equals_sacrebleu_on_a_corpus_like_a_real_one(seed, smoothing):
    """Translations that are damaged references: every precision lies strictly between 0 and 100."""
    rng = random.Random(seed)
    references = [[rng.choices("abcdefghijklmnop", k=rng.randint(4, 15))] for _ in range(60)]
    translations = []
    for (reference,) in references:
        kept = [t for t in reference if rng.random() > 0.15]
        translations.append([rng.choice("abcdefghijklmnop") if rng.random() < 0.1 else t
                             for t in kept])  # fmt: skip
    assert_same(translations, references, 4, smoothing)
    ours = corpus_bleu(translations, references)
    assert all(0 < p < 100 for p in ours.precisions)
    assert 0 < ours.brevity_penalty < 1


def test_a_perfect_translation_scores_100_and_tokens_may_be_ids():
    assert corpus_bleu([[1, 2, 3, 4, 5]], [[[1, 2, 3, 4, 5]]]).score == pytest.approx(100)
    assert corpus_bleu([(1, 2, 3, 4)], [((1, 2, 3, 4),)]).score == pytest.approx(100)


def test_an_empty_translation_scores_0():
    result = corpus_bleu([[]], [[list("abcd")]])
    assert (result.score, result.brevity_penalty) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([["a"]], []), ValueError, "1 translations do not match 0 sets of references"),
        (([], []), ValueError, "no translation to score"),
        (([["a"], ["b"]], [[["a"]], []]), ValueError, "translation 1 has no reference"),
        ((["a cat"], [[["a"]]]), TypeError, "translation 0 is a string: split it"),
        (([["a"]], ["a cat"]), TypeError, "references of translation 0 must be a list of lists"),
        (([["a"]], [["a", "cat"]]), TypeError, r"list of lists of tokens, got \['a', 'cat'\]"),
        (([[1]], [[1, 2]]), TypeError, r"list of lists of tokens, got \[1, 2\]"),
        (([["a"]], [[["a"]]], 0), ValueError, "max_n must be at least 1, got 0"),
        (([["a"]], [[["a"]]], 4, "add"), ValueError, "smoothing='add' is not one of"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        corpus_bleu(*arguments)
