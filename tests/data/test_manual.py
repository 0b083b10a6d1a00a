"""The Python manual as a corpus, and texts of one's own."""

import sys

import pytest

from tinytf.data.manual import (
    library_source,
    manual_split,
    manual_text,
    manual_topics,
    text_file,
)


def test_the_manual_is_all_there_in_order():
    topics = manual_topics()
    assert list(topics) == sorted(topics)
    text = manual_text()
    assert 300_000 < len(text) < 1_000_000
    assert len(text) == sum(map(len, topics.values())) + 2 * (len(topics) - 1)
    assert "The `assert` statement" in text or 'The "assert" statement' in text


@pytest.mark.parametrize("seed", range(5))
def test_nothing_held_out_is_trained_on(seed):
    train, validation = manual_split(0.1, seed)
    whole = manual_text()
    longest = max(map(len, manual_topics().values()))
    assert 0.1 <= len(validation) / len(whole) < 0.1 + longest / len(whole)
    assert 0.7 * len(whole) < len(train) < len(whole) - len(validation)
    known = {line.strip() for line in train.split("\n")}
    lines = [line.strip() for line in validation.split("\n") if len(line.strip()) > 40]
    again = sum(len(line) for line in lines if line in known)
    assert again < 0.02 * sum(map(len, lines))  # half of it, where topics are merely drawn


def test_the_split_is_by_whole_topics():
    topics = manual_topics()
    train, validation = manual_split(0.1)
    held_out = [text for text in topics.values() if text in validation]
    assert "\n\n".join(held_out) == validation
    assert manual_split(0.1) == (train, validation)
    assert manual_split(0.1, seed=1) != (train, validation)
    with pytest.raises(ValueError, match="fraction must lie between 0 and 1, got 1"):
        manual_split(1)
    with pytest.raises(ValueError, match=r"fraction=0.99999 leaves nothing to train on"):
        manual_split(0.99999)


def test_says_what_to_do_without_the_manual(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(ModuleNotFoundError, match=r"comes without its manual .*text_file\(path\)"):
        manual_text()


def test_library_source():
    text = library_source(100_000)
    assert len(text) == 100_000
    assert text == library_source(200_000)[:100_000]
    assert "import" in text
    with pytest.raises(ValueError, match="limit must be at least 1 character, got 0"):
        library_source(0)


def test_a_text_of_your_own(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes("猫\r\nsat".encode())
    assert text_file(path) == "猫\r\nsat"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(
        ValueError, match=r"mine.txt is not UTF-8: unexpected end of data at byte 3"
    ):
        text_file(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"mine.txt is empty"):
        text_file(path)
    with pytest.raises(FileNotFoundError):
        text_file(tmp_path / "none.txt")
