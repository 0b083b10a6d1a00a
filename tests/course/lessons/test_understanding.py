"""The tasks of chapter 21: dates, answers and sections, with gold that can be trusted."""

from collections import Counter

import pytest

from tinytf_course.lessons import understanding as lesson
from tinytf_course.phrasebook import Phrasebook

BOOK = Phrasebook()


def tagged(english):
    pair = BOOK.translate(english)
    return "".join(lesson.TAGS[tag] for tag in lesson.date_tags(pair))


@pytest.fixture(scope="module")
def asked():
    return lesson.questions(1000)


def test_dates_are_tagged_and_hours_and_counts_are_not():
    assert tagged("your mother was born on 28 march 2006") == "OOOOOBII"
    assert tagged("in 2010 she went to the new shop") == "OBOOOOOO"
    assert tagged("today is 7 july") == "OOBI"
    assert tagged("he ran at 10 o'clock in the morning on thursday") == "O" * 10
    assert tagged("four weeks ago i borrowed the white car") == "O" * 8
    assert tagged("our son arrived in may 2010") == "OOOOBI"


def test_half_of_the_date_sentences_hold_a_date():
    examples = lesson.date_sentences(300, "test", seed=3)
    assert len(examples) == len({e.words for e in examples}) == 300
    assert sum(any(e.tags) for e in examples) == 150
    assert all(len(e.words) == len(e.tags) for e in examples)
    months = Counter(
        lesson.TAGS[t] for e in examples for w, t in zip(*e, strict=True) if w == "march"
    )
    assert months["B"]  # the word alone does not say
    assert months["I"]
    assert not {e.words for e in examples} & {e.words for e in lesson.date_sentences(500)}


def test_every_answer_stands_where_it_is_said_to(asked):
    for q in asked:
        assert 0 <= q.start <= q.end < len(q.text)
        assert q.question[0] == "what"
        assert q.question[-1] == "?"
        before = q.text[: q.start]
        assert not before or before[-1] not in ("the", "a", "his", "white"), q
    for q in asked[:60]:  # reading them again takes a while
        pair = BOOK.translate(" ".join(q.text))
        if q.kind == "it":
            assert pair.antecedent[1] == q.end
            assert q.question[1:-1] == q.text[pair.antecedent[0] + 1 :]
        else:
            assert q.text[q.end + 1 : q.end + 1 + len(q.question) - 2] == q.question[1:-1]
    share = Counter(q.kind for q in asked)["it"] / len(asked)
    assert share == pytest.approx(2 / 3, abs=0.05)


def test_the_sentence_decides_whether_it_is_subject_or_object(asked):
    subjects = [q.end < q.text.index("because") - 1 for q in asked if q.kind == "it"]
    assert 0.4 < sum(subjects) / len(subjects) < 0.6


def test_sentences_are_cut_and_code_is_left_out():
    text = (
        "The first one is here, in 2 lines\nof prose.  The second has many words.  No.\n\n"
        "   >>> print('never a sentence this one.')\n\nA title without a stop at all here"
    )
    assert lesson.sentences_of(text) == [
        ("the", "first", "one", "is", "here", "in", "lines", "of", "prose"),
        ("the", "second", "has", "many", "words"),
    ]


def test_sections_share_no_sentence_and_splits_neither():
    train, test = lesson.section_sentences(), lesson.section_sentences("test")
    assert (
        {e.section for e in train} == {e.section for e in test} == set(range(len(lesson.SECTIONS)))
    )
    assert len({e.words for e in train + test}) == len(train) + len(test)
    assert len(train) > 500
    assert len(test) > 150
    with pytest.raises(ValueError, match="split='validation' is not one of train, test"):
        lesson.section_sentences("validation")


def test_documents_hold_nothing_that_is_tested():
    train, test = lesson.manual_documents(), lesson.manual_documents("test")
    read = {sentence for document in train for sentence in document}
    assert not read & {e.words for e in lesson.section_sentences("test")}
    assert not read & {sentence for document in test for sentence in document}
    assert all(len(document) > 1 for document in train + test)
    words = lesson.manual_words(500)
    assert len(set(words)) == 500
    assert words[0] == "the"
    with pytest.raises(ValueError, match="is not one of train, test"):
        lesson.manual_documents("all")


def test_lives_are_about_one_person_and_in_order():
    documents = lesson.lives(200, seed=5)
    assert len({d[0][1] for d in documents}) == 8
    for document in documents:
        assert len(document) == 4
        assert len({sentence[1] for sentence in document}) == 1
        years = [int(sentence[-1]) for sentence in document]
        assert years == sorted(set(years))
        for sentence in document:
            assert set(sentence) <= set(BOOK.source_words)
    assert documents == lesson.lives(200, seed=5) != lesson.lives(200, seed=6)


def test_bad_counts_and_splits_are_refused():
    with pytest.raises(ValueError, match="count=-1 is negative"):
        lesson.questions(-1)
    with pytest.raises(ValueError, match="count=-2 is negative"):
        lesson.lives(-2)
    with pytest.raises(ValueError, match="split='dev' is not one of"):
        lesson.date_sentences(1, "dev")


def test_shuffling_depends_on_the_seed_alone():
    assert (
        lesson.shuffled(range(9), 1) == lesson.shuffled(range(9), 1) != lesson.shuffled(range(9), 2)
    )
    assert sorted(lesson.shuffled(range(9), 1)) == list(range(9))
