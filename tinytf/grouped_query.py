"""Self-attention whose query heads share keys and values, with RoPE."""

from collections.abc import Callable

from torch import Tensor, nn

from tinytf.attention import KeyValueCache, attend, fused_attention
from tinytf.checks import check_heads
from tinytf.relative import apply_rotary

__all__ = ["GroupedQueryAttention", "check_groups"]


class GroupedQueryAttention(nn.Module):
    """Self-attention with `num_heads` heads for queries and `num_kv_heads` for keys and values.

    With H and G of them, query heads 0 to H/G - 1 use key head 0, the next H/G use key head 1, and
    so on. One key head is multi-query attention, and H key heads are multi-head attention. The four
    projections `w_q`, `w_k`, `w_v` and `w_o` have no biases; those of keys and values give G heads.
    Queries and keys are rotated by their positions (RoPE, with frequencies from `base`), keys
    before they are cached, so a cache holds (B, num_kv_heads, S, D) and nothing in it is rotated
    twice. With `base` None nothing is rotated.

    The function `attention`, by default the fused kernel, is called by `attend` on keys and values
    repeated for their query heads, so `tinytf.inspect` sees weights (B, num_heads, T, S). Repeating
    copies: the cache stays small, but no time is saved. Raises ValueError if the heads do not
    divide d_model, the key heads do not divide the heads, or a head's width is odd. Source: Ainslie
    et al. 2023, section 2.2; Touvron et al. 2023b (Llama 2), section 2.2.
    """

    def __init__(
        self, d_model: int, num_heads: int, num_kv_heads: int, base: float | None = 10000.0
    ) -> None:
        super().__init__()
        check_groups(d_model, num_heads, num_kv_heads, turned=base is not None)
        self.d_model, self.num_heads, self.num_kv_heads = d_model, num_heads, num_kv_heads
        self.width, self.base = d_model // num_heads, base
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, num_kv_heads * self.width, bias=False)
        self.w_v = nn.Linear(d_model, num_kv_heads * self.width, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        self.attention: Callable[..., Tensor] = fused_attention

    def forward(
        self,
        x: Tensor,
        mask: Tensor | str | None = None,
        cache: KeyValueCache | None = None,
        positions: Tensor | None = None,  # service
    ) -> Tensor:
        """Attend from x (B, T, C) to itself and to what the cache holds; returns (B, T, C).

        mask is boolean, (B or 1, H or 1, T or 1, S or 1), True = may attend, or `CAUSAL`. Positions
        continue from the cache's length, unless `positions`, (T,) or (B, T), gives them. Raises
        ValueError if C is not d_model, or the cache has another batch size.
        """
        if x.dim() != 3 or x.size(-1) != self.d_model:
            raise ValueError(
                f"x must be of shape (B, length, d_model={self.d_model}), got {tuple(x.shape)}"
            )
        start = 0 if cache is None else len(cache)
        q, k = (self.turned(self._heads(w(x)), start, positions) for w in (self.w_q, self.w_k))
        v = self._heads(self.w_v(x))
        if cache is not None:
            k, v = cache.append(k, v)
        group = self.num_heads // self.num_kv_heads
        if group > 1:
            k, v = (part.repeat_interleave(group, dim=1) for part in (k, v))
        heads = attend(self.attention, q, k, v, mask)
        return self.w_o(heads.transpose(1, 2).flatten(2))  # (B, H, T, D) -> (B, T, C)

    def turned(
        self,
        x: Tensor,
        start: int,
        positions: Tensor | None = None,  # service
    ) -> Tensor:
        """Rotate x (B, heads, T, D), whose first position is `start`, by the angles of RoPE."""
        return x if self.base is None else apply_rotary(x, start, self.base, positions)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.width)).transpose(1, 2)  # (B, T, HD) -> (B, H, T, D)


def check_groups(d_model: int, num_heads: int, num_kv_heads: int, turned: bool = True) -> None:
    """Raise ValueError if heads can't share d_model, or key heads serve equal groups of heads.

    Heads that are `turned`, by RoPE, need an even width.
    """
    check_heads(d_model, num_heads)
    if num_kv_heads < 1 or num_heads % num_kv_heads != 0:
        raise ValueError(f"num_heads={num_heads} is not divisible by num_kv_heads={num_kv_heads}")
    if turned and d_model // num_heads % 2:
        raise ValueError(
            f"RoPE turns pairs of numbers, but d_model={d_model} and num_heads={num_heads} "
            f"give heads of width {d_model // num_heads}"
        )
