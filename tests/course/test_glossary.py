"""The glossary."""

import pytest

from tinytf_course.glossary import TERMS, glossary
from tinytf_course.outline import CHAPTERS


def test_glossary():
    assert len({english for english, *_ in TERMS}) == len(TERMS) >= 30
    assert all(f"{chapter:02d}" in {number for number, *_ in CHAPTERS} for *_, chapter in TERMS)
    assert {row[0] for row in glossary("NORM").rows} == {
        "RMSNorm",
        "batch normalisation",
        "layer normalisation",
        "pre-norm, post-norm",
    }
    assert [row[0] for row in glossary("查询").rows][:1] == ["query"]
    with pytest.raises(KeyError, match="no term contains 'tractor'"):
        glossary("tractor")
