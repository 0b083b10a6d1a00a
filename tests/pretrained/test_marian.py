"""Marian weights: folders read and written as Hugging Face does; what does not fit is named."""

import json

import pytest
import torch
from marian_support import our_twin, their_model
from safetensors.torch import load_file, save_file
from support import assert_same_tensors, randomise

from tinytf.pretrained import marian as marian_weights
from tinytf.related.marian import Marian, MarianConfig
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")


@pytest.fixture
def folder(tmp_path):
    their_model().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def rewrite(folder, change):
    """Change the tensors of a folder's file."""
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    save_file(change(tensors), path, metadata={"format": "pt"})


def scores(model):
    src, tgt = torch.tensor([[5, 9, 40, 2], [7, 2, 0, 0]]), torch.tensor([[1, 6, 30], [1, 8, 2]])
    return model(src, tgt)


# ---- both ways


def test_their_folder_is_read(folder):
    before = torch.get_rng_state()
    ours = marian_weights.load(folder)
    assert torch.equal(before, torch.get_rng_state())  # loading draws nothing
    assert not ours.training
    assert ours.output.weight is ours.src_embedding.weight is ours.tgt_embedding.weight
    assert all(p.requires_grad and p.is_contiguous() for p in ours.parameters())
    theirs = transformers.MarianMTModel.from_pretrained(folder).eval()
    assert torch.equal(scores(ours), scores(our_twin(theirs)))
    assert ours.config == MarianConfig(54, 54, 24, 4, 3, 40, 0.1, 32)


def test_our_folder_is_read_by_them_and_by_us(tmp_path):
    config = MarianConfig(31, 31, 16, 2, 2, 40, 0.25, 20, activation="relu", their_eos_id=7)
    ours = randomise(Marian(config)).eval()
    with torch.no_grad():
        ours.src_embedding.weight[1] = ours.src_embedding.weight[0]  # the start is their <pad>
        ours.output.bias[1] = ours.output.bias[0]
    marian_weights.save_folder(ours, tmp_path / "new" / "ours")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "new" / "ours").eval()
    src, tgt = torch.tensor([[5, 9, 30, 2], [7, 2, 0, 0]]), torch.tensor([[1, 6, 30], [1, 8, 2]])
    order = config.order
    out = theirs(order[src], attention_mask=(src != 0).long(), decoder_input_ids=order[tgt])
    torch.testing.assert_close(ours(src, tgt)[..., config.places], out.logits, atol=1e-5, rtol=1e-5)
    again = marian_weights.load(tmp_path / "new" / "ours")
    assert again.config == config
    assert_same_tensors(again.state_dict(), ours.state_dict())


def test_a_round_trip_changes_no_bit(folder):
    stored = load_file(folder / "model.safetensors")
    back = marian_weights.to_state(marian_weights.load(folder))
    assert_same_tensors(back, stored)


@pytest.mark.parametrize("keep", [["model.shared.weight"], ["lm_head.weight"], None])
def test_older_files_may_say_the_table_and_the_positions_again(folder, keep):
    expected = scores(marian_weights.load(folder))

    def as_published(tensors):
        table = tensors.pop("model.shared.weight")
        names = keep or ["model.shared.weight", *marian_weights.TIED]
        positions = marian_weights.half_and_half(32, 24).half()
        copies = {name: table.clone() for name in names}
        return tensors | copies | {name: positions.clone() for name in marian_weights.POSITIONS}

    rewrite(folder, as_published)
    assert torch.equal(scores(marian_weights.load(folder)), expected)


def test_a_missing_bias_means_zeros_and_half_precision_becomes_float32(folder):
    rewrite(folder, lambda t: {n: x.half() for n, x in t.items() if n != "final_logits_bias"})
    ours = marian_weights.load(folder)
    assert ours.output.bias.count_nonzero() == 0
    assert {p.dtype for p in ours.parameters()} == {torch.float32}


def test_the_public_model_has_77_million_parameters():
    said = {"vocab_size": 65001, "d_model": 512, "encoder_layers": 6, "decoder_layers": 6,
            "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048,
            "decoder_ffn_dim": 2048, "max_position_embeddings": 512, "pad_token_id": 65000,
            "decoder_start_token_id": 65000, "eos_token_id": 0, "activation_function": "swish",
            "scale_embedding": True}  # fmt: skip
    config = marian_weights.from_config(said)
    with torch.device("meta"):
        ours = Marian(config)
        theirs = transformers.MarianMTModel(transformers.MarianConfig(**said))
    tables = 2 * 512 * 512  # theirs counts the two tables of positions
    extra = 512 + 65002  # ours has a row more for the start, and counts the bias
    count = sum(p.numel() for p in ours.parameters())
    assert count - extra == sum(p.numel() for p in theirs.parameters()) - tables == 77_419_008
    again = transformers.MarianConfig(**marian_weights.to_config(config)).to_dict()
    assert {name: again[name] for name in said} == said


# ---- files that do not fit


def drop(name):
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}


LAYER = "model.decoder.layers.1."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop(LAYER + "fc1.weight"), f"missing {LAYER}fc1.weight$"),
        (drop("model.shared.weight"), "missing model.shared.weight$"),
        (lambda t: t | {"model.encoder.layer_norm.bias": torch.zeros(24)},
         "unexpected model.encoder.layer_norm.bias$"),
        (lambda t: t | {LAYER + "fc1.weight": torch.zeros(24, 40)},
         r"fc1.weight has shape \(24, 40\), the config asks for \(40, 24\)$"),
        (lambda t: t | {"final_logits_bias": torch.zeros(53)},
         r"final_logits_bias has shape \(53,\), the config asks for \(1, 53\)$"),
        (lambda t: t | {LAYER + "fc1.bias": torch.zeros(40, dtype=torch.int8)},
         "fc1.bias holds torch.int8, not floats$"),
        (lambda t: t | {"lm_head.weight": torch.zeros(53, 24)},
         "lm_head.weight is not model.shared.weight, but Marian has one table"),
        (lambda t: t | {"model.encoder.embed_positions.weight": torch.zeros(32, 24)},
         "embed_positions.weight does not hold sines and then cosines"),
    ],
)  # fmt: skip
def test_tensors_that_do_not_fit_are_named(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=message):
        marian_weights.load(folder)


def test_interleaved_positions_are_refused(folder):
    from tinytf.positional import sinusoidal_encoding

    positions = {"model.decoder.embed_positions.weight": sinusoidal_encoding(32, 24)}
    rewrite(folder, lambda tensors: tensors | positions)
    with pytest.raises(CheckpointError, match="does not hold sines and then cosines"):
        marian_weights.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_layers": 2, "decoder_layers": 2}, "unexpected model.decoder.layers.2"),
        ({"decoder_layers": 2}, "encoder_layers=3 and decoder_layers=2, but Marian has one number"),
        ({"decoder_ffn_dim": 80}, "encoder_ffn_dim=40 and decoder_ffn_dim=80"),
        ({"decoder_attention_heads": 2}, "decoder_attention_heads=2, but Marian has one number"),
        ({"decoder_vocab_size": 60}, "vocab_size=53 and decoder_vocab_size=60"),
        ({"decoder_start_token_id": 0}, "pad_token_id=52 and decoder_start_token_id=0"),
        ({"vocab_size": 54, "decoder_vocab_size": 54}, r"has shape \(53, 24\), .* for \(54, 24\)"),
        ({"d_model": 28}, r"has shape \(53, 24\), the config asks for \(53, 28\)"),
        ({"d_model": 26}, "d_model=26 is not divisible by num_heads=4"),
        ({"max_position_embeddings": None}, "max_position_embeddings a whole number, got None"),
        ({"encoder_layers": True}, "encoder_layers a whole number, got True"),
        ({"pad_token_id": 99, "decoder_start_token_id": 99}, "their_pad_id=99 is outside"),
        ({"eos_token_id": [0]}, r"eos_token_id a whole number, got \[0\]"),
        ({"scale_embedding": False}, "scale_embedding=False, but Marian .* scale_embedding=True"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings=False"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=False"),
        ({"normalize_before": True}, "normalize_before=True"),
        ({"static_position_embeddings": False}, "static_position_embeddings=False"),
        ({"activation_function": "tanh"}, "activation_function='tanh', which is none of swish, "),
        ({"model_type": "bart"}, "model_type='bart', but Marian computes model_type='marian' only"),
        ({"dropout": "much"}, "the config can't be used"),
    ],
)  # fmt: skip
def test_configs_that_disagree_are_named(folder, changes, message):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=message):
        marian_weights.load(folder)


def test_what_a_config_leaves_unsaid_is_what_they_take_it_to_mean(folder):
    path = folder / "config.json"
    said = json.loads(path.read_text())
    assert marian_weights.from_config(said | {"activation_function": "gelu"}) == (
        marian_weights.from_config({n: v for n, v in said.items() if n != "activation_function"})
    )
    with pytest.raises(CheckpointError, match=r"encoder_attention_heads=4 and decoder_\w+=16"):
        marian_weights.from_config(
            {n: v for n, v in said.items() if n != "decoder_attention_heads"}
        )
    with pytest.raises(CheckpointError, match="scale_embedding=False"):
        marian_weights.from_config({n: v for n, v in said.items() if n != "scale_embedding"})
    with pytest.raises(CheckpointError, match=r"must name sizes and settings, got \[12\]"):
        marian_weights.from_config([12])


def test_a_pickle_is_not_opened(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(CheckpointError, match="pickle, which could run code, and is not opened"):
        marian_weights.load(folder)
