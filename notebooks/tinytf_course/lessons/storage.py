"""What a model keeps in memory while it is trained or used, counted by hand: bytes.

Every number here is a formula; the tests hold each of them against what PyTorch keeps. A byte is 8
bits, a number takes 4 bytes (float32) unless told otherwise.
"""

from tinytf.gpt import GPTConfig
from tinytf.metrics.cost import Config, check_at_least_one

__all__ = [
    "activation_bytes",
    "cache_bytes",
    "ring_bytes",
    "shard",
    "state_bytes",
]


# Bytes a parameter takes while Adam trains it. Mixed precision: Rajbhandari et al. 2020, section 3.
STATE = {
    "float32": {"weights": 4, "gradients": 4, "moments": 8},
    "mixed": {"weights": 2, "gradients": 2, "float32 copy": 4, "moments": 8},
}
STAGES = ((), ("moments", "float32 copy"), ("gradients",), ("weights",))  # divided from stage k on


def cache_bytes(
    config: Config, length: int, batch: int = 1, source: int = 0, bytes_each: int = 4
) -> int:
    """Count the bytes of a key-value cache after `length` tokens: a key and a value a layer each.

    An encoder-decoder also keeps those of its `source` tokens, for cross-attention.
    """
    check_at_least_one(length=length, batch=batch)
    return 2 * config.num_layers * config.d_model * (length + source) * batch * bytes_each


def state_bytes(count: int, precision: str = "float32") -> dict[str, int]:
    """Count the bytes that `count` parameters take while Adam trains them: 16 each, by part.

    In "float32" those are weight, gradient and two moments. In "mixed" precision, weights and
    gradients are in bfloat16, and Adam changes a float32 copy of the weights. (Our `Trainer` adds
    gradients up in float32, which makes 18.) Source: Rajbhandari et al. 2020, section 3.1.
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
    check_at_least_one(length=length, batch=batch)
    if isinstance(config, GPTConfig) != (target is None):
        raise ValueError(f"target={target} does not fit a {type(config).__name__}")
    kept = _Kept(config, batch, fused)
    if target is None:
        for _ in range(config.num_layers):
            kept.attend(length, masks=_causal(length, fused))
            kept.feed_forward(length)
        ids = 16 * batch * length  # the tokens read and those to say, 8 bytes each
        kept.end(length, norm=True)
    else:
        for _ in range(config.num_layers):
            kept.attend(length, masks=batch * length)
            kept.feed_forward(length)
            kept.attend(target, masks=_causal(target, fused))
            kept.attend(target, length, masks=batch * length)
            kept.feed_forward(target)
        pre = config.norm == "pre"
        kept.add("the rest", batch * length * (config.d_model + pre * (config.d_model + 2)))
        ids = 8 * batch * length + 17 * batch * target  # and a bit per token: is it padding?
        kept.end(target, norm=pre)
    kept.bytes["the rest"] += ids + 4  # the loss divides by a number of its own
    return kept.bytes


def _causal(length: int, fused: bool) -> int:
    """The places of a causal mask: the kernel needs none, nor does a single token."""
    return 0 if fused or length == 1 else length**2


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
        others = 0 if own else 2 * c.d_model * self.batch * keys
        self.add("attention", each * self.batch * queries + others)
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
    check_at_least_one(processes=processes)
    if stage not in range(len(STAGES)):
        raise ValueError(f"stage must be one of 0, 1, 2, 3, got {stage}")
    divided = {part for parts in STAGES[: stage + 1] for part in parts}
    return {part: size / (processes if part in divided else 1) for part, size in state.items()}


def ring_bytes(size: int, processes: int) -> float:
    """Count the bytes each process sends when `size` bytes are summed over all, in a ring.

    Each sends an N-th of them 2 (N - 1) times: once round to add up, once round to tell. Source:
    Patarasuk and Yuan 2009.
    """
    check_at_least_one(processes=processes)
    return 2 * (processes - 1) / processes * size
