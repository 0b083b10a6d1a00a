"""Special tokens are found in a text wherever its chunks are cut, and cut it in training."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.text.bpe import ByteBPE, train_bpe
from tinytf.text.merges import learn_merges
from tinytf.text.pretokenize import split


@bounded
@given(
    text=st.text("<a>|b ", max_size=30),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9),
    special=st.lists(st.text("<a>|", min_size=1, max_size=4), min_size=1, max_size=4, unique=True),
)
def test_special_tokens_are_found_wherever_chunks_are_cut(text, sizes, special):
    chunks, place = [], 0
    while place < len(text):
        chunks.append(text[place : place + sizes[len(chunks) % len(sizes)]])
        place += len(chunks[-1])
    tokenizer = ByteBPE([(ord("<"), ord("a")), (256, ord(">"))], special)
    whole = tokenizer.encode(text, allowed_special="all")
    assert [i for ids in tokenizer.encode_chunks(chunks, "all") for i in ids] == whole
    assert tokenizer.decode(whole) == text
    plain = [i for ids in tokenizer.encode_chunks(chunks) for i in ids]
    assert plain == tokenizer.encode(text)


def test_a_file_is_encoded_with_its_special_tokens(bpe, tmp_path):
    text = "one <|end|>two<|end|><|end|> <|end three"
    (tmp_path / "a.txt").write_text(text)
    for size in (1, 3, 100):
        found = bpe.encode_file(tmp_path / "a.txt", size, allowed_special=["<|end|>"])
        assert [i for ids in found for i in ids] == bpe.encode(text, allowed_special="all")
    with pytest.raises(ValueError, match="'<x>' is not one of the special tokens"):
        list(bpe.encode_chunks(["a"], ["<x>"]))
    with pytest.raises(TypeError, match='allowed_special is a list or "all"'):
        list(bpe.encode_chunks(["a"], "<|end|>"))


def test_training_is_cut_at_special_tokens():
    """Nothing is learned of a special token's characters, nor of what stands on its two sides."""
    parts = ["the cat", "sat on", "the mat", ""] * 9
    text = "<|end|>".join(parts)
    learned = train_bpe(text, 30, special_tokens=["<|end|>"])
    words = Counter(tuple(p.encode()) for part in parts for p in split(part))
    assert learned.merges == learn_merges(words, 30)
    chunks = (text[i : i + 5] for i in range(0, len(text), 5))
    assert train_bpe(chunks, 30, special_tokens=["<|end|>"]).merges == learned.merges
    assert train_bpe(text, 30).merges != learned.merges
    with pytest.raises(TypeError, match="chunks of text are strings, got bytes"):
        train_bpe([b"abc"], 3, special_tokens=["<x>"])
