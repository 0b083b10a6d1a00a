"""What a model costs, counted by hand from its sizes: operations, bytes moved, bytes kept.

Every number here is a formula; the tests hold each of them against what PyTorch counts or keeps.
An operation is a multiplication or an addition, a byte is 8 bits, a number takes 4 bytes (float32)
unless told otherwise. Softmax, norms and activations are not counted among the operations: they
grow with the numbers they touch, the matrix products with their square.
"""

from collections.abc import Iterable
from typing import NamedTuple

from tinytf.gpt import GPTConfig
from tinytf.transformer import TransformerConfig

__all__ = [
    "Product",
    "activation_bytes",
    "attention_products",
    "cache_bytes",
    "feed_forward_products",
    "flops",
    "gpt_products",
    "parameters",
    "ring_bytes",
    "shard",
    "state_bytes",
    "traffic",
    "transformer_products",
]

Config = GPTConfig | TransformerConfig

# Bytes a parameter takes while Adam trains it. Mixed precision: Rajbhandari et al. 2020, section 3.
STATE = {
    "float32": {"weights": 4, "gradients": 4, "moments": 8},
    "mixed": {"weights": 2, "gradients": 2, "float32 copy": 4, "moments": 8},
}
STAGES = ((), ("moments", "float32 copy"), ("gradients",), ("weights",))  # divided from stage k on


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
    _at_least_one(d_model=d_model, num_heads=num_heads, queries=queries, batch=batch)
    if d_model % num_heads:
        raise ValueError(f"d_model={d_model} does not divide into num_heads={num_heads}")
    width, rows, maps = d_model // num_heads, batch * queries, 3
    extra = []
    if keys is not None:
        maps = 1
        if new:
            extra = [Product("projections", 1, batch * new, d_model, 2 * d_model)]
    keys = queries if keys is None else keys
    return [
        Product("projections", 1, rows, d_model, maps * d_model),
        *extra,
        Product("attention", batch * num_heads, queries, width, keys),  # scores
        Product("attention", batch * num_heads, queries, keys, width),  # the mix of values
        Product("projections", 1, rows, d_model, d_model),
    ]


def feed_forward_products(d_model: int, d_ff: int, length: int, batch: int = 1) -> list[Product]:
    """List what a feed-forward network multiplies."""
    _at_least_one(d_model=d_model, d_ff=d_ff, length=length, batch=batch)
    rows = batch * length
    return [
        Product("feed-forward", 1, rows, d_model, d_ff),
        Product("feed-forward", 1, rows, d_ff, d_model),
    ]


def gpt_products(
    config: GPTConfig, length: int, batch: int = 1, cached: int = 0, scored: int | None = None
) -> list[Product]:
    """List what a GPT multiplies when it reads `length` new tokens after `cached` ones.

    `scored` is at how many of them the next token is scored: all by default, 1 when writing on.
    The part of the attention map that the causal mask hides is counted: explicit attention computes
    it, and the fused kernel does where there is padding to hide too.
    """
    c, scored = config, length if scored is None else scored
    _at_least_one(length=length, batch=batch, scored=scored)
    if cached < 0:
        raise ValueError(f"cached must be at least 0, got {cached}")
    layer = [
        Product("projections", 1, batch * length, c.d_model, 3 * c.d_model),
        *attention_products(c.d_model, c.num_heads, length, cached + length, batch)[1:],
        *feed_forward_products(c.d_model, c.d_ff, length, batch),
    ]
    output = Product("output", 1, batch * scored, c.d_model, c.vocab_size)
    return [*layer * c.num_layers, output]


def transformer_products(
    config: TransformerConfig, source: int, target: int, batch: int = 1
) -> list[Product]:
    """List what an encoder-decoder multiplies for a batch of pairs, padded to these lengths.

    The output map is counted at every target position; `sequence_loss` leaves padding out of it.
    """
    c = config
    _at_least_one(source=source, target=target, batch=batch)
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
    found: dict[str, int] = {}
    for product in products:
        found[product.part] = found.get(product.part, 0) + product.flops * (3 if backward else 1)
    return found


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


def cache_bytes(
    config: Config, length: int, batch: int = 1, source: int = 0, bytes_each: int = 4
) -> int:
    """Count the bytes of a key-value cache after `length` tokens: a key and a value a layer each.

    An encoder-decoder also keeps those of its `source` tokens, for cross-attention.
    """
    _at_least_one(length=length, batch=batch)
    return 2 * config.num_layers * config.d_model * (length + source) * batch * bytes_each


def state_bytes(count: int, precision: str = "float32") -> dict[str, int]:
    """Count the bytes that `count` parameters take while Adam trains them: 16 each, by part.

    In "float32" those are weight, gradient and two moments. In "mixed" precision, weights and
    gradients are in bfloat16, and Adam changes a float32 copy of the weights. (Autocast, which our
    `Trainer` uses, keeps them in float32.) Source: Rajbhandari et al. 2020, section 3.1.
    """
    if precision not in STATE:
        raise ValueError(f"precision={precision!r} is not one of {tuple(STATE)}")
    return {part: count * each for part, each in STATE[precision].items()}


def activation_bytes(
    config: Config, length: int, batch: int = 1, target: int | None = None, fused: bool = True
) -> dict[str, int]:
    """Count the bytes that a training step keeps for its backward pass besides the parameters.

    For `next_token_loss` on a (batch, length) GPT, or `sequence_loss` on an encoder-decoder with
    sources of `length` and targets of `target` tokens, no padding among them; float32, dropout 0,
    with all logits in existence. "attention maps" holds what has a number per query and key: with
    `fused` attention, that is the masks of padding alone. Raises ValueError if `target` is missing,
    or is given for a GPT.
    """
    _at_least_one(length=length, batch=batch)
    if isinstance(config, GPTConfig) != (target is None):
        raise ValueError(f"target={target} does not fit a {type(config).__name__}")
    kept = _Kept(config, batch, fused)
    if target is None:
        for _ in range(config.num_layers):
            kept.attend(length, masks=0 if fused or length == 1 else length**2)
            kept.feed_forward(length)
        ids = 16 * batch * length  # the tokens read and those to say, 8 bytes each
        kept.end(length, norm=True)
    else:
        for _ in range(config.num_layers):
            kept.attend(length, masks=batch * length)
            kept.feed_forward(length)
            kept.attend(target, masks=0 if fused or target == 1 else target**2)
            kept.attend(target, length, masks=batch * length)
            kept.feed_forward(target)
        pre = config.norm == "pre"
        kept.add("the rest", batch * length * (config.d_model + pre * (config.d_model + 2)))
        ids = 8 * batch * length + 17 * batch * target  # and a bit per token: is it padding?
        kept.end(target, norm=pre)
    kept.bytes["the rest"] += ids + 4  # the loss divides by a number of its own
    return kept.bytes


class _Kept:
    """The bytes kept so far."""

    def __init__(self, config: Config, batch: int, fused: bool) -> None:
        gpt = isinstance(config, GPTConfig)
        self.config, self.batch, self.fused = config, batch, fused
        self.vocab_size = config.vocab_size if gpt else config.tgt_vocab_size
        self.before_and_after = 2 if gpt or config.activation != "relu" else 1
        self.bytes = dict.fromkeys(
            ("attention", "feed-forward", "attention maps", "logits", "the rest"), 0
        )

    def add(self, part: str, numbers: int) -> None:
        self.bytes[part] += 4 * numbers

    def attend(self, queries: int, keys: int | None = None, masks: int = 0) -> None:
        """One attention with its norm: the norm's input, what is projected, q, k, v, the output."""
        c, own = self.config, keys is None
        keys = queries if own else keys
        log_sums = c.num_heads if self.fused else 0  # one a row of the map: it is computed anew
        each = (6 if own else 4) * c.d_model + 2 + log_sums
        joined = (3 if own else 2) * c.d_model**2  # maps that are applied in one product
        others = 0 if own else 2 * c.d_model * self.batch * keys
        self.add("attention", each * self.batch * queries + joined + others)
        if self.fused:
            self.add("attention maps", masks)  # the kernel turns it into numbers to add
        else:  # the softmax and, with a mask, its masked copy; the mask's bytes are kept for both
            copies = 2 if masks else 1
            self.add("attention maps", copies * c.num_heads * self.batch * queries * keys)
            self.bytes["attention maps"] += 2 * masks

    def feed_forward(self, length: int) -> None:
        """One network with its norm; ReLU's output says all that its slope needs."""
        c = self.config
        each = 2 * c.d_model + 2 + self.before_and_after * c.d_ff
        self.add("feed-forward", each * self.batch * length)

    def end(self, length: int, norm: bool) -> None:
        """What the output map reads and says."""
        c = self.config
        self.add("the rest", (c.d_model + norm * (c.d_model + 2)) * self.batch * length)
        self.add("logits", self.vocab_size * self.batch * length)


def shard(state: dict[str, int], processes: int, stage: int) -> dict[str, float]:
    """Say what one of several processes keeps of a training state.

    ZeRO's stage 1 divides Adam's moments (and the float32 copy), 2 the gradients too, 3, which
    PyTorch calls FSDP, also the weights; 0 is data-parallel training, where each has all. Source:
    Rajbhandari et al. 2020, figure 1.
    """
    _at_least_one(processes=processes)
    if stage not in range(len(STAGES)):
        raise ValueError(f"stage must be one of 0, 1, 2, 3, got {stage}")
    divided = {part for parts in STAGES[: stage + 1] for part in parts}
    return {part: size / (processes if part in divided else 1) for part, size in state.items()}


def ring_bytes(size: int, processes: int) -> float:
    """Count the bytes each process sends when `size` bytes are summed over all, in a ring.

    Each sends an N-th of them 2 (N - 1) times: once round to add up, once round to tell. Source:
    Patarasuk and Yuan 2009.
    """
    _at_least_one(processes=processes)
    return 2 * (processes - 1) / processes * size


def _at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
