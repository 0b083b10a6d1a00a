"""All families of published weights: the same models as Hugging Face's, both ways, one interface.

What only one family has is in test_gpt2.py, test_llama.py, test_bert.py and test_marian.py; files
that are broken on purpose are in test_hostile_folders.py.
"""

import inspect

import pytest
import torch
from family_support import FAMILIES, VARIANTS, drop, edit_config, edit_tensors
from support import TOLERANCE, assert_same_tensors

from tinytf.decoding.generate import generate
from tinytf.support.files import CheckpointError

transformers = pytest.importorskip("transformers")

NAMES = ["from_config", "from_state", "load", "save", "to_config", "to_state"]
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
EVERY_FAMILY = pytest.mark.parametrize("case", FAMILIES.values(), ids=FAMILIES)
EVERY_VARIANT = pytest.mark.parametrize("case", VARIANTS.values(), ids=VARIANTS)
DECODERS = pytest.mark.parametrize("name", ["gpt2", "llama", "llama-1", "llama-4"])


@pytest.fixture
def folder(case, tmp_path):
    torch.manual_seed(0)
    case.theirs().save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_the_interface_is_one():
    signatures = []
    for case in FAMILIES.values():
        assert case.module.__all__ == NAMES
        parameters = [inspect.signature(getattr(case.module, name)).parameters for name in NAMES]
        signatures.append([list(names) for names in parameters])
    assert signatures[1:] == signatures[:-1]


# ---- the same model


@DTYPES
@EVERY_VARIANT
@pytest.mark.parametrize("seed", range(2))
def test_outputs_are_hugging_faces(case, dtype, seed):
    torch.manual_seed(seed)
    theirs = case.theirs(dtype)
    for a, b in case.outputs(theirs, case.twin(theirs)):
        assert b.std() > 0.05  # there is something to be equal to
        torch.testing.assert_close(a, b, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@DTYPES
@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "marian"])
def test_gradients_are_hugging_faces(name, dtype):
    """Gradients turn as weights do. Marian's, of which one row has no twin: related/test_marian."""
    torch.manual_seed(1)
    case = VARIANTS[name]
    theirs = case.theirs(dtype)
    ours = case.twin(theirs)
    losses = [0.0, 0.0]
    for a, b in case.outputs(theirs, ours):
        weight = torch.randn(b.shape, dtype=dtype)
        losses = [losses[0] + (a * weight).sum(), losses[1] + (b * weight).sum()]
    for loss in losses:
        loss.backward()
    grads = {name: torch.zeros_like(p) if p.grad is None else p.grad
             for name, p in theirs.named_parameters()}  # fmt: skip
    expected = case.module.from_state(grads, ours)
    own = dict(ours.named_parameters())
    assert own.keys() == expected.keys()
    scale = max(1.0, max(g.abs().max().item() for g in expected.values()))
    limit = TOLERANCE[dtype]
    for name, p in own.items():
        torch.testing.assert_close(
            p.grad / scale, expected[name] / scale, atol=limit, rtol=limit, msg=name
        )


@DECODERS
@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_text_is_hugging_faces_token_for_token(name, use_cache):
    lengths, tokens, case = set(), set(), VARIANTS[name]
    small = {"vocab_size": 13, "bos_token_id": 11, "eos_token_id": 12}
    changes = {} if name == "gpt2" else small | {"theta": 100.0}
    size = changes.get("vocab_size", 53)
    for seed in range(12 if name == "gpt2" else 5):
        torch.manual_seed(seed)
        theirs = case.theirs(torch.float64, **changes)
        ids = torch.randint(size - 2, (3, 5))
        expected = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=27, do_sample=False,
            pad_token_id=size - 1, eos_token_id=size - 1,
        )  # fmt: skip
        out = generate(case.twin(theirs), ids, 27, end_id=size - 1, use_cache=use_cache)
        assert torch.equal(out, expected)
        lengths |= set((out != size - 1).sum(1).tolist())
        tokens |= set(out[:, 5:].flatten().tolist())
    assert len(lengths) > 2  # rows end early, each at its own place
    assert max(lengths) == 32  # and some not at all
    assert len(tokens) > 8


# ---- folders, both ways


@EVERY_VARIANT
def test_their_folder_is_read(case, folder):
    theirs = case.theirs()
    theirs = type(theirs).from_pretrained(folder).eval()
    before = torch.get_rng_state()
    ours = case.module.load(folder, case.build)
    assert torch.equal(before, torch.get_rng_state())  # loading draws nothing
    assert not ours.training
    assert all(p.requires_grad and p.is_contiguous() for p in ours.parameters())
    twin = case.twin(theirs)
    assert case.module.family.config_of(ours) == case.config
    assert_same_tensors(ours.state_dict(), twin.state_dict())
    one = [[name for name, p in model.named_parameters(remove_duplicate=False) if p is q]
           for model in (ours, twin) for q in model.parameters()]  # fmt: skip
    assert one[: len(one) // 2] == one[len(one) // 2 :]  # tied alike
    for a, b in case.outputs(theirs, ours):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@EVERY_VARIANT
def test_our_folder_is_read_by_them_and_by_us(case, tmp_path):
    torch.manual_seed(0)
    ours = case.other().eval()
    case.module.save(ours, tmp_path / "new" / "ours")
    kind = type(case.theirs())
    theirs, report = kind.from_pretrained(tmp_path / "new" / "ours", output_loading_info=True)
    bare = {"pooler.dense.weight", "pooler.dense.bias"} if kind.__name__ == "BertModel" else set()
    left = {name for name in report["missing_keys"] if "decoder." not in name.split("layers")[0]}
    assert {name for name in left if "embed_positions" not in name} == bare
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    again = case.module.load(tmp_path / "new" / "ours", case.build)
    assert case.module.family.config_of(again) == case.module.family.config_of(ours)
    assert_same_tensors(again.state_dict(), ours.state_dict())
    state = case.module.to_state(ours)
    assert_same_tensors(case.module.to_state(case.twin(theirs.eval())), state)


@EVERY_FAMILY
def test_a_round_trip_changes_no_bit(case, folder):
    from safetensors.torch import load_file

    stored = load_file(folder / "model.safetensors")
    assert_same_tensors(case.module.to_state(case.module.load(folder)), stored)


@EVERY_FAMILY
def test_shards_are_read_as_one_file(case, folder, tmp_path):
    theirs = case.theirs()
    theirs.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    shards = sorted((tmp_path / "parts").glob("model-*-of-*.safetensors"))
    assert len(shards) > 2
    ours = case.module.load(tmp_path / "parts")
    for a, b in case.outputs(theirs, ours):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    shards[1].unlink()
    with pytest.raises(CheckpointError, match=f"files that are not there: {shards[1].name}$"):
        case.module.load(tmp_path / "parts")


@EVERY_FAMILY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_become_float32(case, folder, dtype):
    edit_tensors(folder, lambda tensors: {n: t.to(dtype) for n, t in tensors.items()})
    assert {p.dtype for p in case.module.load(folder).parameters()} == {torch.float32}


# ---- what does not fit is named

TENSORS = {  # a matrix, in its layer; an unexpected name; the start of the words for the sizes
    "gpt2": ("transformer.h.1.mlp.c_fc.weight", "transformer.h.3.ln_1.bias",
             "vocab_size=53, n_embd=24, n_head=4, n_layer=3, n_positions=32"),
    "llama": ("model.layers.1.mlp.up_proj.weight", "model.layers.0.self_attn.q_proj.bias",
              "num_attention_heads=4, num_key_value_heads=2"),
    "bert": ("bert.encoder.layer.1.attention.self.query.weight", "bert.encoder.layer.3.x",
             "vocab_size=41, hidden_size=24, num_attention_heads=4"),
    "marian": ("model.decoder.layers.1.fc1.weight", "model.encoder.layer_norm.bias",
               "vocab_size=53, d_model=24, encoder_attention_heads=4"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, n, x: drop(n)(t), "missing {name}$"),
        (lambda t, n, x: t | {x: torch.zeros(24)}, "unexpected {extra}$"),
        (lambda t, n, x: t | {n: torch.zeros(9, 24)},
         r"{name} has shape \(9, 24\), the config asks for \(\d+, \d+\)$"),
        (lambda t, n, x: t | {n: t[n].to(torch.int8)}, r"{name} holds torch\.int8, not floats$"),
        (lambda t, n, x: t | {n: t[n].to(torch.float8_e4m3fn)}, "float8_e4m3fn, not floats$"),
        (lambda t, n, x: t | {n: t[n].clone().fill_(float("nan"))}, r"{name}\[0, 0\] is nan, and"),
        (lambda t, n, x: t | {n: t[n].double() + 1e300}, r"{name}\[0, 0\] is 1e\+300, and a weig"),
        (lambda t, n, x: {"x": torch.zeros(99)}, r"missing .* and \d+ more"),
    ],
)  # fmt: skip
def test_tensors_that_do_not_fit_are_named(name, change, message, tmp_path):
    case, (weight, extra, words) = FAMILIES[name], TENSORS[name]
    case.theirs().save_pretrained(tmp_path)
    edit_tensors(tmp_path, lambda tensors: change(tensors, weight, extra))
    message = message.replace("{name}", weight).replace("{extra}", extra)
    with pytest.raises(CheckpointError, match=message) as caught:
        case.module.load(tmp_path)
    if "is nan" in message or "is 1e" in message:
        assert "model.safetensors: " in str(caught.value)
    elif len(tmp_path.name) and "more" not in message:
        assert words in str(caught.value)


CONFIGS = {
    "gpt2": [
        ({"n_layer": 4}, "missing transformer.h.3.ln_1.weight.* and 7 more"),
        ({"n_layer": 2}, "unexpected transformer.h.2.*and 7 more"),
        ({"n_embd": 28}, r"wte.weight has shape \(53, 24\), the config asks for \(53, 28\)"),
        ({"vocab_size": 54}, r"wte.weight has shape \(53, 24\), the config asks for \(54, 24\)"),
        ({"n_positions": 64}, r"wpe.weight has shape \(32, 24\), the config asks for \(64, 24\)"),
        ({"n_inner": 50}, r"h.0.mlp.c_fc.weight has shape \(24, 96\), .* asks for \(24, 50\)"),
        ({"n_ctx": 16}, "n_positions=32 and n_ctx=16"),
        ({"n_head": 5}, "d_model=24 is not divisible by num_heads=5"),
        ({"n_layer": 0}, "num_layers must be at least 1, got 0"),
        ({"resid_pdrop": "much"}, "resid_pdrop a finite number, got 'much'"),
    ],
    "llama": [
        ({"num_hidden_layers": 4}, "missing model.layers.3.*and 4 more"),
        ({"num_key_value_heads": 4}, r"k_proj.weight has shape \(12, 24\), .* asks for \(24, 24\)"),
        ({"num_key_value_heads": 3}, "num_heads=4 is not divisible by num_kv_heads=3"),
        ({"vocab_size": 54}, r"embed_tokens.weight has shape \(53, 24\), .* asks for \(54, 24\)"),
        ({"intermediate_size": 44}, r"gate_proj.weight has shape \(40, 24\), .* \(44, 24\)"),
        ({"num_attention_heads": 24, "num_key_value_heads": 24, "head_dim": 1}, "heads of width 1"),
        ({"head_dim": 8}, "head_dim=8, but Llama's heads share hidden_size=24 equally among 4"),
        ({"head_dim": "xx"}, "head_dim='xx', but Llama's heads share"),
        (
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0}},
            "rope_type='llama3', but Llama computes rope_type='default' only",
        ),
        ({"rope_parameters": {"type": "linear", "factor": 2.0}}, "type='linear', but Llama"),
        ({"rope_parameters": ["default"]}, "must name sizes and settings, got"),
        ({"rope_parameters": {"rope_theta": None}}, "rope_theta a finite number, got None"),
        ({"rope_parameters": {"rope_theta": float("inf")}}, "rope_theta a finite number, got inf"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps a finite number, got 'small'"),
        ({"rms_norm_eps": -1.0}, "eps must be above 0"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings true or false, got 'no'"),
        ({"tie_word_embeddings": True}, r"lm_head\.weight is not model\.embed_tokens"),
    ],
    "bert": [
        ({"num_hidden_layers": 4}, "missing bert.encoder.layer.3.*and 11 more"),
        ({"hidden_size": 28}, r"word_embeddings.weight has shape \(41, 24\), .* \(41, 28\)"),
        ({"type_vocab_size": 1}, r"token_type_embeddings.weight has shape \(2, 24\)"),
        ({"num_attention_heads": 5}, "d_model=24 is not divisible by num_heads=5"),
        ({"hidden_dropout_prob": "much"}, "hidden_dropout_prob a finite number, got 'much'"),
        ({"pad_token_id": 99}, "can't be used: pad_id=99 is outside"),
        ({"pad_token_id": 1.5}, "pad_token_id a whole number, got 1.5"),
    ],
    "marian": [
        ({"encoder_layers": 2, "decoder_layers": 2}, "unexpected model.decoder.layers.2"),
        ({"decoder_layers": 2}, "encoder_layers=3 and decoder_layers=2, but Marian has one number"),
        ({"decoder_ffn_dim": 80}, "encoder_ffn_dim=40 and decoder_ffn_dim=80"),
        ({"decoder_attention_heads": 2}, "decoder_attention_heads=2, but Marian has one number"),
        ({"decoder_vocab_size": 60}, "vocab_size=53 and decoder_vocab_size=60"),
        ({"decoder_start_token_id": 0}, "pad_token_id=52 and decoder_start_token_id=0"),
        ({"vocab_size": 54, "decoder_vocab_size": 54}, r"has shape \(53, 24\), .* for \(54, 24\)"),
        ({"d_model": 28}, r"has shape \(53, 24\), the config asks for \(53, 28\)"),
        ({"d_model": 26}, "d_model=26 is not divisible by num_heads=4"),
        ({"max_position_embeddings": 1 << 30}, r"positions.table would take 25769803776 numbers"),
        ({"pad_token_id": 99, "decoder_start_token_id": 99}, "their_pad_id=99 is outside"),
        ({"eos_token_id": [0]}, r"eos_token_id a whole number, got \[0\]"),
        ({"activation_function": "tanh"}, "activation_function='tanh', which is none of swish, "),
        ({"activation_function": ["relu"]}, r"activation_function=\['relu'\], which is none of"),
        ({"dropout": "much"}, "dropout a finite number, got 'much'"),
    ],
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of theirs for each family, whose config the tests write anew."""
    folders = {}
    for name, case in FAMILIES.items():
        folders[name] = tmp_path_factory.mktemp(name)
        case.theirs().save_pretrained(folders[name])
    return folders, {name: (f / "config.json").read_text() for name, f in folders.items()}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [(name, *row) for name, rows in CONFIGS.items() for row in rows],
)
def test_configs_that_disagree_are_named(saved, name, changes, message):
    folder, config = saved[0][name], saved[1][name]
    (folder / "config.json").write_text(config)
    edit_config(folder, changes)
    with pytest.raises(CheckpointError, match=message) as caught:
        FAMILIES[name].module.load(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("name", FAMILIES)
def test_settings_are_theirs_and_any_other_is_refused(name):
    family, said = FAMILIES[name].module.family, FAMILIES[name].theirs().config.to_dict()
    for setting, values in family.fixed.items():
        assert said.get(setting, values[0]) in values, setting
        for value in ("other", not values[0]) if isinstance(values[0], bool) else ("other",):
            with pytest.raises(CheckpointError, match=f"{setting}={value!r}, but .* {setting}="):
                family.from_config(said | {setting: value})


@pytest.mark.parametrize("value", ["24", True, 1.5, None, 10**10])
@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_are_whole_numbers(name, value):
    family, said = FAMILIES[name].module.family, FAMILIES[name].theirs().config.to_dict()
    for size in family.sizes.values():
        if (size, value) != ("num_key_value_heads", None):  # older files lack it
            with pytest.raises(CheckpointError, match=f"must give {size} a whole number, got "):
                family.from_config(said | {size: value})


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_that_no_tensor_backs_are_refused_at_once(saved, name):
    """Before anything is built, listed or allocated: some of these would take all memory."""
    folder, config = saved[0][name], saved[1][name]
    module = FAMILIES[name].module
    for ours, theirs in module.family.say_sizes(FAMILIES[name].config).items():
        for size in (10**12, 10**9, 10**300, -(10**12)):
            (folder / "config.json").write_text(config)
            twins = dict.fromkeys((ours.replace("encoder", "decoder"), ours), size)
            edit_config(folder, {ours: size} | twins)
            if (name, ours, size) == ("llama", "max_position_embeddings", 10**9):
                assert module.load(folder).config.max_len == size  # a limit, no table
                continue
            with pytest.raises(CheckpointError):
                module.load(folder)
        assert theirs < 100
    (folder / "config.json").write_text(config)
    layers = module.family.sizes["num_layers"]
    edit_config(folder, {layers: 10**8, layers.replace("encoder", "decoder"): 10**8})
    with pytest.raises(CheckpointError, match=rf"{layers}=100000000, but the files hold \d+ num"):
        module.load(folder)


@EVERY_FAMILY
@pytest.mark.parametrize("text", ["[12, 768]", "3", "null"])
def test_a_config_that_is_none_is_refused(case, folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match="the config must name sizes and settings, got"):
        case.module.load(folder)


@EVERY_FAMILY
def test_broken_and_missing_files_are_named(case, folder):
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:1000])
    with pytest.raises(CheckpointError, match=r"model.safetensors \(1000 bytes\) is truncated"):
        case.module.load(folder)
    weights.unlink()
    with pytest.raises(CheckpointError, match=r"there is no model\.safetensors in .*theirs$"):
        case.module.load(folder)
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(CheckpointError, match="pickle, which could run code, and is not opened"):
        case.module.load(folder)
    (folder / "config.json").write_text('{"n_embd": ')
    with pytest.raises(CheckpointError, match=r"config.json .* is truncated or not JSON"):
        case.module.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"there is no file .*config.json"):
        case.module.load(folder)
