"""Answers to chapter 13: references and mistakes."""

import torch

from tinytf_course.exercises.ch13 import BOS, EOS, PAD
from tinytf_course.grading import Answers, WrongAnswer

# 13.1 shift right


def my_shift_right(rows, bos, eos, pad):
    """The decoder's input and its labels: two integer tensors (B, T).

    rows is a list of lists of word ids, of any lengths. T is the longest of them plus 1.
    """
    width = max(map(len, rows)) + 1
    inputs = torch.full((len(rows), width), pad)
    labels = torch.full((len(rows), width), pad)
    for b, row in enumerate(rows):
        inputs[b, : len(row) + 1] = torch.tensor([bos, *row])
        labels[b, : len(row) + 1] = torch.tensor([*row, eos])
    return inputs, labels


def _filled(rows, pad):
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])


def _reads_labels(rows, bos, eos, pad):
    says = _filled([[*row, eos] for row in rows], pad)
    return torch.cat([torch.full_like(says[:, :1], bos), says[:, :-1]], 1), says


def _changes_rows(rows, bos, eos, pad):
    reads = _filled([[bos, *row] for row in rows], pad)
    for row in rows:
        row.append(eos)
    return reads, _filled(rows, pad)


def _every_end_erased(rows, bos, eos, pad):
    length = max(map(len, rows)) + 2
    whole = torch.tensor([[bos, *row, eos] + [pad] * (length - 2 - len(row)) for row in rows])
    return whole.masked_fill(whole == eos, pad)[:, :-1], whole[:, 1:]


SHIFT = Answers(
    reference=my_shift_right,
    equivalent={
        "… => ….detach()…": "ids carry no gradient",
        "… => …).double()": "an id below 9 · 10¹⁵ is the same in float64, and is stored as integer",
    },
    wrong=(
        WrongAnswer(
            "<eos> in the input of the shorter rows",
            _reads_labels,
            "as the input, you get [[1, 7, 8, 9, 8], [1, 5, 6, 2, 0]]",
            "The labels, shifted by one, have an <eos> in all rows but the longest. After <eos> "
            "nothing is left to predict, so it is never in the input.",
        ),
        WrongAnswer(
            "<eos> in the input as well, and both filled up",
            lambda rows, bos, eos, pad: (
                _filled([[bos, *row, eos] for row in rows], pad),
                _filled([[*row, eos, pad] for row in rows], pad),
            ),
            "the shapes are (2, 6) and (2, 6)",
            "After <eos> nothing is left to predict, so it is never in the input: T is the longest "
            "row plus 1, not plus 2.",
        ),
        WrongAnswer(
            "the caller's rows changed",
            _changes_rows,
            "changes the caller's `rows",
            "`row.append` writes into the list that was given; the next epoch finds another <eos> "
            "in it. `[*row, eos]` is a new list.",
        ),
        WrongAnswer(
            "not shifted",
            lambda rows, bos, eos, pad: (
                _filled([[*row, eos] for row in rows], pad),
                _filled([[*row, eos] for row in rows], pad),
            ),
            "as the input, you get [[7, 8, 9, 8, 2]",
            "Each position reads the word that it has to predict. The loss falls to nothing by "
            "copying, no mask prevents it, and at inference the model has nothing to copy.",
        ),
        WrongAnswer(
            "shifted the wrong way",
            lambda rows, bos, eos, pad: (
                _filled([[*row, eos] for row in rows], pad),
                _filled([[bos, *row] for row in rows], pad),
            ),
            "as the labels, you get [[1, 7, 8, 9, 8]",
            "This trains the model to predict the word before the one it reads: to write backwards "
            "in time.",
        ),
        WrongAnswer(
            "<eos> behind the padding",
            lambda rows, bos, eos, pad: (
                _filled([[bos, *row] for row in rows], pad),
                torch.nn.functional.pad(_filled(rows, pad), (0, 1), value=eos),
            ),
            "as the labels, you get",
            "The end comes right after the last word of each row, or short sentences never learn "
            "to stop.",
        ),
        WrongAnswer(
            "no <eos>",
            lambda rows, bos, eos, pad: (
                _filled([[bos, *row] for row in rows], pad),
                torch.nn.functional.pad(_filled(rows, pad), (0, 1), value=pad),
            ),
            "as the labels, you get",
            "Nothing teaches the model to end, so alone it writes until it is cut off.",
        ),
        WrongAnswer(
            "<eos> in the input as well",
            lambda rows, bos, eos, pad: (
                _filled([[bos, *row, eos] for row in rows], pad),
                _filled([[*row, eos] for row in rows], pad),
            ),
            "the shapes are (2, 6) and (2, 5)",
            "After <eos> nothing is left to predict, so it is never in the input. A mask made from "
            "the longer one does not fit the shorter: one tutorial crashes here.",
        ),
        WrongAnswer(
            "one position too far",
            lambda rows, bos, eos, pad: (
                _filled([[bos, bos, *row[:-1]] for row in rows], pad),
                _filled([[*row, eos] for row in rows], pad),
            ),
            "or a word too old",
            "Each position reads the word before the last one, never the last: shift by one, once.",
        ),
        WrongAnswer(
            "not integers",
            lambda rows, bos, eos, pad: tuple(
                p.float() for p in my_shift_right(rows, bos, eos, pad)
            ),
            "expected integers",
            "An embedding looks ids up, and takes integers only. `torch.zeros` makes floats unless "
            "told otherwise.",
        ),
        WrongAnswer(
            "lists, not tensors",
            lambda *arguments: [part.tolist() for part in my_shift_right(*arguments)],
            "expected two tensors",
            "The rows are equally long now, and the model takes tensors: `torch.tensor(rows)`.",
        ),
        WrongAnswer(
            "ids fixed",
            lambda rows, bos, eos, pad: my_shift_right(rows, BOS, EOS, PAD),
            "Here 0 is a word and 5 padding",
            "The special ids belong to the tokenizer: use the arguments.",
        ),
        WrongAnswer(
            "every <eos> made padding",
            _every_end_erased,
            "Here 2 is <bos> and <eos>",
            "Where <bos> has the same id, it goes, too. Leave <eos> out when the rows are made: "
            "the input is <bos> and the words.",
        ),
    ),
)


# 13.2 the order of a decoder layer


def my_decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norms):
    """One Pre-LN decoder layer: x (B, T, C) and memory (B, S, C) to (B, T, C).

    self_attention(y) is masked already; cross_attention(y, memory) and feed_forward(y) return
    (B, T, C) too. norms holds three functions, one for each sublayer.
    """
    x = x + self_attention(norms[0](x))
    x = x + cross_attention(norms[1](x), memory)
    return x + feed_forward(norms[2](x))


def _ordered(norms=(0, 1, 2), cross_first=False, ffns=1, memory=None, post=False, normed=False):
    def layer(x, source, self_attention, cross_attention, feed_forward, n):
        def add(x, norm, sublayer):
            if post:
                return n[norm](x + sublayer(x))
            y = n[norm](x)
            return (y if normed else x) + sublayer(y)

        def cross(y):
            return cross_attention(y, memory(source, n) if memory else source)

        first, second = (cross, self_attention) if cross_first else (self_attention, cross)
        x = add(x, norms[0], first)
        if ffns == 2:
            x = add(x, norms[2], feed_forward)
        return add(add(x, norms[1], second), norms[2], feed_forward)

    return layer


def _parallel(x, memory, self_attention, cross_attention, feed_forward, norms):
    attended = self_attention(norms[0](x)) + cross_attention(norms[1](x), memory)
    x = x + attended
    return x + feed_forward(norms[2](x))


def _two_sublayers(x, memory, self_attention, cross_attention, feed_forward, norms):
    x = x + self_attention(norms[0](x))
    return x + feed_forward(norms[2](x))


def _from_the_start(x, memory, self_attention, cross_attention, feed_forward, norms):
    a = x + self_attention(norms[0](x))
    b = a + cross_attention(norms[1](a), memory)
    return x + feed_forward(norms[2](b))


def _beside(x, memory, self_attention, cross_attention, feed_forward, norms):
    x = x + self_attention(norms[0](x))
    return x + cross_attention(norms[1](x), memory) + feed_forward(norms[2](x))


def _swapped(x, memory, self_attention, cross_attention, feed_forward, norms):
    x = x + self_attention(norms[0](x))
    x = x + cross_attention(memory, norms[1](x)).mean(1, keepdim=True)
    return x + feed_forward(norms[2](x))


def _in_place(x, memory, self_attention, cross_attention, feed_forward, norms):
    x += self_attention(norms[0](x))
    x = x + cross_attention(norms[1](x), memory)
    return x + feed_forward(norms[2](x))


ORDER = Answers(
    reference=my_decoder_layer,
    equivalent={},
    wrong=(
        WrongAnswer(
            "the caller's x changed",
            _in_place,
            "changes the caller's `x`",
            "`x += ...` writes into the tensor that the layer was given, which others still read. "
            "`x = x + ...` makes a new one.",
        ),
        WrongAnswer(
            "post-norm",
            _ordered(post=True),
            "The residual carries x itself",
            "`norm(x + sublayer(x))` is the paper's own way; this chapter's Pre-LN layer leaves "
            "the stream alone.",
        ),
        WrongAnswer(
            "cross-attention first",
            _ordered(cross_first=True, norms=(1, 0, 2)),
            "each added to the stream",
            "First the decoder gathers what it has written, then its queries go to the source.",
        ),
        WrongAnswer(
            "the two attentions side by side",
            _parallel,
            "each added to the stream",
            "Cross-attention's query has to hold what self-attention found; here it comes before.",
        ),
        WrongAnswer(
            "cross-attention and feed-forward network side by side",
            _beside,
            "what feed_forward is given",
            "The feed-forward network works on what cross-attention has brought; here it does not "
            "see it.",
        ),
        WrongAnswer(
            "the last residual from the beginning",
            _from_the_start,
            "each added to the stream",
            "Each residual adds to the stream as the sublayer before left it. Adding to the "
            "layer's input throws away what the attentions added.",
        ),
        WrongAnswer(
            "a feed-forward network after each attention",
            _ordered(ffns=2),
            "feed_forward is called 2 times",
            "One tutorial says so. A decoder layer has two attentions, and one feed-forward "
            "network after both.",
        ),
        WrongAnswer(
            "two sublayers",
            _two_sublayers,
            "cross_attention is called 0 times",
            "One tutorial counts two. Without cross-attention the decoder can't read the source.",
        ),
        WrongAnswer(
            "the normalised x carried on",
            _ordered(normed=True),
            "The residual carries x itself",
            "`y + sublayer(y)` with y = norm(x) puts a norm into the stream itself; a well-known "
            "course has this mistake.",
        ),
        WrongAnswer(
            "memory and query swapped",
            _swapped,
            "the second argument of cross_attention",
            "Queries come from the decoder, keys and values from the memory.",
        ),
        WrongAnswer(
            "memory normalised again",
            _ordered(memory=lambda source, n: n[1](source)),
            "the second argument of cross_attention",
            "The encoder has ended in its own norm; the layer's norm belongs to the stream.",
        ),
        WrongAnswer(
            "one norm for all",
            _ordered(norms=(0, 0, 0)),
            "for the small example",
            "Each sublayer has a norm of its own, with a gain and bias of its own.",
        ),
    ),
)


# 13.3 does it leak?


def my_leaks(function, x):
    """Whether an output of `function` depends on a later input.

    x is (B, T, C); function maps it to (B, T, C). Position t may depend on inputs 0 to t.
    """
    x = x.detach().requires_grad_()
    out = function(x)
    for t in range(x.size(1) - 1):
        direction = torch.randn_like(out[:, t])
        (grad,) = torch.autograd.grad(
            out[:, t], x, direction, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        if grad[:, t + 1 :].abs().max() > 0:
            return True
    return False


def _jacobian(function, x):
    table = torch.autograd.functional.jacobian(function, x)  # (B, T, C, B, T, C)
    return table.abs().amax(dim=(0, 2, 3, 5))


def _summed(function, x):
    x = x.detach().requires_grad_()
    out = function(x)
    for t in range(x.size(1) - 1):
        (grad,) = torch.autograd.grad(out[:, t].sum(), x, retain_graph=True)
        if grad[:, t + 1 :].abs().max() > 1e-6:
            return True
    return False


def _last_to_first(function, x):
    changed = x.clone()
    changed[:, -1] += 1
    return bool((function(changed)[:, 0] != function(x)[:, 0]).any())


def _last_input(function, x):
    changed = x.clone()
    changed[:, -1] += 1
    return bool((function(changed) != function(x)).any())


def _zeros_last(function, x):
    changed = x.clone()
    changed[:, -1] = 0
    return bool((function(changed) != function(x))[:, :-1].any())


def _first_feature(function, x):
    for t in range(x.size(1) - 1):
        changed = x.clone()
        changed[:, t + 1 :, 0] = torch.randn(x.size(0), x.size(1) - t - 1)
        if (function(changed) != function(x))[:, : t + 1].any():
            return True
    return False


def _future_to_zero(function, x):
    for t in range(x.size(1) - 1):
        changed = x.clone()
        changed[:, t + 1 :] = 0
        if (function(changed) != function(x))[:, : t + 1].any():
            return True
    return False


def _threshold(function, x):
    return bool((_jacobian(function, x).triu(1) > 1e-3).any())


def _one_added(function, x):
    for s in range(1, x.size(1)):
        changed = x.clone()
        changed[:, s] += 1
        if (function(changed) != function(x))[:, :s].any():
            return True
    return False


def _last_left_out(function, x):
    out = function(x)
    for s in range(1, x.size(1) - 1):
        changed = x.clone()
        changed[:, s] = torch.randn_like(x[:, s])
        if (function(changed) != out)[:, :s].any():
            return True
    return False


def _x_overwritten(function, x):
    out = function(x)
    for s in range(1, x.size(1)):
        x[:, s] = torch.randn_like(x[:, s])
        if (function(x) != out)[:, :s].any():
            return True
    return False


def _nearly_equal(function, x):
    out = function(x)
    for t in range(x.size(1) - 1):
        changed = x.clone()
        changed[:, t + 1 :] = torch.randn_like(x[:, t + 1 :])
        if not torch.allclose(function(changed)[:, : t + 1], out[:, : t + 1]):
            return True
    return False


LEAK = Answers(
    reference=my_leaks,
    equivalent={
        "… => ….detach()…": "a slope is looked at, and nothing is trained by it",
        "… => ….float()…": "only whether a slope is 0 counts",
        "… => ….double()…": "only whether a slope is 0 counts",
        "… => ….half()…": "only whether a slope is 0 counts",
        "… => …square()…": "only whether a slope is 0 counts",
        "… => direction = out[:, t]": "a direction that is not 0; rounding keeps slopes from 0",
        "… => direction = torch.randn_like(x[:, t])": "out has the shape of x",
        "… => for t in range(out.size(1) - 1):": "out is as long as x",
        "… => grad, = …, retain_graph=True, materialize_grads=True)": "this allows unused ones",
        "… => grad, = …, retain_graph=True, allow_unused=True)": "every function here uses x",
        "… => grad, = …, materialize_grads=False)": "every function here uses x",
    },
    wrong=(
        WrongAnswer(
            "the future set to 0",
            _future_to_zero,
            "input 3, which is all 0, you return False",
            "Where the future is 0 already, that changes nothing. Put random numbers in its place.",
        ),
        WrongAnswer(
            "a threshold",
            _threshold,
            "an output 0 that sees 1/10000 of input 2, you return False",
            "A model learns to make use of a small leak. What does not depend on the future has "
            "slope 0, exactly.",
        ),
        WrongAnswer(
            "1 added to every feature",
            _one_added,
            "feature 0 less feature 1 of input 2, you return False",
            "A difference of two features, or a norm, does not notice it. Add random numbers.",
        ),
        WrongAnswer(
            "only from the last input to the first output",
            _last_to_first,
            "for an output 2 that sees input 3",
            "That is one pair of positions of many. A leak of one step is the worst of all, and "
            "passes.",
        ),
        WrongAnswer(
            "any change counts",
            _last_input,
            "for the mean of inputs 0 to t, you return True",
            "The last output may depend on the last input. Only earlier outputs may not.",
        ),
        WrongAnswer(
            "the present counts as the future",
            lambda function, x: bool((_jacobian(function, x).triu() > 0).any()),
            "for the mean of inputs 0 to t, you return True",
            "The input is shifted already: position t may see input t. Look strictly above the "
            "diagonal.",
        ),
        WrongAnswer(
            "the past counts as the future",
            lambda function, x: bool((_jacobian(function, x).tril(-1) > 0).any()),
            "for the mean of inputs 0 to t, you return True",
            "Rows are outputs and columns are inputs, so the future lies above the diagonal.",
        ),
        WrongAnswer(
            "only the next position",
            lambda function, x: bool((_jacobian(function, x).diagonal(1) > 0).any()),
            "for an output 0 that sees input 3",
            "A leak may skip positions: look at all inputs after t.",
        ),
        WrongAnswer(
            "blind behind a norm",
            _summed,
            "then normalised, you return False",
            "A norm at the end removes what is the same in all features: the sum of an output has "
            "no gradient, and adding one number to all features of an input changes nothing. Use "
            "random directions, or random changes.",
        ),
        WrongAnswer(
            "only the last input",
            _zeros_last,
            "for an output 0 that sees input 1",
            "A leak may come from any later input, not only from the last. Change every one.",
        ),
        WrongAnswer(
            "the last input left out",
            _last_left_out,
            "for an output 0 that sees input 3",
            "`range(1, T - 1)` ends before the last position. Change every later input.",
        ),
        WrongAnswer(
            "x overwritten",
            _x_overwritten,
            "changes the caller's `x`",
            "The first change stays when the second is tried, so an earlier input has changed, "
            "too, and the caller's `x` is lost. Change a copy.",
        ),
        WrongAnswer(
            "only the first output",
            lambda function, x: bool((_jacobian(function, x)[0, 1:] > 0).any()),
            "an output 2 that sees input 3",
            "Output 0 is one of T. Ask of each output whether it sees a later input.",
        ),
        WrongAnswer(
            "only the first feature",
            _first_feature,
            "feature 2 of input 1 only",
            "An input is a vector; a leak may use any of its numbers.",
        ),
        WrongAnswer(
            "only the first sentence",
            lambda function, x: bool((_one_sentence(function, x).triu(1) > 0).any()),
            "one that leaks in the second sentence only",
            "Masks are made for each sentence, and may be wrong in some.",
        ),
        WrongAnswer(
            "always safe",
            lambda function, x: False,
            "for the mean of the inputs after t",
            "The outputs have the right shape and no NaN; that says nothing about what they saw.",
        ),
        WrongAnswer(
            "a tolerance",
            _nearly_equal,
            "an output 0 that is 1e-12 of input 2",
            "A threshold of 1e-8, or `allclose`, lets through what is smaller. Ask whether a slope "
            "is 0, or two outputs equal, exactly.",
        ),
    ),
)


def _one_sentence(function, x):
    def first(one):
        return function(torch.cat([one, x[1:]]))[:1]

    return _jacobian(first, x[:1])


ANSWERS = {
    "13.1": SHIFT,
    "13.2": ORDER,
    "13.3": LEAK,
}
