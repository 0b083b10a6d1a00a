"""01.1 read a batch of sentences (★☆☆, 6 minutes)

Write `my_read(x, W, U, b)`, which does in PyTorch what the loop above does, for several sentences
at once: `x` has the shape `(B, T, I)`, and the state after *every* word is returned, `(B, T, H)`.
The loop over the words has to stay, but you need no other, and gradients must reach every word and
every weight.

Hint: `x[:, t]` holds word t of every sentence, (B, I), and `x[:, t] @ W.T` multiplies all of them
by W. `torch.stack(states, dim=1)` joins a list of states of shape (B, H).
"""

import torch
from torch.overrides import TorchFunctionMode

from tinytf_course.expect import agrees, expect, gradients, numbers
from tinytf_course.grading import hint


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


def _read_slowly(x, W, U, b):
    """Sentence by sentence, word by word, number by number."""
    states = []
    for sentence in x:
        h = W.new_zeros(len(b))
        for word in sentence:
            sums = [sum(W[i] * word) + sum(U[i] * h) + b[i] for i in range(len(b))]
            h = torch.stack(sums).tanh()
            states.append(h)
    return torch.stack(states).reshape(*x.shape[:2], len(b))


def _reader(inputs, hidden, seed, dtype=torch.float32):
    """W, U and b of these sizes; no two numbers are alike."""
    W = numbers(hidden, inputs, seed=seed, scale=0.6, dtype=dtype)
    U = numbers(hidden, hidden, seed=seed + 1, scale=0.6, dtype=dtype)
    return W, U, numbers(hidden, seed=seed + 2, dtype=dtype)


def test_read_a_word(answer):
    """one word becomes tanh(W x + b)"""
    W, U, b = torch.tensor([[2.0, 1.0]]), torch.tensor([[5.0]]), torch.tensor([0.5])
    note = "The state before the first word is zeros."
    agrees(answer, torch.tensor([[[0.9051]]]), torch.tensor([[[1.0, -1.0]]]), W, U, b,
           tolerance=1e-3, note=note)  # fmt: skip


@hint("Keep `h` outside the loop over words, and make it anew from itself at every step.")
def test_read_goes_on(answer):
    """the second state is made of the first"""
    W, U, b = torch.tensor([[1.0]]), torch.tensor([[0.5]]), torch.tensor([0.0])
    note = "The second state is tanh(-0.4 + 0.5 · the first)."
    agrees(answer, _read_slowly, torch.tensor([[[0.8], [-0.4]]]), W, U, b, note=note)


def test_read_maps(answer):
    """row i of W and of U makes number i of the state"""
    x, W = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[0.1, 0.7], [-0.4, 0.2]])
    zeros = torch.zeros(2, 2), torch.zeros(2)
    agrees(answer, _read_slowly, x, W, *zeros, note="W x is a sum along a row of W.")
    x, eye = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]]), torch.eye(2)
    agrees(answer, _read_slowly, x, eye, W, zeros[1], note="U h is a sum along a row of U.")


def test_read_side_by_side(answer):
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
def test_read_in_one_loop(answer):
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


def test_read_is_torchs(answer):
    """it agrees with `nn.RNN`"""
    W, U, b = _reader(3, 5, seed=6)
    rnn = torch.nn.RNN(3, 5, batch_first=True)
    rnn.load_state_dict({"weight_ih_l0": W, "weight_hh_l0": U, "bias_ih_l0": b,
                         "bias_hh_l0": torch.zeros(5)})  # fmt: skip
    x = numbers(2, 7, 3, seed=7)
    with torch.no_grad():
        agrees(answer, rnn(x)[0], x, W, U, b, note="That is what `nn.RNN` gives.")


def test_read_dtype(answer):
    """numbers keep their dtype, and gradients reach every word and weight"""
    x = numbers(2, 3, 2, seed=8, dtype=torch.float64)
    agrees(answer, _read_slowly, x, *_reader(2, 3, seed=9, dtype=torch.float64))
    gradients(answer, _read_slowly, x, *_reader(2, 3, seed=9))
    long, note = numbers(1, 12, 1, seed=14), "The first of twelve words moves the last state."
    gradients(answer, _read_slowly, long, *_reader(1, 1, seed=15), tolerance=1e-9, note=note)


MISTAKES = r"""
the state is not carried on
    h = torch.tanh => new = torch.tanh
    append(h) => append(new)
    says: The second state is tanh
    Every step starts from zeros: no word knows what was before it.
sentence by sentence
    h = torch.tanh(x[:, t] @ W.T + h @ U.T + b) =>
        h = torch.stack([torch.tanh(W @ x[i, t] + U @ h[i] + b) for i in range(len(x))])
    says: there is a loop over sentences
    The states are right, and come one sentence after the other. Sentences do not wait for each
    other: one product makes the next state of all of them.
the past cut off after some words
    h @ U.T => (h if t % 5 else h.detach()) @ U.T
    says: The first of twelve words
    A `detach` now and then saves memory in a long text, and the words before it can't learn
    from what comes after.
W not transposed
    W.T => W
    says: a sum along a row of W
    W is (H, I): row i makes number i of the state, so words multiply `W.T`.
U not transposed
    U.T => U
    says: a sum along a row of U
    A square U fits either way round, and only one of them is U h: `h @ U.T`.
no bias
    U.T + b => U.T
    says: before the first word is zeros
    `+ b` is missing.
no tanh
    torch.tanh =>
    says: before the first word is zeros
    Without the tanh the states grow or die out as powers of U.
two bends
    h @ U.T + b) => b) + torch.tanh(h @ U.T)
    says: The second state is tanh
    The sum is made first, then bent: tanh(W x + U h + b), once.
time and batch swapped
    dim=1 => dim=0
    says: the shape is
    `torch.stack(states)` puts time first. Its place here is axis 1.
the last state alone
    torch.stack(states, dim=1) => h
    says: the shape is
    The state after every word is asked for: keep them in a list.
sentences share a state
    h @ U.T => h.mean(dim=0) @ U.T
    says: Two sentences, two states
    Row b of the state belongs to sentence b; nothing may pass between rows.
read from the end
    range(x.size(1)) => reversed(range(x.size(1)))
    states, dim => states[::-1], dim
    says: The second state is tanh
    That is the other direction. It has its use below, beside this one.
the past is detached
    h @ U.T => h.detach() @ U.T
    says: for the gradient to
    The numbers are right, and nothing can be learned from them across a step.
"""

HARMLESS = r"""
h = … => h = …new_zeros(…)
    zeros, as many and of the same kind: W, U and b are as long, and zeros of one sentence
    broadcast to all
"""
