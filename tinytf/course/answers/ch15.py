"""Answers to chapter 15: references and mistakes."""

import math

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 15.1 count a layer


def my_layer_flops(length, d_model, num_heads, d_ff):
    """How many operations the matrix products of one layer take for one sentence.

    Self-attention (queries, keys, values, scores, mix, output map), then the feed-forward network.
    A multiplication and an addition count one each.
    """
    projections = 4 * 2 * length * d_model * d_model
    scores_and_mix = 2 * 2 * length * length * d_model
    feed_forward = 2 * 2 * length * d_model * d_ff
    return projections + scores_and_mix + feed_forward


def _layer(maps=4, tables=2, per_head=False, linear=1, network=lambda d, f: 2 * f, each=2):
    def count(length, d_model, num_heads, d_ff):
        n, d = length, d_model
        tables_ = tables * n * n * d * (num_heads if per_head else 1)
        return each * (maps * n * d * d * linear + tables_ + n * d * network(d, d_ff))

    return count


FLOPS = Answers(
    reference=my_layer_flops,
    wrong=(
        WrongAnswer(
            "only multiplications",
            _layer(each=1),
            "for GPT-2's layer",
            "Each multiplication comes with an addition: 2·m·k·n. (Papers that count multiply-adds "
            "say half of ours.)",
        ),
        WrongAnswer(
            "only n² · d",
            _layer(maps=0, network=lambda d, f: 0),
            "One unit more adds",
            "That is what the tutorials give. At GPT-2's own length it is less than a fifth of it.",
        ),
        WrongAnswer(
            "scores without the mix",
            _layer(tables=1),
            "Scores and mix are",
            "Mixing the values takes as many operations as the scores.",
        ),
        WrongAnswer(
            "heads counted at full width",
            _layer(per_head=True),
            "4 heads of width 2",
            "Each head works in d_model / num_heads dimensions; all of them together cost one.",
        ),
        WrongAnswer(
            "output map forgotten",
            _layer(maps=3),
            "for GPT-2's layer",
            "After the heads there is w_o, a fourth map from d_model to d_model.",
        ),
        WrongAnswer(
            "d_ff taken to be 4 d_model",
            _layer(network=lambda d, f: 8 * d),
            "One unit more adds",
            "The network has a width of its own: use d_ff.",
        ),
        WrongAnswer(
            "one map in the network",
            _layer(network=lambda d, f: f),
            "One unit more adds",
            "The network maps to d_ff and back.",
        ),
    ),
)


# 15.2 a big batch in small pieces


def my_accumulated_gradient(w, micro):
    """The gradient of the mean squared error over all rows, one micro-batch at a time.

    w is (D,); micro is a list of (x, y) with x (n, D) and y (n,), of different n. The error of a
    row is (x · w - y)². Returns (D,), what one big batch would give.
    """
    w = w.detach().requires_grad_()
    rows = sum(len(y) for _, y in micro)
    for x, y in micro:
        loss = (x @ w - y).square().sum() / rows
        loss.backward()  # adds to w.grad, and lets go of what it kept
    return w.grad


def _accumulated(weigh=None, last=False):
    def gradient(w, micro):
        rows, parts = sum(len(y) for _, y in micro), []
        for x, y in micro:
            parts.append(2 * x.T @ (x @ w - y) * weigh(len(y), rows, len(micro)))
        return parts[-1] if last else sum(parts)

    return gradient


ACCUMULATION = Answers(
    reference=my_accumulated_gradient,
    wrong=(
        WrongAnswer(
            "mean of means",
            _accumulated(lambda n, rows, count: 1 / n / count),
            "is not the mean of the two means",
            "loss.mean() / len(micro) is right for equal micro-batches only. Text batches hold "
            "unequal numbers of tokens: Hugging Face's Trainer had this bug until 2024.",
        ),
        WrongAnswer(
            "means added up",
            _accumulated(lambda n, rows, count: 1 / n),
            "Each row counts 1/6",
            "Adding the means makes the step as many times too large as there are micro-batches.",
        ),
        WrongAnswer(
            "sums, not divided",
            _accumulated(lambda n, rows, count: 1.0),
            "for one micro-batch of 6 rows",
            "This is the gradient of the summed error: divide by the number of rows.",
        ),
        WrongAnswer(
            "only the last one",
            _accumulated(lambda n, rows, count: 1 / n, last=True),
            "Each row counts 1/6",
            "zero_grad() inside the loop throws away what the others added.",
        ),
        WrongAnswer(
            "divided by the number of micro-batches",
            _accumulated(lambda n, rows, count: 1 / count),
            "for one micro-batch of 6 rows",
            "Divide by the rows, not by the micro-batches.",
        ),
        WrongAnswer(
            "the way up",
            _accumulated(lambda n, rows, count: -1 / rows),
            "for one micro-batch of 6 rows",
            "The sign is wrong: return the gradient itself. The optimiser does the subtracting.",
        ),
    ),
)


# 15.3 batches by length


def my_batches(lengths, size):
    """Put sentences of similar length together: a list of lists of indices, `size` in each.

    Every index stands in one batch; one batch may be smaller. A batch is padded to its longest
    sentence.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[i : i + size] for i in range(0, len(order), size)]


def _cut(order):
    def batches(lengths, size):
        at = order(lengths)
        return [at[i : i + size] for i in range(0, len(at), size)]

    return batches


BUCKETS = Answers(
    reference=my_batches,
    wrong=(
        WrongAnswer(
            "in the order they come",
            _cut(lambda lengths: list(range(len(lengths)))),
            "places are padding",
            "A short sentence next to a long one is mostly padding. Sort first.",
        ),
        WrongAnswer(
            "sorted within batches",
            lambda lengths, size: [
                sorted(range(i, min(i + size, len(lengths))), key=lambda j: lengths[j])
                for i in range(0, len(lengths), size)
            ],
            "places are padding",
            "The order within a batch does not matter; what matters is who shares one.",
        ),
        WrongAnswer(
            "lengths, not indices",
            lambda lengths, size: [
                sorted(lengths)[i : i + size] for i in range(0, len(lengths), size)
            ],
            "the batches hold [1, 2, 2, 8",
            "You sort the lengths and lose whose they are: sort the indices by length.",
        ),
        WrongAnswer(
            "the rest left out",
            lambda lengths, size: [
                b for b in my_batches(lengths, size) if len(b) == size
            ],  # as drop_last=True does
            "expected each of 0 to 7 once",
            "A sampler that drops the last batch never shows the longest sentences.",
        ),
        WrongAnswer(
            "sorted as text",
            _cut(lambda lengths: sorted(range(len(lengths)), key=lambda i: str(lengths[i]))),
            "places are padding",
            "As text, 10 comes before 2.",
        ),
        WrongAnswer(
            "a batch for each length",
            lambda lengths, size: [
                [i for i, n in enumerate(lengths) if n == length] for length in sorted(set(lengths))
            ],
            "the batches' sizes are",
            "No padding at all, but most batches hold one sentence: the machine waits for work.",
        ),
        WrongAnswer(
            "every how-manyth",
            lambda lengths, size: [
                my_batches(lengths, len(lengths))[0][i :: -(-len(lengths) // size)]
                for i in range(-(-len(lengths) // size))
            ],
            "places are padding",
            "A stride through the sorted list puts a short and a long one into every batch.",
        ),
    ),
)


# 15.4 a softmax that never sees all scores


def my_streamed_attention(q, blocks):
    """Attention over keys and values that come in blocks, each overwritten by the next.

    q is (T, D). `blocks` gives pairs (k, v), each (n, D), once. Returns (T, D), equal to attention
    over all of them, whatever the scores' size.
    """
    largest = torch.full((len(q), 1), float("-inf"))
    total, mixed = torch.zeros(len(q), 1), torch.zeros_like(q)
    for k, v in blocks:
        scores = q @ k.T / q.size(-1) ** 0.5
        new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        weights, old = (scores - new).exp(), (largest - new).exp()
        total = total * old + weights.sum(dim=-1, keepdim=True)
        mixed = mixed * old + weights @ v
        largest = new
    return mixed / total


def _streamed(scale=True, rescale=True, output=True, safe=True, mean=False, start=-math.inf):
    """`my_streamed_attention` with one step left out."""

    def attend(q, blocks):
        largest, count = torch.full((len(q), 1), start if safe else 0.0), 0
        total, mixed, means = torch.zeros(len(q), 1), torch.zeros_like(q), torch.zeros_like(q)
        for k, v in blocks:
            scores = q @ k.T / (math.sqrt(q.size(-1)) if scale else 1)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True)) if safe else largest
            weights, old = (scores - new).exp(), (largest - new).exp()
            total = total * (old if rescale else 1) + weights.sum(-1, keepdim=True)
            mixed = mixed * (old if output else 1) + weights @ v
            largest, count = new, count + 1
            means = means + scores.softmax(-1) @ v
        return means / count if mean else mixed / total

    return attend


def _collected(q, blocks):
    k, v = (torch.cat(parts) for parts in zip(*list(blocks), strict=True))
    return (q @ k.T / math.sqrt(q.size(-1))).softmax(-1) @ v


def _last_block(q, blocks):
    for k, v in blocks:
        mixed = (q @ k.T / math.sqrt(q.size(-1))).softmax(-1) @ v
    return mixed


STREAM = Answers(
    reference=my_streamed_attention,
    wrong=(
        WrongAnswer(
            "the blocks collected",
            _collected,
            "All 7 keys share one softmax",
            "By the time you join them, all hold the last block. In the kernel, too, a block's "
            "place is used again.",
        ),
        WrongAnswer(
            "the old sum not brought down",
            _streamed(rescale=False),
            "All 7 keys share one softmax",
            "The old sum was taken against a smaller maximum: multiply it by exp(old - new).",
        ),
        WrongAnswer(
            "the old mix not brought down",
            _streamed(output=False),
            "All 7 keys share one softmax",
            "The mixed values need the same factor as the sum.",
        ),
        WrongAnswer(
            "no largest score",
            _streamed(safe=False),
            "the result is not finite",
            "exp of a score of 100 is more than float32 holds. Subtract the largest seen so far.",
        ),
        WrongAnswer(
            "the largest starts at 0",
            _streamed(start=0.0),
            "where does your largest start",
            "If all scores lie far below 0, every exp(score - 0) is 0. Start at -inf.",
        ),
        WrongAnswer(
            "a softmax for each block",
            _streamed(mean=True),
            "All 7 keys share one softmax",
            "Averaging the blocks' results gives each block the same say.",
        ),
        WrongAnswer(
            "only the last block",
            _last_block,
            "All 7 keys share one softmax",
            "What earlier blocks gave is overwritten.",
        ),
        WrongAnswer(
            "no scale",
            _streamed(scale=False),
            "for a single block of 3 keys",
            "Divide the scores by √D, as always.",
        ),
    ),
)

ANSWERS = {
    "15.1": FLOPS,
    "15.2": ACCUMULATION,
    "15.3": BUCKETS,
    "15.4": STREAM,
}
