"""Answers to chapter 02: references and mistakes."""

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 02.1 how far is it to the one vector?


def my_steps_to_go(mask):
    """How many words each reader still reads after a word, before it stops: (B, S) -> (B, S, 2).

    mask (B, S) is True at words; padding stands at the end, is not read, and gets 0. Of the two
    whole numbers (int64) the first is of the reader that goes left to right, the second of the one
    that goes right to left. Every sentence has at least one word.
    """
    nth = mask.cumsum(dim=1)  # (B, S): 1 at the first word, 2 at the second
    from_left = mask.sum(dim=1, keepdim=True) - nth
    from_right = nth - 1
    return torch.stack([from_left, from_right], dim=-1) * mask[..., None]


def _steps(left="to go", right="to go", padding=False, own=0, order=1):
    """A `my_steps_to_go` with one thing wrong."""

    def steps(mask):
        nth, words = mask.cumsum(dim=1), mask.sum(dim=1, keepdim=True)
        place = torch.arange(mask.size(1)).expand_as(mask)
        ways = {
            "to go": (words - nth, nth - 1),
            "to the end": (mask.size(1) - 1 - place, nth - 1),
            "the longest": (words.max() - nth, nth - 1),
            "the first": (words[:1] - nth, nth - 1),
            "shorter": (torch.minimum(words - nth, nth - 1),) * 2,
            "forwards": (words - nth, words - nth),
        }
        both = torch.stack([ways[left][0], ways[right][1]][::order], dim=-1) + own
        return both if padding else both * mask[..., None]

    return steps


STEPS = Answers(
    reference=my_steps_to_go,
    equivalent={
        "… => ….detach()…": "whole numbers carry no gradient",
    },
    wrong=(
        WrongAnswer(
            "both stop at the last word",
            _steps(right="forwards"),
            "stops at the first word",
            "The second reader goes right to left: at the last word it has just begun, and all the "
            "others are still to come.",
        ),
        WrongAnswer(
            "read already, not still to read",
            _steps(order=-1),
            "stops at the first word",
            "These are the words that each reader has behind it, or the two readers exchanged. "
            "What counts is what it still reads: at the first word the reader from the left has "
            "all the others before it.",
        ),
        WrongAnswer(
            "its own word counted",
            _steps(own=1),
            "Both stop where they began",
            "A state knows its own word already. Count those that are read after it.",
        ),
        WrongAnswer(
            "on to the end of the padding",
            _steps(left="to the end"),
            "where the reader from the left stops",
            "The last place of a batch is the last word of its longest sentence only. Padding is "
            "not read: `mask.sum(dim=1)` says where a sentence ends.",
        ),
        WrongAnswer(
            "numbers at padding",
            _steps(padding=True),
            "where the reader from the left stops",
            "Padding is no word, and gets 0 from both readers: multiply by the mask.",
        ),
        WrongAnswer(
            "the longest sentence's length for all",
            _steps(left="the longest"),
            "Each sentence has a length of its own",
            "The reader of a short sentence stops sooner. Sum over the words of each sentence.",
        ),
        WrongAnswer(
            "the first sentence's length for all",
            _steps(left="the first"),
            "Each sentence has a length of its own",
            "Sum over the words of each sentence, and keep the axis: `keepdim=True`.",
        ),
        WrongAnswer(
            "the shorter way for both",
            _steps("shorter", "shorter"),
            "stops at the first word",
            "A word comes into the vector on the shorter way too, but here both are asked for.",
        ),
        WrongAnswer(
            "counted on the CPU",
            lambda mask: my_steps_to_go(mask) * torch.ones(mask.size(1), 1, dtype=torch.long),
            "on another device",
            "A tensor that you make has to be where the mask is: `device=mask.device`.",
        ),
    ),
)


# 02.2 look up a word with weights chosen by hand


def my_maps(n):
    """W, U and v with which additive attention finds the word that it is asked for.

    There are n words, n from 1 to 50. s and every state are one-hot of length n: a 1 at the word's
    position, 0 elsewhere. The states are different words, in any order. W and U are (A, n) and v is
    (A,), in float32, for any A.
    """
    large = 10 * torch.eye(n)  # the same word: one tanh of 20; another: two of 10, so two ones
    return large, large, torch.full((n,), -10.0)


def _by_hand(w=10.0, u=10.0, v=-10.0, key=lambda U: U):
    """A `my_maps` with other numbers."""

    def maps(n):
        return w * torch.eye(n), key(u * torch.eye(n)), torch.full((n,), v)

    return maps


def _random(n):
    draws = torch.Generator().manual_seed(0)
    return (torch.randn(n, n, generator=draws), torch.randn(n, n, generator=draws),
            torch.randn(n, generator=draws))  # fmt: skip


MAPS = Answers(
    reference=my_maps,
    equivalent={
        "… => ….detach()…": "numbers put in by hand carry no gradient",
        "… => ….float()…": "they are in float32 already",
        "… => large = 11 * torch.eye(n)": "any number large enough bends as well",
        "… => large = 9 * torch.eye(n)": "any number large enough bends as well",
        "… => return (large, large, torch.full((n,), -…))": "it wins by more than enough",
    },
    wrong=(
        WrongAnswer(
            "the sign of v",
            _by_hand(v=10.0),
            "Which score has the pair that agrees",
            "It finds everybody else. Behind the bend two different words make two ones, and twice "
            "the same word makes one: the smaller sum has to win, so v is negative.",
        ),
        WrongAnswer(
            "no use of the bend",
            _by_hand(w=0.01, u=0.01, v=-1000.0),
            "Which score has the pair that agrees",
            "Numbers near 0 pass a tanh as they are. Then the score is a part of s plus a part of "
            "the state, the part of s is the same for all states, and the softmax drops it: "
            "every question gets the same answer. Let the tanh bend: larger numbers.",
        ),
        WrongAnswer(
            "key minus query",
            _by_hand(u=-10.0),
            "Which score has the pair that agrees",
            "The same word gives 0, well; but another gives 1 and -1, and with one v for all they "
            "add up to 0 as well.",
        ),
        WrongAnswer(
            "a score that wins by too little",
            _by_hand(v=-3.0),
            "So many others share the rest",
            "e³ is 20: enough against two or three others, not against 49. To keep 0.9 of 50 the "
            "score has to be ahead by ln(9 · 49), about 6.1.",
        ),
        WrongAnswer(
            "it does not ask",
            _by_hand(w=0.0),
            "Which score has the pair that agrees",
            "With W = 0 nothing of s is left, and every state gets the same score whoever asks.",
        ),
        WrongAnswer(
            "it does not look",
            _by_hand(u=0.0),
            "Which score has the pair that agrees",
            "With U = 0 nothing of the states is left: all scores are equal, and the weights too.",
        ),
        WrongAnswer(
            "keys in another order",
            _by_hand(key=lambda U: U.roll(len(U) // 3, dims=1)),
            "A key says which word it is",
            "W and U have to send the same word to the same unit, or the query finds a neighbour.",
        ),
        WrongAnswer(
            "as many states as words",
            lambda n: (10 * torch.eye(n), 10 * torch.eye(n), torch.full((n, 1), -10.0)),
            "expected (A,",
            "v has one number for each unit and no second axis: `torch.full((n,), …)`.",
        ),
        WrongAnswer(
            "drawn at random",
            _random,
            "Which score has the pair that agrees",
            "That is how training begins. What it has to find, you can work out: what is different "
            "behind the bend if query and key are the same word?",
        ),
        WrongAnswer(
            "a unit that knows who looks at whom",
            lambda n: (torch.ones(1, n), torch.ones(1, n), torch.ones(1)),
            "Which score has the pair that agrees",
            "One unit that adds all numbers up can't tell one word from another: each one-hot sums "
            "to 1. Give each word a unit of its own.",
        ),
        WrongAnswer(
            "only for sentences with all words",
            lambda n: _by_hand(v=-10.0 if n in (1, 2, 3, 10, 50) else -1.0)(n),
            "for n=5",
            "It has to hold for every n, and for sentences of two words of a list of five.",
        ),
    ),
)


# 02.3 where attention looks


def my_alignment_shares(weights, gold):
    """How often the largest weight is on a gold word, beside one, or elsewhere.

    weights is (T, S), gold a list of links (source index, target index). A target word with links
    counts once: "on" if its largest weight is on a linked source word, else "beside" if it is on
    a neighbour of one, else "elsewhere". Returns the three shares (on, beside, elsewhere).
    """
    linked = {}
    for source, target in gold:
        linked.setdefault(target, []).append(source)
    on = beside = 0
    for target, sources in linked.items():
        best = int(weights[target].argmax())
        distance = min(abs(best - source) for source in sources)
        on += distance == 0
        beside += distance == 1
    count = len(linked)
    return on / count, beside / count, (count - on - beside) / count


def _by_link(weights, gold):
    distances = [abs(int(weights[target].argmax()) - source) for source, target in gold]
    on, beside = distances.count(0), distances.count(1)
    return on / len(gold), beside / len(gold), (len(gold) - on - beside) / len(gold)


def _over_all(weights, gold):
    shares, linked = my_alignment_shares(weights, gold), len({target for _, target in gold})
    scale = linked / weights.size(0)
    return shares[0] * scale, shares[1] * scale, 1 - (shares[0] + shares[1]) * scale


def _by_mass(weights, gold):
    linked = {}
    for source, target in gold:
        linked.setdefault(target, set()).add(source)
    on = beside = 0.0
    for target, sources in linked.items():
        near = {s + k for s in sources for k in (-1, 1)} - sources
        on += sum(weights[target, s].item() for s in sources)
        beside += sum(weights[target, s].item() for s in near if 0 <= s < weights.size(1))
    return on / len(linked), beside / len(linked), 1 - (on + beside) / len(linked)


def _within(reach=(1,), also_on=False, first=False, wrap=False):
    """A `my_alignment_shares` that takes other places for neighbours."""

    def shares(weights, gold):
        linked = {}
        for source, target in gold:
            linked.setdefault(target, []).append(source)
        on = beside = 0
        for target, sources in linked.items():
            best = int(weights[target].argmax())
            sources = sources[:1] if first else sources
            away = [best - source for source in sources]
            away += [a % weights.size(1) for a in away] if wrap else []
            away += [a - weights.size(1) for a in away] if wrap else []
            hit = best in sources
            on += hit
            beside += (also_on or not hit) and any(a in reach for a in away)
        count = len(linked)
        return on / count, beside / count, (count - on - beside) / count

    return shares


def _links_reversed(weights, gold):
    return my_alignment_shares(weights, [(t, s) for s, t in gold if s < len(weights)] or gold)


def _columns(weights, gold):
    square = max(weights.shape)
    padded = torch.zeros(square, square, dtype=weights.dtype)
    padded[: weights.size(0), : weights.size(1)] = weights
    return my_alignment_shares(padded.T, gold)


def _within_one(weights, gold):
    on, beside, elsewhere = my_alignment_shares(weights, gold)
    return on, on + beside, elsewhere


SHARES = Answers(
    reference=my_alignment_shares,
    equivalent={
        "best = … => best = weights[target].argmax()": "a tensor of one number counts as it",
        "best = … => …weights.detach()…": "a place carries no gradient",
        "distance = … => …abs(source - best)…": "a distance has no sign",
    },
    wrong=(
        WrongAnswer(
            "counts links, not words",
            _by_link,
            "Two target words, though there are three links",
            "A word with two links would count twice, and could never be right on both: collect "
            "the links of each target word.",
        ),
        WrongAnswer(
            "counts unlinked words",
            _over_all,
            "Target word 0 has no link",
            "A target word with no gold link can be neither right nor wrong: leave it out.",
        ),
        WrongAnswer(
            "a hit beside another link counted twice",
            _within((-1, 1), also_on=True),
            "a hit is not beside the other link",
            "Where two linked words stand side by side, the largest weight on one is beside the "
            "other too. Ask for `beside` only of those that are not `on`.",
        ),
        WrongAnswer(
            "only the first link",
            _within((-1, 1), first=True),
            "3 is linked",
            "A target word may come from several source words; any of them is a hit.",
        ),
        WrongAnswer(
            "beside on the right only",
            _within((1,)),
            "1 is beside 2",
            "A word has a neighbour on its left as well.",
        ),
        WrongAnswer(
            "beside on the left only",
            _within((-1,)),
            "3 is beside 2",
            "A word has a neighbour on its right as well.",
        ),
        WrongAnswer(
            "two places count as beside",
            _within((-2, -1, 1, 2)),
            "0 is two places from 2",
            "Beside is one place to the left or right, no more.",
        ),
        WrongAnswer(
            "round the corner",
            _within((-1, 1), wrap=True),
            "2 is not beside 0",
            "A sentence is no ring: `(best - source) % S` makes its ends neighbours.",
        ),
        WrongAnswer(
            "links read backwards",
            _links_reversed,
            "links are (source, target)",
            "A link is (source index, target index), the order in which one reads and writes.",
        ),
        WrongAnswer(
            "map read by columns",
            _columns,
            "you get",
            "A row holds the weights of one target word and sums to 1; a column does not.",
        ),
        WrongAnswer(
            "averages the weight",
            _by_mass,
            "you get",
            "That is the mass on gold, a fine measure, but another one: a map can have its largest "
            "weight on gold and most of its mass elsewhere.",
        ),
        WrongAnswer(
            "beside includes on",
            _within_one,
            "you get",
            "“Within one” holds both cases. Here they are apart.",
        ),
    ),
)


# 02.4 which output depends on which word


def my_hears(read, x):
    """Say which words each output depends on: boolean (T, T), row t for output t, column s for x_s.

    read maps words (T, C) to outputs (T, D) and can be differentiated. Entry [t, s] is True where
    any number of output t has, at x, a slope in any number of word s, however small.
    """
    slopes = torch.autograd.functional.jacobian(read, x)  # (T, D, T, C)
    return (slopes != 0).any(dim=3).any(dim=1)


def _jacobian(read, x):
    return torch.autograd.functional.jacobian(read, x)


def _compared(change):
    """A `my_hears` that changes a word and looks which outputs are others."""

    def hears(read, x):
        columns = []
        for s in range(len(x)):
            changed = x.clone()
            changed[s] = change(x[s])
            columns.append((read(changed) != read(x)).any(dim=1))
        return torch.stack(columns, dim=1)

    return hears


def _by_backward(read, x):
    x = x.detach().requires_grad_()
    out = read(x)
    rows = [
        [torch.autograd.grad(number, x, retain_graph=True)[0] for number in word] for word in out
    ]
    return torch.stack([(torch.stack(row) != 0).any(dim=2).any(dim=0) for row in rows])


HEARS = Answers(
    reference=my_hears,
    equivalent={
        "… => ….detach()…": "True and False carry no gradient",
        "… => …x.detach())": "the slopes are taken afresh",
        "slopes = … => ….double()": "what is not 0 is not 0 with more digits",
    },
    wrong=(
        WrongAnswer(
            "outputs added up",
            lambda read, x: (_jacobian(read, x).sum(dim=1) != 0).any(dim=2),
            "cancel if they are added up",
            "`outputs[t].sum()` has gradient 0 wherever the numbers of an output always sum to the "
            "same, as behind a softmax or a norm. Look at each number's gradient.",
        ),
        WrongAnswer(
            "gradient of a word added up",
            lambda read, x: (_jacobian(read, x).sum(dim=3) != 0).any(dim=1),
            "One number is added and the other taken away",
            "Parts of the gradient may cancel: ask whether *any* of them is not 0.",
        ),
        WrongAnswer(
            "only what is strong",
            lambda read, x: (_jacobian(read, x).abs() > 1e-3).any(dim=3).any(dim=1),
            "Not 0 is True",
            "A threshold hides weak ties, and a leak is a leak.",
        ),
        WrongAnswer(
            "only what is positive",
            lambda read, x: (_jacobian(read, x) > 0).any(dim=3).any(dim=1),
            "Below 0, too",
            "An output that falls when a word rises depends on it as well.",
        ),
        WrongAnswer(
            "rows and columns swapped",
            lambda read, x: my_hears(read, x).T,
            "row 1, column 0",
            "A row is an output, a column is a word, as everywhere in this course.",
        ),
        WrongAnswer(
            "the first number alone",
            lambda read, x: _jacobian(read, x)[:, 0, :, 0] != 0,
            "Only the last number of a word is heard",
            "Every number of a word and of an output may be the one that matters.",
        ),
        WrongAnswer(
            "at an x of its own",
            lambda read, x: my_hears(read, torch.randn_like(x)),
            "At this x",
            "A slope may be 0 at one x and not at another: a ReLU sleeps or wakes. Take that of "
            "the `x` you are given.",
        ),
        WrongAnswer(
            "a way back taken for granted",
            _by_backward,
            "does not require grad",
            "An output that does not depend on x has no gradient to ask for: look at "
            "`requires_grad`, give `allow_unused=True`, or let `jacobian` do it.",
        ),
        WrongAnswer(
            "as many numbers out as in",
            lambda read, x: (_jacobian(read, x)[:, : x.size(1)] != 0).any(dim=3).any(dim=1),
            "The last numbers of 6",
            "Loop over the numbers of the output, D, which are not those of a word, C.",
        ),
        WrongAnswer(
            "the length of the gradient",
            lambda read, x: _jacobian(read, x).square().sum(dim=(1, 3)) > 0,
            "The square of 1e-200 is 0",
            "Squares of small numbers are 0 sooner than the numbers. Ask of each whether it is 0.",
        ),
        WrongAnswer(
            "the gradients themselves",
            lambda read, x: _jacobian(read, x).abs().sum(dim=(1, 3)),
            "the dtype is float64, expected bool",
            "How much is another question. Here: whether at all, True or False.",
        ),
        WrongAnswer(
            "changes a word and compares",
            _compared(lambda word: torch.randn_like(word)),
            "a slope of 1e-20 is not",
            "Beside a large number a small change is rounded away, and the two outputs are equal. "
            "A slope is taken by itself, and keeps its digits.",
        ),
        WrongAnswer(
            "doubles a word and compares",
            _compared(lambda word: 2 * word),
            "At x = 0",
            "Twice 0 is 0: nothing was changed. Nor does a small change show beside a large "
            "number. Take slopes.",
        ),
        WrongAnswer(
            "the slope of the squares",
            lambda read, x: (_jacobian(lambda x: read(x) ** 2, x) != 0).any(dim=3).any(dim=1),
            "At x = 0",
            "The slope of y² is 2 y times that of y: 0 wherever the output is 0. Look at each "
            "number of the output itself.",
        ),
    ),
)


ANSWERS = {
    "02.1": STEPS,
    "02.2": MAPS,
    "02.3": SHARES,
    "02.4": HEARS,
}
