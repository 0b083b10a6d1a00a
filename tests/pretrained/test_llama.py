"""Llama's weights: turned rows, the cache, old files. What all families share: test_families."""

import json

import pytest
import torch
from family_support import FAMILIES, edit_config, edit_tensors, their_llama

from tinytf.llama import Llama, LlamaConfig
from tinytf.pretrained import llama
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")

GROUPS = pytest.mark.parametrize("kv_heads", [1, 2, 4])


@pytest.fixture
def folder(tmp_path):
    their_llama().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_states_agree_in_front_of_the_output(dtype):
    torch.manual_seed(1)
    theirs = their_llama(dtype)
    ids = torch.randint(53, (2, 20))
    states = theirs.model(ids).last_hidden_state
    torch.testing.assert_close(
        FAMILIES["llama"].twin(theirs).decode(ids), states, atol=1e-5, rtol=1e-5
    )


def test_what_differs_would_be_seen():
    """The comparison has teeth: each setting, told to one side alone, moves the logits."""
    torch.manual_seed(0)
    theirs = their_llama(torch.float64)
    ids = torch.randint(53, (2, 32))
    expected = theirs(ids).logits
    config = llama.from_config(theirs.config.to_dict())
    tensors = llama.from_state(theirs.state_dict(), Llama(config))
    for change in ({"base": 500.0}, {"eps": 1e-2}):
        other = Llama(LlamaConfig(**vars(config) | change)).double()
        other.load_state_dict(tensors)
        assert (other(ids) - expected).abs().max() > 1e-3, change
    unturned = Llama(config).double()  # rows of queries and keys in their order
    raw = theirs.state_dict()
    unturned.load_state_dict(
        tensors
        | {
            f"decoder.layers.{i}.self_attention.w_{x}.weight": raw[
                f"model.layers.{i}.self_attn.{x}_proj.weight"
            ]
            for i in range(3)
            for x in "qk"
        }
    )
    assert (unturned(ids) - expected).abs().max() > 1e-2


@GROUPS
def test_the_cache_holds_their_keys_in_our_order(kv_heads):
    """Turned before they are cached, as theirs are."""
    torch.manual_seed(0)
    theirs = their_llama(torch.float64, num_key_value_heads=kv_heads)
    ids = torch.randint(53, (2, 9))
    ours = FAMILIES["llama"].twin(theirs)
    cache = ours.decoder.new_cache()
    ours(ids, cache)
    kept = theirs(ids, use_cache=True).past_key_values
    for mine, layer in zip(cache, kept.layers, strict=True):
        halves = torch.cat([mine.k[..., 0::2], mine.k[..., 1::2]], -1)
        torch.testing.assert_close(halves, layer.keys, atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(mine.v, layer.values, atol=1e-10, rtol=1e-10)


def test_old_files_are_read(folder):
    """With frequencies among the tensors; with rope_theta outside, and no word on key heads."""
    theirs = their_llama(theta=700.0, num_key_value_heads=4)
    theirs.save_pretrained(folder)
    expected = Llama.from_pretrained(folder)
    old = json.loads((folder / "config.json").read_text())
    for name in ("rope_parameters", "num_key_value_heads", "head_dim", "mlp_bias"):
        old.pop(name)
    old |= {"rope_theta": 700.0, "rope_scaling": None, "attention_bias": False}
    (folder / "config.json").write_text(json.dumps(old))
    edit_tensors(
        folder, lambda t: t | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
    )
    again = Llama.from_pretrained(folder)
    assert again.config == expected.config
    ids = torch.randint(53, (2, 9))
    assert torch.equal(again(ids), expected(ids))


def test_a_tied_output_must_be_the_table(folder):
    edit_config(folder, {"tie_word_embeddings": True})
    with pytest.raises(CheckpointError, match=r"lm_head\.weight is not model\.embed_tokens"):
        Llama.from_pretrained(folder)
    edit_tensors(folder, lambda t: t | {"lm_head.weight": t["model.embed_tokens.weight"].clone()})
    tied = Llama.from_pretrained(folder)
    assert tied.output.weight is tied.embedding.weight
