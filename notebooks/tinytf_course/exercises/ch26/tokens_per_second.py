"""26.3 tokens a second, at best (★★☆, 8 minutes)

How many tokens per second can a machine generate at best? Write `my_tokens_per_second(weights,
cache, batch, rate, bandwidth, bytes_each)` for decode steps that generate one token for each of
`batch` texts. Return the tokens per second of all texts together.

<details><summary>What a step computes and fetches</summary>

A step fetches the model's `weights`, given as a count of numbers, once. For each text it also
fetches the `cache` numbers of that text's own KV cache. A number has `bytes_each` bytes. Each
weight takes a multiplication and an addition for each text, and each number of a cache takes them
for its own text. `rate` is in operations per second and `bandwidth` in bytes per second. The
machine computes and fetches at the same time, so a step takes as long as the slower of the two.

</details>

Hint: Write down the operations and the bytes of one step, turn each into seconds, and compare.
"""

import math

from tinytf_course.expect import expect, tensor
from tinytf_course.words import described, given


def my_tokens_per_second(weights, cache, batch, rate, bandwidth, bytes_each):
    """Return how many tokens per second decoding reaches at best, all texts together.

    A step generates one token for each of `batch` texts. It fetches `weights` numbers once and
    `cache` numbers for each text. Each weight takes a multiplication and an addition for each text,
    and so does each number of a cache for its own text. rate is in operations per second,
    bandwidth in bytes per second.
    """
    operations = 2 * batch * (weights + cache)
    moved = bytes_each * (weights + batch * cache)
    return batch / max(operations / rate, moved / bandwidth)


def _fast(answer, sizes, expected, note):
    """What the answer says for these sizes, in the order of its arguments."""
    got, where = answer(*sizes), given(my_tokens_per_second, sizes)
    got = tensor(got, where)
    expect(got.dim() == 0, f"{where}, you return {described(got)}, expected a number")
    close = math.isclose(got.item(), expected, rel_tol=1e-6)
    expect(close, f"{where}, you get {got.item():g}, expected {expected:g}. {note}")


def test_fetching(answer):
    """one text waits for its weights"""
    note = "200 bytes are fetched, 50 a second: a step takes 4 seconds and generates one token."
    _fast(answer, (100, 0, 1, 1e9, 50.0, 2), 0.25, note)


def test_shared(answer):
    """texts share the weights"""
    note = "The step still fetches 200 bytes and takes 4 seconds, but it generates 3 tokens."
    _fast(answer, (100, 0, 3, 1e9, 50.0, 2), 0.75, note)


def test_own_caches(answer):
    """each text has a cache of its own"""
    note = "2 · (100 + 3 · 50) bytes are fetched, 50 a second: 10 seconds for 3 tokens."
    _fast(answer, (100, 50, 3, 1e9, 50.0, 2), 0.3, note)


def test_multiplying(answer):
    """many texts wait for the arithmetic"""
    note = "Each of 4 texts takes 2 · (10 + 5) operations, 120 in all, 60 a second: 2 seconds."
    _fast(answer, (10, 5, 4, 60.0, 1e9, 4), 2.0, note)


def test_slower(answer):
    """the slower of the two decides, not their sum"""
    note = "Fetching takes 3 seconds and arithmetic 2, at the same time: 3 seconds for 2 tokens."
    _fast(answer, (10, 10, 2, 40.0, 40.0, 4), 2 / 3, note)
    note = "Fetching takes 1.5 seconds and arithmetic 2, at the same time."
    _fast(answer, (10, 10, 2, 40.0, 80.0, 4), 1.0, note)


def test_served(answer):
    """GPT-2 XL on one card, for one person and for a thousand"""
    # Keys and values of 1,024 tokens, 48 layers of width 1,600; an H100's bfloat16 and memory.
    sizes = (1_557_611_200, 2 * 48 * 1600 * 1024)
    note = "At one text the weights are fetched for one token."
    _fast(answer, (*sizes, 1, 989e12, 3.35e12, 2), 976.7347, note)
    note = "At a thousand the caches are nearly all that is fetched."
    _fast(answer, (*sizes, 1000, 989e12, 3.35e12, 2), 10544.936, note)


def _serving(
    each=2, shared=True, own=True, cached=True, slower=max, per_text=False, size=True, texts=None,
    fetched=True,
):  # fmt: skip
    """`my_tokens_per_second` with one thing wrong."""

    def speed(weights, cache, batch, rate, bandwidth, bytes_each):
        operations = each * (texts or batch) * (weights + cache * cached)
        moved = (weights * (1 if shared else batch) + (batch if own else 1) * cache * fetched) * (
            bytes_each if size else 1
        )
        tokens = 1 if per_text else batch
        return tokens / slower(operations / rate, moved / bandwidth)

    return speed


MISTAKES = r"""
weights fetched for each text
    … =>
        return _serving(shared=False)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: it generates 3 tokens
    One call multiplies the weights with the vectors of all texts: they come once.
one cache for all
    … =>
        return _serving(own=False)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: 10 seconds for 3 tokens
    Each text consists of other tokens, so it has keys and values of its own.
the tokens of one text
    … =>
        return _serving(per_text=True)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: it generates 3 tokens
    The tokens of all texts together are wanted.
fetching, then computing
    … =>
        return _serving(slower=lambda a, b: a + b)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: at the same time: 3 seconds
    While one piece is computed, the next one is fetched: the slower of the two decides.
the faster of the two
    … =>
        return _serving(slower=min)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: a step takes 4 seconds
    Both have to be done: a step is over when the slower one is.
only fetching
    … =>
        return _serving(slower=lambda a, b: b)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: 120 in all, 60 a second
    For many texts the arithmetic takes longer.
only multiplications
    … =>
        return _serving(each=1)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: 120 in all, 60 a second
    Each multiplication comes with an addition.
scores and weighted sum forgotten
    … =>
        return _serving(cached=False)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: 120 in all, 60 a second
    A cached key is multiplied with the query, a cached value with its weight.
the arithmetic of one text
    … =>
        return _serving(texts=1)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: 120 in all, 60 a second
    Only the fetching is shared: each weight multiplies for every text.
the caches never fetched
    … =>
        return _serving(fetched=False)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: 10 seconds for 3 tokens
    Keys and values lie in the same memory as the weights, and come from there too.
numbers for bytes
    … =>
        return _serving(size=False)(weights, cache, batch, rate, bandwidth, bytes_each)
    says: 200 bytes are fetched
    Bandwidth is in bytes a second: a number has `bytes_each` of them.
"""
