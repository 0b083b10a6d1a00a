"""18.2 count a GPT (★☆☆, 10 minutes)

Write `my_gpt_parameters(vocab_size, d_model, num_layers, max_len, d_ff)`, which returns the number
of parameters of a GPT, an integer. The matrix shared by embedding and output layer counts once. Use
a formula; don't build the model.

Hint: A linear layer from n to m features has n·m weights and m biases. Attention has four from d to
d, and the feed-forward network has one from d to d_ff and one back. A norm has 2·d.
"""

from tinytf_course.expect import expect, same, tensor
from tinytf_course.words import short


def my_gpt_parameters(vocab_size, d_model, num_layers, max_len, d_ff):
    """The number of parameters of a GPT: an integer.

    The output layer is the embedding table and has no bias; every other linear layer has one.
    Each norm has a gain and a shift for each feature, and one last norm follows the stack.
    """
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norms = 2 * (2 * d_model)
    tables = vocab_size * d_model + max_len * d_model
    return tables + num_layers * (attention + feed_forward + norms) + 2 * d_model


_PARTS = (
    "d_model=3, num_layers=2, d_ff=5 has in each layer 48 for attention, 38 for the feed-forward "
    "network, 12 for two norms"
)
_COUNT = "the answer", "a number"


def test_a_layer(answer):
    """a layer has four matrices, two matrices, and two norms"""
    two, one = (tensor(answer(7, 3, n, 4, 5), *_COUNT) for n in (2, 1))
    same(two - one, 98, "for one layer more at d_model=3, d_ff=5", note=f"A model of {_PARTS}.")


def test_tables(answer):
    """outside the layers there are two tables and a norm"""
    got = tensor(answer(7, 3, 0, 4, 5), *_COUNT)
    note = "7 · 3 for tokens, 4 · 3 for positions, 6 for the last norm; the head is tied, no bias."
    same(got, 39, "for no layers, vocab_size=7, d_model=3, max_len=4", note=note)


def test_whole(answer):
    """it is an integer"""
    got = answer(7, 3, 2, 4, 5)
    where = "for vocab_size=7, d_model=3, num_layers=2, max_len=4, d_ff=5"
    kind = f"{where}, you return {short(got)}, a {type(got).__name__}, expected an integer"
    expect(not tensor(got, where, "a number").is_floating_point(), f"{kind}: numbers are counted")


def test_gpt2(answer):
    """GPT-2's smallest size comes out to the last parameter"""
    same(answer(50257, 768, 12, 1024, 3072), 124_439_808, "for GPT-2", tolerance=0)


def _counter(**off):
    """A `my_gpt_parameters` with one part counted otherwise."""

    def count(vocab_size, d_model, num_layers, max_len, d_ff):
        v, d, layers, t = vocab_size, d_model, num_layers, max_len
        f = off.get("d_ff", lambda d, f: f)(d, d_ff)
        biases = off.get("biases", 1)
        attention = off.get("maps", 4) * (d * d + biases * d)
        layer = attention + 2 * d * f + biases * (f + d) + off.get("norms", 2) * 2 * d
        tables = v * d + off.get("positions", 1) * t * d
        end = off.get("last", 1) * 2 * d + off.get("head", lambda v, d: 0)(v, d)
        return tables + layers * layer + end

    return count


MISTAKES = r"""
untied head
    … =>
        return _counter(head=lambda v, d: v * d)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: the head is tied
    The output's matrix is the embedding table: it counts once. Untied, GPT-2 would have 163
    million.
head with a bias
    … =>
        return _counter(head=lambda v, d: v * d + v)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: the head is tied
    This is one tutorial's model: 163,087,441 parameters where GPT-2 has 124,439,808.
the head's bias
    … =>
        return _counter(head=lambda v, d: v)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: the head is tied, no bias
    GPT-2's output is the embedding table and nothing else: no number per token is added.
no biases
    … =>
        return _counter(biases=0)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: has in each layer 48 for attention
    GPT-2's linear layers have biases. (Many of today's models leave them out.)
positions forgotten
    … =>
        return _counter(positions=0)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: 4 · 3 for positions
    The positions are learned: a row of d_model numbers for each of max_len positions.
last norm forgotten
    … =>
        return _counter(last=0)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: 6 for the last norm
    A pre-norm stack ends in a norm of its own.
one norm a layer
    … =>
        return _counter(norms=1)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: 12 for two norms
    Each of the two sublayers has its own norm.
three maps in attention
    … =>
        return _counter(maps=3)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: has in each layer 48 for attention
    Queries, keys, values, and the output projection w_o that joins the heads.
d_ff taken to be 4 d_model
    … =>
        return _counter(d_ff=lambda d, f: 4 * d)(vocab_size, d_model, num_layers, max_len, d_ff)
    says: 38 for the feed-forward network
    That is GPT-2's choice, not a law: use the argument.
a float
    … =>
        return (lambda *sizes: float(my_gpt_parameters(*sizes)))(vocab_size, d_model, num_layers, max_len, d_ff)
    says: a float, expected an integer
    `/` makes a float. Parameters are counted: stay with `+`, `*` and `//`.
"""
