"""What is counted by hand is what PyTorch counts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from metrics_support import explicit, gpt, pairs, text, transformer
from support import bounded

from tinytf.attention import MultiHeadAttention, explicit_attention
from tinytf.feedforward import FeedForward
from tinytf.gpt import GPT, GPTConfig
from tinytf.inspect import attention_layers
from tinytf.metrics.cost import (
    Product,
    attention_products,
    feed_forward_products,
    flops,
    gpt_products,
    parameters,
    traffic,
    transformer_products,
)
from tinytf.metrics.counting import count_flops, count_parameters
from tinytf.training.losses import (
    next_token_loss,
    sequence_loss,
)
from tinytf.transformer import Transformer, TransformerConfig

sizes = st.integers(1, 9)


def total(products, **options):
    return sum(flops(products, **options).values())


@bounded
@given(sizes, sizes, sizes, sizes)
def test_a_product_counts_as_pytorch_counts_it(times, rows, inner, columns):
    product = Product("any", times, rows, inner, columns)
    a, b = torch.randn(times, rows, inner), torch.randn(times, inner, columns)
    assert product.flops == count_flops(lambda: a @ b)
    assert product.numbers == a.numel() + b.numel() + (a @ b).numel()


@bounded
@given(sizes, sizes, sizes, st.sampled_from([1, 2, 6]))
def test_attention(batch, queries, keys, heads):
    layer = MultiHeadAttention(12, heads)
    layer.attention = explicit_attention
    x, memory = torch.randn(batch, queries, 12), torch.randn(batch, keys, 12)
    own = attention_products(12, heads, queries, batch=batch)
    cross = attention_products(12, heads, queries, keys, batch, new=keys)
    assert total(own) == count_flops(lambda: layer(x))
    assert total(cross) == count_flops(lambda: layer(x, memory))


@bounded
@given(sizes, sizes)
def test_feed_forward(batch, length):
    network, x = FeedForward(12, 20), torch.randn(batch, length, 12)
    products = feed_forward_products(12, 20, length, batch)
    assert total(products) == count_flops(lambda: network(x))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_gpt_forward_and_backward(batch):
    model = explicit(gpt())
    data = text(batch, 7)
    products = gpt_products(model.config, 7, batch)
    assert total(products) == count_flops(lambda: model(data.ids_in))
    both = count_flops(lambda: next_token_loss(model, data)[0].backward())
    assert total(products, backward=True) == both == 3 * total(products)


def test_fused_attention_makes_the_same_products():
    """Where it is counted: on the meta device torch counts the kernel's own."""
    model = gpt().to("meta")
    ids = torch.zeros(3, 7, dtype=torch.int64, device="meta")
    x = model.embedding(ids)
    layers = gpt_products(model.config, 7, 3)[:-1]
    assert total(layers) == count_flops(lambda: model.decoder(x))


def test_a_token_with_a_cache():
    model = explicit(gpt()).eval()
    ids = torch.randint(13, (2, 10))
    with torch.no_grad():
        cache = model.decoder.new_cache()
        model(ids[:, :6], cache)
        assert total(gpt_products(model.config, 1, 2, cached=6)) == count_flops(
            lambda: model(ids[:, 6:7], cache)
        )
        rest = gpt_products(model.config, 3, 2, cached=7, scored=1)
        assert total(rest) == count_flops(
            lambda: model.output(model.decode(ids[:, 7:], cache)[:, -1])
        )


def test_an_encoder_decoder_forward_and_backward():
    model = explicit(transformer())
    data = pairs(3, 5, 7)
    products = transformer_products(model.config, 5, 7, 3)
    assert total(products) == count_flops(lambda: model(data.src, data.tgt_in))
    both = count_flops(lambda: sequence_loss(model, data)[0].backward())
    assert total(products, backward=True) == both


def test_parts_of_a_layer():
    """24 n d² + 4 n² d, and of the linear maps two thirds are the network's."""
    n, d = 10, 16
    found = flops(gpt_products(GPTConfig(7, d, 2, 1, max_len=n), n))
    assert found["projections"] == 8 * n * d**2
    assert found["feed-forward"] == 16 * n * d**2
    assert found["attention"] == 4 * n**2 * d
    assert found["output"] == 2 * n * d * 7


def test_traffic_reads_two_matrices_and_writes_one():
    products = [Product("a", 2, 3, 4, 5), Product("b", 1, 1, 6, 7)]
    assert traffic(products) == 4 * (2 * (12 + 20 + 15) + (6 + 42 + 7))
    assert traffic(products, bytes_each=2) * 2 == traffic(products)


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl"])
def test_parameters_of_published_gpts(name):
    config = GPTConfig.preset(name)
    with torch.device("meta"):
        model = GPT(config)
    assert sum(parameters(config).values()) == count_parameters(model)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("share", [True, False])
def test_parameters_of_transformers(norm, tie, share):
    config = TransformerConfig(11, 11, 12, 3, 2, 20, norm=norm, tie_output=tie,
                               share_embeddings=share)  # fmt: skip
    model, counted = Transformer(config), parameters(config)
    assert sum(counted.values()) == count_parameters(model)
    networks = [m for m in model.modules() if isinstance(m, FeedForward)]
    attentions = attention_layers(model).values()
    assert counted["feed-forward"] == sum(map(count_parameters, networks))
    assert counted["attention"] == sum(map(count_parameters, attentions))


def test_bad_input_is_named():
    config = GPTConfig(7, 4, 2, 1, max_len=8)
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        gpt_products(config, 0)
    with pytest.raises(ValueError, match="batch must be at least 1, got -1"):
        feed_forward_products(4, 8, 3, -1)
    with pytest.raises(ValueError, match="cached must be at least 0, got -2"):
        gpt_products(config, 3, cached=-2)
    with pytest.raises(ValueError, match="d_model=10 does not divide into num_heads=3"):
        attention_products(10, 3, 4)
