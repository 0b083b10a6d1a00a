"""13.2 the order of a decoder layer (★★☆, 8 minutes)

Write `my_decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norms)`, the
Pre-LN decoder layer of the drawing. Its parts are given as functions: `self_attention(y)` has its
mask already, `cross_attention(y, memory)` takes the queries first, and `norms` holds three
functions, one for each sublayer.

Hint: It takes three lines, each of the form `x = x + sublayer(norm(x))`.
"""

import torch

from tinytf_course.expect import Counted, agrees, expect, gradients, numbers, same
from tinytf_course.grading import hint


def my_decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norms):
    """One Pre-LN decoder layer: x (B, T, C) and memory (B, S, C) to (B, T, C).

    self_attention(y) is masked already; cross_attention(y, memory) and feed_forward(y) return
    (B, T, C) too. norms holds three functions, one for each sublayer.
    """
    x = x + self_attention(norms[0](x))
    x = x + cross_attention(norms[1](x), memory)
    return x + feed_forward(norms[2](x))


X_IN, MEMORY = numbers(2, 3, 4, seed=1), numbers(2, 5, 4, seed=2)


def _own(y):
    """A stand-in for masked self-attention: the mean of the positions so far."""
    count = torch.arange(1, y.size(1) + 1)[:, None]
    return y.cumsum(dim=1) / count * 2 + 0.1 * y * y


def _cross(y, memory):
    """A stand-in for cross-attention: unlike in its two arguments."""
    return y * 0.5 + memory.mean(dim=1, keepdim=True) * (1 + 0.1 * y) + 0.1 * memory.size(1)


def _ffn(y):
    return y.relu() * 3 - 1 + 0.1 * y.flip(-1) * y


NORMS = (
    lambda y: y * 0.5 + 1,
    lambda y: y * 0.25 - 1 + 0.1 * y * y,
    lambda y: y * 2 + 0.5 - 0.1 * y * y,
)
_IN_TURN = "First self-attention, then cross-attention, each added to the stream."
_SMALL = "for the small example"


def _in_a_loop(x, memory, self_attention, cross_attention, feed_forward, norms):
    """A block for each sublayer, in a loop."""
    sublayers = (self_attention, lambda y: cross_attention(y, memory), feed_forward)
    for norm, sublayer in zip(norms, sublayers, strict=True):
        x = sublayer(norm(x)) + x
    return x


def _zero(*arguments):
    return torch.zeros_like(arguments[0])


def _same_layer(answer, where, own=_own, cross=_cross, ffn=_ffn, norms=NORMS, note=""):
    for x, memory in ((X_IN[:1, :1, :2], MEMORY[:1, :1, :2]), (X_IN, MEMORY)):
        agrees(answer, _in_a_loop, x, memory, own, cross, ffn, norms, note=note,
               where=f"{where}, x of shape {tuple(x.shape)}")  # fmt: skip


def test_whole(answer):
    """it is the layer: three sublayers in order"""
    _same_layer(answer, _SMALL)


@hint("What is added is x as it was, not the normalised x.")
def test_stream(answer):
    """when the sublayers return zeros, x comes out as it went in"""
    _same_layer(
        answer, "when every sublayer returns 0", _zero, _zero, _zero,
        note="The residual carries x itself, not the normalised x.",
    )  # fmt: skip


def test_self_first(answer):
    """cross-attention gets what self-attention found"""
    where = "when only the attentions return anything but zeros"
    _same_layer(answer, where, ffn=_zero, note=_IN_TURN)


def test_ffn_once(answer):
    """there is one feed-forward network, at the end"""
    counted = Counted(_ffn)
    answer(X_IN, MEMORY, _own, _cross, counted, NORMS)
    expect(counted.count == 1, f"feed_forward is called {counted.count} times, expected once")


def test_ffn_last(answer):
    """the feed-forward network reads what both attentions left in the stream"""
    counted = Counted(_ffn)
    answer(X_IN, MEMORY, _own, _cross, counted, NORMS)
    expect(counted.count > 0, "feed_forward is not called")
    attended = _in_a_loop(X_IN, MEMORY, _own, _cross, _zero, NORMS)
    same(
        counted.calls[-1][0],
        NORMS[2](attended),
        "what feed_forward is given",
        note="It has to be norms[2] of the stream after both attentions.",
    )


def test_memory_is_read(answer):
    """cross-attention reads the memory as it is"""
    counted = Counted(_cross)
    answer(X_IN, MEMORY, _own, counted, _ffn, NORMS)
    expect(counted.count == 1, f"cross_attention is called {counted.count} times, expected once")
    same(
        counted.calls[0][1], MEMORY, "the second argument of cross_attention",
        note="It has to be the memory itself, which the encoder has normalised.",
    )  # fmt: skip


def test_equals_torchs(answer):
    """with the parts of torch's decoder layer it is torch's layer"""
    layer = torch.nn.TransformerDecoderLayer(
        4, 2, 6, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    with torch.no_grad():
        for seed, weight in enumerate(layer.parameters()):
            weight.copy_(numbers(*weight.shape, seed=seed, scale=0.7, dtype=torch.float64))
    future = torch.ones(3, 3, dtype=torch.bool).triu(1)

    def own(y):
        return layer.self_attn(y, y, y, attn_mask=future, need_weights=False)[0]

    def cross(y, memory):
        return layer.multihead_attn(y, memory, memory, need_weights=False)[0]

    def ffn(y):
        return layer.linear2(layer.linear1(y).relu())

    def oracle(x, memory, *_):
        return layer(x, memory, tgt_mask=future)

    x, memory = (numbers(2, n, 4, seed=n, dtype=torch.float64) for n in (3, 5))
    parts = (own, cross, ffn, (layer.norm1, layer.norm2, layer.norm3))
    where = "for the parts of `nn.TransformerDecoderLayer`, in float64"
    agrees(answer, oracle, x, memory, *parts, where=where)


def test_layer_gradients(answer):
    """gradients reach x and the memory along every path"""
    parts = (_own, _cross, _ffn, list(NORMS))
    gradients(answer, _in_a_loop, X_IN, MEMORY, *parts, where=_SMALL)


MISTAKES = r"""
the caller's x changed
    x = x + self_attention => x += self_attention
    says: changes the caller's `x`
    `x += ...` writes into the tensor that the layer was given, which others still read. `x = x
    + ...` makes a new one.
post-norm
    x + self_attention(norms[0](x)) => norms[0](x + self_attention(x))
    x + cross_attention(norms[1](x), memory) => norms[1](x + cross_attention(x, memory))
    x + feed_forward(norms[2](x)) => norms[2](x + feed_forward(x))
    says: The residual carries x itself
    `norm(x + sublayer(x))` is the order in the paper; this chapter's Pre-LN layer leaves the
    stream alone.
cross-attention first
    x = x + self_attention(norms[0](x)) =>
    x = x + cross_attention(norms[1](x), memory) =>
        x = x + cross_attention(norms[1](x), memory)
        x = x + self_attention(norms[0](x))
    says: each added to the stream
    First the decoder gathers what it has written, then its queries read the source.
the two attentions side by side
    x = x + self_attention => found = self_attention
    x + cross_attention => x + found + cross_attention
    says: each added to the stream
    Cross-attention's query has to hold what self-attention found; here it is computed before.
cross-attention and feed-forward network side by side
    x = x + cross_attention => found = cross_attention
    return x + => return x + found +
    says: what feed_forward is given
    The feed-forward network works on what cross-attention has brought; here it does not see it.
the last residual from the beginning
    x = x + self_attention => start, x = x, x + self_attention
    return x + => return start +
    says: each added to the stream
    Each residual adds to the stream as the sublayer before left it. Adding to the layer's input
    discards what the attentions added.
a feed-forward network after each attention
    x = x + cross_attention =>
        x = x + feed_forward(norms[2](x))
        x = x + cross_attention
    says: feed_forward is called 2 times
    One tutorial has it so. A decoder layer has two attentions, and one feed-forward network
    after both.
two sublayers
    x = x + cross_attention(norms[1](x), memory) =>
    says: cross_attention is called 0 times
    One tutorial counts two. Without cross-attention the decoder can't read the source.
the normalised x carried on
    x + self_attention(norms[0](x)) => (x := norms[0](x)) + self_attention(x)
    x + cross_attention(norms[1](x), => (x := norms[1](x)) + cross_attention(x,
    x + feed_forward(norms[2](x)) => (x := norms[2](x)) + feed_forward(x)
    says: The residual carries x itself
    `y + sublayer(y)` with y = norm(x) puts a norm into the stream itself; a well-known course
    has this mistake.
memory and query swapped
    (norms[1](x), memory) => (memory, norms[1](x)).mean(1, keepdim=True)
    says: the second argument of cross_attention
    Queries come from the decoder, keys and values from the memory.
memory normalised again
    (x), memory) => (x), norms[1](memory))
    says: the second argument of cross_attention
    The encoder has ended in a norm of its own; the layer's norm belongs to the stream.
one norm for all
    norms[1] => norms[0]
    norms[2] => norms[0]
    says: for the small example
    Each sublayer has a norm of its own, with a gain and bias of its own.
"""
