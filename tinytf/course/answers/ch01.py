"""Answers to chapter 01: references and mistakes."""

import torch

from tinytf.course.grading import Answers, WrongAnswer

# 01.1 one step of an LSTM


def my_lstm_step(x, h, c, W, U, b):
    """One step of an LSTM: the next (h, c).

    x is (B, I), h and c are (B, H), W is (4H, I), U is (4H, H), b is (4H,). The rows of W, U and b
    come in four blocks of H: input gate, forget gate, candidate, output gate.
    """
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _lstm(order="ifgo", candidate=torch.tanh, gate=torch.sigmoid, out=torch.tanh, late=False):
    """A `my_lstm_step` with one thing wrong."""

    def step(x, h, c, W, U, b):
        blocks = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
        part = dict(zip(order, blocks, strict=True))
        new = gate(part["f"]) * c + gate(part["i"]) * candidate(part["g"])
        return gate(part["o"]) * out(c if late else new), new

    return step


def _lstm_interleaved(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).view(len(x), -1, 4).unbind(dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _lstm_one_value(x, h, c, W, U, b):
    return my_lstm_step(x, h, c, W, U, b)[0]


def _lstm_no_state(x, h, c, W, U, b):
    return my_lstm_step(x, torch.zeros_like(h), c, W, U, b)


LSTM_STEP = Answers(
    reference=my_lstm_step,
    wrong=(
        WrongAnswer(
            "input and forget gate swapped",
            _lstm(order="figo"),
            "An open forget gate keeps c",
            "The second block is the forget gate's. Whoever adds a forget bias to the first one "
            "opens the input gate instead, and nothing is remembered any longer.",
        ),
        WrongAnswer(
            "candidate and output gate swapped",
            _lstm(order="ifog"),
            "The candidate is tanh(-1)",
            "Libraries differ in the order of the blocks; torch's is i, f, g, o. Weights from one "
            "order run in another without an error.",
        ),
        WrongAnswer(
            "candidate through a sigmoid",
            _lstm(candidate=torch.sigmoid),
            "it may be negative",
            "With a sigmoid the candidate is positive, so c can only grow where the gate is open.",
        ),
        WrongAnswer(
            "gates through tanh",
            _lstm(gate=torch.tanh),
            "An open forget gate keeps c",
            "A gate is a share between 0 and 1. tanh goes to -1: a shut gate then subtracts.",
        ),
        WrongAnswer(
            "no tanh on the way out",
            _lstm(out=lambda c: c),
            "which stays below 1",
            "c is a sum over all steps and may be large; tanh keeps h between -1 and 1.",
        ),
        WrongAnswer(
            "h from the old c",
            _lstm(late=True),
            "h is o times tanh(3)",
            "The new c is computed first; h shows that one. So you are a step behind.",
        ),
        WrongAnswer(
            "blocks interleaved",
            _lstm_interleaved,
            "That is what `nn.LSTMCell` gives",
            "A gate's H rows stand together: rows 0 to H - 1 are the input gate's. "
            "`chunk(4, dim=-1)` cuts that way, `view(B, H, 4)` does not.",
        ),
        WrongAnswer(
            "h not read",
            _lstm_no_state,
            "That is what `nn.LSTMCell` gives",
            "`h @ U.T` is missing: the gates then see the word and not what was read before it.",
        ),
        WrongAnswer(
            "returns only h",
            _lstm_one_value,
            "expected the 2 values (h, c)",
            "The next step needs c as well: it is where the LSTM remembers.",
        ),
    ),
)


# 01.2 one step of a GRU


def my_gru_step(x, h, W, U, b, d):
    """One step of a GRU: the next h.

    x is (B, I), h is (B, H), W is (3H, I), U is (3H, H), b and d are (3H,): b goes with W x and d
    with U h. Their rows come in three blocks of H: reset gate, update gate, candidate.
    """
    xr, xz, xn = (x @ W.T + b).chunk(3, dim=-1)
    hr, hz, hn = (h @ U.T + d).chunk(3, dim=-1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    return (1 - z) * torch.tanh(xn + r * hn) + z * h


def _gru(swap=False, order="rzn", bias_outside=False, squash=torch.tanh, reset=True, full=False):
    """A `my_gru_step` with one thing wrong."""

    def step(x, h, W, U, b, d):
        from_x = dict(zip(order, (x @ W.T + b).chunk(3, dim=-1), strict=True))
        no_bias = dict(zip(order, (h @ U.T).chunk(3, dim=-1), strict=True))
        bias = dict(zip(order, d.chunk(3), strict=True))
        r, z = (torch.sigmoid(from_x[k] + no_bias[k] + bias[k]) for k in "rz")
        r = r if reset else torch.ones_like(r)
        past = r * no_bias["n"] + bias["n"] if bias_outside else r * (no_bias["n"] + bias["n"])
        new = squash(from_x["n"] + past)
        if full:
            return new + z * h
        return z * new + (1 - z) * h if swap else (1 - z) * new + z * h

    return step


def _gru_paper(x, h, W, U, b, d):
    (xr, xz, xn), size = (x @ W.T + b).chunk(3, dim=-1), h.size(-1)
    hr, hz, _ = (h @ U.T + d).chunk(3, dim=-1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    return (1 - z) * torch.tanh(xn + (r * h) @ U[2 * size :].T + d[2 * size :]) + z * h


GRU_STEP = Answers(
    reference=my_gru_step,
    wrong=(
        WrongAnswer(
            "z and 1 - z swapped",
            _gru(swap=True),
            "z is the share that is kept",
            "Cho et al. 2014 and torch keep with z; Chung et al. 2014 and many a blog rewrite with "
            "it. Both learn; weights do not carry over.",
        ),
        WrongAnswer(
            "the two gates swapped",
            _gru(order="zrn"),
            "z is the share that is kept",
            "Torch's first block is the reset gate's, the second the update gate's.",
        ),
        WrongAnswer(
            "bias outside the reset gate",
            _gru(bias_outside=True),
            "r=0 hides all that comes from h, d included",
            "Torch multiplies r with U h + d, not with U h alone; hence two biases and not one.",
        ),
        WrongAnswer(
            "reset before the matrix",
            _gru_paper,
            "r=0 hides all that comes from h, d included",
            "That is the paper's form, U (r * h). Torch applies r after the matrix, so that one "
            "product serves all three blocks.",
        ),
        WrongAnswer(
            "reset gate not used",
            _gru(reset=False),
            "r=0 hides all that comes from h",
            "Multiply what comes from h in the candidate with r.",
        ),
        WrongAnswer(
            "candidate through a sigmoid",
            _gru(squash=torch.sigmoid),
            "you get [[0.2689]]",
            "The candidate is a new state and may be negative: tanh. Gates are shares: sigmoid.",
        ),
        WrongAnswer(
            "candidate without tanh",
            _gru(squash=lambda x: x),
            "you get [[-1]]",
            "tanh is missing around the candidate, which keeps the state between -1 and 1.",
        ),
        WrongAnswer(
            "candidate not weighed",
            _gru(full=True),
            "z is the share that is kept",
            "What is kept makes room: the candidate counts with 1 - z.",
        ),
    ),
)


# 01.3 Bahdanau's attention


def my_additive_attention(s, states, W, U, v, mask):
    """The context of one decoder step, after Bahdanau et al. 2015.

    s is (B, H), states is (B, S, C), W is (A, H), U is (A, C), v is (A,), mask is boolean (B, S),
    True = may attend. The score of state j is v · tanh(W s + U h_j); the context (B, C) is the
    average of the states, weighted by the softmax of the scores.
    """
    scores = torch.tanh((s @ W.T)[:, None] + states @ U.T) @ v  # (B, S)
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return (weights[:, None] @ states)[:, 0]


def _additive(squash=torch.tanh, axis=-1, masked="before", out="context", bounded=lambda x: x):
    """A `my_additive_attention` with one thing wrong."""

    def attend(s, states, W, U, v, mask):
        scores = bounded(squash((s @ W.T)[:, None] + states @ U.T) @ v)
        hide = ~mask
        if masked == "inverted":
            hide = mask
        if masked in ("before", "inverted"):
            scores = scores.masked_fill(hide, float("-inf"))
        weights = scores.softmax(dim=axis)
        if masked == "after":
            weights = weights.masked_fill(hide, 0.0)
        return weights if out == "weights" else (weights[:, None] @ states)[:, 0]

    return attend


def _of_keys(s, states, W, U, v, mask):
    scores = torch.tanh((s @ W.T)[:, None] + states @ U.T) @ v
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return (weights[:, None] @ (states @ U.T))[:, 0]


ADDITIVE = Answers(
    reference=my_additive_attention,
    wrong=(
        WrongAnswer(
            "no tanh",
            _additive(squash=lambda x: x),
            "The score is v · tanh(W s + U h)",
            "Without the bend the score splits into a part of s and a part of h_j. The part of s "
            "is the same for all states, and the softmax drops it: the decoder asks nothing.",
        ),
        WrongAnswer(
            "tanh outside",
            _additive(squash=lambda x: x, bounded=torch.tanh),
            "The score is v · tanh(W s + U h)",
            "The bend has to come before v adds the units up: each unit bends by itself.",
        ),
        WrongAnswer(
            "softmax over the batch",
            _additive(axis=0),
            "All states count alike",
            "The scores are (B, S): the softmax runs over the states, the last axis. Over axis 0 "
            "the sentences of a batch compete with each other.",
        ),
        WrongAnswer(
            "no mask",
            _additive(masked="never"),
            "Padding must not be heard",
            "The mask came in and was not used: hide the scores where it is False.",
        ),
        WrongAnswer(
            "mask after the softmax",
            _additive(masked="after"),
            "So the weights do not sum to 1",
            "The hidden states have taken their share already. Hide the scores before the softmax.",
        ),
        WrongAnswer(
            "mask inverted",
            _additive(masked="inverted"),
            "Padding must not be heard",
            "In this course True means “may attend”: hide where `~mask`.",
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
            "the shape is (2, 3), expected (2, 5)",
            "U h_j serves the scores. What is handed over is h_j itself.",
        ),
    ),
)


# 01.4 where attention looks


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


def _within_one(weights, gold):
    on, beside, elsewhere = my_alignment_shares(weights, gold)
    return on, on + beside, elsewhere


def _hit_is_beside_too(weights, gold):
    linked = {}
    for source, target in gold:
        linked.setdefault(target, set()).add(source)
    on = beside = 0
    for target, sources in linked.items():
        best = int(weights[target].argmax())
        on += best in sources
        beside += best - 1 in sources or best + 1 in sources
    count = len(linked)
    return on / count, beside / count, (count - on - beside) / count


def _first_link(weights, gold):
    first = {}
    for source, target in gold:
        first.setdefault(target, source)
    return my_alignment_shares(weights, [(source, target) for target, source in first.items()])


def _links_reversed(weights, gold):
    return my_alignment_shares(weights, [(target, source) for source, target in gold])


def _columns(weights, gold):
    return my_alignment_shares(weights.T, gold)


SHARES = Answers(
    reference=my_alignment_shares,
    wrong=(
        WrongAnswer(
            "counts links, not words",
            _by_link,
            "Four target words have links",
            "A word with two links would count twice, and could never be right on both: collect "
            "the links of each target word.",
        ),
        WrongAnswer(
            "counts unlinked words",
            _over_all,
            "Four target words have links",
            "A target word with no gold link can be neither right nor wrong: leave it out.",
        ),
        WrongAnswer(
            "a hit beside another link counted twice",
            _hit_is_beside_too,
            "A hit is not beside the other link",
            "Where two linked words stand side by side, the largest weight on one is beside the "
            "other too. Ask for `beside` only of those that are not `on`.",
        ),
        WrongAnswer(
            "only the first link",
            _first_link,
            "Four target words have links",
            "A target word may come from several source words; any of them is a hit.",
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
            "Row t belongs to target word t",
            "A row holds the weights of one target word and sums to 1; a column does not.",
        ),
        WrongAnswer(
            "averages the weight",
            _by_mass,
            "Four target words have links",
            "That is the mass on gold, a fine measure, but another one: a map can have its largest "
            "weight on gold and most of its mass elsewhere.",
        ),
        WrongAnswer(
            "beside includes on",
            _within_one,
            "the three cases exclude each other",
            "“Within one” holds both cases. Here they are apart.",
        ),
    ),
)

ANSWERS = {
    "01.1": LSTM_STEP,
    "01.2": GRU_STEP,
    "01.3": ADDITIVE,
    "01.4": SHARES,
}
