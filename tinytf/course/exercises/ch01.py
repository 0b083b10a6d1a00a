"""Chapter 01: an LSTM step, a GRU step, additive attention, and where attention looks."""

import torch
from torch.nn import functional as F

from tinytf.course.expect import expect, same, short, tensor
from tinytf.course.grading import Exercise

_draws = torch.Generator().manual_seed(1)


def _random(*shape):
    return (torch.randn(*shape, generator=_draws) * 0.8).round(decimals=2)


def _parts(got, count, names, where):
    """The tensors of a tuple that an answer returned; a stacked tensor unpacks as well."""
    if isinstance(got, torch.Tensor) and got.dim():
        got = list(got)
    expect(
        isinstance(got, tuple | list) and len(got) == count,
        f"{where}, you return a {type(got).__name__}, expected the {count} values {names}",
    )
    return [tensor(part, where) for part in got]


# 01.1 one step of an LSTM


def my_lstm_step(x, h, c, W, U, b):
    """One step of an LSTM: the next (h, c).

    x is (B, I), h and c are (B, H), W is (4H, I), U is (4H, H), b is (4H,). The rows of W, U and b
    come in four blocks of H: input gate, forget gate, candidate, output gate.
    """
    raise NotImplementedError


LSTM_INPUT = (
    _random(2, 3), _random(2, 2), _random(2, 2), _random(8, 3), _random(8, 2), _random(8),
)  # fmt: skip
_SMALL_LSTM = "for random x (2, 3), h and c (2, 2)"
# One number each, all weights 0: the biases alone open and close the gates.
_OPEN, _SHUT = 20.0, -20.0


def _gates(i, f, g, o, c, h=0.0):
    one = torch.zeros(1, 1)
    return one, one + h, one + c, torch.zeros(4, 1), torch.zeros(4, 1), torch.tensor([i, f, g, o])


def _lstm_two_values(answer):
    """it returns the next h and the next c"""
    got = _parts(answer(*LSTM_INPUT), 2, "(h, c)", _SMALL_LSTM)
    for name, part in zip("hc", got, strict=True):
        message = f"{_SMALL_LSTM}, {name} has shape {tuple(part.shape)}, expected (2, 2)"
        expect(part.shape == (2, 2), message)


def _lstm_keeps(answer):
    """forget gate open, input gate shut: c stays"""
    c = _parts(answer(*_gates(_SHUT, _OPEN, 1.0, 0.0, 0.7)), 2, "(h, c)", "with c=0.7")[1]
    same(c, [[0.7]], "with c=0.7, f open and i shut", 1e-4, "An open forget gate keeps c.")


def _lstm_writes(answer):
    """forget gate shut, input gate open: c becomes the candidate"""
    c = _parts(answer(*_gates(_OPEN, _SHUT, -1.0, 0.0, 0.7)), 2, "(h, c)", "with c=0.7")[1]
    where = "with c=0.7, f shut, i open and -1 for the candidate"
    same(c, [[-0.7616]], where, 1e-3, "The candidate is tanh(-1): it may be negative.")


def _lstm_shows(answer):
    """h is the output gate times tanh of the new c"""
    h = _parts(answer(*_gates(_OPEN, _OPEN, 20.0, _OPEN, 2.0)), 2, "(h, c)", "with c=2")[0]
    where = "with c=2, every gate open and a candidate of 1, so that the new c is 3"
    same(h, [[0.9951]], where, 1e-3, "h is o times tanh(3), which stays below 1.")


def _lstm_oracle(answer):
    """it agrees with torch"""
    x, h, c, W, U, b = LSTM_INPUT
    cell = torch.nn.LSTMCell(3, 2)
    cell.load_state_dict(
        {"weight_ih": W, "weight_hh": U, "bias_ih": b, "bias_hh": torch.zeros_like(b)}
    )
    with torch.no_grad():
        expected = cell(x, (h, c))
    got = _parts(answer(*LSTM_INPUT), 2, "(h, c)", _SMALL_LSTM)
    for name, ours, theirs in zip("hc", got, expected, strict=True):
        where = f"{_SMALL_LSTM}, in {name}"
        same(ours, theirs, where, note="That is what `nn.LSTMCell` gives.")


LSTM_STEP = Exercise(
    id="01.1",
    title="one step of an LSTM",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_lstm_step(x, h, c, W, U, b)`, which returns the next `(h, c)`. The rows of `W`, "
        "`U` and `b` come in four blocks: input gate, forget gate, candidate, output gate."
    ),
    hint="One sum of products for all four, then `.chunk(4, dim=-1)`; three sigmoids, tanh twice.",
    function=my_lstm_step,
    tests=(_lstm_two_values, _lstm_keeps, _lstm_writes, _lstm_shows, _lstm_oracle),
)


# 01.2 one step of a GRU


def my_gru_step(x, h, W, U, b, d):
    """One step of a GRU: the next h.

    x is (B, I), h is (B, H), W is (3H, I), U is (3H, H), b and d are (3H,): b goes with W x and d
    with U h. Their rows come in three blocks of H: reset gate, update gate, candidate.
    """
    raise NotImplementedError


GRU_INPUT = (_random(2, 3), _random(2, 2), _random(6, 3), _random(6, 2), _random(6), _random(6))
_SMALL_GRU = "for random x (2, 3) and h (2, 2)"


def _opened(r, z, n, past, h):
    """One number each, no weights but the candidate's own: biases open and close the gates."""
    U = torch.tensor([[0.0], [0.0], [1.0]])
    b, d = torch.tensor([r, z, n]), torch.tensor([0.0, 0.0, past])
    return torch.zeros(1, 1), torch.full((1, 1), h), torch.zeros(3, 1), U, b, d


def _gru_keeps(answer):
    """update gate open: h stays"""
    got = answer(*_opened(0.0, _OPEN, 1.0, 0.0, 0.7))
    same(got, [[0.7]], "with h=0.7 and z=1", 1e-4, "In torch, z is the share that is kept.")


def _gru_rewrites(answer):
    """both gates shut: h becomes the candidate, from the word alone"""
    got = answer(*_opened(_SHUT, _SHUT, -1.0, 0.5, 0.7))
    where = "with h=0.7, r=0, z=0, b=-1 and d=0.5 for the candidate"
    same(got, [[-0.7616]], where, 1e-3, "r=0 hides all that comes from h, d included.")


def _gru_oracle(answer):
    """it agrees with torch"""
    x, h, W, U, b, d = GRU_INPUT
    cell = torch.nn.GRUCell(3, 2)
    cell.load_state_dict({"weight_ih": W, "weight_hh": U, "bias_ih": b, "bias_hh": d})
    with torch.no_grad():
        expected = cell(x, h)
    same(answer(*GRU_INPUT), expected, _SMALL_GRU, note="That is what `nn.GRUCell` gives.")


GRU_STEP = Exercise(
    id="01.2",
    title="one step of a GRU",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_gru_step(x, h, W, U, b, d)`, which returns the next `h` as `nn.GRUCell` does: "
        "`b` is added to `W x` and `d` to `U h`. The blocks are reset gate, update gate, candidate."
    ),
    hint="Project and chunk x and h apart: the reset gate multiplies only what comes from h.",
    function=my_gru_step,
    tests=(_gru_keeps, _gru_rewrites, _gru_oracle),
)


# 01.3 Bahdanau's attention


def my_additive_attention(s, states, W, U, v, mask):
    """The context of one decoder step, after Bahdanau et al. 2015.

    s is (B, H), states is (B, S, C), W is (A, H), U is (A, C), v is (A,), mask is boolean (B, S),
    True = may attend. The score of state j is v · tanh(W s + U h_j); the context (B, C) is the
    average of the states, weighted by the softmax of the scores.
    """
    raise NotImplementedError


_STATES = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [4.0, 4.0]], [[2.0, 2.0], [0.0, 0.0], [1.0, 3.0]]])
_EYE, _V = torch.eye(2), torch.tensor([1.0, 2.0])
_S = torch.tensor([[0.5, -1.0], [-0.5, 0.25]])
_PART = torch.tensor([[True, True, False], [True, True, True]])
ATTENTION_INPUT = (_S, _STATES, _EYE, _EYE, _V, _PART)
_WORKED = f"for s={short(_S)}, W=U=I, v={short(_V)} and states of shape (2, 3, 2)"
WIDER = (_random(2, 3), _random(2, 4, 5), _random(3, 3), _random(3, 5), _random(3),
         torch.tensor([[True, True, True, True], [True, True, False, False]]))  # fmt: skip


def _context_shape(answer):
    """there is one context per row of the batch, as wide as a state"""
    where = "for s (2, 3) and states (2, 4, 5)"
    got = tensor(answer(*WIDER), where)
    expect(got.shape == (2, 5), f"{where}, the shape is {tuple(got.shape)}, expected (2, 5)")


def _mean_of_equals(answer):
    """equal scores give the plain average of the real states"""
    got = answer(_S, _STATES, _EYE, _EYE, torch.zeros(2), torch.ones(2, 3, dtype=torch.bool))
    expected = _STATES.mean(dim=1)
    same(got, expected, "for v=0 and nothing hidden", note="All states count alike.")


def _hidden_state(answer):
    """a hidden state is not heard"""
    loud = _STATES.clone()
    loud[0, 2] = 100.0
    where = "when the hidden state 2 of row 0 goes from 4 to 100"
    before, after = (tensor(answer(_S, x, _EYE, _EYE, _V, _PART), where) for x in (_STATES, loud))
    same(after[0], before[0], where, note="Padding must not be heard: the context may not change.")


def _convex(answer):
    """weights sum to 1: equal states come out as they are"""
    states = torch.full((2, 3, 2), 3.0)
    got = answer(_S, states, _EYE, _EYE, _V, _PART)
    where = "when every state is [3, 3]"
    same(got, [[3.0, 3.0], [3.0, 3.0]], where, note="So the weights do not sum to 1.")


def _additive_by_hand(answer):
    """the worked example comes out as it does by hand"""
    rows = []
    for s, states, mask in zip(_S, _STATES, _PART, strict=True):
        kept = states[mask]
        weights = F.softmax(torch.tanh(s + kept) @ _V, dim=0)
        rows.append(weights @ kept)
    note = "The score is v · tanh(W s + U h)."
    same(answer(*ATTENTION_INPUT), torch.stack(rows), _WORKED, note=note)


ADDITIVE = Exercise(
    id="01.3",
    title="Bahdanau's attention",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_additive_attention(s, states, W, U, v, mask)`: the context of one decoder step. "
        "The score of state $h_j$ is $v^\\top\\tanh(W s + U h_j)$; the context is the average of "
        "the states, weighted by the softmax of the scores over the states that `mask` shows."
    ),
    hint="`(s @ W.T)[:, None]` is (B, 1, A) and meets `states @ U.T`, (B, S, A).",
    function=my_additive_attention,
    tests=(_context_shape, _mean_of_equals, _hidden_state, _convex, _additive_by_hand),
)


# 01.4 where attention looks


def my_alignment_shares(weights, gold):
    """How often attention looks at the gold word, beside it, or elsewhere.

    weights is (T, S), gold a list of links (source index, target index). A target word with links
    counts once: "on" if its largest weight is on a linked source word, else "beside" if it is on
    a neighbour of one, else "elsewhere". Returns the three shares (on, beside, elsewhere).
    """
    raise NotImplementedError


LOOKS = torch.tensor(
    [
        [0.1, 0.6, 0.2, 0.1, 0.0],  # on 1
        [0.1, 0.1, 0.2, 0.5, 0.1],  # beside 2
        [0.7, 0.1, 0.1, 0.1, 0.0],  # no link
        [0.6, 0.1, 0.1, 0.1, 0.1],  # far from 3 and 4
        [0.1, 0.2, 0.1, 0.1, 0.5],  # on 4, one of two
    ]
)
LINKS = [(1, 0), (2, 1), (3, 3), (4, 3), (2, 4), (4, 4)]
_NAMES = "(on, beside, elsewhere)"
_LOOKS = f"for a map of 5 target words and gold={LINKS}"


def _shares_are_three(answer):
    """it returns three shares that sum to 1"""
    got = [float(part) for part in _parts(answer(LOOKS, LINKS), 3, _NAMES, _LOOKS)]
    message = f"{_LOOKS}, the shares sum to {sum(got):.4g}; the three cases exclude each other"
    expect(abs(sum(got) - 1) < 1e-5, message)


def _shares_all_on(answer):
    """a perfect map is on gold"""
    got = _parts(answer(torch.eye(3), [(0, 0), (1, 1), (2, 2)]), 3, _NAMES, "for a diagonal map")
    same(torch.stack(got), [1.0, 0.0, 0.0], "for a diagonal map and diagonal gold")


def _shares_neighbours(answer):
    """of two linked words side by side, either is a hit"""
    weights, gold = torch.tensor([[0.1, 0.1, 0.2, 0.6]]), [(2, 0), (3, 0)]
    where = f"for weights={short(weights)} and gold={gold}"
    got = _parts(answer(weights, gold), 3, _NAMES, where)
    note = "A hit is not beside the other link as well."
    same(torch.stack(got), [1.0, 0.0, 0.0], where, note=note)


def _shares_direction(answer):
    """a row is a target word, and a link is (source, target)"""
    weights = torch.tensor([[0.1, 0.1, 0.8], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    gold = [(2, 0), (0, 1), (1, 2)]
    got = _parts(answer(weights, gold), 3, _NAMES, f"for gold={gold}")
    where = f"for weights={short(weights)} and gold={gold}"
    note = "Row t belongs to target word t; links are (source, target)."
    same(torch.stack(got), [1.0, 0.0, 0.0], where, note=note)


def _shares_counted(answer):
    """each linked target word counts once, by its largest weight"""
    got = _parts(answer(LOOKS, LINKS), 3, _NAMES, _LOOKS)
    note = "Four target words have links: two are on gold, one is beside, one elsewhere."
    same(torch.stack(got), [0.5, 0.25, 0.25], _LOOKS, note=note)


SHARES = Exercise(
    id="01.4",
    title="where attention looks",
    difficulty=1,
    minutes=10,
    statement=(
        "Write `my_alignment_shares(weights, gold)`: of the target words that have a gold link, "
        "which share has its largest weight *on* a linked source word, else *beside* one (one "
        "place to the left or right of any), or *elsewhere*? `gold` lists links `(source index, "
        "target index)`; return the tuple `(on, beside, elsewhere)`."
    ),
    hint="Collect the linked source words of each target word first; then one argmax per word.",
    function=my_alignment_shares,
    tests=(
        _shares_are_three,
        _shares_all_on,
        _shares_direction,
        _shares_counted,
        _shares_neighbours,
    ),
)


EXERCISES = (LSTM_STEP, GRU_STEP, ADDITIVE, SHARES)
