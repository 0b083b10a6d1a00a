"""The pieces of a text that are kept."""

from tinytf.text.bpe import ByteBPE


def test_cache_is_bounded(monkeypatch):
    monkeypatch.setattr("tinytf.text.pieces._CACHE", 10)
    bpe = ByteBPE([(ord("a"), ord("b"))])
    text = " ".join(f"ab{chr(97 + i)}{chr(97 + j)}" for i in range(26) for j in range(26))
    assert bpe.decode(bpe.encode(text)) == text
    assert len(bpe._cache) <= 10
    bpe.encode("x" * 1000)
    assert "x" * 1000 not in bpe._cache
