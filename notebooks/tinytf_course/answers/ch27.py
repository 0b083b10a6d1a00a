"""Answers to chapter 27: references and mistakes."""

import math

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 27.1 a softmax that never sees all scores


def my_streamed_attention(q, blocks):
    """Return attention over keys and values that come in blocks, each overwritten by the next.

    q is (T, D). `blocks` gives pairs (k, v), each (n, D), once. Returns (T, D), equal to attention
    over all keys at once, however large or small the scores are.
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


def _carried(factor=lambda old, new: (old - new).exp(), divide=True):
    """`my_streamed_attention` with another factor, or without an end."""

    def attend(q, blocks):
        largest = q.new_full((len(q), 1), -math.inf)
        total, mixed = q.new_zeros(len(q), 1), torch.zeros_like(q)
        for k, v in blocks:
            scores = q @ k.T / math.sqrt(q.size(-1))
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            weights, old = (scores - new).exp(), factor(largest, new)
            total = total * old + weights.sum(-1, keepdim=True)
            mixed = mixed * old + weights @ v
            largest = new
        return mixed / total if divide else mixed

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


def _second_on(q, blocks):
    next(blocks)
    return my_streamed_attention(q, blocks)


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
            "By the time you join them, all hold the last block. In a kernel, too, the memory "
            "of a block is used again.",
        ),
        WrongAnswer(
            "everything kept to the end",
            _copied,
            "all scores are 360, all keys 480",
            "The result is right, but copies of all blocks, or a table of all scores, grow with "
            "the text: streaming is there to avoid them. Two numbers and a weighted sum for each "
            "query are enough.",
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
            "The weighted sum of the values needs the same factor as the sum.",
        ),
        WrongAnswer(
            "neither brought down",
            _carried(factor=lambda old, new: 1),
            "scores 0, then ln 3",
            "Both sums were taken against a smaller largest score: both need the factor "
            "exp(old - new).",
        ),
        WrongAnswer(
            "the factor upside down",
            _carried(factor=lambda old, new: (new - old).exp()),
            "the result is not finite",
            "Both sums have to become smaller when a larger score comes: exp(old - new).",
        ),
        WrongAnswer(
            "not divided in the end",
            _carried(divide=False),
            "Its weights are 1/4 and 3/4",
            "The result is the weighted sum divided by the total.",
        ),
        WrongAnswer(
            "no largest score",
            _streamed(safe=False),
            "the result is not finite",
            "exp of a score of 100 is more than float32 holds. Subtract the largest score so far.",
        ),
        WrongAnswer(
            "the largest starts at 0",
            _streamed(start=0.0),
            "Where does your largest start",
            "If all scores are far below 0, every exp(score - 0) is 0. Start at -inf.",
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
            "Averaging the blocks' results gives each block the same weight.",
        ),
        WrongAnswer(
            "the first block used up",
            _second_on,
            "",
            "`next(blocks)` takes a block away, even if you only want its shape: it comes once.",
        ),
        WrongAnswer(
            "only the last block",
            _last_block,
            "All keys share one softmax",
            "The contribution of earlier blocks is lost: overwritten, or multiplied by "
            "exp(-∞ - new), since the largest stays where it started.",
        ),
        WrongAnswer(
            "no scale",
            _streamed(scale=lambda q, k: 1),
            "2 · ln 3 / √4",
            "Divide the scores by √D, as usual.",
        ),
        WrongAnswer(
            "divided by D",
            _streamed(scale=lambda q, k: q.size(-1)),
            "2 · ln 3 / √4",
            "Divide by the square root of D, as usual.",
        ),
        WrongAnswer(
            "scaled by the block's length",
            _streamed(scale=lambda q, k: math.sqrt(len(k))),
            "for q=[[1]] and a block of two keys",
            "D is the width of a key, not the number of keys in a block.",
        ),
        WrongAnswer(
            "float32 on the CPU",
            _float32_on_the_cpu,
            "for float16, the dtype is float32, expected float16",
            "`torch.zeros(...)` is float32 and on the CPU, whatever q is: `q.new_zeros(...)`.",
        ),
    ),
)


# 27.2 which tiles are needed


def my_tiles_needed(length, tile, window):
    """Count the tiles of the (length, length) scores that a causal window needs.

    Tiles are tile × tile; those at the lower and right edge may be smaller. A tile is needed if at
    least one of its queries attends to one of its keys: to itself or one of the window - 1
    positions before it.
    """
    count = 0
    for first in range(0, length, tile):  # the first query of a row of tiles
        oldest = max(0, first - window + 1)  # the oldest key that it may see
        count += first // tile - oldest // tile + 1
    return count


def _per_row(each):
    def count(length, tile, window):
        return sum(each(first, tile, window) for first in range(0, length, tile))

    return count


TILES = Answers(
    reference=my_tiles_needed,
    equivalent={},
    wrong=(
        WrongAnswer(
            "all tiles",
            lambda length, tile, window: (-(-length // tile)) ** 2,
            "the tiles on the diagonal",
            "This counts every tile, but tiles in which everything is masked are not needed.",
        ),
        WrongAnswer(
            "the triangle",
            _per_row(lambda first, tile, window: first // tile + 1),
            "the tiles on the diagonal",
            "That is causal attention without a window.",
        ),
        WrongAnswer(
            "the window in tiles, rounded down",
            _per_row(lambda first, tile, window: min(first // tile, window // tile) + 1),
            "the tiles on the diagonal",
            "A window of one tile's length and one of 1 do not begin at the same place: ask where "
            "the oldest key lies.",
        ),
        WrongAnswer(
            "the window one too wide",
            _per_row(
                lambda first, tile, window: (first // tile) - max(0, first - window) // tile + 1
            ),
            "the tiles on the diagonal",
            "A window of 1 is the position itself: it reaches window - 1 back.",
        ),
        WrongAnswer(
            "the window one too narrow",
            _per_row(
                lambda first, tile, window: first // tile - max(0, first - window + 2) // tile + 1
            ),
            "Query 2 attends to key 1",
            "window - 1 positions *before* it, and the position itself.",
        ),
        WrongAnswer(
            "no beginning",
            _per_row(lambda first, tile, window: first // tile - (first - window + 1) // tile + 1),
            "There is one tile",
            "Before the first token there are no keys, and no tiles.",
        ),
        WrongAnswer(
            "asked of the last query of a row",
            lambda length, tile, window: sum(
                first // tile - max(0, min(first + tile, length) - window) // tile + 1
                for first in range(0, length, tile)
            ),
            "Query 2 attends to key 1",
            "The first query of a row of tiles looks back furthest: ask that one.",
        ),
        WrongAnswer(
            "both sides of the window",
            lambda length, tile, window: (
                2 * my_tiles_needed(length, tile, window) - -(-length // tile)
            ),
            "Query 2 attends to key 1",
            "The window is causal: no query attends to keys above the diagonal.",
        ),
        WrongAnswer(
            "the last, smaller tiles left out",
            lambda length, tile, window: my_tiles_needed(length // tile * tile, tile, window),
            "There is one tile",
            "If the length is not a multiple of the tile, a row of smaller tiles remains.",
        ),
        WrongAnswer(
            "scores instead of tiles",
            lambda length, tile, window: sum(min(t + 1, window) for t in range(length)),
            "There is one tile",
            "Many scores are in one tile and are computed together.",
        ),
    ),
)


# 27.3 batches by length


def my_batches(lengths, size):
    """Put sentences of similar length together; return a list of lists of `size` indices.

    Every index is in exactly one batch; one batch may be smaller. A batch is padded to its longest
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
            "positions are padding",
            "A short sentence next to a long one is mostly padding. Sort first.",
        ),
        WrongAnswer(
            "sorted within batches",
            lambda lengths, size: [
                sorted(range(i, min(i + size, len(lengths))), key=lambda j: lengths[j])
                for i in range(0, len(lengths), size)
            ],
            "positions are padding",
            "The order within a batch does not matter; what matters is who shares one.",
        ),
        WrongAnswer(
            "lengths, not indices",
            lambda lengths, size: [
                sorted(lengths)[i : i + size] for i in range(0, len(lengths), size)
            ],
            "the batches hold [5], expected each of 0 to 0 once",
            "Sorting the lengths loses their indices: sort the indices by length.",
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
            "positions are padding",
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
            "positions are padding",
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
            "positions are padding",
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
            "`lengths.sort()` changes the caller's list, so its indices no longer match the "
            "sentences. `sorted` makes a new list.",
        ),
        WrongAnswer(
            "sorted in windows",
            _sorted_in_windows,
            "lengths (a list of 3000)",
            "Each window of 50 batches is sorted, but its lengths still differ a lot. That is a "
            "fine compromise for texts that do not fit the memory; here all lengths are known: "
            "sort all.",
        ),
    ),
)


# 27.4 repair the average


def my_average(gradients, tokens):
    """Return the gradient of the mean loss over all tokens of all processes.

    gradients is a list of tensors of one shape, each the gradient of one process's mean loss;
    tokens holds the number of tokens of each mean. Returns a new tensor.
    """
    mean = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, tokens, strict=True):
        mean += gradient * (count / sum(tokens))
    return mean


def _in_place(gradients, tokens):
    total = gradients[0]
    total *= tokens[0] / sum(tokens)
    for gradient, count in zip(gradients[1:], tokens[1:], strict=True):
        total += gradient * (count / sum(tokens))
    return total


def _on_the_cpu_in_float32(gradients, tokens):
    mean = torch.zeros(gradients[0].shape)
    for gradient, count in zip(gradients, tokens, strict=True):
        mean += gradient * (count / sum(tokens))
    return mean


def _times_all_tokens(gradients, tokens):
    mean = torch.zeros_like(gradients[0])
    for gradient, count in zip(gradients, tokens, strict=True):
        mean += gradient * count
    return mean / sum(tokens)


def _one_process(gradients, tokens):
    return gradients[0] if len(gradients) == 1 else my_average(gradients, tokens)


AVERAGE = Answers(
    reference=my_average,
    equivalent={
        "… => ….detach()": "the gradients given here are part of no graph",
        "… => …gradient.detach() * (count / sum(tokens))": (
            "the gradients given here are part of no graph"
        ),
        "… => …zip(tokens, gradients, strict=True):": "a product of two is the same either way",
        "… => …zip(gradients, tokens):": "both lists have one entry a process",
        "… => …zip(gradients, tokens, strict=False):": "both lists have one entry a process",
        "… => …zeros_like(gradients[-1])": "all gradients have one shape and kind",
    },
    wrong=(
        WrongAnswer(
            "the mean of the means",
            lambda gradients, tokens: sum(gradients) / len(gradients),
            "three have gradient 2 and one has 6",
            "A process with one token then weighs as much as one with a thousand.",
        ),
        WrongAnswer(
            "weighted and not divided",
            lambda gradients, tokens: sum(g * n for g, n in zip(gradients, tokens, strict=True)),
            "(2 + 6) / 2",
            "These are the sums over all tokens: divide by how many tokens there are.",
        ),
        WrongAnswer(
            "divided by the number of processes",
            lambda gradients, tokens: (
                sum(g * n for g, n in zip(gradients, tokens, strict=True)) / len(tokens)
            ),
            "(2 + 6) / 2",
            "A mean over tokens is divided by tokens: sum(tokens).",
        ),
        WrongAnswer(
            "divided and not weighted",
            lambda gradients, tokens: sum(gradients) / sum(tokens),
            "(2 + 6) / 2",
            "Each gradient is a mean already: times its tokens it is a sum that may be divided.",
        ),
        WrongAnswer(
            "the first not weighted",
            lambda gradients, tokens: (
                (gradients[0] + sum(g * n for g, n in zip(gradients[1:], tokens[1:], strict=True)))
                / sum(tokens)
            ),
            "(2 + 6) / 2",
            "The first process has tokens as well: its gradient needs its weight.",
        ),
        WrongAnswer(
            "summed into the caller's first gradient",
            _in_place,
            "your code changes the caller's",
            "`total = gradients[0]` is no copy: the sum is written into the first process's own "
            "gradient.",
        ),
        WrongAnswer(
            "the sum",
            lambda gradients, tokens: sum(gradients) + 0,
            "(2 + 6) / 2",
            "An all-reduce adds up. One process would have computed the mean.",
        ),
        WrongAnswer(
            "divided by the processes as well",
            lambda gradients, tokens: my_average(gradients, tokens) / len(gradients),
            "(2 + 6) / 2",
            "The sums are divided by all tokens, once.",
        ),
        WrongAnswer(
            "weighted the wrong way round",
            lambda gradients, tokens: my_average(gradients, [1 / n for n in tokens]),
            "three have gradient 2 and one has 6",
            "A process with more tokens gets more weight.",
        ),
        WrongAnswer(
            "float32 on the CPU",
            _on_the_cpu_in_float32,
            "the dtype is float32",
            "`torch.zeros(shape)` is float32 and on the CPU, whatever the gradients are.",
        ),
        WrongAnswer(
            "multiplied before it is divided",
            _times_all_tokens,
            "the mean is not",
            "A gradient times its tokens may be too large for float16. Take the share first: "
            "`gradient * (count / sum(tokens))`.",
        ),
        WrongAnswer(
            "one process's own tensor",
            _one_process,
            "you return its own tensor",
            "Changing the mean later would change the process's gradient.",
        ),
    ),
)

ANSWERS = {
    "27.1": STREAM,
    "27.2": TILES,
    "27.3": BUCKETS,
    "27.4": AVERAGE,
}
