"""The corpus from Python's library: docstrings, documents, nothing held out trained on."""

from pathlib import Path

import pytest

from tinytf.data import corpus as corpus_module
from tinytf.data.corpus import (
    END_OF_TEXT,
    HELD_OUT,
    corpus,
    encode_documents,
    library_docstrings,
)
from tinytf.data.manual import manual_topics
from tinytf.text.bpe import train_bpe

LONG = "It says in a sentence what it does, and in this one why it is good for you to know it."


assert len(LONG) >= 80


@pytest.fixture
def library(monkeypatch, tmp_path):
    """A small library in place of Python's, which takes seconds to parse."""
    held = next(p for p in manual_topics()["lambda"].split("\n\n") if len(p) > 80)
    source = {
        "a.py": f"{f'A {LONG}'!r}\ndef f():\n    {f'F {LONG}'!r}\n"
        f"async def g():\n    {f'G {LONG}'!r}\nclass C:\n    {f'C {LONG}'!r}\n    {LONG!r}\n"
        f"    def f(self):\n        {f'A {LONG}'!r}\n",  # once more, and a string that is no doc
        "b.py": repr(f"{held}\n\nB {LONG}"),
        "c.py": repr(held),
        "exact.py": repr("e" * 80),
        "short.py": repr("s" * 79),
        "wrong.py": "def :",
        "package/d.py": repr(f"D {LONG}"),
        "site-packages/e.py": repr(f"E {LONG}"),
        "test/h.py": repr(f"H {LONG}"),
    }
    for name, text in source.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(corpus_module.sysconfig, "get_path", lambda _: str(tmp_path))
    return held


def test_a_held_out_paragraph_is_taken_out_of_docstrings(library):
    with_library, alone = corpus().train, corpus(docstrings=False).train
    assert with_library[: len(alone)] == alone
    found = with_library[len(alone) :]
    assert library in library_docstrings()
    assert [text.split()[0] for text in found] == [*"AFGCB", "e" * 80, "D"]
    assert all(text.strip() for text in with_library)


def test_nothing_held_out_is_trained_on(library):
    texts = corpus()
    topics = manual_topics()
    assert set(texts.validation) == {topics[name] for name in HELD_OUT if name in topics}
    trained = {p.strip() for text in texts.train for p in text.split("\n\n")}
    held = {p.strip() for text in texts.validation for p in text.split("\n\n")} - {""}
    assert not trained & held
    assert sum(map(len, texts.validation)) > 30_000
    assert 60 < len(corpus(docstrings=False).train) < len(texts.train) < 100


def test_docstrings_are_of_the_library_each_once(library):
    found = library_docstrings()
    assert [text.split()[0] for text in found if text.endswith(LONG)] == [
        *"AFGC", library.split()[0], "D"
    ]  # fmt: skip
    assert len(found) == len(set(found)) == 8
    assert min(map(len, found)) == 80
    assert len(library_docstrings(shortest=81)) == 7


def test_this_pythons_library_has_docstrings():
    json = Path(corpus_module.sysconfig.get_path("stdlib")) / "json"
    assert any("JSON" in text for text in corpus_module._docstrings(json))


def test_a_library_without_sources_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(corpus_module.sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no source files"):
        library_docstrings()


def test_documents_are_joined_by_the_end_of_text():
    tokenizer = train_bpe("a b c", num_merges=0, special_tokens=[END_OF_TEXT])
    ids = encode_documents(tokenizer, ["ab", f"c{END_OF_TEXT}"]).tolist()
    end = tokenizer.special_id(END_OF_TEXT)
    assert ids[:4] == [end, 97, 98, end]
    assert ids.count(end) == 3  # the name in a document is plain text
    assert bytes(ids[4:-1]).decode() == f"c{END_OF_TEXT}"
    with pytest.raises(ValueError, match="no documents"):
        encode_documents(tokenizer, [])
    with pytest.raises(ValueError, match="endoftext"):
        encode_documents(train_bpe("a b c", num_merges=0), ["a"])
