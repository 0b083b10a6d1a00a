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
            "expected 16. Four maps",
            "That is what the tutorials give. At GPT-2's own length it is less than a fifth of it.",
        ),
        WrongAnswer(
            "scores without the mix",
            _layer(tables=1),
            "Each of 2 tokens meets 2 keys and 2 values",
            "Mixing the values takes as many operations as the scores.",
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
            "output map forgotten",
            _layer(maps=3),
            "4 maps · 2",
            "After the heads there is w_o, a fourth map from d_model to d_model.",
        ),
        WrongAnswer(
            "d_ff taken to be 4 d_model",
            _layer(network=lambda d, f: 8 * d),
            "takes 0 more, expected 48",
            "The network has a width of its own: use d_ff.",
        ),
        WrongAnswer(
            "one map in the network",
            _layer(network=lambda d, f: f),
            "takes 24 more, expected 48",
            "The network maps to d_ff and back.",
        ),
        WrongAnswer(
            "biases counted",
            lambda n, d, h, f: my_layer_flops(n, d, h, f) + n * (5 * d + f),
            "8 products, 2 operations each",
            "Only the matrix products are asked for: next to them the biases are nothing.",
        ),
        WrongAnswer(
            "the score table counted without its width",
            lambda n, d, h, f: 8 * n * d * d + 4 * n * n * h + 4 * n * d * f,
            "4 heads of width 2",
            "There are n · n scores a head, and each of them is a product of d_model / num_heads "
            "numbers.",
        ),
        WrongAnswer(
            "a score's product a multiplication less",
            lambda n, d, h, f: my_layer_flops(n, d, h, f) - n * n * d,
            "expected 16. Four maps",
            "Scores and mix have multiplications and additions, both of them.",
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
            _accumulated(lambda n, rows, count: 1 / n, last=True),
            "in two micro-batches of one",
            "zero_grad() inside the loop throws away what the others added.",
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


def _sorted_in_place(lengths, size):
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    lengths.sort()
    return _cut(lambda _: order)(lengths, size)


def _first_of_equals(lengths, size):
    return _cut(lambda lengths: [lengths.index(n) for n in sorted(lengths)])(lengths, size)


def _longest_with_shortest(lengths, size):
    """Evens out how long batches are, all of them."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    mixed = [order.pop(-1 if i % 2 else 0) for i in range(len(order))]
    return [mixed[i : i + size] for i in range(0, len(mixed), size)]


def _rest_in_the_last(lengths, size):
    batches = my_batches(lengths, size)
    if len(batches) > 1 and len(batches[-1]) < size:
        batches[-2:] = [batches[-2] + batches[-1]]
    return batches


def _sorted_in_windows(lengths, size):
    order, window = [], 50 * size
    for start in range(0, len(lengths), window):
        order += sorted(range(len(lengths))[start : start + window], key=lengths.__getitem__)
    return [order[i : i + size] for i in range(0, len(order), size)]


BUCKETS = Answers(
    reference=my_batches,
    equivalent={"… => …range(0, len(lengths), size)]": "there is an index for each length"},
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
            "the batches hold [5], expected each of 0 to 0 once",
            "You sort the lengths and lose whose they are: sort the indices by length.",
        ),
        WrongAnswer(
            "the rest left out",
            lambda lengths, size: [
                b for b in my_batches(lengths, size) if len(b) == size
            ],  # as drop_last=True does
            "size=2, the batches hold [0, 2], expected each of 0 to 2 once",
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
        WrongAnswer(
            "the first of equals",
            _first_of_equals,
            "lengths=[4, 4, 4], size=2, the batches hold [0, 0, 0]",
            "`index` finds the first sentence of a length, again and again. Sort the indices.",
        ),
        WrongAnswer(
            "long with short",
            _longest_with_shortest,
            "places are padding",
            "Batches of equal work, but each is padded to its longest sentence.",
        ),
        WrongAnswer(
            "the rest added to the last batch",
            _rest_in_the_last,
            "the batches' sizes are [3], expected [1, 2]",
            "A batch larger than `size` may not fit the memory that `size` was chosen for.",
        ),
        WrongAnswer(
            "the caller's lengths sorted",
            _sorted_in_place,
            "your code changes the caller's `lengths[",
            "`lengths.sort()` changes the caller's list, whose places no longer say whose they "
            "are. `sorted` makes a new one.",
        ),
        WrongAnswer(
            "sorted in windows",
            _sorted_in_windows,
            "lengths (a list of 3000)",
            "Each window of 50 batches is sorted, and its lengths still lie far apart. That is a "
            "fine compromise for texts that do not fit the memory; here all lengths are known: "
            "sort all.",
        ),
    ),
)


# 15.4 a softmax that never sees all scores


def my_streamed_attention(q, blocks):
    """Attention over keys and values that come in blocks, each overwritten by the next.

    q is (T, D). `blocks` gives pairs (k, v), each (n, D), once. Returns (T, D), equal to attention
    over all of them, whatever the scores' size.
    """
    largest = q.new_full((len(q), 1), -torch.inf)
    total, mixed = q.new_zeros(len(q), 1), torch.zeros_like(q)
    for k, v in blocks:
        scores = q @ k.T / q.size(-1) ** 0.5
        new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        weights, old = (scores - new).exp(), (largest - new).exp()
        total = total * old + weights.sum(dim=-1, keepdim=True)
        mixed = mixed * old + weights @ v
        largest = new
    return mixed / total


def _streamed(
    scale=lambda q, k: math.sqrt(q.size(-1)), rescale=True, output=True, safe=True, mean=False,
    start=-math.inf, grow=torch.maximum,
):  # fmt: skip
    """`my_streamed_attention` with one step left out."""

    def attend(q, blocks):
        largest, count = q.new_full((len(q), 1), start if safe else 0.0), 0
        total, mixed, means = q.new_zeros(len(q), 1), torch.zeros_like(q), torch.zeros_like(q)
        for k, v in blocks:
            scores = q @ k.T / scale(q, k)
            new = grow(largest, scores.amax(-1, keepdim=True)) if safe else largest
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


def _copied(q, blocks):
    return my_streamed_attention(q, [(k.clone(), v.clone()) for k, v in blocks])


def _float32_on_the_cpu(q, blocks):
    largest, total = torch.full((len(q), 1), -math.inf), torch.zeros(len(q), 1)
    mixed = torch.zeros(q.shape)
    for k, v in blocks:
        scores = q @ k.T / math.sqrt(q.size(-1))
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        weights, old = (scores - new).exp(), (largest - new).exp()
        total = total * old + weights.sum(-1, keepdim=True)
        mixed = mixed * old + weights.to(v.dtype) @ v
        largest = new
    return mixed / total


def _one_largest(q, blocks):
    """One largest score for all queries."""
    largest, total, mixed = q.new_tensor(-math.inf), q.new_zeros(len(q), 1), torch.zeros_like(q)
    for k, v in blocks:
        scores = q @ k.T / math.sqrt(q.size(-1))
        new = torch.maximum(largest, scores.max())
        weights, old = (scores - new).exp(), (largest - new).exp()
        total, mixed = total * old + weights.sum(-1, keepdim=True), mixed * old + weights @ v
        largest = new
    return mixed / total


STREAM = Answers(
    reference=my_streamed_attention,
    equivalent={
        "… => ….detach()…": "blocks that are overwritten leave no way back",
        "total, mixed = … => total, mixed = …": (
            "at the first block what it starts from is multiplied by exp(-∞) = 0"
        ),
        "largest = … => largest = q.new_full((len(q), 1), -torch.inf).half()": (
            "-∞ is the same in every dtype"
        ),
        "largest = … => …len(q.float())…": "only the length is asked",
        "… => …q.size(1)…": "q has two axes, and the last is 1",
        "… => …amax(dim=1, keepdim=True))": "scores have two axes, and the last is 1",
        "… => …sum(dim=1, keepdim=True)": "weights have two axes, and the last is 1",
        "… => …largest.__isub__(new)…": "it is a tensor of its own, and is not read again",
    },
    wrong=(
        WrongAnswer(
            "the blocks collected",
            _collected,
            "All keys share one softmax",
            "By the time you join them, all hold the last block. In the kernel, too, a block's "
            "place is used again.",
        ),
        WrongAnswer(
            "everything kept to the end",
            _copied,
            "all scores are 360, all keys 480",
            "The result is right, but copies of all blocks, or a table of all scores, grow with "
            "the text: streaming is there to avoid them. Two numbers and a mix for each query are "
            "enough.",
        ),
        WrongAnswer(
            "the old sum not brought down",
            _streamed(rescale=False),
            "scores 0, then ln 3",
            "The old sum was taken against a smaller maximum: multiply it by exp(old - new).",
        ),
        WrongAnswer(
            "the old mix not brought down",
            _streamed(output=False),
            "scores 0, then ln 3",
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
            "Where does your largest start",
            "If all scores lie far below 0, every exp(score - 0) is 0. Start at -inf.",
        ),
        WrongAnswer(
            "the largest starts at a low number",
            _streamed(start=-10_000.0),
            "with all scores below -3,000,000",
            "A score may be lower than any number that you choose, except -∞.",
        ),
        WrongAnswer(
            "the largest of this block alone",
            _streamed(grow=lambda old, new: new),
            "scores 200, then 100",
            "When a block's largest is smaller than one before, the old sums are multiplied by "
            "exp of something large: keep the larger of the two.",
        ),
        WrongAnswer(
            "one largest score for all queries",
            _one_largest,
            "with scores in the hundreds",
            "Where one query's scores are hundreds above another's, the other's are all rounded to "
            "0. Each query has a largest score of its own.",
        ),
        WrongAnswer(
            "a softmax for each block",
            _streamed(mean=True),
            "All keys share one softmax",
            "Averaging the blocks' results gives each block the same say.",
        ),
        WrongAnswer(
            "only the last block",
            _last_block,
            "All keys share one softmax",
            "What earlier blocks gave is overwritten.",
        ),
        WrongAnswer(
            "no scale",
            _streamed(scale=lambda q, k: 1),
            "2 · ln 3 / √4",
            "Divide the scores by √D, as always.",
        ),
        WrongAnswer(
            "scaled by the block's length",
            _streamed(scale=lambda q, k: math.sqrt(len(k))),
            "for q=[[1]] and a block of two keys",
            "D is how many numbers a key has, not how many keys a block has.",
        ),
        WrongAnswer(
            "float32 on the CPU",
            _float32_on_the_cpu,
            "for float16, the dtype is float32, expected float16",
            "`torch.zeros(...)` is float32 and on the CPU, whatever q is: `q.new_zeros(...)`.",
        ),
    ),
)

ANSWERS = {
    "15.1": FLOPS,
    "15.2": ACCUMULATION,
    "15.3": BUCKETS,
    "15.4": STREAM,
}
