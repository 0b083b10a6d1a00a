"""Answers to chapter 12: references and mistakes."""

import copy

import torch
from torch import nn

from tinytf_course.grading import Answers, WrongAnswer

# 12.1 an encoder layer from its parts


def my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first):
    """One encoder layer, (B, S, C) -> (B, S, C).

    attend and think are the two sublayers, norm_1 and norm_2 their norms, all functions of a
    tensor. norm_first says which layer it is: Pre-LN if true, Post-LN if false.
    """
    if norm_first:
        y = x + attend(norm_1(x))
        return y + think(norm_2(y))
    y = norm_1(x + attend(x))
    return norm_2(y + think(y))


def _inner(x, attend, think, norm_1, norm_2, norm_first):
    if norm_first:
        return my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first)
    y = x + norm_1(attend(x))
    return y + norm_2(think(y))


def _normed_stream(x, attend, think, norm_1, norm_2, norm_first):
    if not norm_first:
        return my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first)
    y = norm_1(x)
    y = norm_2(y + attend(y))
    return y + think(y)


def _bare(x, attend, think, norm_1, norm_2, norm_first):
    if norm_first:
        return think(norm_2(attend(norm_1(x))))
    return norm_2(think(norm_1(attend(x))))


def _exchanged(x, attend, think, norm_1, norm_2, norm_first):
    return my_encoder_layer(x, attend, think, norm_1, norm_2, not norm_first)


def _parallel(x, attend, think, norm_1, norm_2, norm_first):
    if norm_first:
        return x + attend(norm_1(x)) + think(norm_2(x))
    return norm_2(norm_1(x + attend(x)) + think(x))


def _from_the_start(x, attend, think, norm_1, norm_2, norm_first):
    if norm_first:
        return x + think(norm_2(x + attend(norm_1(x))))
    return norm_2(x + think(norm_1(x + attend(x))))


def _in_place(x, attend, think, norm_1, norm_2, norm_first):
    if norm_first:
        x += attend(norm_1(x))
        return x + think(norm_2(x))
    x += attend(x)
    x = norm_1(x)
    return norm_2(x + think(x))


LAYER = Answers(
    reference=my_encoder_layer,
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
            "the norm inside the sum",
            _inner,
            "Post-LN is norm(x + f(x))",
            "x + norm(f(x)) normalises what the sublayer says; the paper normalises the sum.",
        ),
        WrongAnswer(
            "the stream normalised",
            _normed_stream,
            "The stream itself is not normalised",
            "Pre-LN normalises what the sublayer reads, and adds what it says to x as it was. "
            "After `x = norm(x)` there is no unnormalised stream left to add to.",
        ),
        WrongAnswer(
            "no residual",
            _bare,
            "Post-LN is norm(x + f(x))",
            "Each sublayer's output is added to its input.",
        ),
        WrongAnswer(
            "both sublayers read the input",
            _parallel,
            "Pre-LN is x + f(norm(x))",
            "The feed-forward network reads what attention has brought in. (Side by side they are "
            "another layer, which some models use.)",
        ),
        WrongAnswer(
            "the second residual from the start",
            _from_the_start,
            "Pre-LN is x + f(norm(x))",
            "The second block adds to what the first one handed on, not to the layer's input.",
        ),
        WrongAnswer(
            "one norm used twice",
            lambda x, attend, think, norm_1, norm_2, norm_first: my_encoder_layer(
                x, attend, think, norm_1, norm_1, norm_first
            ),
            "Post-LN is norm(x + f(x))",
            "Each block has a norm of its own, with its own gain and bias.",
        ),
        WrongAnswer(
            "the two layers exchanged",
            _exchanged,
            "Post-LN is norm(x + f(x))",
            "`norm_first` says that the norm comes first: true is Pre-LN. Here it is Post-LN, and "
            "the other way round.",
        ),
        WrongAnswer(
            "Post-LN whatever is asked",
            lambda x, attend, think, norm_1, norm_2, norm_first: my_encoder_layer(
                x, attend, think, norm_1, norm_2, False
            ),
            "Pre-LN is x + f(norm(x))",
            "`norm_first` changes nothing here. One tutorial has two classes, one called PreLN, "
            "with the same `forward`.",
        ),
    ),
)


# 12.2 layers with weights of their own


def my_layers(make_layer, num_layers):
    """An nn.ModuleList of num_layers layers, each with weights of its own.

    make_layer() makes one layer with fresh random weights.
    """
    return nn.ModuleList([make_layer() for _ in range(num_layers)])


def _noisy_copies(make_layer, num_layers):
    layers = nn.ModuleList([copy.deepcopy(one) for one in [make_layer()] * num_layers])
    with torch.no_grad():
        for weight in layers.parameters():
            weight += 1e-3 * torch.randn_like(weight)
    return layers


def _seeded_at_0(make_layer, num_layers):
    torch.manual_seed(0)
    return my_layers(make_layer, num_layers)


def _frozen(make_layer, num_layers):
    return my_layers(make_layer, num_layers).requires_grad_(False)


STACK = Answers(
    reference=my_layers,
    equivalent={},
    wrong=(
        WrongAnswer(
            "copies with noise",
            _noisy_copies,
            "make_layer is called 1 times, expected 3",
            "A little noise makes copies unequal and leaves them alike: all begin as one layer. "
            "Make each by itself.",
        ),
        WrongAnswer(
            "the same random numbers every time",
            _seeded_at_0,
            "called twice, a layer starts with equal weights",
            "A seed set in here makes every stack start alike, encoder and decoder too, and sets "
            "back the caller's random numbers. A seed is set once, by whoever runs the program.",
        ),
        WrongAnswer(
            "frozen layers",
            _frozen,
            "layer 0 is frozen",
            "`requires_grad_(False)` is for models that are done with learning. These begin.",
        ),
        WrongAnswer(
            "layers in eval mode",
            lambda make_layer, num_layers: my_layers(make_layer, num_layers).eval(),
            "layer 0 is in the mode of `eval()`",
            "A model begins in training, with its dropout. `eval()` is for its use.",
        ),
        WrongAnswer(
            "one layer, four times",
            lambda make_layer, num_layers: nn.ModuleList([make_layer()] * num_layers),
            "the model has 12 parameters",
            "`[layer] * n` holds one layer n times. It runs, and trains one layer's weights; "
            "ALBERT does so on purpose.",
        ),
        WrongAnswer(
            "copies of one layer",
            lambda make_layer, num_layers: nn.ModuleList(
                [copy.deepcopy(layer) for layer in [make_layer()] * num_layers]
            ),
            "layers 0 and 1 start with equal weights",
            "Copies have weights of their own, which start equal. `nn.TransformerEncoder` does "
            "this.",
        ),
        WrongAnswer(
            "a plain list",
            lambda make_layer, num_layers: [make_layer() for _ in range(num_layers)],
            "the model has 0 parameters",
            "A module does not look into Python lists: the optimiser would never see these layers.",
        ),
        WrongAnswer(
            "makers instead of layers",
            lambda make_layer, num_layers: [make_layer] * num_layers,
            "an entry is a function, expected a layer",
            "`make_layer` is the function; `make_layer()` is a layer.",
        ),
        WrongAnswer(
            "one too few",
            lambda make_layer, num_layers: nn.ModuleList(
                [make_layer() for _ in range(1, num_layers)]
            ),
            "there are 3 layers",
            "`range(1, n)` has n - 1 numbers.",
        ),
    ),
)


# 12.3 hidden, swapped, kept


def my_masked(ids, drawn, fate, words, mask_id):
    """The encoder's input and its targets, both (B, S).

    A word (an id from 3 on) is chosen if its number in `drawn` is below 0.15. If its number in
    `fate` is below 0.8 it becomes mask_id, if below 0.9 its word in `words`, otherwise it stays.
    The target is the original id where a word was chosen, and -100 elsewhere.
    """
    chosen = (drawn < 0.15) & (ids >= 3)
    read = torch.where(chosen & (fate < 0.9), words, ids)
    read = read.masked_fill(chosen & (fate < 0.8), mask_id)
    return read, ids.masked_fill(~chosen, -100)


def _masks(ids, drawn, fate):
    chosen = (drawn < 0.15) & (ids >= 3)
    return chosen, chosen & (fate < 0.8), chosen & (fate >= 0.8) & (fate < 0.9)


def _chosen_specials(ids, drawn, fate, words, mask_id):
    chosen = drawn < 0.15
    read = torch.where(chosen & (fate < 0.9), words, ids)
    return read.masked_fill(chosen & (fate < 0.8), mask_id), ids.masked_fill(~chosen, -100)


def _said_on_the_cpu(ids, drawn, fate, words, mask_id):
    chosen, _, _ = _masks(ids, drawn, fate)
    read, _ = my_masked(ids, drawn, fate, words, mask_id)
    return read, torch.where(chosen, ids, torch.full(ids.shape, -100))


def _always_hidden(ids, drawn, fate, words, mask_id):
    chosen, _, _ = _masks(ids, drawn, fate)
    return ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, -100)


def _only_hidden_counts(ids, drawn, fate, words, mask_id):
    read, _ = my_masked(ids, drawn, fate, words, mask_id)
    return read, ids.masked_fill(read != mask_id, -100)


def _overwritten(ids, drawn, fate, words, mask_id):
    chosen, hidden, _ = _masks(ids, drawn, fate)
    read = ids.masked_fill(hidden, mask_id)
    return torch.where(chosen & (fate < 0.9), words, read), ids.masked_fill(~chosen, -100)


def _only_changed_counts(ids, drawn, fate, words, mask_id):
    read, _ = my_masked(ids, drawn, fate, words, mask_id)
    return read, ids.masked_fill(read == ids, -100)


def _ends_counted_in(ids, drawn, fate, words, mask_id):
    chosen = (drawn <= 0.15) & (ids >= 3)
    read = torch.where(chosen & (fate <= 0.9), words, ids)
    read = read.masked_fill(chosen & (fate <= 0.8), mask_id)
    return read, ids.masked_fill(~chosen, -100)


def _says_what_it_reads(ids, drawn, fate, words, mask_id):
    read, _ = my_masked(ids, drawn, fate, words, mask_id)
    chosen, _, _ = _masks(ids, drawn, fate)
    return read, read.masked_fill(~chosen, -100)


def _overwrites_the_batch(ids, drawn, fate, words, mask_id):
    chosen, hidden, swapped = _masks(ids, drawn, fate)
    say = ids.masked_fill(~chosen, -100)
    ids[hidden] = mask_id
    ids[swapped] = words[swapped]
    return ids, say


MASKED = Answers(
    reference=my_masked,
    equivalent={
        "… => ….detach()…": "ids and masks carry no gradient",
        "… => …(ids.float() >= 3)": "small ids are the same in float32",
    },
    wrong=(
        WrongAnswer(
            "the batch overwritten",
            _overwrites_the_batch,
            "changes the caller's `ids`",
            "The next epoch would read a sentence that is hidden already, and have to say <mask>. "
            "Work on a copy: `ids.clone()`, or `torch.where`.",
        ),
        WrongAnswer(
            "padding and <eos> chosen",
            _chosen_specials,
            "0, 1 and 2 are <pad>, <bos> and <eos>",
            "Then the model learns to fill in padding, and its loss looks better than it is.",
        ),
        WrongAnswer(
            "a table on the CPU",
            _said_on_the_cpu,
            "on another device than the CPU",
            "`torch.full(...)` is on the CPU, wherever `ids` is: give it `device=ids.device`, or "
            "use `masked_fill`, which needs no table.",
        ),
        WrongAnswer(
            "all chosen words hidden",
            _always_hidden,
            "Below 0.8 it is hidden",
            "Then what it reads at a visible word is always right, and it need not think about "
            "visible words at all, the only ones there are once training is over.",
        ),
        WrongAnswer(
            "only the hidden ones count",
            _only_hidden_counts,
            "The loss counts where a word was chosen",
            "Swapped and kept words have to be said too: that is why they were chosen.",
        ),
        WrongAnswer(
            "the swap overwrites the mask",
            _overwritten,
            "Below 0.8 it is hidden",
            "fate < 0.9 holds for the hidden ones as well, and the later write wins: nothing is "
            "hidden any more.",
        ),
        WrongAnswer(
            "it says what it reads",
            _says_what_it_reads,
            "The loss counts where a word was chosen",
            "What it must say comes from the sentence before masking. This model learns to say "
            "<mask>.",
        ),
        WrongAnswer(
            "every word counts",
            lambda ids, drawn, fate, words, mask_id: (
                my_masked(ids, drawn, fate, words, mask_id)[0],
                ids,
            ),
            "The loss counts where a word was chosen",
            "A word that stands there to be read teaches copying, and there are six of them for "
            "each chosen one.",
        ),
        WrongAnswer(
            "the loss only where something changed",
            _only_changed_counts,
            "The loss counts where a word was chosen",
            "`read != ids` leaves out the chosen words that stay, and the loss must count them: "
            "otherwise a word that is read would never have to be said.",
        ),
        WrongAnswer(
            "0 where nothing is asked",
            lambda ids, drawn, fate, words, mask_id: (
                my_masked(ids, drawn, fate, words, mask_id)[0],
                my_masked(ids, drawn, fate, words, mask_id)[1].clamp(min=0),
            ),
            "The loss counts where a word was chosen",
            "`F.cross_entropy` leaves out -100. 0 is <pad>, and the model would learn to say it.",
        ),
        WrongAnswer(
            "the two outputs changed round",
            lambda ids, drawn, fate, words, mask_id: my_masked(ids, drawn, fate, words, mask_id)[
                ::-1
            ],
            "Below 0.8 it is hidden",
            "First what is read, then what is to be said.",
        ),
        WrongAnswer(
            "the first word left out",
            lambda ids, drawn, fate, words, mask_id: my_masked(
                ids, torch.where(ids > 3, drawn, 1.0), fate, words, mask_id
            ),
            "for the id 3 with",
            "Words are the ids from 3 on: `ids >= 3`.",
        ),
        WrongAnswer(
            "the ends counted in",
            _ends_counted_in,
            "fate=0.80",
            "`below` leaves the number itself out: `<`, not `<=`.",
        ),
        WrongAnswer(
            "the id of <mask> written out",
            lambda ids, drawn, fate, words, mask_id: my_masked(ids, drawn, fate, words, 10),
            "Here mask_id=20",
            "Another vocabulary has another <mask>: use `mask_id`.",
        ),
    ),
)


# 12.4 does it see the right?


def my_sees_right(encode, x):
    """Whether every output can be changed by every input to its right.

    encode maps (B, S, C) to (B, S, C), and x is such an input.
    """
    x = x.detach().requires_grad_()
    out = encode(x)
    for t in range(x.size(1) - 1):
        direction = torch.randn(out[:, t].shape).to(out)
        (slope,) = torch.autograd.grad(out[:, t], x, direction, retain_graph=True)
        seen = (slope[:, t + 1 :] != 0).any(dim=-1)  # (B, S - t - 1)
        if not seen.all():
            return False
    return True


def _table(encode, x):
    """Which input s can change which output t: booleans (T, S)."""
    x = x.detach().requires_grad_()
    out, rows = encode(x), []
    for t in range(x.size(1)):
        direction = torch.tensor([1.0, 0.3, -0.7, 2.0])[: out.size(-1)].expand_as(out[:, t])
        (slope,) = torch.autograd.grad(out[:, t], x, direction, retain_graph=True)
        rows.append(slope.abs().sum(dim=(0, 2)) > 0)
    return torch.stack(rows)


def _squares(encode, x):
    x = x.detach().requires_grad_()
    out = encode(x)
    for t in range(x.size(1) - 1):
        (slope,) = torch.autograd.grad(out[:, t].square().sum(), x, retain_graph=True)
        if not (slope[:, t + 1 :] != 0).any(dim=-1).all():
            return False
    return True


def _all_at_once(encode, x):
    for t in range(x.size(1) - 1):
        changed = x.clone()
        changed[:, t + 1 :] += torch.randn_like(x[:, t + 1 :])
        if not (encode(changed) != encode(x))[:, t].any(dim=-1).all():
            return False
    return True


def _plain_sum(encode, x):
    x = x.detach().requires_grad_()
    out = encode(x)
    for t in range(x.size(1) - 1):
        (slope,) = torch.autograd.grad(out[:, t].sum(), x, retain_graph=True)
        if (slope[:, t + 1 :].abs().sum(dim=(0, 2)) == 0).any():
            return False
    return True


def _itself_too(encode, x):
    table = _table(encode, x)
    return bool(table[torch.ones_like(table).triu()].all())


def _above(encode, x):
    table = _table(encode, x)
    return table[torch.ones_like(table).triu(1)]


def _left(encode, x):
    table = _table(encode, x)
    return bool(table[torch.ones_like(table).tril(-1)].all())


def _sum(encode, x):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(encode(x).pow(2).sum(), x)
    return bool((slope.abs().sum(dim=(0, 2)) > 0).all())


def _last_input(encode, x):
    changed = x.clone()
    changed[:, -1] += torch.randn_like(x[:, -1])
    return bool((encode(changed) != encode(x)).any(-1)[:, :-1].all())


def _first_sentence(encode, x):
    x = x.detach().requires_grad_()
    out = encode(x)
    for t in range(x.size(1) - 1):
        (slope,) = torch.autograd.grad(out[0, t], x, torch.randn_like(out[0, t]), retain_graph=True)
        if not (slope[0, t + 1 :] != 0).any(-1).all():
            return False
    return True


def _summed_over_batch(encode, x):
    table = _table(encode, x)
    return bool(table[torch.ones_like(table).triu(1)].all())


def _first_feature_read(encode, x):
    for s in range(1, x.size(1)):
        changed = x.clone()
        changed[:, s, 0] += 1
        if not (encode(changed) != encode(x)).any(-1)[:, :s].all():
            return False
    return True


def _first_feature_said(encode, x):
    for s in range(1, x.size(1)):
        changed = x.clone()
        changed[:, s] += torch.randn_like(x[:, s])
        if not (encode(changed) != encode(x))[:, :s, 0].all():
            return False
    return True


def _set_to_zero(encode, x):
    for s in range(1, x.size(1)):
        changed = x.clone()
        changed[:, s] = 0
        if not (encode(changed) != encode(x)).any(-1)[:, :s].all():
            return False
    return True


def _above_threshold(encode, x):
    x = x.clone().requires_grad_()
    out = encode(x)
    for t in range(x.size(1) - 1):
        direction = torch.randn_like(out[:, t])
        (grad,) = torch.autograd.grad((out[:, t] * direction).sum(), x, retain_graph=True)
        if not (grad[:, t + 1 :].abs() > 1e-8).any(dim=-1).all():
            return False
    return True


def _changed_in_float32(encode, x):
    out = encode(x)
    for s in range(1, x.size(1)):
        changed = x.clone()
        changed[:, s] = torch.randn_like(x[:, s])
        if not (encode(changed)[:, :s] != out[:, :s]).any(dim=-1).all():
            return False
    return True


SEES = Answers(
    reference=my_sees_right,
    equivalent={
        "… => ….detach()…": "a slope is looked at, and nothing is trained by it",
        "… => ….float()…": "only whether a slope is 0 counts",
        "… => ….double()…": "only whether a slope is 0 counts",
        "… => ….half()…": "only whether a slope is 0 counts",
        "… => ….to(…)": "a direction of any dtype is one",
        "direction = … => direction = torch.randn(out[:, t].shape)": "so is one of float32",
        "… => for t in range(x.size(1)…):": "the last word has nothing to its right",
        "… => for t in range(out.size(1) - 1):": "out is as long as x",
        "direction = … => direction = torch.randn(x[:, t].shape).to(out)": "out has the shape of x",
    },
    wrong=(
        WrongAnswer(
            "only the last input",
            _last_input,
            "sees itself and the last word, five words, you say True",
            "Here each word sees the last one and no other. Change each input to the right.",
        ),
        WrongAnswer(
            "only the first sentence",
            _first_sentence,
            "causal in sentence 1 of 3 only, five words, you say True",
            "A mask is made for each sentence, and may be wrong in some. Look at all of them.",
        ),
        WrongAnswer(
            "the batch summed",
            _summed_over_batch,
            "causal in sentence 0 of 3 only, five words, you say True",
            "Summed over the batch, the slopes of a sentence that sees hide one that does not.",
        ),
        WrongAnswer(
            "only the first feature read",
            _first_feature_read,
            "reads feature 1 of every word only, five words, you say False",
            "A word is a vector. Change all its features, by different amounts.",
        ),
        WrongAnswer(
            "only the first feature said",
            _first_feature_said,
            "changes feature 1 of every word only, five words, you say False",
            "A word is a vector, and a change of any of its features is one.",
        ),
        WrongAnswer(
            "set to 0",
            _set_to_zero,
            "word 3 all 0, five words, you say False",
            "Setting a word to 0 changes nothing where it is 0 already. Add random numbers.",
        ),
        WrongAnswer(
            "looks to the left",
            _left,
            "a causal encoder, five words, you say True",
            "Below the diagonal lies what is to the left, and a causal encoder sees that. "
            "Row t, column s: to the right is s > t.",
        ),
        WrongAnswer(
            "some instead of every",
            lambda encode, x: bool(_above(encode, x).any()),
            "sees one word to the right, five words, you say True",
            "One open way is not enough: `all`, not `any`.",
        ),
        WrongAnswer(
            "all outputs summed",
            _sum,
            "a causal encoder, five words, you say True",
            "The gradient of the sum tells whether an input changes anything. Each word changes "
            "its own output, so every encoder passes. Take one output at a time.",
        ),
        WrongAnswer(
            "only the corner",
            lambda encode, x: bool(_table(encode, x)[0, -1]),
            "only the first word sees the right, five words, you say True",
            "That the first word sees the last says nothing about the others.",
        ),
        WrongAnswer(
            "only the next word",
            lambda encode, x: bool(_table(encode, x).diagonal(1).all()),
            "sees one word to the right, five words, you say True",
            "A window passes this check. Ask for every position to the right.",
        ),
        WrongAnswer(
            "the decoder's question",
            lambda encode, x: not _above(encode, x).any(),
            "sees everything, five words, you say False",
            "That nothing comes from the right is what a decoder must pass. An encoder must not.",
        ),
        WrongAnswer(
            "left and right both",
            lambda encode, x: bool(_table(encode, x).all()),
            "only itself and the right, five words, you say False",
            "This asks for more than the question: that everything sees everything.",
        ),
        WrongAnswer(
            "the word itself too",
            _itself_too,
            "all but the word itself, five words, you say False",
            "`t:` begins at the word itself; what is to its right begins at `t + 1`.",
        ),
        WrongAnswer(
            "the squares of the features",
            _squares,
            "all words all 0, five words, you say False",
            "Where an output is 0 the slope of its square is 0, and after a norm the sum of the "
            "squares is constant. Weigh the features with random numbers.",
        ),
        WrongAnswer(
            "everything to the right changed at once",
            _all_at_once,
            "an encoder that sees one word to the right",
            "One word on the right that is seen is enough for this. Change one at a time.",
        ),
        WrongAnswer(
            "the plain sum of the features",
            _plain_sum,
            "as after a norm, five words, you say False",
            "`out[:, t].sum()` has gradient 0 where a norm has made the sum constant, however "
            "much the word sees. Weigh the features with random numbers first.",
        ),
        WrongAnswer(
            "a threshold",
            _above_threshold,
            "x plus 0.000000001",
            "A change is a change, however small. What cannot be seen has slope 0, exactly.",
        ),
        WrongAnswer(
            "compared in float32",
            _changed_in_float32,
            "float32, x plus 0.000000001",
            "Beside x a change of a billionth of it is rounded away, and the outputs are equal. A "
            "slope is taken by itself, and keeps its digits; or compare in float64.",
        ),
    ),
)


ANSWERS = {
    "12.1": LAYER,
    "12.2": STACK,
    "12.3": MASKED,
    "12.4": SEES,
}
