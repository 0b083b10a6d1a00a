"""26.1 count a layer (★☆☆, 8 minutes)

Write `my_layer_flops(length, d_model, num_heads, d_ff)`, which counts the operations of one layer's
forward pass for a single text of `length` tokens: those of the eight matrix products of
self-attention and the feed-forward network. A multiplication and an addition count as one operation
each. Biases, softmax and norms are left out.

Hint: A product of (m, k) and (k, n) takes 2·m·k·n operations. All heads together are d_model wide.
"""

from tinytf_course.expect import expect, tensor
from tinytf_course.words import described, given


def my_layer_flops(length, d_model, num_heads, d_ff):
    """Count the operations of the matrix products of one layer for one text of `length` tokens.

    Self-attention has four projections, the scores and the weighted sum; then comes the
    feed-forward network. A multiplication and an addition count as one operation each.
    """
    projections = 4 * 2 * length * d_model * d_model
    scores_and_mix = 2 * 2 * length * length * d_model
    feed_forward = 2 * 2 * length * d_model * d_ff
    return projections + scores_and_mix + feed_forward


def _count(answer, *sizes):
    """What the answer counts for these sizes, a number."""
    where = given(my_layer_flops, sizes)
    got = tensor(answer(*sizes), where)
    expect(got.dim() == 0, f"{where}, you return {described(got)}, expected a number")
    return got.item()


def _counts(answer, sizes, expected, note):
    got, where = _count(answer, *sizes), given(my_layer_flops, sizes)
    expect(got == expected, f"{where}, you get {got:,}, expected {expected:,}. {note}")


def test_of_ones(answer):
    """one number meets one number eight times"""
    note = "Four projections, scores, weighted sum, two layers of the network: 8 products, 2 "
    note += "operations each."
    _counts(answer, (1, 1, 1, 1), 16, note)


def test_network(answer):
    """the feed-forward network is counted by its own width"""
    more = _count(answer, 3, 4, 2, 7) - _count(answer, 3, 4, 2, 6)
    where = "for length=3, d_model=4, num_heads=2, one unit more in the network (d_ff=7, not 6)"
    note = "A row of w_1 and a column of w_2, for each of 3 positions: 2 · 2 · 3 · 4."
    expect(more == 48, f"{where} takes {more:,} more, expected 48. {note}")


def test_square(answer):
    """what grows with the square of the length are scores and weighted sum"""
    more = _count(answer, 2, 4, 2, 6) - 2 * _count(answer, 1, 4, 2, 6)
    where = "for d_model=4, a sentence of 2 tokens takes"
    note = "Each of 2 tokens meets 2 keys and 2 values where it met one: 2 · 2 · (4 - 2) · 4."
    expect(more == 32, f"{where} {more:,} more than 2 sentences of one, expected 32. {note}")


def test_maps(answer):
    """the four projections of attention are d_model wide, on both sides"""
    more = _count(answer, 1, 2, 1, 0) - 2 * _count(answer, 1, 1, 1, 0)
    where = "for one token and no network (d_ff=0), d_model=2 takes"
    note = "A projection is (d_model, d_model): 4 projections · 2 · (4 - 2); the rest just doubles."
    expect(more == 16, f"{where} {more:,} more than twice d_model=1, expected 16. {note}")


def test_heads(answer):
    """heads cost nothing"""
    one, four = (_count(answer, 3, 8, heads, 6) for heads in (1, 4))
    note = "4 heads of width 2 multiply as much as one of width 8."
    where = "for length=3, d_model=8, d_ff=6, 4 heads take"
    expect(one == four, f"{where} {four:,} and one head {one:,}, expected the same. {note}")


def test_whole(answer):
    """a layer of GPT-2 small takes 17.7 billion at 1,024 tokens"""
    note = "The projections take 4 · 2 · 5 · 6 · 6 = 1440, scores and weighted sum 2 · 2 · 5 · "
    note += "5 · 6 = 600, the network 2 · 2 · 5 · 6 · 7 = 840."
    _counts(answer, (5, 6, 3, 7), 2880, note)
    note = "24 · n · d² for the linear layers, 4 · n² · d for scores and weighted sum."
    _counts(answer, (1024, 768, 12, 3072), 17_716_740_096, note)


MISTAKES = r"""
only multiplications
    projections + scores_and_mix + feed_forward =>
        (projections + scores_and_mix + feed_forward) // 2
    says: 8 products, 2 operations each
    Each multiplication comes with an addition: 2·m·k·n. (Papers that count multiply-adds give
    half of our number.)
only n² · d
    projections + scores_and_mix + feed_forward => scores_and_mix
    says: expected 16. Four projections
    That is what the tutorials give. At GPT-2's own length it is less than a fifth of it.
scores without the weighted sum
    2 * 2 * length * length => 2 * length * length
    says: Each of 2 tokens meets 2 keys and 2 values
    The weighted sum of the values takes as many operations as the scores. (If it was a causal
    mask that halved them: a mask hides scores that were computed.)
heads counted at full width
    length * length * d_model => length * length * num_heads * d_model
    says: 4 heads of width 2
    Each head works in d_model / num_heads dimensions; all of them together cost one.
one head's scores
    length * length * d_model => length * length * d_model // num_heads
    says: 4 heads of width 2
    d_model / num_heads is one head's width: there are num_heads of them.
output projection forgotten
    4 * 2 * length => 3 * 2 * length
    says: 4 projections · 2
    After the heads comes w_o, a fourth projection from d_model to d_model.
d_ff taken to be 4 d_model
    d_model * d_ff => d_model * 4 * d_model
    says: takes 0 more, expected 48
    The network has a width of its own: use d_ff.
one layer in the network
    2 * 2 * length * d_model => 2 * length * d_model
    says: takes 24 more, expected 48
    The network has two linear layers, to d_ff and back.
biases counted
    + feed_forward => + feed_forward + length * (5 * d_model + d_ff)
    says: 8 products, 2 operations each
    Only the matrix products count here: compared with them the biases are negligible.
the score table counted without its width
    length * length * d_model => length * length * num_heads
    says: 4 heads of width 2
    There are n · n scores a head, and each of them is a product of d_model / num_heads numbers.
only what a causal mask leaves
    2 * 2 * length * length => 2 * length * (length + 1)
    says: 16 more than 2 sentences of one
    A mask hides scores that were computed: each query meets each key.
four projections of full width for each head
    4 * 2 * length => 4 * 2 * num_heads * length
    says: 4 heads of width 2
    The heads share the projections: each is (d_model, d_model), for all heads together.
multiplications alone in one product of attention
    2 * 2 * length * length => (2 + 1) * length * length
    says: expected 16. Four projections
    Scores and weighted sum both consist of multiplications and additions.
"""

HARMLESS = r"""
… => …(2 + 2) * length…
    2 + 2 is as much as 2 · 2
"""
