"""Chapter 01: read a batch of sentences, and how far open a forget gate must be."""

import math

import torch
from torch.overrides import TorchFunctionMode

from tinytf_course.expect import agrees, expect, gradients, numbers, same, tensor
from tinytf_course.grading import Exercise, hint

# 01.1 read a batch of sentences


def my_read(x, W, U, b):
    """The states of an RNN after every word: (B, T, I) -> (B, T, H).

    W is (H, I), U is (H, H), b is (H,). The state after word t is tanh(W x_t + U h + b), where h
    is the state before it; before the first word it is zeros. Sentences are read side by side.
    """
    raise NotImplementedError


def _read_slowly(x, W, U, b):
    """Sentence by sentence, word by word, number by number."""
    sentences = []
    for sentence in x:
        h, states = [W.new_zeros(()) for _ in b], []
        for word in sentence:
            h = [
                torch.tanh((W[i] * word).sum() + sum(U[i, j] * h[j] for j in range(len(h))) + b[i])
                for i in range(len(b))
            ]
            states.append(torch.stack(h))
        sentences.append(torch.stack(states))
    return torch.stack(sentences)


def _reader(inputs, hidden, seed, dtype=torch.float32):
    """W, U and b of these sizes; no two numbers are alike."""
    W = numbers(hidden, inputs, seed=seed, scale=0.6, dtype=dtype)
    U = numbers(hidden, hidden, seed=seed + 1, scale=0.6, dtype=dtype)
    return W, U, numbers(hidden, seed=seed + 2, dtype=dtype)


def _read_a_word(answer):
    """one word becomes tanh(W x + b)"""
    W, U, b = torch.tensor([[2.0, 1.0]]), torch.tensor([[5.0]]), torch.tensor([0.5])
    note = "The state before the first word is zeros."
    agrees(answer, torch.tensor([[[0.9051]]]), torch.tensor([[[1.0, -1.0]]]), W, U, b,
           tolerance=1e-3, note=note)  # fmt: skip


@hint("Keep `h` outside the loop over words, and make it anew from itself at every step.")
def _read_goes_on(answer):
    """the second state is made of the first"""
    W, U, b = torch.tensor([[1.0]]), torch.tensor([[0.5]]), torch.tensor([0.0])
    note = "The second state is tanh(-0.4 + 0.5 · the first)."
    agrees(answer, _read_slowly, torch.tensor([[[0.8], [-0.4]]]), W, U, b, note=note)


def _read_maps(answer):
    """row i of W and of U makes number i of the state"""
    x, W = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[0.1, 0.7], [-0.4, 0.2]])
    zeros = torch.zeros(2, 2), torch.zeros(2)
    agrees(answer, _read_slowly, x, W, *zeros, note="W x is a sum along a row of W.")
    x, eye = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]), torch.eye(2)
    agrees(answer, _read_slowly, x, eye, W, zeros[1], note="U h is a sum along a row of U.")


def _read_side_by_side(answer):
    """every sentence of a batch has a state of its own"""
    alone = _reader(1, 1, seed=5)
    x = torch.tensor([[[1.0], [0.0]], [[-3.0], [0.0]]])
    agrees(answer, _read_slowly, x, *alone, note="Two sentences, two states.")
    agrees(answer, _read_slowly, numbers(3, 5, 2, seed=1), *_reader(2, 4, seed=2))
    agrees(answer, _read_slowly, numbers(2, 3, 4, seed=3), *_reader(4, 4, seed=4))
    agrees(answer, _read_slowly, numbers(1, 2, 3, seed=3, scale=40), *_reader(3, 1, seed=4))


class _Steps(TorchFunctionMode):
    """Counts the operations of torch."""

    count = 0

    def __torch_function__(self, function, types, arguments=(), named=None):
        self.count += 1
        return function(*arguments, **(named or {}))


@hint("`x[:, t]` is word t of every sentence: one product serves them all.")
def _read_in_one_loop(answer):
    """one loop is left: many sentences take as many steps as one"""
    taken = []
    for sentences in (1, 20):
        with _Steps() as steps:
            answer(numbers(sentences, 3, 2, seed=12), *_reader(2, 4, seed=13))
        taken.append(steps.count)
    where = "for 1 and for 20 sentences of three words"
    enough = taken[1] < 2 * taken[0]
    expect(enough, f"{where}, torch is called {taken[0]} and {taken[1]} times: there is a loop "
           "over sentences")  # fmt: skip


def _read_is_torchs(answer):
    """it agrees with `nn.RNN`"""
    W, U, b = _reader(3, 5, seed=6)
    rnn = torch.nn.RNN(3, 5, batch_first=True)
    rnn.load_state_dict({"weight_ih_l0": W, "weight_hh_l0": U, "bias_ih_l0": b,
                         "bias_hh_l0": torch.zeros(5)})  # fmt: skip
    x = numbers(2, 7, 3, seed=7)
    with torch.no_grad():
        agrees(answer, rnn(x)[0], x, W, U, b, note="That is what `nn.RNN` gives.")


def _read_dtype(answer):
    """numbers keep their dtype, and gradients reach every word and weight"""
    x = numbers(2, 3, 2, seed=8, dtype=torch.float64)
    agrees(answer, _read_slowly, x, *_reader(2, 3, seed=9, dtype=torch.float64))
    gradients(answer, _read_slowly, x, *_reader(2, 3, seed=9))
    long, note = numbers(1, 12, 1, seed=14), "The first of twelve words moves the last state."
    gradients(answer, _read_slowly, long, *_reader(1, 1, seed=15), tolerance=1e-9, note=note)


READ = Exercise(
    id="01.1",
    title="read a batch of sentences",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_read(x, W, U, b)`, which does in PyTorch what the loop above does, for several "
        "sentences at once. `x` has the shape `(B, T, I)`; return the state after *every* word, "
        "of shape `(B, T, H)`. The loop over the words has to stay, but you need no other, and "
        "gradients must reach every word and every weight."
    ),
    hint="`x[:, t]` holds word t of every sentence, (B, I), and `x[:, t] @ W.T` multiplies all of "
    "them by W. `torch.stack(states, dim=1)` joins a list of states of shape (B, H).",
    function=my_read,
    tests=(
        _read_a_word,
        _read_goes_on,
        _read_maps,
        _read_side_by_side,
        _read_in_one_loop,
        _read_is_torchs,
        _read_dtype,
    ),
)


# 01.2 how far open must the forget gate be?


def my_forget_bias(steps, share):
    """The bias b with which `share` of c is left after `steps` steps, by the forget gate alone.

    The gate is sigmoid(b) at every step and multiplies c; nothing is written. steps is a whole
    number of at least 1, share lies between 0 and 1. Returns a number.
    """
    raise NotImplementedError


def _left(answer, steps, share, note="", tolerance=1e-6):
    """Compare the answer with the bias found by halving an interval: what is left rises with it."""
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        kept = -steps * math.log1p(math.exp(-middle))  # log(sigmoid ** steps)
        low, high = (middle, high) if kept < math.log(share) else (low, middle)
    where = f"for steps={steps}, share={share}"
    got = tensor(answer(steps, share), where, "a number")
    expect(got.numel() == 1, f"{where}, the shape is {tuple(got.shape)}, expected one number")
    same(got.reshape(()), round(low, 9) + 0.0, where, tolerance, note)


def _bias_one_step(answer):
    """for one step the gate itself is the share"""
    _left(answer, 1, 0.5, "sigmoid(0) is a half.")
    _left(answer, 1, 0.9, "sigmoid(2.197) is 0.9.")
    _left(answer, 1, 0.2, "A gate less than half open needs a bias below 0.")


def _bias_more_steps(answer):
    """each step multiplies: what is left after two is the square"""
    _left(answer, 2, 0.25, "A half of a half is a quarter, and sigmoid(0) is a half.")
    _left(answer, 3, 0.5)


def _bias_far(answer):
    """it holds over many steps, and for little and nearly all"""
    for steps, share in ((20, 0.5), (80, 0.9), (80, 0.001), (1000, 0.99), (5000, 0.5)):
        _left(answer, steps, share, tolerance=1e-3)
    note = "The gate is below 1 by less than a millionth: float32 rounds that away."
    for steps in (10**6, 10**8):
        _left(answer, steps, 0.5, note, tolerance=1e-3)


FORGET_BIAS = Exercise(
    id="01.2",
    title="how far open must the forget gate be?",
    difficulty=1,
    minutes=6,
    statement=(
        "Write `my_forget_bias(steps, share)`, which returns the bias that leaves the given "
        "`share` of $c$ after `steps` steps, if the forget gate is $\\sigma(b)$ at every step and "
        "nothing is written. Which bias leaves a half after 80 words? (In a whole LSTM more "
        "arrives than through $c$ alone, because there is a second path through $h$.)"
    ),
    hint="Find the gate first: which number, multiplied by itself `steps` times, gives `share`? "
    "Then find the number whose sigmoid is that gate.",
    function=my_forget_bias,
    tests=(_bias_one_step, _bias_more_steps, _bias_far),
)


EXERCISES = (READ, FORGET_BIAS)
