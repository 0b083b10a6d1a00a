"""Words to ids and back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.text.words import BOS, EOS, PAD, UnknownWordError, WordTokenizer, pad_batch

WORDS = ("the", "cat", "sat", "on", "mat")


@pytest.fixture
def tokenizer():
    return WordTokenizer(WORDS)


def test_specials_come_first(tokenizer):
    assert (PAD, BOS, EOS) == (0, 1, 2)
    assert tokenizer.tokens == ("<pad>", "<bos>", "<eos>", *WORDS)
    assert len(tokenizer) == 8
    assert tokenizer.words == WORDS


def test_strings_and_lists_encode_alike(tokenizer):
    assert (
        tokenizer.encode("the cat  sat\n") == [3, 4, 5] == tokenizer.encode(("the", "cat", "sat"))
    )


@bounded
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), st.integers(0, 3))
def test_decoding_undoes_encoding(words, padding):
    tokenizer = WordTokenizer(WORDS)
    ids = tokenizer.encode(words)
    assert tokenizer.decode(ids) == words
    row = [BOS, *ids, EOS, *[PAD] * padding]
    assert tokenizer.decode(row) == words
    assert tokenizer.decode(torch.tensor(row)) == words
    assert tokenizer.decode([*row, 3]) == words  # nothing counts after <eos>


@pytest.mark.parametrize(
    ("text", "word", "position", "hint"),
    [
        ("the dog sat", "dog", 1, ""),
        ("the cat saat on", "saat", 2, "; did you mean 'sat'"),
        ("The", "The", 0, ""),
        ("<eos>", "<eos>", 0, ""),  # a special is not a word that one may say
        ("the <pad>", "<pad>", 1, ""),
        (["the cat"], "the cat", 0, ""),
    ],
)
def test_unknown_words_are_named(tokenizer, text, word, position, hint):
    with pytest.raises(UnknownWordError) as error:
        tokenizer.encode(text)
    assert (error.value.word, error.value.position) == (word, position)
    assert str(error.value).startswith(
        f"unknown word {word!r} at position {position}: it is not among the 5 words"
    )
    assert hint in str(error.value)


@pytest.mark.parametrize("empty", ["", "  ", []])
def test_empty_sentences_are_refused(tokenizer, empty):
    with pytest.raises(ValueError, match="the sentence is empty: give at least one word"):
        tokenizer.encode(empty)


@pytest.mark.parametrize("bad", [8, -1])
def test_ids_out_of_range_are_refused(tokenizer, bad):
    with pytest.raises(ValueError, match=f"id {bad} is outside the vocabulary of 8"):
        tokenizer.decode([3, bad])


@pytest.mark.parametrize("twice", ["cat", "<bos>"])
def test_words_must_be_distinct(twice):
    with pytest.raises(ValueError, match=f"found twice: {twice}"):
        WordTokenizer([*WORDS, twice])


def test_rows_are_padded_on_the_right():
    batch = pad_batch([[3, 2], [4, 5, 6, 2], [2]])
    assert batch.tolist() == [[3, 2, 0, 0], [4, 5, 6, 2], [2, 0, 0, 0]]
    assert batch.dtype == torch.int64
    with pytest.raises(ValueError, match="the batch is empty: give at least one sentence"):
        pad_batch([])


WHOLE = "cat sat ? mother 's do not did can will is i am it we have o'clock the boys 5"
SPOKEN = WordTokenizer(WHOLE.split())


HINTS = {  # what is meant, and how one may write it
    "cat": "cat! cat. CATT Cat cat” 'cat' (cat),",
    "sat ?": 'sat? Sat? "Sat?"',
    "i": "I",
    "5": "5.",
    "the": "“The",
    "mother 's": "mother's Mother’s",
    "mother 's ?": "mother’s?",
    "'s": "’s",
    "boys": "boys'",
    "o'clock": "O’Clock",
    "do not": "don't Don’t",
    "did not": "didn't didn’t.",
    "can not": "can't cannot",
    "will not": "won't",
    "is not": "isn't",
    "i am": "i'm I’m",
    "i will": "i'll",
    "we have": "we've",
    "it is": "It's",  # a possessive has no apostrophe there
}


@pytest.mark.parametrize(("meant", "written"), HINTS.items())
def test_hints_are_words_one_may_use(meant, written):
    for word in written.split():
        with pytest.raises(UnknownWordError) as error:
            SPOKEN.encode(word)
        assert str(error.value).endswith(f"of the vocabulary; did you mean {meant!r}?"), word
        assert SPOKEN.encode(meant)


@pytest.mark.parametrize(
    ("written", "hint"), [("<eos> <EOS> xylophone", ""), (". !?! …", "; leave it out")]
)
def test_what_nothing_is_meant_by_gets_no_word_for_a_hint(written, hint):
    for word in written.split():
        with pytest.raises(UnknownWordError, match=f"of the vocabulary{hint}$"):
            SPOKEN.encode(word)
    assert SPOKEN.encode("?")


@pytest.mark.parametrize("bad", [None, 5, 2.5, [None], ["the", 5]])
def test_what_is_no_text_is_refused(tokenizer, bad):
    with pytest.raises(TypeError, match=r"is a string or a list of words|words are strings, got"):
        tokenizer.encode(bad)
