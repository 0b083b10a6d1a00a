"""Answers to chapter 26: references and mistakes."""

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 26.1 count a layer


def my_layer_flops(length, d_model, num_heads, d_ff):
    """Count the operations of the matrix products of one layer for one text of `length` tokens.

    Self-attention has four projections, the scores and the weighted sum; then comes the
    feed-forward network. A multiplication and an addition count as one operation each.
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
    equivalent={"… => …(2 + 2) * length…": "2 + 2 is as much as 2 · 2"},
    wrong=(
        WrongAnswer(
            "only multiplications",
            _layer(each=1),
            "8 products, 2 operations each",
            "Each multiplication comes with an addition: 2·m·k·n. (Papers that count multiply-adds "
            "say half of ours.)",
        ),
        WrongAnswer(
            "only n² · d",
            _layer(maps=0, network=lambda d, f: 0),
            "expected 16. Four projections",
            "That is what the tutorials give. At GPT-2's own length it is less than a fifth of it.",
        ),
        WrongAnswer(
            "scores without the weighted sum",
            _layer(tables=1),
            "Each of 2 tokens meets 2 keys and 2 values",
            "The weighted sum of the values takes as many operations as the scores.",
        ),
        WrongAnswer(
            "heads counted at full width",
            _layer(per_head=True),
            "4 heads of width 2",
            "Each head works in d_model / num_heads dimensions; all of them together cost one.",
        ),
        WrongAnswer(
            "one head's scores",
            lambda n, d, h, f: 8 * n * d * d + 4 * n * n * d // h + 4 * n * d * f,
            "4 heads of width 2",
            "d_model / num_heads is one head's width: there are num_heads of them.",
        ),
        WrongAnswer(
            "output projection forgotten",
            _layer(maps=3),
            "4 projections · 2",
            "After the heads comes w_o, a fourth projection from d_model to d_model.",
        ),
        WrongAnswer(
            "d_ff taken to be 4 d_model",
            _layer(network=lambda d, f: 8 * d),
            "takes 0 more, expected 48",
            "The network has a width of its own: use d_ff.",
        ),
        WrongAnswer(
            "one layer in the network",
            _layer(network=lambda d, f: f),
            "takes 24 more, expected 48",
            "The network has two linear layers, to d_ff and back.",
        ),
        WrongAnswer(
            "biases counted",
            lambda n, d, h, f: my_layer_flops(n, d, h, f) + n * (5 * d + f),
            "8 products, 2 operations each",
            "Only the matrix products count here: compared with them the biases are negligible.",
        ),
        WrongAnswer(
            "the score table counted without its width",
            lambda n, d, h, f: 8 * n * d * d + 4 * n * n * h + 4 * n * d * f,
            "4 heads of width 2",
            "There are n · n scores a head, and each of them is a product of d_model / num_heads "
            "numbers.",
        ),
        WrongAnswer(
            "only what a causal mask leaves",
            lambda n, d, h, f: 8 * n * d * d + 2 * n * (n + 1) * d + 4 * n * d * f,
            "16 more than 2 sentences of one",
            "A mask hides scores that were computed: each query meets each key.",
        ),
        WrongAnswer(
            "four projections of full width for each head",
            lambda n, d, h, f: (8 * h * n * d + 4 * n * n + 4 * n * f) * d,
            "4 heads of width 2",
            "The heads share the projections: each is (d_model, d_model), for all heads together.",
        ),
        WrongAnswer(
            "a score's product a multiplication less",
            lambda n, d, h, f: my_layer_flops(n, d, h, f) - n * n * d,
            "expected 16. Four projections",
            "Scores and weighted sum both consist of multiplications and additions.",
        ),
    ),
)


# 26.2 a big batch in small pieces


def my_accumulated_gradient(w, micro):
    """Return the gradient of the mean squared error over all rows, one micro-batch at a time.

    w is (D,); micro is a list of (x, y) with x (n, D) and y (n,), of different n. The error of a
    row is (x · w - y)². Returns (D,), the gradient of one big batch.
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


def _one_backward(w, micro):
    w = w.detach().requires_grad_()
    rows = sum(len(y) for _, y in micro)
    sum((x @ w - y).square().sum() / rows for x, y in micro).backward()
    return w.grad


def _joined(w, micro):
    x, y = (torch.cat(parts) for parts in zip(*micro, strict=True))
    return 2 * x.T @ (x @ w - y) / len(y)


def _on_the_cpu(w, micro):
    total = torch.zeros(len(w), dtype=w.dtype)
    for x, y in micro:
        total += 2 * x.T @ (x @ w - y)
    return total / sum(len(y) for _, y in micro)


def _weight_changed(w, micro):
    w.requires_grad_()
    rows = sum(len(y) for _, y in micro)
    for x, y in micro:
        ((x @ w - y).square().sum() / rows).backward()
    return w.grad


def _first_size(w, micro):
    rows = len(micro) * len(micro[0][1])
    return sum(2 * x.T @ (x @ w - y) for x, y in micro) / rows


def _rows_so_far(w, micro):
    total, rows = torch.zeros_like(w), 0
    for x, y in micro:
        rows += len(y)
        total += 2 * x.T @ (x @ w - y) / rows
    return total


def _numbers(w, micro):
    return sum(2 * x.T @ (x @ w - y) for x, y in micro) / sum(x.numel() for x, _ in micro)


ACCUMULATION = Answers(
    reference=my_accumulated_gradient,
    equivalent={
        "return w.grad => return w.grad.detach()": "a gradient has no graph of its own",
        "w = … => w = w.detach().detach().requires_grad_()": "cut off once is cut off",
        "loss = … => …).float()": "backward begins with a slope of 1, whatever the loss is",
        "loss = … => …).double()": "backward begins with a slope of 1, whatever the loss is",
        "loss = … => …).half()": "backward begins with a slope of 1, whatever the loss is",
        "loss.backward() => loss.float().backward()": (
            "backward begins with a slope of 1, whatever the loss is"
        ),
        "loss = … => …y.detach()…": "what the rows hold carries no gradient",
        "loss = … => …x.detach()…": "what the rows hold carries no gradient",
        "rows = … => rows = sum((len(_) for _, y in micro))": "x has as many rows as y",
        "rows = … => …len(y.detach())…": "only the length is asked",
        "rows = … => …len(y.float())…": "only the length is asked",
    },
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
            "in two micro-batches of one",
            "Adding the means makes the step as many times too large as there are micro-batches.",
        ),
        WrongAnswer(
            "sums, not divided",
            _accumulated(lambda n, rows, count: 1.0),
            "the mean is -1",
            "This is the gradient of the summed error: divide by the number of rows.",
        ),
        WrongAnswer(
            "only the last one",
            _accumulated(lambda n, rows, count: 1 / rows, last=True),
            "in two micro-batches of one",
            "Clearing the gradient inside the loop throws away what the others added.",
        ),
        WrongAnswer(
            "the last one's mean",
            _accumulated(lambda n, rows, count: 1 / n, last=True),
            "in two micro-batches of one",
            "Each micro-batch has a share in it: add up what all of them find.",
        ),
        WrongAnswer(
            "divided by the rows so far",
            _rows_so_far,
            "in two micro-batches of one",
            "Each micro-batch then divides by another number: count the rows of all of them first.",
        ),
        WrongAnswer(
            "divided by the numbers in x",
            _numbers,
            "The error is 3 - 2 - 2 = -1",
            "A row has one error, however many numbers it holds: len(y), not x.numel().",
        ),
        WrongAnswer(
            "divided by the number of micro-batches",
            _accumulated(lambda n, rows, count: 1 / count),
            "the mean is -1",
            "Divide by the rows, not by the micro-batches.",
        ),
        WrongAnswer(
            "divided as if all were as long as the first",
            _first_size,
            "is not the mean of the two means",
            "Micro-batches differ: count the rows of each.",
        ),
        WrongAnswer(
            "the way up",
            _accumulated(lambda n, rows, count: -1 / rows),
            "The error is 3 - 2 - 2 = -1",
            "The sign is wrong: return the gradient itself. The optimiser does the subtracting.",
        ),
        WrongAnswer(
            "half of it",
            _accumulated(lambda n, rows, count: 0.5 / rows),
            "The error is 3 - 2 - 2 = -1",
            "The derivative of a square is twice the error. (Books that leave the 2 out start from "
            "half the square.)",
        ),
        WrongAnswer(
            "one backward for all",
            _one_backward,
            "you hold something of every micro-batch at one time",
            "The result is right, but the sum keeps the graph of every micro-batch until the one "
            "`backward`: call it for each, which adds to `w.grad` and lets go.",
        ),
        WrongAnswer(
            "the big batch put together",
            _joined,
            "you hold as many numbers as all rows have at one time",
            "The result is right, but all rows stand in memory at once: that is the big batch "
            "which did not fit.",
        ),
        WrongAnswer(
            "summed on the CPU",
            _on_the_cpu,
            "the result stays on the CPU",
            "`torch.zeros(...)` is on the CPU, wherever `w` is: `torch.zeros_like(w)`.",
        ),
        WrongAnswer(
            "the caller's w asked for a gradient",
            _weight_changed,
            "your code changes the caller's `w`",
            "`requires_grad_()` and `.grad` stay with the tensor that you were given: the next "
            "call would add to this one. Work on `w.detach().requires_grad_()`.",
        ),
    ),
)


# 26.3 tokens a second, at best


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


SERVING = Answers(
    reference=my_tokens_per_second,
    equivalent={},
    wrong=(
        WrongAnswer(
            "weights fetched for each text",
            _serving(shared=False),
            "it generates 3 tokens",
            "One call multiplies the weights with the vectors of all texts: they come once.",
        ),
        WrongAnswer(
            "one cache for all",
            _serving(own=False),
            "10 seconds for 3 tokens",
            "Each text consists of other tokens, so it has keys and values of its own.",
        ),
        WrongAnswer(
            "the tokens of one text",
            _serving(per_text=True),
            "it generates 3 tokens",
            "The tokens of all texts together are wanted.",
        ),
        WrongAnswer(
            "fetching, then computing",
            _serving(slower=lambda a, b: a + b),
            "at the same time: 3 seconds",
            "While one piece is computed, the next one is fetched: the slower of the two decides.",
        ),
        WrongAnswer(
            "the faster of the two",
            _serving(slower=min),
            "a step takes 4 seconds",
            "Both have to be done: a step is over when the slower one is.",
        ),
        WrongAnswer(
            "only fetching",
            _serving(slower=lambda a, b: b),
            "120 in all, 60 a second",
            "For many texts the arithmetic takes longer.",
        ),
        WrongAnswer(
            "only multiplications",
            _serving(each=1),
            "120 in all, 60 a second",
            "Each multiplication comes with an addition.",
        ),
        WrongAnswer(
            "scores and weighted sum forgotten",
            _serving(cached=False),
            "120 in all, 60 a second",
            "A cached key is multiplied with the query, a cached value with its weight.",
        ),
        WrongAnswer(
            "the arithmetic of one text",
            _serving(texts=1),
            "120 in all, 60 a second",
            "Only the fetching is shared: each weight multiplies for every text.",
        ),
        WrongAnswer(
            "the caches never fetched",
            _serving(fetched=False),
            "10 seconds for 3 tokens",
            "Keys and values lie in the same memory as the weights, and come from there too.",
        ),
        WrongAnswer(
            "numbers for bytes",
            _serving(size=False),
            "200 bytes are fetched",
            "Bandwidth is in bytes a second: a number has `bytes_each` of them.",
        ),
    ),
)

ANSWERS = {
    "26.1": FLOPS,
    "26.2": ACCUMULATION,
    "26.3": SERVING,
}
