"""Answers to chapter 04: references and mistakes."""

import torch
import torch.nn.functional as F

from tinytf_course.grading import Answers, WrongAnswer

# 04.1 the gradient of a lookup


def my_lookup_gradient(ids, grad, vocab_size):
    """Return the gradient of the loss with respect to the embedding table (V, C).

    ids is (B, T), and grad (B, T, C) is the gradient with respect to the vectors looked up. The
    result has the dtype and the device of grad.
    """
    one_hot = F.one_hot(ids.long(), vocab_size).to(grad.dtype)  # (B, T) -> (B, T, V)
    return one_hot.flatten(0, 1).T @ grad.flatten(0, 1)  # (V, B T) @ (B T, C) -> (V, C)


def _zeros(grad, vocab_size):
    return grad.new_zeros(vocab_size, grad.size(-1))


def _overwritten(ids, grad, vocab_size):
    table = _zeros(grad, vocab_size)
    table[ids.long()] += grad
    return table


def _averaged(ids, grad, vocab_size):
    times = ids.flatten().bincount(minlength=vocab_size).clamp(min=1)
    return my_lookup_gradient(ids, grad, vocab_size) / times[:, None].to(grad.dtype)


def _as_long_as_needed(ids, grad, vocab_size):
    return my_lookup_gradient(ids, grad, int(ids.max()) + 1)


def _on_the_cpu(ids, grad, vocab_size):
    table = torch.zeros(vocab_size, grad.size(-1), dtype=grad.dtype)
    if grad.is_meta:  # some versions of torch refuse the next line there, others make this of it
        return table
    return table.index_add(0, ids.flatten(), grad.reshape(-1, grad.size(-1)))


def _loops_in_float32(ids, grad, vocab_size):
    table = torch.zeros(vocab_size, grad.size(-1))
    for sentence, rows in zip(ids.tolist(), grad, strict=True):
        for i, row in zip(sentence, rows, strict=True):
            table[i] += row.float()
    return table


def _by_autograd(ids, grad, vocab_size):
    table = _zeros(grad, vocab_size).requires_grad_()
    return torch.autograd.grad(table[ids], table, grad, create_graph=True)[0]


GRADIENT = Answers(
    reference=my_lookup_gradient,
    wrong=(
        WrongAnswer(
            "the last one counts",
            _overwritten,
            "Row 1 was used twice",
            "`table[ids] += grad` reads all rows first, adds, and writes them back: of two uses of "
            "a row one is lost, just as with `table[ids] = grad`. `index_add` adds them up.",
        ),
        WrongAnswer(
            "autograd used",
            _by_autograd,
            "here you are autograd",
            "The numbers are right, but they were to be computed without autograd: every use of a "
            "row adds its gradient to that row.",
        ),
        WrongAnswer(
            "the mean of the uses",
            _averaged,
            "Row 1 was used twice",
            "The loss changes through every use of the row. Their gradients are added, not "
            "averaged.",
        ),
        WrongAnswer(
            "only the rows up to the largest id",
            _as_long_as_needed,
            "expected (3, 2)",
            "The gradient has the shape of the table, rows that were not used included.",
        ),
        WrongAnswer(
            "columns for rows",
            lambda ids, grad, vocab_size: my_lookup_gradient(ids, grad, vocab_size).T,
            "the shape is (2, 3)",
            "A token is a row of the table, (V, C).",
        ),
        WrongAnswer(
            "the first sentence",
            lambda ids, grad, vocab_size: my_lookup_gradient(ids[:1], grad[:1], vocab_size),
            "for ids=[[0], [1]]",
            "All sentences of the batch use the one table. Flatten batch and positions together.",
        ),
        WrongAnswer(
            "counted, not weighed",
            lambda ids, grad, vocab_size: my_lookup_gradient(
                ids, torch.ones_like(grad), vocab_size
            ),
            "for ids=[[1]]",
            "That is how often each row was used. Each use counts with its own gradient, `grad`.",
        ),
        WrongAnswer(
            "float32 whatever comes",
            _loops_in_float32,
            "the dtype is float32, expected float64",
            "`torch.zeros` makes float32. `grad.new_zeros` has the dtype and device of grad.",
        ),
        WrongAnswer(
            "cut off",
            lambda ids, grad, vocab_size: my_lookup_gradient(ids, grad.detach(), vocab_size),
            "no gradient reaches `grad`",
            "The result is linear in grad, and may be differentiated once more. `detach`, `.data` "
            "or `no_grad` cuts that off.",
        ),
        WrongAnswer(
            "on the CPU whatever the device",
            _on_the_cpu,
            "another device",
            "`torch.zeros` is on the CPU unless it is told otherwise; `grad.new_zeros` is on the "
            "device of grad.",
        ),
        WrongAnswer(
            "a table per sentence",
            lambda ids, grad, vocab_size: (
                F.one_hot(ids.long(), vocab_size).to(grad.dtype).mT @ grad
            ),
            "the shape is (1, 3, 2)",
            "There is one table for the whole batch: flatten B and T into one axis, over which the "
            "product sums.",
        ),
        WrongAnswer(
            "nothing for id 0",
            lambda ids, grad, vocab_size: my_lookup_gradient(
                ids, grad * (ids != 0)[..., None], vocab_size
            ),
            "for ids=[[2, 0]]",
            "Here id 0 is a row like the others. To leave padding out, mask the loss.",
        ),
        WrongAnswer(
            "grad taken to lie in order",
            lambda ids, grad, vocab_size: grad.new_zeros(vocab_size, grad.size(-1)).index_add(
                0, ids.flatten(), grad.view(-1, grad.size(-1))
            ),
            "view size is not compatible",
            "`view` needs a contiguous tensor, and a gradient that comes back through a transpose "
            "is not contiguous. `reshape` copies where it must.",
        ),
    ),
    equivalent={
        "… => ….detach()…": "ids and one-hots carry no gradient; that to grad is asked for",
        "… => one_hot = F.one_hot(ids, …": "ids are int64 already",
        "… => …ids.float().long()…": "ids below 16 million are whole numbers of float32",
    },
)


# 04.2 nearest words


def my_nearest(vectors, query, k):
    """Return the ids of the k rows most similar to row `query` by cosine, best first.

    vectors is (V, C) and query an int. The result has k ids; the query itself is left out.
    """
    unit = F.normalize(vectors, dim=-1)  # a row of zeros stays zeros
    cosines = unit @ unit[query]
    cosines[query] = -2.0  # below every cosine
    return cosines.topk(k).indices


def _variant(similarity, largest=True, itself=False):
    def nearest(vectors, query, k):
        scores = similarity(vectors, vectors[query])
        if not itself:
            scores[query] = -torch.inf if largest else torch.inf
        return scores.topk(k, largest=largest).indices

    return nearest


def _zero_for_itself(vectors, query, k):
    cosines = _cosine(vectors, vectors[query])
    cosines[query] = 0.0
    return cosines.topk(k).indices


def _row_dropped(vectors, query, k):
    others = torch.cat([vectors[:query], vectors[query + 1 :]])
    return _cosine(others, vectors[query]).topk(k).indices


def _norm_of_columns(vectors, query, k):
    unit = vectors / vectors.norm(dim=0, keepdim=True)
    cosines = unit @ unit[query]
    cosines[query] = -2.0
    return cosines.topk(k).indices


def _minus_one_for_itself(vectors, query, k):
    cosines = _cosine(vectors, vectors[query])
    cosines[query] = -1.0
    return cosines.topk(k).indices


def _rounded(vectors, query, k):
    cosines = _cosine(vectors, vectors[query])
    cosines[query] = -2.0
    return cosines.round(decimals=2).topk(k).indices


def _without_the_first(vectors, query, k):
    return _cosine(vectors, vectors[query]).topk(k + 1).indices[1:]


def _cosine(vectors, q):
    return F.normalize(vectors, dim=-1) @ F.normalize(q, dim=-1)


def _zero_by_zero(vectors, query, k):
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    cosines = unit @ unit[query]
    cosines[query] = -2.0
    return cosines.topk(k).indices


NEAREST = Answers(
    reference=my_nearest,
    wrong=(
        WrongAnswer(
            "dot product",
            _variant(lambda v, q: v @ q),
            "Row 1 is long",
            "Without dividing by the norms long vectors win, and frequent words have long vectors.",
        ),
        WrongAnswer(
            "opposite is near",
            _variant(lambda v, q: _cosine(v, q).abs()),
            "Row 4 is opposite",
            "A cosine of −1 is the farthest there is: leave its sign.",
        ),
        WrongAnswer(
            "cosines for ids",
            lambda vectors, query, k: _cosine(vectors, vectors[query])[
                my_nearest(vectors, query, k)
            ],
            "for vectors=",
            "The result should be the ids of the rows: `topk` returns `values` and `indices`.",
        ),
        WrongAnswer(
            "includes the query",
            _variant(_cosine, itself=True),
            "that is the query itself",
            "Every word is nearest to itself; leave its row out.",
        ),
        WrongAnswer(
            "farthest first",
            _variant(_cosine, largest=False),
            "Row 4 is opposite",
            "A cosine is a similarity: large is near. A distance would be the other way round.",
        ),
        WrongAnswer(
            "distance in space",
            _variant(lambda v, q: -(v - q).norm(dim=-1)),
            "the angle counts",
            "Euclidean distance mixes in the lengths. Among vectors of length 1 the two agree.",
        ),
        WrongAnswer(
            "norms of the columns",
            _norm_of_columns,
            "the angle counts",
            "`dim=0` divides each column by its norm. A word is a row: `dim=-1`, and "
            "`keepdim=True` so that the shapes meet.",
        ),
        WrongAnswer(
            "the best comes last",
            lambda vectors, query, k: my_nearest(vectors, query, k).flip(0),
            "you get [1, 2], expected [2, 1]",
            "These are the right words in the wrong order: the largest cosine comes first.",
        ),
        WrongAnswer(
            "in the order of the ids",
            lambda vectors, query, k: my_nearest(vectors, query, k).sort().values,
            "you get [1, 2, 3, 4, 5]",
            "These are the right words, but sorted by id: the largest cosine comes first.",
        ),
        WrongAnswer(
            "zero for itself",
            _zero_for_itself,
            "Row 4 is opposite",
            "A cosine can be negative: 0 puts the query before every word with a negative cosine. "
            "Take a number below -1.",
        ),
        WrongAnswer(
            "the row is dropped, and the ids move up",
            _row_dropped,
            "the angle counts",
            "Without the query's row the ids after it are one too small. Keep the row, and give "
            "it a cosine that can't win.",
        ),
        WrongAnswer(
            "minus one for itself",
            _minus_one_for_itself,
            "Row 1 points the other way",
            "-1 is a cosine, too, that of the opposite direction. Take a number below it.",
        ),
        WrongAnswer(
            "0 divided by 0",
            _zero_by_zero,
            "Row 1 is zeros",
            "A row of zeros has length 0, and 0/0 is NaN, which `topk` takes for the largest "
            "number, so padding would be the nearest neighbour of every word. `F.normalize` leaves "
            "zeros 0.",
        ),
        WrongAnswer(
            "rounded to two digits",
            _rounded,
            "almost as near",
            "Neighbours may differ in the fifth digit: sort by the cosines themselves.",
        ),
        WrongAnswer(
            "the first is dropped",
            _without_the_first,
            "Rows 0 and 2 point the same way",
            "`topk(k + 1)[1:]` assumes that the query comes first. A vector with the same "
            "direction may precede it, and then the query stays and the neighbour is dropped.",
        ),
    ),
    equivalent={
        "… => ….detach()…": "ids carry no gradient",
        "… => ….double()…": "more digits than asked for",
        "… => cosines[query] = -3.0": "-3, too, is below every cosine",
        "… => cosines[query] = -4.0": "-4, too, is below every cosine",
        "… => unit = F.normalize(vectors)": "of two axes, 1 is the last",
        "… => unit = F.normalize(vectors, dim=1)": "of two axes, 1 is the last",
    },
)


ANSWERS = {
    "04.1": GRADIENT,
    "04.2": NEAREST,
}
