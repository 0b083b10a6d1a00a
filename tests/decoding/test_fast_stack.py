"""The stack of fast layers: long texts come in blocks, and what it may be made of."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tinytf.attention import explicit_attention
from tinytf.blocks import Decoder, DecoderLayer, EncoderLayer
from tinytf.decoding import fast_stack
from tinytf.decoding.fast import fast_decoder
from tinytf.decoding.fast_stack import FastDecoder, FastStack
from tinytf.gpt import GPT, CausalStack, GPTConfig
from tinytf.grouped_query import GroupedQueryAttention
from tinytf.inspect import replace
from tinytf.llama import Llama, LlamaConfig
from tinytf.masks import padding_mask
from tinytf.norm import RMSNorm
from tinytf.residual import PreNorm


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("cuts", [[14], [7, 7], [5, 2, 7], [13, 1]])
def test_no_mask_of_all_queries_is_made(padded, cuts, monkeypatch, exact):
    """Of a text in parts, or of two texts of different lengths, a mask is of a block at most."""
    monkeypatch.setattr(fast_stack, "BLOCK", 3)
    kernel, sizes = F.scaled_dot_product_attention, [0]

    def spy(q, k, v, attn_mask=None, **options):
        sizes.append(0 if attn_mask is None else attn_mask.size(2))
        return kernel(q, k, v, attn_mask=attn_mask, **options)

    model = GPT(GPTConfig(11, 8, 2, 1, max_len=16)).double().eval().to(exact)
    ids = torch.randint(1, 11, (2, 14), device=exact)
    mask, found = padding_mask(ids, 0), []
    if padded:
        mask[1, ..., :2] = False
    for stack in (model, fast_decoder(model)):
        if stack is not model:
            monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
        cache, parts = stack.decoder.new_cache(), []
        with torch.no_grad():
            for part, seen in zip(ids.split(cuts, 1), mask.split(cuts, -1), strict=True):
                parts.append(stack.decode(part, cache, seen))
        found.append(torch.cat(parts, dim=1))
    assert max(sizes) == (3 if padded or len(cuts) > 2 or cuts[-1] == 7 else 0)
    real = mask[:, 0, 0]
    torch.testing.assert_close(found[1][real], found[0][real], atol=1e-11, rtol=1e-12)


# ---- what it may be made of


def gpt():
    return CausalStack([EncoderLayer(4, 2, 8, residual=PreNorm)], nn.LayerNorm(4))


def llama():
    return Llama(LlamaConfig(11, 16, 4, 2, 2, 20, 16)).decoder


def decoder():
    return Decoder([DecoderLayer(4, 2, 8) for _ in "12"], nn.Identity())


def test_layers_of_several_kinds_may_stand_in_one_stack(exact):
    """What each computes is read off itself."""
    stack = CausalStack(
        [EncoderLayer(12, 3, 8), EncoderLayer(12, 2, 20, 0.0, PreNorm)], RMSNorm(12)
    )
    stack.layers[1].self_attention = GroupedQueryAttention(12, 6, 3, base=500.0)
    stack.layers[1].residual_2.norm = RMSNorm(12)
    stack = stack.double().eval().to(exact)
    fast, x = FastStack(stack, 5), torch.randn(2, 5, 12, device=exact, dtype=torch.float64)
    cache = fast.new_cache()
    parts = [fast(part, cache) for part in x.split([2, 1, 2], dim=1)]
    with torch.no_grad():
        torch.testing.assert_close(torch.cat(parts, 1), stack(x), atol=1e-11, rtol=1e-12)
        torch.testing.assert_close(fast(x), stack(x), atol=1e-11, rtol=1e-12)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Odd(EncoderLayer):
    def forward(self, x, mask=None, cache=None):
        return 2 * super().forward(x, mask, cache)


@pytest.mark.parametrize(
    ("make", "name", "new", "message"),
    [
        (decoder, "layers.0.cross_attention.w_k", Doubled(4, 4), "w_k is a Doubled, which"),
        (decoder, "layers.1.feed_forward.w_2", Doubled(8, 4), "w_2 is a Doubled, which"),
        (llama, "layers.1.self_attention.w_q", nn.Identity, None),
        (decoder, "final_norm", nn.BatchNorm1d(4), r"decoder\.final_norm is a BatchNorm1d, which"),
        (llama, "layers.0", Odd(16, 4, 20), r"decoder\.layers\.0 is a Odd, which"),
    ],
)
def test_parts_that_are_not_known_are_refused_by_name(make, name, new, message):
    stack, kind = make(), FastDecoder if make is decoder else FastStack
    kind(stack, 8)
    if message is None:
        new, message = type("Lora", (nn.Linear,), {})(16, 16), "w_q is a Lora, which"
    stack.set_submodule(name, new)
    with pytest.raises(ValueError, match=message):
        kind(stack, 8)


@pytest.mark.parametrize("name", ["layers.0", "layers.1.residual_1", "final_norm"])
def test_hooks_and_other_forwards_are_refused_by_name(name):
    for change in (
        lambda part: part.register_forward_hook(lambda *_: None),
        lambda part: part.register_forward_pre_hook(lambda *_: None),
        lambda part: setattr(part, "forward", lambda x: x),
    ):
        stack = decoder()
        change(stack.get_submodule(name))
        with pytest.raises(ValueError, match=rf"decoder\.{name} has hooks or a forward of its own"):
            FastDecoder(stack, 8)
    model = GPT(GPTConfig(11, 4, 2, 2, max_len=8))
    with (
        replace(model, f"decoder.{name}", lambda x: x),
        pytest.raises(ValueError, match=f"{name} has hooks"),
    ):
        fast_decoder(model)
    stack = gpt()
    stack.layers[0].feed_forward.w_1.register_full_backward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="w_1 has hooks on its gradients"):
        FastStack(stack, 8)


@pytest.mark.parametrize("make", [llama, decoder])
def test_other_attention_is_refused(make):
    stack = make()
    stack.layers[1].self_attention.attention = explicit_attention
    with pytest.raises(ValueError, match=r"layers\.1\.self_attention\.attention to be fused_att"):
        (FastDecoder if make is decoder else FastStack)(stack, 8)
