"""What a fast decoder may be made of."""

import pytest
from torch import nn

from tinytf.attention import explicit_attention
from tinytf.blocks import Decoder, DecoderLayer, Encoder, EncoderLayer
from tinytf.decoding.fast_checks import DECODER, GPT_STACK, LLAMA_STACK, check_linear, check_stack
from tinytf.llama import Llama, LlamaConfig
from tinytf.residual import PreNorm


def decoder():
    return Decoder([DecoderLayer(4, 2, 8)], nn.Identity())


def llama():
    return Llama(LlamaConfig(11, 16, 4, 2, 2, 20, 16)).decoder


def test_what_is_as_its_class_makes_it_is_let_through():
    check_stack(Encoder([EncoderLayer(4, 2, 8, residual=PreNorm)], nn.LayerNorm(4)), GPT_STACK)
    check_stack(decoder(), DECODER)
    check_stack(llama(), LLAMA_STACK)


def test_what_is_not_is_refused_by_name():
    with pytest.raises(ValueError, match="FeedForward in PreNorm, not FeedForward, PostNorm"):
        check_stack(Encoder([EncoderLayer(4, 2, 8)], nn.Identity()), GPT_STACK)
    with pytest.raises(ValueError, match="computes MultiHeadAttention, not GroupedQueryAttention"):
        check_stack(llama(), GPT_STACK)
    stack = llama()
    stack.layers[1].feed_forward = EncoderLayer(16, 4, 20).feed_forward
    with pytest.raises(ValueError, match="SwiGLU in PreNorm, not FeedForward, PreNorm"):
        check_stack(stack, LLAMA_STACK)
    stack = llama()
    stack.layers[0].self_attention.attention = explicit_attention
    with pytest.raises(ValueError, match="whose attention is fused_attention"):
        check_stack(stack, LLAMA_STACK)


def test_hooks_and_other_norms_and_maps_are_refused_by_name():
    stack = decoder()
    stack.layers[0].residual_2.norm.register_forward_pre_hook(lambda *_: None)
    with pytest.raises(ValueError, match=r"decoder\.layers\.0\.residual_2\.norm has hooks"):
        check_stack(stack, DECODER)
    stack = decoder()
    stack.layers[0].cross_attention.w_k.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match=r"layers\.0\.cross_attention\.w_k is no nn\.Linear"):
        check_stack(stack, DECODER)
    stack = decoder()
    stack.final_norm = nn.BatchNorm1d(4)
    with pytest.raises(ValueError, match=r"decoder\.final_norm is a BatchNorm1d: no LayerNorm"):
        check_stack(stack, DECODER)
    with pytest.raises(ValueError, match="output is no nn"):
        check_linear("output", nn.Identity())
