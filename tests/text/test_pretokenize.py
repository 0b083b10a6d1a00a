"""Text cut in chunks is cut like the whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import bounded
from tokenizer_support import STRANGE, text_of_all_kinds

from tinytf.text.pretokenize import split, split_chunks


@bounded
@given(text=text_of_all_kinds, sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_chunks_cut_like_the_whole(text, sizes):
    chunks, place = [], 0
    while place < len(text):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(text[place : place + size])
        place += size
    assert [piece for pieces in split_chunks(chunks) for piece in pieces] == split(text)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_chunks_may_cut_a_contraction(size):
    for text in STRANGE:
        chunks = [text[i : i + size] for i in range(0, len(text), size)]
        assert [piece for pieces in split_chunks(chunks) for piece in pieces] == split(text)
