"""The film's still: one row of attention with the shipped translator's numbers, for paper."""

import html
import math
from functools import cache

import torch

from tinytf.apps.translator import Translator
from tinytf.text.words import EOS

SENTENCE, LAYER, HEAD, QUERY = "the cat sat on the mat", 0, 2, 2  # film.js opens with the same


@cache
def film_still():
    """A table of the scores and weights that one word gives to all words of its sentence."""
    words, scores, weights = one_row()
    rows = "".join(
        f'<tr><th scope="row">{html.escape(word)}</th><td class="number">{score:.2f}</td>'
        f'<td class="number">{math.exp(score):.2f}</td><td class="number">{weight:.2f}</td></tr>'
        for word, score, weight in zip(words, scores, weights, strict=True)
    )
    head = "".join(
        f'<th scope="col"{kind}>{name}</th>'
        for name, kind in (
            ("word", ""), ("score q·k / √32", ' class="number"'),
            ("e to the score", ' class="number"'), ("weight", ' class="number"'),
        )
    )  # fmt: skip
    return (
        f"<p>Where “{words[QUERY]}” looks in “{html.escape(SENTENCE)}”, in head {HEAD} "
        f"of layer {LAYER} of the translator's encoder. A weight is e to the score, divided by the "
        "sum of that column. The output is the sum of the values, each times its weight.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


@torch.no_grad()
def one_row():
    """The words, and the scores and weights that word QUERY gives them: three lists."""
    translator = Translator.load(device="cpu")
    model, ids = translator.model.eval(), [*translator.source.encode(SENTENCE), EOS]
    x = model.positions(model.src_embedding(torch.tensor([ids])))  # (1, T) -> (1, T, C)
    for before in model.encoder.layers[:LAYER]:
        x = before(x)
    layer = model.encoder.layers[LAYER]
    x, attention = layer.residual_1.norm(x), layer.self_attention
    size = attention.num_heads, -1
    q, k = (w(x)[0].unflatten(-1, size)[:, HEAD] for w in (attention.w_q, attention.w_k))  # (T, D)
    scores = q[QUERY] @ k.T / math.sqrt(q.size(-1))
    return [*SENTENCE.split(), "<eos>"], scores.tolist(), scores.softmax(dim=-1).tolist()
