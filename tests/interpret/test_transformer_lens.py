"""Patterns, the lens and a patch against TransformerLens, an independent implementation.

It is no requirement of ours: where it is absent, these tests are skipped. Versions before 4 have
`HookedTransformer`; `pip install "transformer_lens<3"` brings one.
"""

import pytest
import torch

from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import ablate_heads, attention_layers, record, replace
from tinytf.interpret.attribution import stream_parts
from tinytf.interpret.induction import induction_score
from tinytf.interpret.logit_lens import logit_lens
from tinytf.interpret.patching import transplant
from tinytf.support.randomness import seeded

lens = pytest.importorskip("transformer_lens")
if not hasattr(lens, "HookedTransformer"):
    pytest.skip("this TransformerLens has no HookedTransformer", allow_module_level=True)

HEADS, WIDTH, LAYERS = 4, 16, 2
CLEAN = torch.tensor([[1, 4, 2, 7, 9, 1, 4], [3, 3, 0, 10, 5, 3, 3]])
CORRUPTED = torch.tensor([[1, 4, 6, 7, 9, 1, 4], [3, 8, 0, 10, 5, 3, 3]])


@pytest.fixture(scope="module")
def ours():
    with seeded(0):
        config = GPTConfig(
            vocab_size=11, d_model=WIDTH, num_heads=HEADS, num_layers=LAYERS, max_len=8
        )
        model = GPT(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return model.double().eval().requires_grad_(False)


@pytest.fixture(scope="module")
def theirs(ours):
    config = lens.HookedTransformerConfig(
        n_layers=LAYERS, d_model=WIDTH, n_heads=HEADS, d_head=WIDTH // HEADS, d_mlp=4 * WIDTH,
        n_ctx=8, d_vocab=11, act_fn="gelu_new", normalization_type="LN", dtype=torch.float64,
        device="cpu",
    )  # fmt: skip
    model = lens.HookedTransformer(config)
    model.load_state_dict(converted(ours), strict=False)
    return model.eval().requires_grad_(False)


def converted(model):
    """Our weights under the names and in the shapes of a HookedTransformer."""
    mine, theirs = model.state_dict(), {}
    theirs["embed.W_E"], theirs["unembed.W_U"] = mine["embedding.weight"], mine["output.weight"].T
    theirs["unembed.b_U"] = torch.zeros(11).double()
    theirs["pos_embed.W_pos"] = mine["positions.table"]
    norms = {"ln_final": "decoder.final_norm"}
    for i in range(LAYERS):
        here, there = f"decoder.layers.{i}", f"blocks.{i}"
        norms |= {f"{there}.ln{j}": f"{here}.residual_{j}.norm" for j in (1, 2)}
        for part in "qkv":
            weight = mine[f"{here}.self_attention.w_{part}.weight"]  # (H D, C)
            bias = mine[f"{here}.self_attention.w_{part}.bias"]
            by_head = weight.unflatten(0, (HEADS, -1)).transpose(1, 2)  # (H, C, D)
            theirs[f"{there}.attn.W_{part.upper()}"] = by_head
            theirs[f"{there}.attn.b_{part.upper()}"] = bias.unflatten(0, (HEADS, -1))
        out = mine[f"{here}.self_attention.w_o.weight"]  # (C, H D)
        theirs[f"{there}.attn.W_O"] = out.T.unflatten(0, (HEADS, -1))  # (H, D, C)
        theirs[f"{there}.attn.b_O"] = mine[f"{here}.self_attention.w_o.bias"]
        for j, side in ((1, "in"), (2, "out")):
            theirs[f"{there}.mlp.W_{side}"] = mine[f"{here}.feed_forward.w_{j}.weight"].T
            theirs[f"{there}.mlp.b_{side}"] = mine[f"{here}.feed_forward.w_{j}.bias"]
    for there, here in norms.items():
        theirs[f"{there}.w"], theirs[f"{there}.b"] = mine[f"{here}.weight"], mine[f"{here}.bias"]
    return theirs


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-9)


def test_patterns(ours, theirs):
    """Every head's weights, and with them every score that is made of them."""
    with record(ours) as seen:
        logits = ours(CLEAN)
    expected, cache = theirs.run_with_cache(CLEAN)
    close(logits, expected)
    assert len(seen) == LAYERS
    for i, weights in enumerate(seen.values()):
        close(weights, cache["pattern", i])
        close(induction_score(weights, CLEAN), induction_score(cache["pattern", i], CLEAN))


def test_lens(ours, theirs):
    """What the stream would say after each layer."""
    names = ["positions", *(f"decoder.layers.{i}" for i in range(LAYERS))]
    with record(ours, *names) as seen:
        ours(CLEAN)
    got = logit_lens(ours, torch.stack([seen[name] for name in names]))
    _, cache = theirs.run_with_cache(CLEAN)
    stream, labels = cache.accumulated_resid(layer=-1, return_labels=True)
    assert len(labels) == LAYERS + 1
    close(got, theirs.unembed(theirs.ln_final(stream)))


def test_parts_of_the_stream(ours, theirs):
    """What each head, each bias and each network adds."""
    parts = stream_parts(ours, CLEAN)
    _, cache = theirs.run_with_cache(CLEAN)
    cache.compute_head_results()
    close(parts["embedding"], cache["embed"] + cache["pos_embed"])
    for i in range(LAYERS):
        close(parts[f"layers.{i}.feed_forward"], cache["mlp_out", i])
        for h in range(HEADS):
            head = cache[f"blocks.{i}.attn.hook_result"][:, :, h]
            close(parts[f"layers.{i}.self_attention.{h}"], head)


@pytest.mark.parametrize("module", ["decoder.layers.0", "decoder.layers.1.feed_forward"])
def test_patch(ours, theirs, module):
    """One vector of the clean run in the corrupted one, a place of its own in each row."""
    hook = {
        "decoder.layers.0": "blocks.0.hook_resid_post",
        "decoder.layers.1.feed_forward": "blocks.1.hook_mlp_out",
    }[module]
    at = torch.tensor([2, 5])
    with record(ours, module) as seen:
        ours(CLEAN)
    with replace(ours, module, transplant(seen[module], at)):
        got = ours(CORRUPTED)
    _, cache = theirs.run_with_cache(CLEAN)

    def exchange(value, hook):
        for row, place in enumerate(at.tolist()):
            value[row, place] = cache[hook.name][row, place]
        return value

    close(got, theirs.run_with_hooks(CORRUPTED, fwd_hooks=[(hook, exchange)]))
    assert (got - ours(CORRUPTED)).abs().max() > 0.1


def test_ablation(ours, theirs):
    """A head whose weights are 0."""
    name = list(attention_layers(ours))[1]
    with replace(ours, name, ablate_heads(2)):
        got = ours(CLEAN)

    def silence(pattern, hook):
        pattern[:, 2] = 0
        return pattern

    hooks = [("blocks.1.attn.hook_pattern", silence)]
    close(got, theirs.run_with_hooks(CLEAN, fwd_hooks=hooks))
    assert (got - ours(CLEAN)).abs().max() > 0.1
