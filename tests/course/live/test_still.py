"""The film's still, which is what paper gets."""

import re

import torch

from tinytf import Translator
from tinytf_course.live import assets, still


def test_the_stills_numbers_are_the_models():
    seen = Translator.load(device="cpu").explain(still.SENTENCE).attention
    words, scores, weights = still.one_row()
    assert words == ["the", "cat", "sat", "on", "the", "mat", "<eos>"]
    expected = seen[f"encoder.layers.{still.LAYER}.self_attention"][still.HEAD, still.QUERY]
    torch.testing.assert_close(torch.tensor(weights), expected)
    torch.testing.assert_close(torch.tensor(scores).softmax(0), expected)
    assert f'<td class="number">{weights[1]:.2f}</td>' in still.film_still()


def test_the_film_opens_with_the_still():
    film = (assets.HERE / "film.js").read_text(encoding="utf-8")
    assert re.search(r'SENTENCES = \["(.*?)"', film)[1] == still.SENTENCE
    assert f'LAYER = "encoder.layers.{still.LAYER}"' in film
    assert f"OPENING = {{ head: {still.HEAD}, word: {still.QUERY} }}" in film
