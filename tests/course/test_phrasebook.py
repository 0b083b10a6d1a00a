"""The phrasebook: both sides agree, links are right, and held-out sentences stay held out."""

import hashlib
import itertools
import re
from collections import Counter
from functools import cache

import pytest

from tinytf_course import phrasebook
from tinytf_course.phrasebook import KINDS, SPLITS, Pair, Phrasebook, pinyin
from tinytf_course.phrasebook import lexicon as lex
from tinytf_course.phrasebook.adverbials import digits_that_count

BOOK = Phrasebook()
STREET = "the animal did not cross the street because it was too "
UNLINKED_ENGLISH = {
    "the", "a", "an", "of", "is", "was", "are", "were", "did", "does", "do", "will", "to", "at",
    "on", "in", "any", "for", "am", "o'clock", "more", "very", "by",
}  # fmt: skip


@cache
def train() -> list[Pair]:
    return BOOK.sample(50_000)


@cache
def held_out(split: str) -> list[Pair]:
    return BOOK.sample(2_000, split)


def everything() -> list[Pair]:
    return [*train(), *(pair for split in SPLITS[1:] for pair in held_out(split))]


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("the cat sat on the mat", "猫 坐 在 垫子 上"),
        ("two black cats", "两 只 黑 猫"),
        ("the dog ate the fish", "狗 吃 了 鱼"),
        ("on 3 march 2021", "2021 年 3 月 3 日"),
        ("the cat that the dog saw", "狗 看见 的 猫"),
        (STREET + "tired", "动物 没有 过 马路 因为 动物 太 累 了"),
        (STREET + "wide", "动物 没有 过 马路 因为 马路 太 宽 了"),
        ("an old dog", "一 只 老 狗"),
        ("an old book", "一 本 旧 书"),
        ("i did not buy an umbrella", "我 没有 买 雨伞"),
        ("did you buy the book ?", "你 买 书 了 吗 ？"),
        ("the cat is black", "猫 是 黑色 的"),
        ("my mother sent me two letters", "我 妈妈 给 我 寄 了 两 封 信"),
    ],
)
def test_named_sentences(english, chinese):
    assert BOOK.translate(english).chinese == chinese


def test_split_preposition_and_measure_word_are_linked():
    mat = BOOK.translate("the cat sat on the mat")
    assert mat.alignment == ((1, 0), (2, 1), (3, 2), (3, 4), (5, 3))
    assert mat.pinyin == ("māo", "zuò", "zài", "diànzi", "shàng")
    cats = BOOK.translate("two black cats")
    assert cats.alignment == ((0, 0), (0, 1), (1, 2), (2, 3))


def test_every_sentence_drawn_is_read_back_in_every_kind():
    kinds = Counter()
    for split in SPLITS:
        for number, pair in enumerate((train() if split == "train" else held_out(split))[:350]):
            readings = BOOK.readings(pair.source)
            assert pair in readings, pair.english
            assert {reading.chinese for reading in readings} == {pair.chinese}, pair.english
            assert BOOK.split_of(pair.source) == split
            assert number >= 200 or BOOK.translate(pair.english) == pair
            kinds[pair.kind] += 1
    assert set(kinds) == set(KINDS)


@pytest.mark.parametrize(
    "english",
    [
        "the cat that the dog that the man saw heard slept",  # a relative clause in another
        "the big black cat sat on the mat",  # two adjectives
        "the cat that the dog saw slept because it was tired",  # because beside a relative
        "the cats is black",  # agreement
        "two dog",
        "a old dog",
        "he want to read",
        "mat the on sat cat the",  # shuffled
        "on the mat the cat sat",
        "the cat sat on",  # cut off
        "the cat sat on the mat the cat sat",  # more than a sentence
        "the",
        "5",
        "i saw 2 dogs",
        "the cat sat on the zebra",  # a word it does not have
        "",
        " ".join(["the cat"] * 15),  # longer than any sentence of it
    ],
)
def test_what_no_rule_derives_is_not_recognised(english):
    assert BOOK.readings(english.split()) == []


def test_swapping_two_words_of_a_sentence_mostly_leaves_the_grammar():
    outside = 0
    for pair in train()[:1_000]:
        words = list(pair.source)
        middle = len(words) // 2
        words[middle - 1], words[middle] = words[middle], words[middle - 1]
        outside += not BOOK.readings(words)
    assert outside > 900


def test_the_grammar_is_made_when_it_is_first_asked_for(monkeypatch):
    made, grammar = [], BOOK.grammar
    monkeypatch.setattr(phrasebook, "_grammar", lambda: made.append(1) or grammar)
    book = Phrasebook()
    book.pairs("train")
    assert not made
    assert book.readings(("two", "cats"))[0].chinese == "两 只 猫"
    assert made


def test_english_to_chinese_is_a_function():
    seen: dict[str, Pair] = {}
    for pair in everything():
        assert seen.setdefault(pair.english, pair) == pair


def test_tokens_are_in_the_vocabulary_and_can_be_said():
    english, chinese = set(BOOK.source_words), set(BOOK.target_words)
    assert BOOK.source_words == tuple(sorted(english))
    assert BOOK.target_words == tuple(sorted(chinese))
    for pair in everything():
        assert english.issuperset(pair.source)
        assert chinese.issuperset(pair.target)
        assert pair.pinyin == tuple(map(pinyin, pair.target))
        assert 1 <= len(pair.source) <= 24
        assert 1 <= len(pair.target) <= 24


def test_every_word_is_common_enough_to_learn():
    english = Counter(word for pair in train() for word in pair.source)
    chinese = Counter(word for pair in train() for word in pair.target)
    assert {word for word in BOOK.source_words if english[word] < 5} == set()
    assert {word for word in BOOK.target_words if chinese[word] < 5} == set()


def test_alignment_covers_content_words():
    for pair in everything():
        assert list(pair.alignment) == sorted(set(pair.alignment))
        sources, targets = ({link[side] for link in pair.alignment} for side in (0, 1))
        assert sources <= set(range(len(pair.source))), pair.english
        assert targets <= set(range(len(pair.target))), pair.english
        bare = {word for i, word in enumerate(pair.source) if i not in sources}
        assert bare <= UNLINKED_ENGLISH, f"{pair.english}: {bare}"
        assert len(targets) == len(pair.target), f"{pair.english}: {pair.chinese}"


def test_held_out_sentences_are_never_in_training():
    seen = {pair.english for pair in train()}
    for split in SPLITS[1:]:
        assert seen.isdisjoint(pair.english for pair in held_out(split))


FORMS = {form: n for n, noun in lex.NOUNS.items() for form in (n, noun.plural) if form}
VERBS = {form: v.base for v in lex.VERBS for form in (v.base, v.past, v.third) if form}
OBJECTS = {n: n for n in lex.MASSES} | FORMS
CLOSED = {*OBJECTS, *VERBS, "'s", "that", "?", "to"}


def _combinations(pair: Pair) -> set[str]:
    """Reserved combinations on the surface: an adjective or a number in front of its noun."""
    found = set()
    words = pair.source
    for one, two in itertools.pairwise(words):
        if (one, FORMS.get(two)) in lex.RESERVED_ADJECTIVES or (one, two) in lex.RESERVED_NUMBERS:
            found.add(f"{one} {two}")
    for one, middle, two in zip(words, words[1:], words[2:], strict=False):
        if (one, two) in lex.RESERVED_NUMBERS and middle in lex.ADJECTIVES:
            found.add(f"{one} {two}")
    for i, word in enumerate(words):
        for j in range(i + 1, min(i + 4, len(words))):  # ate the (adjective) egg
            reserved = (VERBS.get(word), OBJECTS.get(words[j])) in lex.RESERVED_OBJECTS
            if reserved and CLOSED.isdisjoint(words[i + 1 : j]):
                found.add(f"{word} {words[j]}")
    return found


def test_compositional_combinations_are_never_trained_but_their_words_are():
    assert [pair.english for pair in train() if _combinations(pair)] == []
    words = Counter(word for pair in train() for word in pair.source)
    found = Counter(name for pair in held_out("compositional") for name in _combinations(pair))
    assert len(found) > 40
    assert all(words[word] >= 20 for name in found for word in name.split())


def _value(word: str) -> int | None:
    """What an English number word or digit string is worth."""
    names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
             "eleven", "twelve"]  # fmt: skip
    if word.isdigit():
        return int(word)
    return 20 if word == "twenty" else names.index(word) + 1 if word in names else None


def _wert(word: str) -> int | None:
    """What a Chinese numeral or digit string is worth."""
    digits = "零一二三四五六七八九"
    word = word.replace("两", "二")
    if word.isascii() and word.isdigit():
        return int(word)
    if not word or not set(word) <= set(digits + "十"):
        return None
    tens, ten, ones = word.partition("十")
    if not ten:
        return digits.index(word) if len(word) == 1 else None
    return 10 * (digits.index(tens) if tens else 1) + (digits.index(ones) if ones else 0)


def test_numbers_and_dates_have_one_value_on_both_sides():
    seen = 0
    for pair in train()[:20_000]:
        linked = [(pair.source[i], pair.target[j]) for i, j in pair.alignment]
        english = [_value(word) for word in pair.source if _value(word) is not None]
        english += [lex.MONTHS.index(word) + 1 for word in pair.source if word in lex.MONTHS]
        chinese = [_wert(word) for word in pair.target if _wert(word) is not None]
        a = {"a", "an"} & set(pair.source)
        chinese = [n for n in chinese if n != 1 or not a or 1 in english]
        assert Counter(english) - Counter(chinese) == Counter(), pair.english
        assert set(chinese) - set(english) <= ({1} if a else set()), pair.english
        for word, target in linked:
            if _value(word) is not None and _wert(target) is not None:
                assert _value(word) == _wert(target), pair.english
                seen += 1
    assert seen > 3_000


def test_digits_only_stand_in_dates_and_hours():
    """So digits anywhere else are a count that a reader wrote in figures."""
    holding = [pair for pair in everything() if re.search(r"\d", pair.english)]
    assert len(holding) > 4_000
    assert [pair.english for pair in holding if digits_that_count(pair.source)] == []


@pytest.mark.parametrize(
    ("english", "places"),
    [
        ("i saw 2 dogs at 5 o'clock on 3 march", [2]),
        ("2021 cats saw 3 dogs in 5 houses in 2020", [0, 3, 6]),
        ("the cat sat", []),
        ("5", [0]),
    ],
)
def test_digits_that_count_are_found(english, places):
    assert digits_that_count(english.split()) == places


def test_figures_are_named_as_the_words_that_count():
    assert {str(_value(word)): word for word in lex.NUMBERS} | {"1": "a"} == lex.FIGURES


def test_dates_exist_and_stand_in_the_right_order():
    dates = [pair for pair in train() if re.search(r"\d 年 \d+ 月 \d+ 日", pair.chinese)]
    assert len(dates) > 1_000
    for pair in dates:
        day, month, year = re.search(r"(\d+) ([a-z]+) (\d{4})", pair.english).groups()
        y, m, d = re.search(r"(\d+) 年 (\d+) 月 (\d+) 日", pair.chinese).groups()
        assert (year, day) == (y, d)
        assert 1 <= int(d) <= lex.DAYS[int(m) - 1]
        assert lex.MONTHS[int(m) - 1] == month


def test_antecedents_are_balanced_and_repeated():
    pairs = [pair for pair in train() if pair.kind == "because"]
    first = 0
    for pair in pairs:
        it, noun, copy = pair.antecedent
        assert pair.source[it] == "it"
        assert (it, copy) in pair.alignment
        said = [j for i, j in pair.alignment if i == noun]
        assert [pair.target[j] for j in said] == [pair.target[copy]]
        assert copy not in said
        nouns = [i for i in range(it) if pair.source[i] in {*lex.NOUNS, *lex.MASSES}]
        first += noun == nouns[0]
    assert 0.45 < first / len(pairs) < 0.55
    assert all(pair.antecedent is None for pair in train() if pair.kind != "because")


def test_twins_differ_in_one_word_and_in_the_noun_they_mean():
    twins = BOOK.twins(50, seed=3)
    assert len(twins) == 50
    assert twins == BOOK.twins(50, seed=3)
    for one, two in twins:
        assert sum(a != b for a, b in zip(one.source, two.source, strict=True)) == 1
        assert one.source[one.antecedent[1]] != two.source[two.antecedent[1]]


def test_article_fits_the_next_word():
    for pair in train():
        for article, word in zip(pair.source, pair.source[1:], strict=False):
            if article in ("a", "an"):
                assert (article == "an") == (word[0] in "aeiou"), pair.english


def test_the_same_pairs_everywhere():
    digests = {
        split: hashlib.sha256(
            "\n".join(
                f"{pair.kind} {pair.english} | {pair.chinese} | {pair.alignment} {pair.antecedent}"
                for pair in (train()[:2_000] if split == "train" else held_out(split))
            ).encode()
        ).hexdigest()[:16]
        for split in SPLITS
    }
    assert digests == DIGESTS


def test_seed_changes_the_draw_and_not_the_split():
    other = Phrasebook(seed=7)
    assert other.sample(50) != BOOK.sample(50)
    assert other.sample(50) == Phrasebook(seed=7).sample(50)
    assert all(BOOK.split_of(pair.source) == "test" for pair in other.sample(50, "test"))


@pytest.mark.parametrize(
    ("english", "named"),
    [
        ("", "empty"),
        ("the zebra slept", "'zebra'"),
        ("the cat on sat the mat", "'on'"),
        ("the book slept", "'slept'"),
        ("the cat sat on", "breaks off after 'on'"),
        ("a old dog", "'old'"),
        ("two cat", "'cat'"),
    ],
)
def test_unreadable_sentences_name_the_word(english, named):
    with pytest.raises(ValueError, match=re.escape(named)):
        BOOK.translate(english)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="'dev'"):
        BOOK.pairs("dev")
    with pytest.raises(ValueError, match="n=-1"):
        BOOK.sample(-1)
    with pytest.raises(ValueError, match="n=-2"):
        BOOK.twins(-2)
    with pytest.raises(KeyError, match="斑马"):
        pinyin("斑马")


DIGESTS = {
    "train": "17f415e6906edf7c",
    "validation": "2a0e3430286006be",
    "test": "e8ae79783e2b25a6",
    "compositional": "ded8851623070676",
}


@pytest.mark.parametrize("split", SPLITS)
def test_pairs_of_some_kinds_are_those_of_all_that_are_drawn(split):
    kinds = ("because", "date")
    of_all = [pair for pair in BOOK.sample(300, split, seed=4) if pair.kind in kinds]
    assert list(itertools.islice(BOOK.pairs(split, 4, kinds), len(of_all))) == of_all


@pytest.mark.parametrize("kinds", [(), ("because", "wherefore")])
def test_unknown_kinds_and_none_are_refused_at_once(kinds):
    with pytest.raises(ValueError, match="choose some of phrase, simple, place"):
        BOOK.pairs("train", kinds=kinds)
