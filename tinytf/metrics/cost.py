"""What a model costs, counted by hand from its sizes: operations and bytes moved.

Every number here is a formula; the tests hold each of them against what PyTorch counts.
An operation is a multiplication or an addition, a byte is 8 bits, a number takes 4 bytes (float32)
unless told otherwise. Softmax, norms and activations are not counted among the operations: they
grow with the numbers they touch, the matrix products with their square. What a model keeps in
memory is counted in `storage`.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tinytf.gpt import GPTConfig
from tinytf.transformer import TransformerConfig

__all__ = [
    "Product",
    "attention_products",
    "check_at_least_one",
    "feed_forward_products",
    "flops",
    "gpt_products",
    "parameters",
    "traffic",
    "transformer_products",
]


Config = GPTConfig | TransformerConfig


class Product(NamedTuple):
    """A matrix product (rows, inner) times (inner, columns), made `times` times, for a `part`."""

    part: str
    times: int
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> int:
        """Count a multiplication and an addition for each term of each number that comes out."""
        return 2 * self.times * self.rows * self.inner * self.columns

    @property
    def numbers(self) -> int:
        """Count the numbers that go in and come out."""
        m, k, n = self.rows, self.inner, self.columns
        return self.times * (m * k + k * n + m * n)


def attention_products(
    d_model: int,
    num_heads: int,
    queries: int,
    keys: int | None = None,
    batch: int = 1,
    new: int = 0,
) -> list[Product]:
    """List what multi-head attention multiplies for `queries` positions.

    Without `keys` they attend to themselves. With them they attend to as many positions, of which
    `new` are projected now: all in cross-attention's first call, none in its later ones. Raises
    ValueError for a size below 1, or heads that do not divide d_model.
    """
    check_at_least_one(d_model=d_model, num_heads=num_heads, queries=queries, batch=batch)
    if d_model % num_heads:
        raise ValueError(f"d_model={d_model} does not divide into num_heads={num_heads}")
    width, rows, maps = d_model // num_heads, batch * queries, 3
    extra = []
    if keys is not None:
        maps = 1
        if new:
            extra = [Product("projections", 2, batch * new, d_model, d_model)]
    keys = queries if keys is None else keys
    return [
        Product("projections", maps, rows, d_model, d_model),
        *extra,
        Product("attention", batch * num_heads, queries, width, keys),  # scores
        Product("attention", batch * num_heads, queries, keys, width),  # sum of values
        Product("projections", 1, rows, d_model, d_model),
    ]


def feed_forward_products(d_model: int, d_ff: int, length: int, batch: int = 1) -> list[Product]:
    """List what a feed-forward network multiplies."""
    check_at_least_one(d_model=d_model, d_ff=d_ff, length=length, batch=batch)
    rows = batch * length
    return [
        Product("feed-forward", 1, rows, d_model, d_ff),
        Product("feed-forward", 1, rows, d_ff, d_model),
    ]


def gpt_products(
    config: GPTConfig, length: int, batch: int = 1, cached: int = 0, scored: int | None = None
) -> list[Product]:
    """List what a GPT multiplies when it reads `length` new tokens after `cached` ones.

    All tokens of a batch go through a linear layer in one product. `scored` is the number of new
    tokens of each text at which logits are computed: all if None, 1 when generating. The part of
    the attention map that the causal mask hides is counted: explicit attention computes it, and so
    does the fused kernel if there is padding to hide as well. The parts are "projections",
    "attention", "feed-forward" and "output". The products may come in any order.
    """
    c, scored = config, length if scored is None else scored
    check_at_least_one(length=length, batch=batch, scored=scored)
    if cached < 0:
        raise ValueError(f"cached must be at least 0, got {cached}")
    rows, keys, width = batch * length, cached + length, c.d_model // c.num_heads
    layer = [
        Product("projections", 3, rows, c.d_model, c.d_model),
        Product("attention", batch * c.num_heads, length, width, keys),  # scores
        Product("attention", batch * c.num_heads, length, keys, width),  # sum of values
        Product("projections", 1, rows, c.d_model, c.d_model),
        Product("feed-forward", 1, rows, c.d_model, c.d_ff),
        Product("feed-forward", 1, rows, c.d_ff, c.d_model),
    ]
    output = Product("output", 1, batch * scored, c.d_model, c.vocab_size)
    return [*layer * c.num_layers, output]


def transformer_products(
    config: TransformerConfig, source: int, target: int, batch: int = 1
) -> list[Product]:
    """List what an encoder-decoder multiplies for a batch of pairs, padded to these lengths.

    The output projection is counted at every target position; `sequence_loss` leaves padding
    out of it.
    """
    c = config
    check_at_least_one(source=source, target=target, batch=batch)
    encoder = [
        *attention_products(c.d_model, c.num_heads, source, batch=batch),
        *feed_forward_products(c.d_model, c.d_ff, source, batch),
    ]
    decoder = [
        *attention_products(c.d_model, c.num_heads, target, batch=batch),
        *attention_products(c.d_model, c.num_heads, target, source, batch, new=source),
        *feed_forward_products(c.d_model, c.d_ff, target, batch),
    ]
    output = Product("output", 1, batch * target, c.d_model, c.tgt_vocab_size)
    return [*encoder * c.num_layers, *decoder * c.num_layers, output]


def flops(products: Iterable[Product], backward: bool = False) -> dict[str, int]:
    """Add up operations by part. The backward pass makes two products of each, so three in all."""
    totals: dict[str, int] = {}
    for product in products:
        totals[product.part] = totals.get(product.part, 0) + product.flops * (3 if backward else 1)
    return totals


def traffic(products: Iterable[Product], bytes_each: int = 4) -> int:
    """Add up the bytes that products read and write, if each fetches its matrices anew."""
    return bytes_each * sum(product.numbers for product in products)


def parameters(config: Config) -> dict[str, int]:
    """Count the numbers a model learns, by part; a tied output counts with the embeddings."""
    c = config
    attention = 4 * (c.d_model**2 + c.d_model)
    feed_forward = 2 * c.d_model * c.d_ff + c.d_ff + c.d_model
    norm = 2 * c.d_model  # a gain and a shift
    if isinstance(c, GPTConfig):
        tables = (c.vocab_size + c.max_len) * c.d_model
        attentions, networks, norms = c.num_layers, c.num_layers, 2 * c.num_layers + 1
    else:
        both = 0 if c.share_embeddings else c.tgt_vocab_size
        tables = (c.src_vocab_size + both) * c.d_model
        tables += 0 if c.tie_output else c.tgt_vocab_size * c.d_model
        attentions, networks = 3 * c.num_layers, 2 * c.num_layers
        norms = 5 * c.num_layers + (2 if c.norm == "pre" else 0)
    return {
        "embeddings": tables,
        "attention": attentions * attention,
        "feed-forward": networks * feed_forward,
        "norms": norms * norm,
    }


def check_at_least_one(**sizes: int) -> None:
    """Raise ValueError naming the first size that is below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
