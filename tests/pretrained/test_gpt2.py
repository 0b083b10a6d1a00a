"""GPT-2 weights: the same model as Hugging Face's, both ways; files that do not fit are named."""

import json
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from support import TOLERANCE, assert_same_tensors, randomise

from tinytf.decoding.generate import generate
from tinytf.gpt import GPT, GPTConfig
from tinytf.pretrained import download
from tinytf.pretrained import gpt2 as gpt2_weights
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 53, "n_positions": 32, "n_embd": 24, "n_layer": 3, "n_head": 4}
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def their_model(dtype=torch.float32, std=0.2, **changes):
    """A small GPT-2 of Hugging Face with weights that hide nothing: no gain is 1, no bias 0."""
    settings = SIZES | {"bos_token_id": 52, "eos_token_id": 52} | changes
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings)).to(dtype).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=std)
            if name.endswith(("wpe.weight", "ln_f.weight")):
                p.mul_(5)  # so that no token wins everywhere, and texts differ
    return model


def our_twin(theirs):
    config = gpt2_weights.from_config(theirs.config.to_dict())
    model = GPT(config).to(theirs.dtype).eval()
    tensors = gpt2_weights.from_state(theirs.state_dict(), config)
    model.load_state_dict(tensors, strict=False)
    return model


@pytest.fixture
def folder(tmp_path):
    their_model().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def rewrite(folder, change):
    """Change the tensors of a folder's file."""
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    save_file(change(tensors) or tensors, path, metadata={"format": "pt"})


# ---- the same model


@DTYPES
@pytest.mark.parametrize("seed", range(3))
def test_logits_and_gradients_are_hugging_faces(seed, dtype):
    torch.manual_seed(seed)
    theirs = their_model(dtype)
    ours = our_twin(theirs)
    ids = torch.randint(53, (3, 20))
    a, b = ours(ids), theirs(ids).logits
    limit = TOLERANCE[dtype]
    assert b.std() > 0.5  # there is something to be equal to
    torch.testing.assert_close(a, b, atol=limit, rtol=limit)
    for logits in (a, b):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    grads = {name: p.grad for name, p in theirs.named_parameters()}
    expected = gpt2_weights.from_state(grads, ours.config)  # gradients turn as weights do
    own = dict(ours.named_parameters())
    assert own.keys() == expected.keys()
    for name, p in own.items():
        torch.testing.assert_close(p.grad, expected[name], atol=limit, rtol=limit, msg=name)


@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_text_is_hugging_faces_token_for_token(use_cache):
    lengths, tokens = set(), set()
    for seed in range(12):
        torch.manual_seed(seed)
        theirs = their_model(torch.float64)
        ids = torch.randint(52, (3, 5))
        expected = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=27, do_sample=False,
            pad_token_id=52, eos_token_id=52,
        )  # fmt: skip
        out = generate(our_twin(theirs), ids, 27, end_id=52, use_cache=use_cache)
        assert torch.equal(out, expected)
        lengths |= set((out != 52).sum(1).tolist())
        tokens |= set(out[:, 5:].flatten().tolist())
    assert len(lengths) > 4  # rows end early, each at its own place
    assert max(lengths) == 32  # and some not at all
    assert len(tokens) > 10


def test_from_pretrained_reads_their_folder(folder):
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    before = torch.get_rng_state()
    ours = GPT.from_pretrained(folder)
    assert torch.equal(before, torch.get_rng_state())  # loading draws nothing
    assert not ours.training
    assert ours.output.weight is ours.embedding.weight
    assert all(p.requires_grad and p.is_contiguous() for p in ours.parameters())
    ids = torch.randint(53, (2, 32))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-5)
    assert ours.config == GPTConfig(53, 24, 4, 3, 96, 32, 0.1)


def test_our_folder_is_read_by_them_and_by_us(tmp_path):
    ours = randomise(GPT(GPTConfig(31, 16, 2, 2, 40, 20, 0.25)).eval(), 0.2)
    gpt2_weights.save_folder(ours, tmp_path / "new" / "ours")
    theirs = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "new" / "ours").eval()
    ids = torch.randint(31, (2, 20))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-5)
    again = GPT.from_pretrained(tmp_path / "new" / "ours")
    assert again.config == ours.config
    assert_same_tensors(again.state_dict(), ours.state_dict())


def test_a_round_trip_changes_no_bit():
    theirs = their_model()
    back = gpt2_weights.to_state(our_twin(theirs))
    state = {n: t for n, t in theirs.state_dict().items() if n != "lm_head.weight"}
    assert_same_tensors(back, state)


def test_old_files_without_prefix_and_with_masks_are_read(folder):
    expected = GPT.from_pretrained(folder)

    def as_published(tensors):
        old = {name.removeprefix("transformer."): t for name, t in tensors.items()}
        old["h.0.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
        old["h.1.attn.masked_bias"] = torch.tensor(-1e4)
        old["lm_head.weight"] = old["wte.weight"].clone()
        return old

    rewrite(folder, as_published)
    ids = torch.randint(53, (2, 9))
    assert torch.equal(GPT.from_pretrained(folder)(ids), expected(ids))


def test_half_precision_files_become_float32(folder):
    rewrite(folder, lambda tensors: {n: t.half() for n, t in tensors.items()})
    assert {p.dtype for p in GPT.from_pretrained(folder).parameters()} == {torch.float32}


def test_published_sizes_are_described_as_hugging_face_describes_them():
    theirs = transformers.GPT2Config()
    said = gpt2_weights.to_config(GPTConfig.preset("gpt2"))
    for name in ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "activation_function",
                 "layer_norm_epsilon", "tie_word_embeddings", "scale_attn_weights", "eos_token_id",
                 "model_type"):  # fmt: skip
        assert said[name] == getattr(theirs, name), name
    assert gpt2_weights.from_config(said) == GPTConfig.preset("gpt2")


# ---- files that do not fit


def drop(name):
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("transformer.h.1.mlp.c_fc.weight"), "missing h.1.mlp.c_fc.weight$"),
        (lambda t: t | {"transformer.h.3.ln_1.bias": torch.zeros(24)}, "unexpected h.3.ln_1.bias$"),
        (
            lambda t: t | {"transformer.h.0.attn.c_attn.weight": torch.zeros(72, 24)},
            r"h.0.attn.c_attn.weight has shape \(72, 24\), the config asks for \(24, 72\)$",
        ),
        (
            lambda t: t | {"transformer.ln_f.bias": torch.zeros(24, dtype=torch.int8)},
            "ln_f.bias holds torch.int8, not floats$",
        ),
        (lambda t: t | {"lm_head.weight": torch.zeros(53, 24)}, "lm_head.weight is not wte.weight"),
        (lambda t: {"x": torch.zeros(1)}, r"missing wte.weight, .* and 35 more; unexpected x$"),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        GPT.from_pretrained(folder)
    assert "vocab_size=53, n_embd=24, n_head=4, n_layer=3, n_positions=32" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_layer": 4}, "missing h.3.ln_1.weight.* and 7 more"),
        ({"n_layer": 2}, "unexpected h.2.*and 7 more"),
        ({"n_embd": 28}, r"wte.weight has shape \(53, 24\), the config asks for \(53, 28\)"),
        ({"vocab_size": 54}, r"wte.weight has shape \(53, 24\), the config asks for \(54, 24\)"),
        ({"n_positions": 64}, r"wpe.weight has shape \(32, 24\), the config asks for \(64, 24\)"),
        ({"n_inner": 50}, r"h.0.mlp.c_fc.weight has shape \(24, 96\), .* asks for \(24, 50\)"),
        ({"n_ctx": 16}, "n_positions=32 and n_ctx=16"),
        ({"n_head": 5}, "d_model=24 is not divisible by num_heads=5"),
        ({"n_head": None}, "n_head a whole number, got None"),
        ({"n_embd": "24"}, "n_embd a whole number, got '24'"),
        ({"n_layer": True}, "n_layer a whole number, got True"),
        ({"n_layer": 0}, "num_layers must be at least 1, got 0"),
        ({"activation_function": "relu"}, "activation_function='relu', but GPT .*'gelu_new' only"),
        ({"activation_function": "gelu"}, "activation_function='gelu'"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon=1e-06, but GPT .*=1e-05 only"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings=False"),
        ({"scale_attn_weights": False}, "scale_attn_weights=False"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ({"model_type": "llama"}, "model_type='llama', but GPT computes model_type='gpt2' only"),
        ({"resid_pdrop": "much"}, "the config can't be used"),
    ],
)
def test_configs_that_disagree_are_named(folder, changes, message):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=message):
        GPT.from_pretrained(folder)


def test_a_config_that_is_none_is_refused(folder):
    (folder / "config.json").write_text("[12, 768]")
    with pytest.raises(CheckpointError, match=r"must name sizes and settings, got \[12, 768\]"):
        GPT.from_pretrained(folder)


def test_broken_and_missing_files_are_named(folder):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:1000])
    with pytest.raises(CheckpointError, match=r"model.safetensors \(1000 bytes\) is truncated"):
        GPT.from_pretrained(folder)
    weights.unlink()
    with pytest.raises(CheckpointError, match=r"there is no model\.safetensors in .*theirs$"):
        GPT.from_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(CheckpointError, match="pickle, which could run code, and is not opened"):
        GPT.from_pretrained(folder)
    (folder / "config.json").write_text('{"n_embd": ')
    with pytest.raises(CheckpointError, match=r"config.json .* is truncated or not JSON"):
        GPT.from_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"there is no file .*config.json"):
        GPT.from_pretrained(folder)


def test_an_unknown_name_is_neither_a_folder_nor_published():
    with pytest.raises(CheckpointError, match=r"no folder 'gpt5', and the published .* gpt2, "):
        GPT.from_pretrained("gpt5")


# ---- public names


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
    monkeypatch.setattr(gpt2_weights, "download_model", closed)
    with pytest.raises(CheckpointError, match=r"could not download gpt2.*Without a network, get"):
        GPT.from_pretrained("gpt2")


def test_every_preset_can_be_downloaded_by_name():
    from tinytf.gpt import PRESETS

    assert download.REVISIONS.keys() == PRESETS.keys()
