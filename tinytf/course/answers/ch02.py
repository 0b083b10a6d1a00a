"""Answers to chapter 02: references and mistakes."""

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 02.1 repair: one vector for a sentence


def my_one_vector(states, mask):
    """Where each reader stopped, as one vector for each sentence: (B, S, 2H) -> (B, 2H).

    The first H numbers of a state are of the reader that goes left to right, the others of the one
    that goes right to left. mask (B, S) is True at words; padding stands at the end, and what the
    states hold there has no meaning. Every sentence has at least one word.
    """
    ahead, back = states.chunk(2, dim=-1)
    last = mask.sum(dim=1) - 1
    return torch.cat([ahead[torch.arange(len(last)), last], back[:, 0]], dim=-1)


def _vector(ahead_at="last", back_at="first", order="ab"):
    """A `my_one_vector` with one thing wrong."""

    def join(states, mask):
        ahead, back = states.chunk(2, dim=-1)
        rows, last = torch.arange(len(mask)), mask.sum(dim=1) - 1
        where = {"last": last, "first": last * 0, "end": last * 0 + mask.size(1) - 1,
                 "after": (last + 1).clamp(max=mask.size(1) - 1), "longest": last * 0 + last.max(),
                 "row 0": last * 0 + last[0]}  # fmt: skip
        parts = {"a": ahead[rows, where[ahead_at]], "b": back[rows, where[back_at]]}
        return torch.cat([parts[name] for name in order], dim=-1)

    return join


def _vector_mean(states, mask):
    return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def _vector_largest(states, mask):
    return states.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)


def _vector_one_hot(states, mask):
    ahead, back = states.chunk(2, dim=-1)
    last = torch.arange(states.size(1)) == (mask.sum(dim=1, keepdim=True) - 1)
    return torch.cat([(last[..., None] * ahead).sum(dim=1), back[:, 0]], dim=-1)


ONE_VECTOR = Answers(
    reference=my_one_vector,
    equivalent={
        "last = mask.sum(dim=1) - 1 => …detach()…": "places carry no gradient",
        "return … => …, last.detach()], …": "places carry no gradient",
        "return … => …torch.arange(len(…": "all are as long as the batch",
        "return … => …back[:, 0]], dim=1)": "the pieces have two axes: the last is axis 1",
    },
    wrong=(
        WrongAnswer(
            "as it was",
            _vector("end", "end"),
            "stops at the first word",
            "Both mistakes are still there: the reader from the right stops at the first word, and "
            "in a batch the last place may be padding.",
        ),
        WrongAnswer(
            "the last place, not the last word",
            _vector("end"),
            "what stands at 2 is padding",
            "`[:, -1]` is the last word of the longest sentence, and padding in all others.",
        ),
        WrongAnswer(
            "the reader from the right, where it began",
            _vector(back_at="last"),
            "stops at the first word",
            "It reads right to left: at the last word it has seen that word alone.",
        ),
        WrongAnswer(
            "both at the first word",
            _vector("first"),
            "stops at the first word",
            "There the reader from the left has read one word.",
        ),
        WrongAnswer(
            "one place too far",
            _vector("after"),
            "what stands at 2 is padding",
            "Places are counted from 0: n words end at n - 1.",
        ),
        WrongAnswer(
            "the other order",
            _vector(order="ba"),
            "stops at the first word",
            "The reader from the left comes first.",
        ),
        WrongAnswer(
            "the longest sentence's end for all",
            _vector("longest"),
            "Each sentence has a length of its own",
            "Each row needs its own last place.",
        ),
        WrongAnswer(
            "the average of all states",
            _vector_mean,
            "stops at the first word",
            "That is another vector for a sentence, and not where the readers stopped.",
        ),
        WrongAnswer(
            "the largest of all states",
            _vector_largest,
            "stops at the first word",
            "The maximum over the words is another vector for a sentence, and not where the "
            "readers stopped.",
        ),
        WrongAnswer(
            "the first sentence's end for all",
            _vector("row 0"),
            "Each sentence has a length of its own",
            "Each row needs its own last place.",
        ),
        WrongAnswer(
            "one-hot times the states",
            _vector_one_hot,
            "0 · NaN is NaN",
            "A product with 0 removes every number but NaN and infinity, and what stands at "
            "padding may be either. Take the place with an index, or put 0 there with "
            "`masked_fill`.",
        ),
    ),
)


# 02.2 Bahdanau's attention


def my_additive_attention(s, states, W, U, v, mask):
    """The context of one decoder step, after Bahdanau et al. 2015: (B, C).

    s is (B, H), states is (B, S, C), W is (A, H), U is (A, C), v is (A,), mask is boolean (B, S),
    True = may be looked at; each row has a True. The score of state h_j is v · tanh(W s + U h_j).
    The context is the average of the states shown, weighted by the softmax of their scores.
    """
    scores = torch.tanh((s @ W.T)[:, None] + states @ U.T) @ v  # (B, S)
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return (weights[:, None] @ states)[:, 0]


def _additive(squash=torch.tanh, axis=-1, masked="before", out="context", bounded=lambda x: x,
              w=lambda W: W.T, u=lambda U: U.T, exp=False):  # fmt: skip
    """A `my_additive_attention` with one thing wrong."""

    def attend(s, states, W, U, v, mask):
        scores = bounded(squash((s @ w(W))[:, None] + states @ u(U)) @ v)
        if masked in ("before", "inverted"):
            scores = scores.masked_fill(mask if masked == "inverted" else ~mask, float("-inf"))
        if masked == "zero":
            scores = scores.masked_fill(~mask, 0.0)
        weights = scores.softmax(dim=axis)
        if exp:
            weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
        if masked == "after":
            weights = weights.masked_fill(~mask, 0.0)
        return weights if out == "weights" else (weights[:, None] @ states)[:, 0]

    return attend


def _of_keys(s, states, W, U, v, mask):
    scores = torch.tanh((s @ W.T)[:, None] + states @ U.T) @ v
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return (weights[:, None] @ (states @ U.T))[:, 0]


def _no_query(s, states, W, U, v, mask):
    scores = torch.tanh(states @ U.T) @ v
    return (scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)[:, None] @ states)[:, 0]


def _raw_query(s, states, W, U, v, mask):
    if s.size(1) != U.size(0):
        return my_additive_attention(s, states, W, U, v, mask)
    scores = torch.tanh(s[:, None] + states @ U.T) @ v
    return (scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)[:, None] @ states)[:, 0]


def _unweighted(s, states, W, U, v, mask):
    return my_additive_attention(s, states, W, U, torch.ones_like(v), mask)


def _best_alone(s, states, W, U, v, mask):
    scores = torch.tanh((s @ W.T)[:, None] + states @ U.T) @ v
    best = scores.masked_fill(~mask, float("-inf")).argmax(dim=-1)
    return states[torch.arange(len(best)), best]


def _additive_weights(weights):
    """Bahdanau's attention with these weights of scores and mask."""

    def attention(s, states, W, U, v, mask):
        scores = torch.tanh((s @ W.T)[:, None] + states @ U.T) @ v
        return (weights(scores, mask)[:, None] @ states)[:, 0]

    return attention


def _shared_anew(scores, mask):
    shares = scores.softmax(dim=1) * mask
    return shares / shares.sum(dim=1, keepdim=True)


ADDITIVE = Answers(
    reference=my_additive_attention,
    equivalent={
        "weights = … => weights = scores….softmax(dim=1)": "scores have two axes: the last is 1",
        "return … => return (weights[:, None] @ states)[:, -1]": "that axis has one entry",
        "weights = … => …~mask.detach()…": "a mask carries no gradient",
    },
    wrong=(
        WrongAnswer(
            "no tanh",
            _additive(squash=lambda x: x),
            "The scores are tanh(0.5) and tanh(1.5)",
            "Without the bend the score splits into a part of s and a part of h_j. The part of s "
            "is the same for all states, and the softmax drops it: the decoder asks nothing.",
        ),
        WrongAnswer(
            "tanh outside",
            _additive(squash=lambda x: x, bounded=torch.tanh),
            "W s is a sum along a row of W",
            "The bend has to come before v adds the units up: each unit bends by itself.",
        ),
        WrongAnswer(
            "the state not asked",
            _no_query,
            "The scores are tanh(0.5) and tanh(1.5)",
            "W s is missing: every step of the decoder would look at the same place.",
        ),
        WrongAnswer(
            "W not used",
            _raw_query,
            "W s is a sum along a row of W",
            "s has to go through W before it meets the words.",
        ),
        WrongAnswer(
            "W not transposed",
            _additive(w=lambda W: W if W.size(0) == W.size(1) else W.T),
            "W s is a sum along a row of W",
            "W is (A, H): row a makes number a, so s multiplies `W.T`.",
        ),
        WrongAnswer(
            "U not transposed",
            _additive(u=lambda U: U if U.size(0) == U.size(1) else U.T),
            "U h is a sum along a row of U",
            "U is (A, C): row a makes number a, so states multiply `U.T`.",
        ),
        WrongAnswer(
            "v not used",
            _unweighted,
            "With v=0 all states count alike",
            "v says how much each unit counts, and in which direction.",
        ),
        WrongAnswer(
            "softmax over the batch",
            _additive(axis=0),
            "you get",
            "The scores are (B, S): the softmax runs over the states, the last axis. Over axis 0 "
            "the sentences of a batch compete with each other.",
        ),
        WrongAnswer(
            "no mask",
            _additive(masked="never"),
            "The state 100 is hidden",
            "The mask came in and was not used: hide the scores where it is False.",
        ),
        WrongAnswer(
            "mask after the softmax",
            _additive(masked="after"),
            "the weight of the other is 1",
            "The hidden states have taken their share already. Hide the scores before the softmax.",
        ),
        WrongAnswer(
            "hidden scores set to 0",
            _additive(masked="zero"),
            "The state 100 is hidden",
            "0 is a score like any other, and exp(0) is 1. What is hidden gets minus infinity.",
        ),
        WrongAnswer(
            "mask inverted",
            _additive(masked="inverted"),
            "you get",
            "In this course True means “may be looked at”: hide where `~mask`.",
        ),
        WrongAnswer(
            "exp of large scores",
            _additive(exp=True),
            "exp of that has no number",
            "exp(89) is already infinite in float32. `softmax` takes the largest score away first.",
        ),
        WrongAnswer(
            "the best state alone",
            _best_alone,
            "With v=0 all states count alike",
            "That is a choice, and has no gradient. Attention is an average.",
        ),
        WrongAnswer(
            "returns the weights",
            _additive(out="weights"),
            "expected (2, 5)",
            "These weights say how much of each state to take; the last step is the average.",
        ),
        WrongAnswer(
            "averages the keys",
            _of_keys,
            "the shape is (2, 6), expected (2, 5)",
            "U h_j serves the scores. What is handed over is h_j itself.",
        ),
        WrongAnswer(
            "hidden scores at -10,000",
            _additive_weights(lambda scores, mask: scores.masked_fill(~mask, -1e4).softmax(dim=1)),
            "-10,000 is not low enough",
            "A score that is shown may be lower still, and then the hidden one wins. -inf is below "
            "all of them.",
        ),
        WrongAnswer(
            "hidden scores at -1,000,000,000",
            _additive_weights(lambda scores, mask: scores.masked_fill(~mask, -1e9).softmax(dim=1)),
            "-1,000,000,000 is not low enough",
            "A score that is shown may be lower still, and then the hidden one wins. -inf is below "
            "all of them.",
        ),
        WrongAnswer(
            "softmax first, then shared anew",
            _additive_weights(_shared_anew),
            "hide it before the softmax",
            "Where a hidden score is far above the others the softmax leaves 0 for them, and 0 "
            "can't be shared out. Hide the scores first.",
        ),
        WrongAnswer(
            "hidden scores a little below the lowest",
            _additive_weights(lambda s, mask: torch.where(mask, s, s.min() - 20).softmax(dim=1)),
            "nothing of it is heard",
            "exp(-20) is little and not nothing: of a state of 1e10 it lets 20 through. exp(-inf) "
            "is 0.",
        ),
    ),
)


# 02.3 where attention looks


def my_alignment_shares(weights, gold):
    """How often attention looks at the gold word, beside it, or elsewhere.

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


# 02.4 who hears whom


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
    "02.1": ONE_VECTOR,
    "02.2": ADDITIVE,
    "02.3": SHARES,
    "02.4": HEARS,
}
