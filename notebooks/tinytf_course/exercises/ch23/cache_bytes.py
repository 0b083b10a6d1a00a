"""23.3 how large is the cache? (★☆☆, 6 minutes)

Write `my_cache_bytes(num_layers, num_heads, num_kv_heads, d_model, length, bytes_per_number=2)`,
which returns the size of a model's KV cache after `length` tokens, in bytes and as an integer.

Hint: For each token and layer, the cache holds a key and a value per key head. How wide is each of
them?
"""

from tinytf_course.expect import expect
from tinytf_course.tensors import plain
from tinytf_course.words import described, given


def my_cache_bytes(num_layers, num_heads, num_kv_heads, d_model, length, bytes_per_number=2):
    """Return how many bytes the keys and values of `length` tokens take, as an integer.

    A head is d_model / num_heads wide, for queries, keys and values alike.
    """
    width = d_model // num_heads
    return 2 * num_layers * num_kv_heads * width * length * bytes_per_number


def _bytes(answer, *sizes, expected, note):
    """Expect this many bytes, a whole number, for these sizes."""
    where = given(my_cache_bytes, sizes)
    got = answer(*sizes)
    got = plain(got)
    whole = isinstance(got, int) and not isinstance(got, bool)
    expect(whole, f"{where}, you return {described(got)}, expected a whole number")
    expect(got == expected, f"{where}, you get {got:,}, expected {expected:,}. {note}")


def test_one_token(answer):
    """one layer keeps a key and a value of each key head"""
    _bytes(answer, 1, 1, 1, 3, 1, 1, expected=6, note="3 numbers of a key and 3 of a value.")
    note = "Each of 10 key heads keeps 30 / 10 = 3 numbers of a key and 3 of a value."
    _bytes(answer, 1, 10, 10, 30, 1, 1, expected=60, note=note)


def test_groups(answer):
    """query heads are not kept"""
    note = "Two heads, as wide as the queries': 30 / 10 = 3 numbers, twice."
    _bytes(answer, 1, 10, 2, 30, 1, 1, expected=12, note=note)


def test_layers(answer):
    """every layer keeps its own"""
    _bytes(answer, 5, 10, 2, 30, 1, 1, expected=60, note="12 bytes in each of 5 layers.")


def test_tokens(answer):
    """every token is kept once"""
    _bytes(answer, 1, 10, 2, 30, 7, 1, expected=84, note="12 bytes for each of 7 tokens.")
    _bytes(answer, 1, 10, 2, 30, 0, 1, expected=0, note="Nothing has been read.")


def test_numbers_in_bytes(answer):
    """each number takes the given number of bytes, two by default"""
    _bytes(answer, 1, 10, 2, 30, 1, 4, expected=48, note="12 numbers of 4 bytes.")
    _bytes(answer, 1, 10, 2, 30, 1, expected=24, note="12 numbers; bytes_per_number is 2.")


def test_all_together(answer):
    """layers, tokens and bytes multiply, in large models too"""
    _bytes(answer, 5, 10, 2, 30, 7, 4, expected=1680, note="12 · 5 · 7 · 4.")
    note = "This is Llama 3's smallest model after 8,192 tokens: a gibibyte."
    _bytes(answer, 32, 32, 8, 4096, 8192, expected=2**30, note=note)
    note = "A million texts of a million tokens: no float holds this number."
    _bytes(answer, 61, 3, 1, 3, 10**12, 10**6 + 1, expected=122 * 10**12 * (10**6 + 1), note=note)


MISTAKES = r"""
values forgotten
    2 * num_layers => num_layers
    says: 3 numbers of a key and 3 of a value
    Scores need the keys and outputs need the values, so both are kept for every token.
queries kept too
    2 * num_layers => 3 * num_layers
    says: 3 numbers of a key and 3 of a value
    A token's query is used once, in the token's own step, and never again.
all heads kept
    num_kv_heads * width => num_heads * width
    says: Two heads, as wide as the queries'
    That is the size of the cache without groups. The cache holds num_kv_heads heads, each as
    wide as a query head: d_model / num_heads.
d_model for each head
    d_model // num_heads => d_model
    says: Each of 10 key heads keeps
    The heads share d_model: each is d_model / num_heads wide.
one layer
    2 * num_layers => 2
    says: 12 bytes in each of 5 layers
    Each layer computes other keys and values from other inputs.
scores kept
    width * length => width * length**2
    says: 12 bytes for each of 7 tokens
    The T × T weights are not kept. Each new token needs one row of them, once.
the newest token not kept
    width * length => width * (length - 1)
    says: for num_layers=1, num_heads=1, num_kv_heads=1, d_model=3, length=1
    All `length` tokens are kept, the last one too, because the next token will attend to it.
a place for the next token, too
    width * length => width * (length + 1)
    says: 3 numbers of a key and 3 of a value
    Keys and values are kept for the `length` tokens of the context and for no others.
as many heads as share a key head
    num_kv_heads * width => (num_heads // num_kv_heads) * width
    says: Each of 10 key heads keeps
    num_heads / num_kv_heads is how many query heads share one key head. The cache holds all
    num_kv_heads key heads.
numbers, not bytes
     * bytes_per_number =>
    says: 12 numbers of 4 bytes
    You counted numbers. In bfloat16, each of them takes two bytes.
two bytes always
    * bytes_per_number => * 2
    says: 3 numbers of a key and 3 of a value
    Two is only the default; the argument bytes_per_number gives the size of a number.
four bytes unless told
    bytes_per_number=2 => bytes_per_number=4
    says: bytes_per_number is 2
    The function's first line gives the default: two bytes, as in bfloat16.
a float
    d_model // num_heads => d_model / num_heads
    says: expected a whole number
    `/` gives a float. A head's width is an integer, so use `//`.
gigabytes
    * bytes_per_number => * bytes_per_number / 2**30
    says: expected a whole number
    Return bytes, and convert them only where the number is shown.
"""
