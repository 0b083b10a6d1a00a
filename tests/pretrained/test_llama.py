"""Llama weights: the same model as Hugging Face's, both ways; files that do not fit are named."""

import json
import types

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from support import TOLERANCE, assert_same_tensors, randomise

from tinytf.decoding.generate import generate
from tinytf.llama import Llama, LlamaConfig
from tinytf.pretrained import llama as llama_weights
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 53, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 32}  # fmt: skip
GROUPS = pytest.mark.parametrize("kv_heads", [1, 2, 4])


def their_model(dtype=torch.float32, theta=10000.0, **changes):
    """A small Llama of Hugging Face with weights that hide nothing: no gain is 1."""
    rope = {"rope_type": "default", "rope_theta": theta}
    settings = SIZES | {"rope_parameters": rope, "bos_token_id": 51, "eos_token_id": 52} | changes
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings)).to(dtype).eval()
    randomise(model)
    return in_double(model) if dtype == torch.float64 else model


def in_double(theirs):
    """Let the two parts that are float32 whatever the weights compute the same in float64."""

    def norm(self, x):
        mean_square = x.square().mean(-1, keepdim=True)
        return self.weight * x * torch.rsqrt(mean_square + self.variance_epsilon)

    def angles(self, x, position_ids):
        width, theta = 2 * len(self.inv_freq), self.config.rope_parameters["rope_theta"]
        inverse = theta ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
        both = (position_ids[..., None].double() * inverse).repeat(1, 1, 2)
        return both.cos(), both.sin()

    for module in theirs.modules():
        if type(module).__name__ == "LlamaRMSNorm":
            module.forward = types.MethodType(norm, module)
        if type(module).__name__ == "LlamaRotaryEmbedding":
            module.forward = types.MethodType(angles, module)
    return theirs


def our_twin(theirs):
    config = llama_weights.from_config(theirs.config.to_dict())
    model = Llama(config).to(theirs.dtype).eval()
    tensors = llama_weights.from_state(theirs.state_dict(), config)
    model.load_state_dict(tensors, strict=False)  # a tied output's matrix is the table
    return model


@pytest.fixture
def folder(tmp_path):
    their_model().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def rewrite(folder, change):
    """Change the tensors of a folder's file."""
    path = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    save_file(change(tensors), path, metadata={"format": "pt"})


# ---- the same model


@GROUPS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("theta", "tied", "eps"), [(10000.0, False, 1e-6), (40.0, True, 1e-2)])
def test_logits_and_gradients_are_hugging_faces(kv_heads, dtype, theta, tied, eps):
    torch.manual_seed(kv_heads)
    changes = {"num_key_value_heads": kv_heads, "tie_word_embeddings": tied, "rms_norm_eps": eps}
    theirs = their_model(dtype, theta, **changes)
    ours = our_twin(theirs)
    ids = torch.randint(53, (3, 32))
    a, b = ours(ids), theirs(ids).logits
    limit = TOLERANCE[dtype]
    assert b.std() > 0.3  # there is something to be equal to
    torch.testing.assert_close(a, b, atol=limit, rtol=limit)
    for logits in (a, b):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    grads = {name: p.grad for name, p in theirs.named_parameters()}
    expected = llama_weights.from_state(grads, ours.config)  # gradients turn as weights do
    own = dict(ours.named_parameters())
    assert own.keys() == expected.keys()
    for name, p in own.items():
        torch.testing.assert_close(p.grad, expected[name], atol=limit, rtol=limit, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_states_agree_in_front_of_the_output(dtype):
    torch.manual_seed(1)
    theirs = their_model(dtype)
    ids = torch.randint(53, (2, 20))
    states = theirs.model(ids).last_hidden_state
    torch.testing.assert_close(our_twin(theirs).decode(ids), states, atol=1e-5, rtol=1e-5)


def test_what_differs_would_be_seen():
    """The comparison has teeth: each setting, told to one side alone, moves the logits."""
    torch.manual_seed(0)
    theirs = their_model(torch.float64)
    ids = torch.randint(53, (2, 32))
    expected = theirs(ids).logits
    config = llama_weights.from_config(theirs.config.to_dict())
    tensors = llama_weights.from_state(theirs.state_dict(), config)
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
@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_text_is_hugging_faces_token_for_token(kv_heads, use_cache):
    lengths, tokens = set(), set()
    for seed in range(5):
        torch.manual_seed(seed)
        theirs = their_model(
            torch.float64, 100.0, num_key_value_heads=kv_heads,
            vocab_size=13, bos_token_id=11, eos_token_id=12,
        )  # fmt: skip
        ids = torch.randint(11, (3, 5))
        expected = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=27, do_sample=False,
            pad_token_id=12, eos_token_id=12, use_cache=True,
        )  # fmt: skip
        out = generate(our_twin(theirs), ids, 27, end_id=12, use_cache=use_cache)
        assert torch.equal(out, expected)
        lengths |= set((out != 12).sum(1).tolist())
        tokens |= set(out[:, 5:].flatten().tolist())
    assert len(lengths) > 2  # rows end early, each at its own place
    assert max(lengths) == 32  # and some not at all
    assert len(tokens) > 8


@GROUPS
def test_the_cache_holds_their_keys_in_our_order(kv_heads):
    """Turned before they are cached, as theirs are."""
    torch.manual_seed(0)
    theirs = their_model(torch.float64, num_key_value_heads=kv_heads)
    ids = torch.randint(53, (2, 9))
    ours = our_twin(theirs)
    cache = ours.decoder.new_cache()
    ours(ids, cache)
    kept = theirs(ids, use_cache=True).past_key_values
    for mine, layer in zip(cache, kept.layers, strict=True):
        halves = torch.cat([mine.k[..., 0::2], mine.k[..., 1::2]], -1)
        torch.testing.assert_close(halves, layer.keys, atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(mine.v, layer.values, atol=1e-10, rtol=1e-10)


@GROUPS
def test_from_pretrained_reads_their_folder(tmp_path, kv_heads):
    theirs = their_model(num_key_value_heads=kv_heads, tie_word_embeddings=kv_heads == 1)
    theirs.save_pretrained(tmp_path)
    before = torch.get_rng_state()
    ours = Llama.from_pretrained(tmp_path)
    assert torch.equal(before, torch.get_rng_state())  # loading draws nothing
    assert not ours.training
    assert (ours.output.weight is ours.embedding.weight) == (kv_heads == 1)
    assert all(p.requires_grad and p.is_contiguous() for p in ours.parameters())
    ids = torch.randint(53, (2, 32))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-5)
    assert ours.config == LlamaConfig(
        53, 24, 4, kv_heads, 3, 40, 32, 10000.0, 1e-6, tie_output=kv_heads == 1
    )


def test_their_shards_are_read(tmp_path):
    theirs = their_model()
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    shards = sorted(tmp_path.glob("model-*-of-*.safetensors"))
    assert len(shards) > 2
    assert not (tmp_path / "model.safetensors").exists()
    ids = torch.randint(53, (2, 32))
    ours = Llama.from_pretrained(tmp_path)
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-5)
    shards[1].unlink()
    with pytest.raises(CheckpointError, match=f"files that are not there: {shards[1].name}$"):
        Llama.from_pretrained(tmp_path)


@pytest.mark.parametrize("tied", [False, True])
def test_our_folder_is_read_by_them_and_by_us(tmp_path, tied):
    ours = Llama(LlamaConfig(31, 16, 4, 2, 2, 40, 20, 300.0, 1e-3, tie_output=tied))
    randomise(ours.eval())
    llama_weights.save_folder(ours, tmp_path / "new" / "ours")
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "new" / "ours").eval()
    ids = torch.randint(31, (2, 20))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-5)
    again = Llama.from_pretrained(tmp_path / "new" / "ours")
    assert again.config == ours.config
    assert_same_tensors(again.state_dict(), ours.state_dict())


def test_a_round_trip_changes_no_bit():
    theirs = their_model()
    back = llama_weights.to_state(our_twin(theirs))
    state = theirs.state_dict()
    assert_same_tensors(back, state)


def test_old_files_are_read(folder):
    """With frequencies among the tensors; with rope_theta outside, and no word on key heads."""
    theirs = their_model(theta=700.0, num_key_value_heads=4)
    theirs.save_pretrained(folder)
    expected = Llama.from_pretrained(folder)
    old = json.loads((folder / "config.json").read_text())
    for name in ("rope_parameters", "num_key_value_heads", "head_dim", "mlp_bias"):
        old.pop(name)
    old |= {"rope_theta": 700.0, "rope_scaling": None, "attention_bias": False}
    (folder / "config.json").write_text(json.dumps(old))
    rewrite(folder, lambda t: t | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)})
    again = Llama.from_pretrained(folder)
    assert again.config == expected.config
    ids = torch.randint(53, (2, 9))
    assert torch.equal(again(ids), expected(ids))


def test_half_precision_files_become_float32(folder):
    rewrite(folder, lambda tensors: {n: t.bfloat16() for n, t in tensors.items()})
    assert {p.dtype for p in Llama.from_pretrained(folder).parameters()} == {torch.float32}


# ---- files that do not fit


def drop(name):
    return lambda tensors: {n: t for n, t in tensors.items() if n != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("model.layers.1.mlp.up_proj.weight"), "missing model.layers.1.mlp.up_proj.weight$"),
        (drop("lm_head.weight"), "missing lm_head.weight$"),
        (
            lambda t: t | {"model.layers.0.self_attn.q_proj.bias": torch.zeros(24)},
            "unexpected model.layers.0.self_attn.q_proj.bias$",
        ),
        (
            lambda t: t | {"model.layers.0.self_attn.k_proj.weight": torch.zeros(24, 24)},
            r"k_proj.weight has shape \(24, 24\), the config asks for \(12, 24\)$",
        ),
        (
            lambda t: t | {"model.norm.weight": torch.zeros(24, dtype=torch.int8)},
            "model.norm.weight holds torch.int8, not floats$",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder, change, message):
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        Llama.from_pretrained(folder)
    assert "num_attention_heads=4, num_key_value_heads=2" in str(caught.value)


def test_a_tied_output_must_be_the_table(folder):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tie_word_embeddings": True}))
    with pytest.raises(CheckpointError, match=r"lm_head\.weight is not model\.embed_tokens"):
        Llama.from_pretrained(folder)
    rewrite(folder, lambda t: t | {"lm_head.weight": t["model.embed_tokens.weight"].clone()})
    tied = Llama.from_pretrained(folder)
    assert tied.output.weight is tied.embedding.weight


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 4}, "missing model.layers.3.*and 4 more"),
        ({"num_key_value_heads": 4}, r"k_proj.weight has shape \(12, 24\), .* asks for \(24, 24\)"),
        ({"num_key_value_heads": 3}, "num_heads=4 is not divisible by num_kv_heads=3"),
        ({"vocab_size": 54}, r"embed_tokens.weight has shape \(53, 24\), .* asks for \(54, 24\)"),
        ({"intermediate_size": 44}, r"gate_proj.weight has shape \(40, 24\), .* \(44, 24\)"),
        ({"intermediate_size": None}, "intermediate_size a whole number, got None"),
        ({"hidden_size": "24"}, "hidden_size a whole number, got '24'"),
        ({"num_hidden_layers": True}, "num_hidden_layers a whole number, got True"),
        ({"num_attention_heads": 24, "num_key_value_heads": 24, "head_dim": 1}, "heads of width 1"),
        ({"head_dim": 8}, "head_dim=8, but Llama's heads share hidden_size=24 equally among 4"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling={'type': 'linear'"),
        (
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0}},
            "rope_type='llama3', but Llama computes rope_type='default' only",
        ),
        ({"rope_parameters": {"type": "linear", "factor": 2.0}}, "type='linear', but Llama"),
        ({"rope_parameters": ["default"]}, "must name sizes and settings, got"),
        ({"rope_parameters": {"rope_theta": None}}, "the config can't be used"),
        ({"attention_bias": True}, "attention_bias=True, but Llama computes attention_bias=False"),
        ({"mlp_bias": True}, "mlp_bias=True"),
        ({"hidden_act": "gelu"}, "hidden_act='gelu', but Llama computes hidden_act='silu' only"),
        ({"model_type": "mistral"}, "model_type='mistral', but Llama computes model_type='llama'"),
        ({"rms_norm_eps": "small"}, "the config can't be used"),
        ({"rms_norm_eps": -1.0}, "eps must be above 0"),
    ],
)
def test_configs_that_disagree_are_named(folder, changes, message):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=message):
        Llama.from_pretrained(folder)


@pytest.mark.parametrize("text", ["[]", "3"])
def test_a_config_that_is_none_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match="the config must name sizes and settings, got"):
        Llama.from_pretrained(folder)


def test_a_truncated_file_is_named(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(CheckpointError, match="truncated or not a safetensors file"):
        Llama.from_pretrained(folder)
