"""Chapter 08: an encoder layer from its parts, hidden words, a property check, a stack."""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf.course.expect import Mismatch, expect, same, short, tensor
from tinytf.course.grading import Exercise, reference

# 08.1 an encoder layer from its parts


def my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first):
    """One encoder layer, (B, S, C) -> (B, S, C).

    attend and think are the two sublayers, norm_1 and norm_2 their norms, all functions of a
    tensor. norm_first says which layer it is: Pre-LN if true, Post-LN if false.
    """
    raise NotImplementedError


X = torch.tensor([[[1.0, 0.0, 3.0], [2.0, 2.0, -1.0]]])


def _attend(x):
    return x.flip(1) + 0.5 * x.mean(dim=1, keepdim=True)


def _think(x):
    return torch.relu(2 * x - 1)


def _norm_1(x):
    return F.layer_norm(x, (3,)) * torch.tensor([1.0, 2.0, 0.5])


def _norm_2(x):
    return F.layer_norm(x, (3,)) + torch.tensor([0.0, 0.5, -1.0])


def _layer(answer, norm_first, note):
    got = answer(X, _attend, _think, _norm_1, _norm_2, norm_first)
    expected = reference("08.1")(X, _attend, _think, _norm_1, _norm_2, norm_first)
    where = f"for x of shape (1, 2, 3), norm_first={norm_first}"
    same(got, expected, where, note=note)


def _is_post(answer):
    """with norm_first=False it is the paper's layer"""
    _layer(answer, False, "Post-LN is norm(x + f(x)), twice.")


def _is_pre(answer):
    """with norm_first=True it is the Pre-LN layer"""
    _layer(answer, True, "Pre-LN is x + f(norm(x)), twice.")


def _silent(answer):
    """if both sublayers say nothing, a Pre-LN layer hands on its input"""
    got = answer(X, torch.zeros_like, torch.zeros_like, _norm_1, _norm_2, True)
    same(got, X, "for sublayers that return zeros", note="The stream itself is not normalised.")


LAYER = Exercise(
    id="08.1",
    title="an encoder layer from its parts",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first)`: the forward pass "
        "of an encoder layer. `attend` and `think` are the sublayers (self-attention and "
        "feed-forward network), `norm_1` and `norm_2` their norms. If `norm_first` is false it is "
        "the Post-LN layer of the paper, otherwise the Pre-LN layer. No dropout."
    ),
    hint="Post-LN: `norm(x + f(x))`. Pre-LN: `x + f(norm(x))`. The second block reads the first.",
    function=my_encoder_layer,
    tests=(_is_post, _is_pre, _silent),
)


# 08.2 hidden, swapped, kept


def my_masked(ids, drawn, fate, words, mask_id):
    """What the encoder reads and what it must say, both (B, S).

    A word (an id from 3 on) is chosen if its number in `drawn` is below 0.15. If its number in
    `fate` is below 0.8 it becomes mask_id, if below 0.9 its word in `words`, otherwise it stays.
    What it must say is the word that stood there where one was chosen, and -100 elsewhere.
    """
    raise NotImplementedError


# 0.15 and 0.8 themselves are among the numbers. 0.9 is not: as a 32-bit number it lies below 0.9.
IDS = torch.tensor([[5, 6, 7, 2, 0, 3], [8, 9, 5, 4, 2, 0]])
DRAWN = torch.tensor([[0.1, 0.9, 0.14, 0.05, 0.01, 0.03], [0.02, 0.5, 0.12, 0.15, 0.99, 0.1]])
FATE = torch.tensor([[0.3, 0.1, 0.8, 0.2, 0.86, 0.7], [0.95, 0.85, 0.79, 0.1, 0.5, 0.4]])
WORDS = torch.tensor([[8, 8, 9, 9, 6, 7], [6, 7, 7, 6, 3, 4]])
READ = torch.tensor([[10, 6, 9, 2, 0, 10], [8, 9, 10, 4, 2, 0]])
SAY = torch.tensor([[5, -100, 7, -100, -100, 3], [8, -100, 5, -100, -100, -100]])


def _pair(answer, where, ids=IDS, mask_id=10):
    got = answer(ids, DRAWN, FATE, WORDS, mask_id)
    expect(
        isinstance(got, tuple | list) and len(got) == 2,
        f"{where}, you return a {type(got).__name__}, expected two tensors: read, say",
    )
    return [tensor(part, where) for part in got]


def _agree(got, expected, ids, what, note):
    """Name one word, with its random numbers, that comes out otherwise than expected."""
    where = f"for ids={ids.tolist()}"
    expect(
        got.shape == expected.shape,
        f"{where}, the shape of what {what} is {tuple(got.shape)}, "
        f"expected {tuple(expected.shape)}",
    )
    for at in (got != expected).nonzero()[:1].tolist():
        i, drawn, fate, word = (part[tuple(at)].item() for part in (ids, DRAWN, FATE, WORDS))
        raise Mismatch(
            f"for the id {i} with drawn={drawn:.2f}, fate={fate:.2f} and {word} in `words`, "
            f"what {what} is {short(got[tuple(at)])}, expected {short(expected[tuple(at)])}. {note}"
        )


def _reads(answer):
    """a chosen word is hidden, swapped or kept, by its number in fate"""
    note = "Below 0.8 it is hidden, from there to below 0.9 it is words', and then it stays."
    read, _ = _pair(answer, f"for ids={IDS.tolist()}")
    _agree(read, READ, IDS, "is read", note)


def _says(answer):
    """what has to be said is every chosen word, as it was, and nothing else"""
    note = "The loss counts where a word was chosen: hidden, swapped or kept."
    _, say = _pair(answer, f"for ids={IDS.tolist()}")
    _agree(say, SAY, IDS, "is to be said", note)


def _no_specials(answer):
    """<pad>, <bos> and <eos> are never chosen"""
    ids = torch.tensor([[1, 2, 2, 0, 0, 1]] * 2)
    read, _ = _pair(answer, f"for ids={ids.tolist()}", ids)
    _agree(read, ids, ids, "is read", "0, 1 and 2 are <pad>, <bos> and <eos>.")


def _other_mask(answer):
    """<mask> has the id that is given"""
    read, _ = _pair(answer, "for mask_id=20", mask_id=20)
    expected = READ.masked_fill(READ == 10, 20)
    _agree(read, expected, IDS, "is read", "Here mask_id=20.")


MASKED = Exercise(
    id="08.2",
    title="hidden, swapped, kept",
    difficulty=2,
    minutes=12,
    statement=(
        "Write `my_masked(ids, drawn, fate, words, mask_id)`, BERT's masking with the random "
        "numbers given. A word (an id from 3 on) is *chosen* if its number in `drawn` is below "
        "0.15. A chosen word becomes `mask_id` if its number in `fate` is below 0.8, the word at "
        "the same place in `words` if that is from 0.8 to below 0.9, and stays otherwise. "
        "Return what the encoder reads and what it must say: the word that stood there where one "
        "was chosen, -100 elsewhere (`F.cross_entropy` leaves that out)."
    ),
    hint="`torch.where(condition, words, ids)` and `masked_fill`; the order of two writes counts.",
    function=my_masked,
    tests=(_reads, _says, _no_specials, _other_mask),
)


# 08.3 does it see the right?


def my_sees_right(encode, x):
    """Whether every output can be changed by every input to its right.

    encode maps (B, S, C) to (B, S, C), and x is such an input.
    """
    raise NotImplementedError


_MIX = torch.tensor(
    [[2.0, 1, 3, 1, 2], [1, 2, 1, 2, 3], [3, 1, 2, 2, 1], [1, 3, 1, 2, 2], [2, 1, 2, 1, 3]]
)
_SEQUENCE = torch.tensor(
    [
        [
            [1.0, 2.0, -0.5, 0.5], [0.5, -1.0, 2.0, 1.0], [3.0, 1.0, 0.5, -1.0],
            [-2.0, 0.5, 1.0, 2.0], [1.5, 2.5, -1.0, 0.5],
        ]
    ]
)  # fmt: skip


def _encoder(sees, itself=True, centred=False):
    """An encoder in which output t reads the inputs s that sees(t, s) allows, and itself.

    centred: each output has mean 0 over its features, as a LayerNorm makes it.
    """
    at = torch.arange(5)
    allowed = sees(at[:, None], at[None, :])
    allowed = allowed | torch.eye(5, dtype=torch.bool) if itself else allowed

    def encode(x):
        out = torch.tanh(0.1 * (_MIX * allowed).to(x) @ x)
        return out - out.mean(dim=-1, keepdim=True) if centred else out

    return encode


_all = _encoder(lambda t, s: (t >= 0) & (s >= 0))
_causal = _encoder(lambda t, s: s <= t)
_anticausal = _encoder(lambda t, s: s >= t)
_next = _encoder(lambda t, s: s <= t + 1)
_not_last = _encoder(lambda t, s: (s < 4) & (t >= 0))
_first_only = _encoder(lambda t, s: (s <= t) | (t == 0))
_others = _encoder(lambda t, s: s != t, itself=False)
_centred = _encoder(lambda t, s: (t >= 0) & (s >= 0), centred=True)


def _verdict(answer, encode, expected, which):
    got = answer(encode, _SEQUENCE)
    where = f"for {which}, five words"
    expect(
        isinstance(got, bool) or (isinstance(got, torch.Tensor) and got.numel() == 1),
        f"{where}, you return a {type(got).__name__}, expected True or False",
    )
    expect(bool(got) == expected, f"{where}, you say {bool(got)}, expected {expected}")


def _says_yes(answer):
    """an encoder that sees everything passes"""
    _verdict(answer, _all, True, "an encoder that sees everything")


def _says_yes_again(answer):
    """one that sees only itself and the right passes: the left is not asked about"""
    _verdict(answer, _anticausal, True, "an encoder that sees only itself and the right")


def _says_yes_to_others(answer):
    """one that sees all but the word itself passes: only the right is asked about"""
    _verdict(answer, _others, True, "an encoder that sees all but the word itself")


def _says_yes_centred(answer):
    """one that ends in a norm passes: its outputs have mean 0"""
    which = "an encoder that sees everything and whose outputs have mean 0, as after a norm"
    _verdict(answer, _centred, True, which)


def _says_no(answer):
    """a causal encoder does not pass"""
    _verdict(answer, _causal, False, "a causal encoder")


def _says_no_window(answer):
    """one that sees the next word and no further does not pass"""
    _verdict(answer, _next, False, "an encoder that sees one word to the right")


def _says_no_last(answer):
    """one that can't see the last word does not pass"""
    _verdict(answer, _not_last, False, "an encoder that never sees the last word")


def _says_no_first(answer):
    """one in which only the first word sees the right does not pass"""
    _verdict(answer, _first_only, False, "an encoder in which only the first word sees the right")


SEES = Exercise(
    id="08.3",
    title="does it see the right?",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_sees_right(encode, x)`, the check that finds a causal encoder. `encode` maps "
        "`(B, S, C)` to `(B, S, C)`; return `True` if *every* output can be changed by *every* "
        "input to its right, otherwise `False`. Use gradients, or change one input at a time."
    ),
    hint=(
        "For each t, `slope` of the section above, or the like: the gradient of `out[:, t]`, its "
        "features weighed at random, by `x`. Look at `[:, t + 1 :]`, and ask of each position "
        "there whether it is exactly 0."
    ),
    function=my_sees_right,
    tests=(
        _says_yes,
        _says_yes_again,
        _says_yes_to_others,
        _says_yes_centred,
        _says_no,
        _says_no_window,
        _says_no_last,
        _says_no_first,
    ),
)


# 08.4 layers with weights of their own


def my_layers(make_layer, num_layers):
    """An nn.ModuleList of num_layers layers, each with weights of its own.

    make_layer() makes one layer with fresh random weights.
    """
    raise NotImplementedError


def _make():
    return nn.Linear(3, 3)


def _built(answer):
    return answer(_make, 4)


_FOUR = "for num_layers=4"


def _counts(answer):
    """there are num_layers layers"""
    layers = _built(answer)
    expect(hasattr(layers, "__len__"), f"{_FOUR}, you return a {type(layers).__name__}")
    expect(len(layers) == 4, f"{_FOUR}, there are {len(layers)} layers")


def _are_layers(answer):
    """each entry is a layer"""
    for layer in _built(answer):
        kind = type(layer).__name__
        expect(isinstance(layer, nn.Module), f"{_FOUR}, an entry is a {kind}, expected a layer")


def _is_list(answer):
    """the parameters of all layers are found by the model that holds them"""
    model = nn.Module()
    model.layers = _built(answer)
    found = sum(p.numel() for p in model.parameters())
    own = "each layer here has 12"
    expect(found == 48, f"{_FOUR}, the model has {found} parameters, expected 48: {own}")


def _differ(answer):
    """no two layers start with equal weights"""
    weights = [layer.weight for layer in _built(answer)]
    for i, one in enumerate(weights):
        for j, other in enumerate(weights[:i]):
            expect(
                not torch.equal(one, other),
                f"{_FOUR}, layers {j} and {i} start with equal weights",
            )


STACK = Exercise(
    id="08.4",
    title="layers with weights of their own",
    difficulty=1,
    minutes=5,
    statement=(
        "Write `my_layers(make_layer, num_layers)`: an `nn.ModuleList` of `num_layers` layers. "
        "`make_layer()` makes one layer with fresh random weights. Each layer has weights of its "
        "own, and no two start equal."
    ),
    hint="Call `make_layer` once for each layer, inside a list comprehension.",
    function=my_layers,
    tests=(_counts, _are_layers, _is_list, _differ),
)


EXERCISES = (LAYER, MASKED, SEES, STACK)
