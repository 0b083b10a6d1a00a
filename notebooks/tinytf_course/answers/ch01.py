"""Answers to chapter 01: references and mistakes."""

import math

import torch

from tinytf_course.grading import Answers, WrongAnswer

# 01.1 read a batch of sentences


def my_read(x, W, U, b):
    """The states of an RNN after every word: (B, T, I) -> (B, T, H).

    W is (H, I), U is (H, H), b is (H,). The state after word t is tanh(W x_t + U h + b), where h
    is the state before it; before the first word it is zeros. Sentences are read side by side.
    """
    h = x.new_zeros(x.size(0), b.size(0))
    states = []
    for t in range(x.size(1)):
        h = torch.tanh(x[:, t] @ W.T + h @ U.T + b)
        states.append(h)
    return torch.stack(states, dim=1)


def _read(
    w=lambda W: W.T, u=lambda U: U.T, keep=True, bias=1, squash=torch.tanh, axis=1, mix=False
):
    """A `my_read` with one thing wrong."""

    def read(x, W, U, b):
        h = x.new_zeros(x.size(0), b.size(0))
        states = []
        for t in range(x.size(1)):
            new = squash(x[:, t] @ w(W) + h @ u(U) + bias * b)
            states.append(new)
            h = new if keep else h
            if mix:
                h = h.mean(dim=0, keepdim=True).expand_as(h)
        return torch.stack(states, dim=axis)

    return read


def _read_last_only(x, W, U, b):
    return my_read(x, W, U, b)[:, -1]


def _read_two_bends(x, W, U, b):
    h, states = x.new_zeros(x.size(0), b.size(0)), []
    for t in range(x.size(1)):
        h = torch.tanh(x[:, t] @ W.T + b) + torch.tanh(h @ U.T)
        states.append(h)
    return torch.stack(states, dim=1)


def _read_backwards(x, W, U, b):
    return my_read(x.flip(1), W, U, b).flip(1)


def _read_detached(x, W, U, b):
    h, states = x.new_zeros(x.size(0), b.size(0)), []
    for t in range(x.size(1)):
        h = torch.tanh(x[:, t] @ W.T + h.detach() @ U.T + b)
        states.append(h)
    return torch.stack(states, dim=1)


def _read_in_turn(x, W, U, b):
    return torch.cat([my_read(sentence[None], W, U, b) for sentence in x])


def _read_cut(x, W, U, b):
    h, states = x.new_zeros(x.size(0), b.size(0)), []
    for t in range(x.size(1)):
        h = h.detach() if t % 5 == 0 else h
        h = torch.tanh(x[:, t] @ W.T + h @ U.T + b)
        states.append(h)
    return torch.stack(states, dim=1)


READ = Answers(
    reference=my_read,
    equivalent={
        "h = x.new_zeros(x.size(0), b.size(0)) => …": "zeros, as many and of the same kind: W, U "
        "and b are as long, and zeros of one sentence broadcast to all",
    },
    wrong=(
        WrongAnswer(
            "the state is not carried on",
            _read(keep=False),
            "The second state is tanh",
            "Every step starts from zeros: no word knows what was before it.",
        ),
        WrongAnswer(
            "sentence by sentence",
            _read_in_turn,
            "there is a loop over sentences",
            "The states are right, and come one sentence after the other. Sentences do not wait "
            "for each other: one product makes the next state of all of them.",
        ),
        WrongAnswer(
            "the past cut off after some words",
            _read_cut,
            "The first of twelve words",
            "A `detach` now and then saves memory in a long text, and the words before it can't "
            "learn from what comes after.",
        ),
        WrongAnswer(
            "W not transposed",
            _read(w=lambda W: W),
            "a sum along a row of W",
            "W is (H, I): row i makes number i of the state, so words multiply `W.T`.",
        ),
        WrongAnswer(
            "U not transposed",
            _read(u=lambda U: U),
            "a sum along a row of U",
            "A square U fits either way round, and only one of them is U h: `h @ U.T`.",
        ),
        WrongAnswer(
            "no bias",
            _read(bias=0),
            "before the first word is zeros",
            "`+ b` is missing.",
        ),
        WrongAnswer(
            "no tanh",
            _read(squash=lambda x: x),
            "before the first word is zeros",
            "Without the bend the states grow or die out as powers of U.",
        ),
        WrongAnswer(
            "two bends",
            _read_two_bends,
            "The second state is tanh",
            "The sum is made first, then bent: tanh(W x + U h + b), once.",
        ),
        WrongAnswer(
            "time and batch swapped",
            _read(axis=0),
            "the shape is",
            "`torch.stack(states)` puts time first. Its place here is axis 1.",
        ),
        WrongAnswer(
            "the last state alone",
            _read_last_only,
            "the shape is",
            "The state after every word is asked for: keep them in a list.",
        ),
        WrongAnswer(
            "sentences share a state",
            _read(mix=True),
            "Two sentences, two states",
            "Row b of the state belongs to sentence b; nothing may pass between rows.",
        ),
        WrongAnswer(
            "read from the end",
            _read_backwards,
            "The second state is tanh",
            "That is the other direction. It has its use below, beside this one.",
        ),
        WrongAnswer(
            "the past is detached",
            _read_detached,
            "for the gradient to",
            "The numbers are right, and nothing can be learned from them across a step.",
        ),
    ),
)


# 01.2 how far open must the forget gate be?


def my_forget_bias(steps, share):
    """The bias b with which `share` of c is left after `steps` steps, by the forget gate alone.

    The gate is sigmoid(b) at every step and multiplies c; nothing is written. steps is a whole
    number of at least 1, share lies between 0 and 1. Returns a number.
    """
    gate = share ** (1 / steps)
    return math.log(gate / (1 - gate))


def _logit(gate):
    return math.log(gate / (1 - gate))


FORGET_BIAS = Answers(
    reference=my_forget_bias,
    equivalent={},
    wrong=(
        WrongAnswer(
            "the gate, not its bias",
            lambda steps, share: share ** (1 / steps),
            "sigmoid(0) is a half",
            "That is how far open the gate has to be. The bias is the number whose sigmoid it is.",
        ),
        WrongAnswer(
            "one step too few",
            lambda steps, share: _logit(share ** (1 / max(steps - 1, 1))),
            "A half of a half",
            "The gate closes at every step, the first too: `steps` factors, not steps - 1.",
        ),
        WrongAnswer(
            "no root",
            lambda steps, share: _logit(share),
            "A half of a half",
            "That holds for one step. Each further step multiplies by the gate again.",
        ),
        WrongAnswer(
            "share divided among the steps",
            lambda steps, share: _logit(share / steps),
            "A half of a half",
            "Steps multiply what is left; they take no equal parts of it.",
        ),
        WrongAnswer(
            "loss divided among the steps",
            lambda steps, share: _logit(1 - (1 - share) / steps),
            "A half of a half",
            "A step takes a share of what is still there, not of what there was at first.",
        ),
        WrongAnswer(
            "a power, not a root",
            lambda steps, share: math.log(share**steps / (1 - share**steps) + 1e-300),
            "A half of a half",
            "That is what is left after `steps` such shares; the share of one step is the root.",
        ),
        WrongAnswer(
            "sign",
            lambda steps, share: -_logit(share ** (1 / steps)),
            "sigmoid(2.197) is 0.9",
            "A gate that is more than half open has a bias above 0.",
        ),
        WrongAnswer(
            "inverse of tanh",
            lambda steps, share: math.atanh(share ** (1 / steps)),
            "sigmoid(0) is a half",
            "A gate is a sigmoid. Its inverse is log(f / (1 - f)).",
        ),
        WrongAnswer(
            "a logarithm alone",
            lambda steps, share: math.log(share) / steps,
            "sigmoid(0) is a half",
            "That is the logarithm of the gate; the sigmoid's inverse is log(f / (1 - f)).",
        ),
        WrongAnswer(
            "the gate kept away from 1",
            lambda steps, share: _logit(min(share ** (1 / steps), 1 - 1e-6)),
            "less than a millionth",
            "A clamp, as `torch.logit(…, eps=1e-6)` has it, forgets what lies beyond it. Over a "
            "million steps the gate has to be closer to 1 than that.",
        ),
    ),
)


ANSWERS = {
    "01.1": READ,
    "01.2": FORGET_BIAS,
}
