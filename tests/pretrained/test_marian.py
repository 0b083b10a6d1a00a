"""Marian's weights: tied tables, positions, defaults. What all families share: test_families."""

import json

import pytest
import torch
from family_support import edit_tensors
from marian_support import their_model

from tinytf.pretrained import marian
from tinytf.related.marian import Marian, half_and_half
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")


@pytest.fixture
def folder(tmp_path):
    their_model().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def scores(model):
    src, tgt = torch.tensor([[5, 9, 40, 2], [7, 2, 0, 0]]), torch.tensor([[1, 6, 30], [1, 8, 2]])
    return model(src, tgt)


@pytest.mark.parametrize("keep", [["model.shared.weight"], ["lm_head.weight"], None])
def test_older_files_may_say_the_table_and_the_positions_again(folder, keep):
    expected = scores(marian.load(folder))

    def as_published(tensors):
        table = tensors.pop("model.shared.weight")
        names = keep or ["model.shared.weight", *marian.TIED]
        positions = half_and_half(32, 24).half()
        copies = {name: table.clone() for name in names}
        return tensors | copies | {name: positions.clone() for name in marian.POSITIONS}

    edit_tensors(folder, as_published)
    assert torch.equal(scores(marian.load(folder)), expected)


def test_a_missing_bias_means_zeros_and_half_precision_becomes_float32(folder):
    edit_tensors(folder, lambda t: {n: x.half() for n, x in t.items() if n != "final_logits_bias"})
    ours = marian.load(folder)
    assert ours.output.bias.count_nonzero() == 0
    assert {p.dtype for p in ours.parameters()} == {torch.float32}


def test_the_public_model_has_77_million_parameters():
    said = {"vocab_size": 65001, "d_model": 512, "encoder_layers": 6, "decoder_layers": 6,
            "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048,
            "decoder_ffn_dim": 2048, "max_position_embeddings": 512, "pad_token_id": 65000,
            "decoder_start_token_id": 65000, "eos_token_id": 0, "activation_function": "swish",
            "scale_embedding": True}  # fmt: skip
    config = marian.from_config(said)
    with torch.device("meta"):
        ours = Marian(config)
        theirs = transformers.MarianMTModel(transformers.MarianConfig(**said))
    tables = 2 * 512 * 512  # theirs counts the two tables of positions
    extra = 512 + 65002  # ours has a row more for the start, and counts the bias
    count = sum(p.numel() for p in ours.parameters())
    assert count - extra == sum(p.numel() for p in theirs.parameters()) - tables == 77_419_008
    again = transformers.MarianConfig(**marian.to_config(ours)).to_dict()
    assert {name: again[name] for name in said} == said


def test_interleaved_positions_are_refused(folder):
    from tinytf.positional import sinusoidal_encoding

    positions = {"model.decoder.embed_positions.weight": sinusoidal_encoding(32, 24)}
    edit_tensors(folder, lambda tensors: tensors | positions)
    with pytest.raises(CheckpointError, match="does not hold sines and then cosines"):
        marian.load(folder)


def test_what_a_config_leaves_unsaid_is_what_they_take_it_to_mean(folder):
    path = folder / "config.json"
    said = json.loads(path.read_text())
    assert marian.from_config(said | {"activation_function": "gelu"}) == (
        marian.from_config({n: v for n, v in said.items() if n != "activation_function"})
    )
    with pytest.raises(CheckpointError, match=r"encoder_attention_heads=4 and decoder_\w+=16"):
        marian.from_config({n: v for n, v in said.items() if n != "decoder_attention_heads"})
    with pytest.raises(CheckpointError, match="scale_embedding=False"):
        marian.from_config({n: v for n, v in said.items() if n != "scale_embedding"})
    with pytest.raises(CheckpointError, match=r"must name sizes and settings, got \[12\]"):
        marian.from_config([12])


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            {"final_logits_bias": torch.zeros(53)},
            r"final_logits_bias has shape \(53,\), the config",
        ),
        ({"lm_head.weight": torch.zeros(53, 24)}, "lm_head.weight is not model.shared.weight, whi"),
        ({"model.encoder.embed_positions.weight": torch.zeros(32, 24)}, "does not hold sines and"),
        ({"model.encoder.embed_positions.weight": torch.full((32, 24), 2).bool()}, "not hold sine"),
        ({"model.encoder.embed_positions.weight": torch.zeros(9)}, "does not hold sines and then"),
    ],
)
def test_tensors_of_other_values_are_named(folder, extra, message):
    edit_tensors(folder, lambda tensors: tensors | extra)
    with pytest.raises(CheckpointError, match=message):
        marian.load(folder)
