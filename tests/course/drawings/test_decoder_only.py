"""Drawings of a decoder-only model."""

import pytest
import torch

from tinytf.apps.writer import STORYTELLER, Writer
from tinytf.decoding.sampling import Sampling
from tinytf.viz.spoken import spoken
from tinytf_course.drawings.decoder_only import (
    draw_gpt,
    draw_name_table,
    draw_step,
    draw_what_remains,
    draw_writing,
    gaps,
    who_hears,
)


def written(ax):
    return "\n".join(text.get_text() for text in ax.texts)


def test_only_the_decoders_layer_has_what_goes():
    words = written(draw_what_remains())
    assert words.count("cross-attention") == words.count("memory") == 1
    assert words.count("causal") == 2


def test_the_model_says_shapes_and_what_is_missing():
    ax = draw_gpt(placeholders=("positions", "stack"), shapes={"ids": [2, 5]})
    assert "(2, 5)" in written(ax)
    assert "(B, T, V)" in written(ax)
    assert "Still placeholders: positions and stack." in spoken(ax.figure)
    assert "placeholders" not in spoken(draw_gpt().figure)


def test_each_step_of_writing_has_a_column_more():
    ax = draw_writing(["a", "b"], ["c", "d"], layers=3)
    words = written(ax).splitlines()
    assert words.count("k v") == 3 * (2 + 3)
    assert words.count("c") == 2  # on top of the first step, at the bottom of the second
    assert words.count("d") == 1
    assert "2 steps of writing" in spoken(ax.figure)
    with pytest.raises(ValueError, match="2 tokens of a prompt and 0 written"):
        draw_writing(["a", "b"], [])


def test_a_step_leads_from_a_text_to_the_token_drawn():
    writer, text = Writer.load(STORYTELLER), "One morning, a clever girl named"
    tokens = [writer.tokenizer.decode([id]) for id in writer.tokenizer.encode(text)]
    told = writer.write(text, 1, Sampling(), seed=3)
    ax = draw_step(writer, text, seed=3)
    words = written(ax).splitlines()
    drawn = told.removeprefix(text).strip()
    assert words.count(drawn) == 2  # beside the probabilities, and as the next column
    assert {*(token.strip() for token in tokens), "<end>", text, "1,024 scores"} <= set(words)
    assert sum(line.startswith("layer ") for line in words) == 3
    assert f"{told.removeprefix(text)!r}, and appended" in spoken(ax.figure)


def test_the_token_drawn_is_shown_even_if_another_is_likelier():
    writer, text = Writer.load(STORYTELLER), "One morning, a clever girl named"
    best = writer.write(text, 1)
    for likeliest in (True, False):
        told = (seed for seed in range(99) if
                (writer.write(text, 1, Sampling(), seed=seed) == best) == likeliest)  # fmt: skip
        ax = draw_step(writer, text, seed=next(told), shown=1)
        assert len(ax.containers) == 2 - likeliest


def test_names_are_the_packages():
    from tinytf.gpt import GPT, GPTConfig

    layer = GPT(GPTConfig(5, 4, 1, 1, max_len=3)).decoder.layers[0]
    ours = {name.rpartition(".")[0] for name, _ in layer.named_parameters()}
    ax = draw_name_table(["attn.c_attn", "mlp.c_fc"])
    assert {line.split()[0] for line in written(ax).splitlines() if "_" in line} >= ours
    assert written(ax).count("transposed") == 2
    assert written(ax).count("split") == 1
    assert "Stored the other way round: attn.c_attn, mlp.c_fc." in spoken(ax.figure)


def test_influences_share_a_scale():
    axes = who_hears({"a": torch.eye(3), "b": 2 * torch.eye(3)}, ["x", "y", "z"])
    assert [ax.get_title() for ax in axes] == ["a", "b"]
    assert {ax.collections[0].get_clim() for ax in axes} == {(0, 2)}


def test_a_gap_stands_at_its_size():
    ax = gaps({"right": 1e-6, "wrong": 0.5})
    assert [text.get_text() for text in ax.texts] == ["1e-06", "0.5"]
    dots = [line.get_xdata().item() for line in ax.lines if line.get_marker() == "o"]
    assert dots == [1e-6, 0.5]
