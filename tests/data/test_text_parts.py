"""Texts in parts: cut where no token can span, whatever stands around."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import bounded

from tinytf.data.text_parts import Part, read_part, safe_cut, text_parts
from tinytf.text.pretokenize import split

ALPHABET = "ab1'sé　\u00a0 \n\n\r\t.,猫"


@bounded
@given(st.text(ALPHABET, min_size=1, max_size=80), st.integers(1, 20))
def test_the_pieces_of_the_parts_are_those_of_the_whole(tmp_path_factory, text, part_bytes):
    path = tmp_path_factory.mktemp("parts") / "text"
    path.write_bytes(text.encode())
    parts = text_parts(path, part_bytes)
    words = [read_part(path, part).decode() for part in parts]
    assert "".join(words) == text
    assert [piece for part in words for piece in split(part)] == split(text)
    assert all(part.end - part.start >= part_bytes for part in parts[:-1])


def test_a_text_is_cut_and_not_only_once(tmp_path):
    (tmp_path / "text").write_text("one line\n" * 100)
    parts = text_parts(tmp_path / "text", 90)
    assert len(parts) == 10
    assert parts[0].start == 0
    assert all(a.end == b.start for a, b in itertools.pairwise(parts))
    assert text_parts(tmp_path / "text", 90, end=180)[-1].end == 180


def test_a_place_far_away_is_found(tmp_path):
    (tmp_path / "text").write_bytes(b"x" * 200_000 + b"\nrest")
    assert safe_cut(tmp_path / "text", 5, 200_005) == 200_000
    (tmp_path / "text").write_bytes(b"x" * 200_000)
    assert text_parts(tmp_path / "text", 10) == [Part(0, 200_000)]


def test_what_is_wrong_is_said(tmp_path):
    (tmp_path / "text").write_text("one line\n")
    with pytest.raises(ValueError, match="part_bytes must be at least 1, got 0"):
        text_parts(tmp_path / "text", 0)
    with pytest.raises(ValueError, match="text ends at byte 9, inside the part 4 to 20"):
        read_part(tmp_path / "text", Part(4, 20))
