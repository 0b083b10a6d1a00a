"""Uses of a word have the meaning of the gold Chinese."""

from tinytf_course.studies.senses import SENSES, uses


def test_uses_have_the_meaning_of_the_gold_chinese(book):
    found = uses(book, "train", 1, 1500, 40)
    assert set(found) == set(SENSES)
    for word, part in found.items():
        assert all(use.words[use.at] == word for use in part)
    marks = SENSES["old"]
    for use in found["old"]:
        pair = book.translate(" ".join(use.words))
        chinese = " ".join(pair.target[t] for s, t in pair.alignment if s == use.at)
        assert marks[use.sense] in chinese
