"""GPT-2's weights: old files, published names and sizes. What all families share: test_families."""

from functools import partial

import pytest
import torch
from family_support import edit_tensors, their_gpt2

from tinytf.gpt import GPT, PRESETS, GPTConfig
from tinytf.pretrained import download, gpt2
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")


@pytest.fixture
def folder(tmp_path):
    their_gpt2().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_from_pretrained_makes_the_class_it_is_asked_of(folder):
    class Mine(GPT):
        """A GPT of somebody's own."""

    assert type(GPT.from_pretrained(folder)) is GPT
    ours = Mine.from_pretrained(folder)
    assert type(ours) is Mine
    assert ours.output.weight is ours.embedding.weight


def test_old_files_without_prefix_and_with_masks_are_read(folder):
    expected = GPT.from_pretrained(folder)

    def as_published(tensors):
        old = {name.removeprefix("transformer."): t for name, t in tensors.items()}
        old["h.0.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
        old["h.1.attn.masked_bias"] = torch.tensor(-1e4)
        old["lm_head.weight"] = old["wte.weight"].clone()
        return old

    edit_tensors(folder, as_published)
    ids = torch.randint(53, (2, 9))
    assert torch.equal(GPT.from_pretrained(folder)(ids), expected(ids))


def test_a_tensor_under_two_names_is_refused(folder):
    edit_tensors(folder, lambda t: t | {"wte.weight": t["transformer.wte.weight"].clone()})
    with pytest.raises(CheckpointError, match=r"wte\.weight and .*wte\.weight are two names of"):
        GPT.from_pretrained(folder)


def test_an_output_of_its_own_is_refused(folder):
    edit_tensors(folder, lambda t: t | {"lm_head.weight": torch.zeros(53, 24)})
    with pytest.raises(CheckpointError, match=r"lm_head.weight is not transformer.wte.weight, whi"):
        GPT.from_pretrained(folder)


def test_published_sizes_are_described_as_hugging_face_describes_them():
    theirs = transformers.GPT2Config()
    with torch.device("meta"):
        said = gpt2.to_config(GPT(GPTConfig.preset("gpt2")))
    for name in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "activation_function",
                 "layer_norm_epsilon", "tie_word_embeddings", "scale_attn_weights", "eos_token_id",
                 "model_type"):  # fmt: skip
        assert said[name] == getattr(theirs, name), name
    assert gpt2.from_config(said) == GPTConfig.preset("gpt2")


@pytest.mark.parametrize(
    "kind", [{"norm": "post"}, {"activation": "relu"}, {"tie_output": False}], ids=lambda k: min(k)
)
def test_a_model_that_is_no_gpt2_is_not_saved_as_one(tmp_path, kind):
    sizes = {"vocab_size": 11, "d_model": 8, "num_heads": 2, "num_layers": 1, "max_len": 8}
    model = GPT(GPTConfig(**sizes, **kind))
    ((name, value),) = kind.items()
    with pytest.raises(ValueError, match=f"{name}': {value!r}"):
        gpt2.save(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- public names


def test_an_unknown_name_is_neither_a_folder_nor_published():
    with pytest.raises(CheckpointError, match=r"no folder 'gpt5', and the published .* gpt2, "):
        GPT.from_pretrained("gpt5")


def test_a_public_name_is_looked_up_downloaded_and_read(folder, tmp_path, monkeypatch):
    """How files come is for test_download.py: here, what GPT-2 asks for and where it goes."""
    asked = []

    def download_files(repository, revision, into, **_):
        asked.append((repository, revision, into))
        return folder

    monkeypatch.setenv("TINYTF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "download_files", download_files)
    ours, ids = GPT.from_pretrained("gpt2"), torch.randint(53, (1, 5))
    assert torch.equal(ours(ids), GPT.from_pretrained(folder)(ids))
    where = tmp_path / "cache" / "gpt2"
    assert asked == [("openai-community/gpt2", download.REVISIONS["gpt2"], where)]


def test_without_a_network_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTF_CACHE", str(tmp_path))
    closed = partial(download.download_model, host="http://127.0.0.1:9")
    monkeypatch.setattr(gpt2, "download_model", closed)
    with pytest.raises(CheckpointError, match=r"could not download gpt2.*Without a network, get"):
        GPT.from_pretrained("gpt2")


def test_every_preset_can_be_downloaded_by_name():
    assert download.REVISIONS.keys() == PRESETS.keys()
