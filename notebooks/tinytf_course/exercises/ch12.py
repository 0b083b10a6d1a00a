"""Chapter 12: an encoder layer from its parts, a stack, hidden words, a property check."""

import torch
import torch.nn.functional as F
from torch import nn

from tinytf_course.expect import (
    Mismatch,
    agrees,
    expect,
    gradients,
    numbers,
    same,
    short,
    tensor,
    travels,
)
from tinytf_course.grading import Exercise, hint
from tinytf_course.words import described

# 12.1 an encoder layer from its parts


def my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first):
    """One encoder layer, (B, S, C) -> (B, S, C).

    attend and think are the two sublayers, norm_1 and norm_2 their norms, all functions of a
    tensor. norm_first says which layer it is: Pre-LN if true, Post-LN if false.
    """
    raise NotImplementedError


def _attend(x):
    return x.flip(1) + 0.5 * x.mean(dim=1, keepdim=True) - 0.1 * x * x


def _think(x):
    return torch.relu(2 * x - 1) + 0.1 * x.flip(-1) * x


def _norm_1(x):
    return F.layer_norm(x, x.shape[-1:]) * torch.arange(1, x.size(-1) + 1).to(x)


def _norm_2(x):
    return F.layer_norm(x, x.shape[-1:]) + 0.5 * torch.arange(x.size(-1)).to(x)


_PARTS = (_attend, _think, _norm_1, _norm_2)


def _two_blocks(x, attend, think, norm_1, norm_2, norm_first):
    """A block for each sublayer, in a loop."""
    for sublayer, norm in ((attend, norm_1), (think, norm_2)):
        x = x + sublayer(norm(x)) if norm_first else norm(x + sublayer(x))
    return x


def _torch_layer(norm_first):
    """Torch's layer, its weights unlike each other, and its parts as functions."""
    layer = nn.TransformerEncoderLayer(
        4, 2, 6, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    with torch.no_grad():
        for seed, weight in enumerate(layer.parameters()):
            weight.copy_(numbers(*weight.shape, seed=seed, scale=0.7, dtype=torch.float64))

    def attend(x):
        return layer.self_attn(x, x, x, need_weights=False)[0]

    def think(x):
        return layer.linear2(layer.linear1(x).relu())

    return layer, (attend, think, layer.norm1, layer.norm2)


def _layer_case(shape, norm_first):
    return f"for x of shape {shape}, norm_first={norm_first}"


def _layer(answer, norm_first, note):
    for shape, seed in (((1, 1, 2), 1), ((1, 2, 3), 2), ((2, 3, 4), 3)):
        x = numbers(*shape, seed=seed)
        where = _layer_case(shape, norm_first)
        agrees(answer, _two_blocks, x, *_PARTS, norm_first, note=note, where=where)


@hint("Post-LN: the norm comes after the sum.")
def _is_post(answer):
    """with norm_first=False it is the paper's layer"""
    _layer(answer, False, "Post-LN is norm(x + f(x)), twice.")


@hint("Pre-LN: the norm comes before the sublayer, inside the sum.")
def _is_pre(answer):
    """with norm_first=True it is the Pre-LN layer"""
    _layer(answer, True, "Pre-LN is x + f(norm(x)), twice.")


@hint("What is added is x as it was, not a normalised x.")
def _silent(answer):
    """if both sublayers return zeros, a Pre-LN layer returns its input"""
    x = numbers(1, 2, 3, seed=2)
    got = answer(x, torch.zeros_like, torch.zeros_like, _norm_1, _norm_2, True)
    same(got, x, "for sublayers that return zeros", note="The stream itself is not normalised.")


def _layer_is_torchs(answer):
    """with the parts of torch's layer it is torch's layer, in float64 too"""
    x = numbers(2, 3, 4, seed=4, dtype=torch.float64)
    for norm_first in (False, True):
        layer, parts = _torch_layer(norm_first)
        where = f"for the parts of `nn.TransformerEncoderLayer`, norm_first={norm_first}"
        got = agrees(answer, lambda x, *_: layer(x), x, *parts, norm_first, where=where)  # noqa: B023
        same(got, layer(x), where)


def _layer_gradients(answer):
    """gradients reach x along every path"""
    for norm_first in (False, True):
        where = _layer_case((2, 3, 4), norm_first)
        gradients(answer, _two_blocks, numbers(2, 3, 4, seed=5), *_PARTS, norm_first, where=where)


LAYER = Exercise(
    id="12.1",
    title="an encoder layer from its parts",
    difficulty=2,
    minutes=8,
    statement=(
        "Write `my_encoder_layer(x, attend, think, norm_1, norm_2, norm_first)`, the forward pass "
        "of an encoder layer. `attend` and `think` are its sublayers (self-attention and the "
        "feed-forward network), and `norm_1` and `norm_2` are their norms. If `norm_first` is "
        "false, the result is that of the Post-LN layer of the paper, otherwise the Pre-LN layer. "
        "There is no "
        "dropout."
    ),
    hint=(
        "Post-LN is `norm(x + f(x))`, and Pre-LN is `x + f(norm(x))`. The input of the second "
        "sublayer is the result of the first."
    ),
    function=my_encoder_layer,
    tests=(_is_post, _is_pre, _silent, _layer_is_torchs, _layer_gradients),
)


# 12.2 layers with weights of their own


def my_layers(make_layer, num_layers):
    """An nn.ModuleList of num_layers layers, each with weights of its own.

    make_layer() makes one layer with fresh random weights.
    """
    raise NotImplementedError


def _maker(kind=nn.Linear, dtype=torch.float32):
    """A `make_layer` that keeps what it made, and each layer's weight as it was then."""
    made, weights = [], []

    def make_layer():
        made.append(kind(3, 3, dtype=dtype))
        weights.append(made[-1].weight.detach().clone())
        return made[-1]

    return make_layer, made, weights


def _built(answer, num_layers=4):
    return answer(_maker()[0], num_layers)


_FOUR = "for num_layers=4"


def _counts(answer):
    """there are num_layers layers"""
    for num_layers in (4, 1, 7):
        where, layers = f"for num_layers={num_layers}", _built(answer, num_layers)
        expect(hasattr(layers, "__len__"), f"{where}, you return {described(layers)}")
        expect(len(layers) == num_layers, f"{where}, there are {len(layers)} layers")


def _are_layers(answer):
    """each entry is a layer"""
    for layer in _built(answer):
        kind = type(layer).__name__
        expect(isinstance(layer, nn.Module), f"{_FOUR}, an entry is a {kind}, expected a layer")


def _is_list(answer):
    """the parameters of all layers are found by the model that holds them"""
    model = nn.Module()
    model.layers = layers = _built(answer)
    found = sum(p.numel() for p in model.parameters())
    own = "each layer here has 12"
    expect(found == 48, f"{_FOUR}, the model has {found} parameters, expected 48: {own}")
    expect(isinstance(layers, nn.ModuleList), f"{_FOUR}, you return {described(layers)}, "
           "expected an `nn.ModuleList`")  # fmt: skip


def _differ(answer):
    """no two layers start with equal weights"""
    weights = [layer.weight for layer in _built(answer)]
    for i, one in enumerate(weights):
        for j, other in enumerate(weights[:i]):
            expect(
                not torch.equal(one, other),
                f"{_FOUR}, layers {j} and {i} start with equal weights",
            )
    again = [layer.weight for layer in _built(answer)]
    seeded = any(torch.equal(one, other) for one, other in zip(weights, again, strict=False))
    expect(not seeded, f"{_FOUR}, called twice, a layer starts with equal weights both times")


@hint("Each layer is one that `make_layer()` returned, as it returned it.")
def _all_made(answer):
    """every layer comes from a call of make_layer of its own, and is left as it was made"""
    for dtype in (torch.float32, torch.float64):
        make_layer, made, weights = _maker(dtype=dtype)
        layers = list(answer(make_layer, 3))
        where = "for num_layers=3"
        expect(len(made) == 3, f"{where}, make_layer is called {len(made)} times, expected 3")
        for i, layer in enumerate(layers):
            at = [j for j in range(3) if made[j] is layer]
            expect(at, f"{where}, layer {i} is not one that make_layer returned")
            unchanged = layer.weight.dtype == dtype and torch.equal(layer.weight, weights[at[0]])
            expect(unchanged, f"{where}, the weights of layer {i} are not those it was made with")
            expect(layer.training, f"{where}, layer {i} is in the mode of `eval()`: it was not")
            learns = all(weight.requires_grad for weight in layer.parameters())
            expect(learns, f"{where}, layer {i} is frozen: it was not")


STACK = Exercise(
    id="12.2",
    title="layers with weights of their own",
    difficulty=1,
    minutes=5,
    statement=(
        "Write `my_layers(make_layer, num_layers)`, which returns an `nn.ModuleList` of "
        "`num_layers` layers. `make_layer()` makes one layer with fresh random weights. Each layer "
        "must be made separately, so that no two are initialised equal."
    ),
    hint="Call `make_layer` once per layer, inside a list comprehension.",
    function=my_layers,
    tests=(_counts, _are_layers, _is_list, _differ, _all_made),
)


# 12.3 hidden, swapped, kept


def my_masked(ids, drawn, fate, words, mask_id):
    """The encoder's input and its targets, both (B, S).

    A word (an id from 3 on) is chosen if its number in `drawn` is below 0.15. If its number in
    `fate` is below 0.8 it becomes mask_id, if below 0.9 its word in `words`, otherwise it stays.
    The target is the original id where a word was chosen, and -100 elsewhere.
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
        f"{where}, you return a {type(got).__name__}, expected two tensors: input, targets",
    )
    return [tensor(part, where) for part in got]


def _agree(got, expected, ids, what, note):
    """Name one word, with its random numbers, that comes out otherwise than expected."""
    where = f"for ids={ids.tolist()}"
    expect(
        got.shape == expected.shape,
        f"{where}, the shape of the {what} is {tuple(got.shape)}, expected {tuple(expected.shape)}",
    )
    for at in (got != expected).nonzero()[:1].tolist():
        i, drawn, fate, word = (part[tuple(at)].item() for part in (ids, DRAWN, FATE, WORDS))
        raise Mismatch(
            f"for the id {i} with drawn={drawn:.2f}, fate={fate:.2f} and {word} in `words`, "
            f"the {what} is {short(got[tuple(at)])}, expected {short(expected[tuple(at)])}. {note}"
        )


def _reads(answer):
    """a chosen word is hidden, swapped or kept, by its number in fate"""
    note = "Below 0.8 it is hidden, from there to below 0.9 it is replaced, and then it stays."
    read, _ = _pair(answer, f"for ids={IDS.tolist()}")
    _agree(read, READ, IDS, "input", note)


def _says(answer):
    """the targets are the chosen words, as they were, and nothing else"""
    note = "The loss counts where a word was chosen: hidden, swapped or kept."
    _, say = _pair(answer, f"for ids={IDS.tolist()}")
    _agree(say, SAY, IDS, "target", note)


def _no_specials(answer):
    """<pad>, <bos> and <eos> are never chosen"""
    ids = torch.tensor([[1, 2, 2, 0, 0, 1]] * 2)
    read, _ = _pair(answer, f"for ids={ids.tolist()}", ids)
    _agree(read, ids, ids, "input", "0, 1 and 2 are <pad>, <bos> and <eos>.")


def _other_mask(answer):
    """<mask> has the id that is given"""
    read, _ = _pair(answer, "for mask_id=20", mask_id=20)
    expected = READ.masked_fill(READ == 10, 20)
    _agree(read, expected, IDS, "input", "Here mask_id=20.")


def _word_by_word(ids, drawn, fate, words, mask_id):
    """Each word by itself."""
    read, say = ids.clone(), torch.full_like(ids, -100)
    for at in torch.cartesian_prod(*map(torch.arange, ids.shape)).reshape(-1, 2).tolist():
        at = tuple(at)
        if ids[at].item() in (0, 1, 2) or drawn[at].item() >= 0.15:
            continue
        say[at] = ids[at]
        if fate[at].item() < 0.8:
            read[at] = mask_id
        elif fate[at].item() < 0.9:
            read[at] = words[at]
    return read, say


@hint("`below 0.9` leaves 0.9 itself out.")
def _ends(answer):
    """a number that is 0.15, 0.8 or 0.9 itself is not below it"""
    drawn = torch.tensor([[0.15, 0.15 - 1e-9, 0.1, 0.1, 0.1, 0.1]], dtype=torch.float64)
    fate = torch.tensor([[0.1, 0.1, 0.8, 0.8 - 1e-9, 0.9, 0.9 - 1e-9]], dtype=torch.float64)
    for i in range(6):
        case = [part[:, i : i + 1] for part in (drawn, fate)]
        arguments = torch.tensor([[5]]), *case, torch.tensor([[7]]), 10
        where = f"for ids=[[5]], words=[[7]], drawn={case[0].item()!r}, fate={case[1].item()!r}"
        agrees(answer, _word_by_word, *arguments, where=where)


def _any_batch(answer):
    """any batch is masked, of any size, and ids stay integers"""
    for seed, shape in enumerate([(1, 1), (3, 1), (1, 7), (4, 9), (3, 40)]):
        made = torch.Generator().manual_seed(seed)
        ids = torch.randint(0, 9, shape, generator=made)
        words = torch.randint(3, 9, shape, generator=made)
        drawn = torch.rand(shape, generator=made) * 0.3
        fate = 0.7 + 0.3 * torch.rand(shape, generator=made)
        where = f"for {shape[0]} sentences of {shape[1]}"
        agrees(answer, _word_by_word, ids, drawn, fate, words, 10, where=where)
    where += ", with mask_id=4, and 4 among the ids"
    agrees(answer, _word_by_word, ids, drawn, fate, words, 4, where=where)


def _masked_travels(answer):
    """it works on another device"""
    travels(answer, IDS, DRAWN, FATE, WORDS, 10)


MASKED = Exercise(
    id="12.3",
    title="hidden, swapped, kept",
    difficulty=2,
    minutes=10,
    statement=(
        "Write `my_masked(ids, drawn, fate, words, mask_id)`, which masks a batch of ids by BERT's "
        "rule. The random numbers are passed in: `drawn` decides which words are chosen and `fate` "
        "what happens to each, and `words` holds the random replacements. Return the encoder's "
        "input and its targets: the original id where a word was chosen, and everywhere else "
        "-100, which `F.cross_entropy` ignores."
    ),
    hint=(
        "The rule in detail: words are the ids from 3 upwards. A word is chosen if its `drawn` is "
        "below 0.15. It becomes `mask_id` if its `fate` is below 0.8, its entry in `words` if "
        "`fate` is at least 0.8 but below 0.9, and stays as it is otherwise.",
        "Use `torch.where(condition, words, ids)` and `masked_fill`. The order in which you apply "
        "them matters.",
    ),
    function=my_masked,
    tests=(_reads, _says, _no_specials, _other_mask, _ends, _any_batch, _masked_travels),
)


# 12.4 does it see the right?


def my_sees_right(encode, x):
    """Whether every output can be changed by every input to its right.

    encode maps (B, S, C) to (B, S, C), and x is such an input.
    """
    raise NotImplementedError


def _table(length, sees):
    """What output t may read: booleans (T, S)."""
    at = torch.arange(length)
    return sees(at[:, None], at[None, :]) & torch.ones(length, length, dtype=torch.bool)


def _encoder(allowed, enters=None, leaves=None, strength=0.1):
    """An encoder in which output t mixes the inputs s where allowed (S, S) or (B, S, S) is true.

    enters and leaves are what is done to the features before and after mixing.
    """
    mix = numbers(*allowed.shape[-2:], seed=7).abs() + 0.5

    def encode(x):
        out = torch.tanh(strength * (mix * allowed).to(x) @ (enters(x) if enters else x))
        return leaves(out) if leaves else out

    return encode


_LENGTH, _WIDTH = 5, 4
_EVERYTHING = torch.ones(_LENGTH, _LENGTH, dtype=torch.bool)
_CAUSAL = _table(_LENGTH, lambda t, s: s <= t)


def _sentences(batch=2, length=_LENGTH):
    return numbers(batch, length, _WIDTH, seed=11, dtype=torch.float64)


def _verdict(answer, encode, expected, which, x=None):
    x = _sentences() if x is None else x
    got = answer(encode, x)
    words = ("one word", "two words", "three words", "four words", "five words")[x.size(1) - 1]
    where = f"for {which}, {words}"
    expect(
        isinstance(got, bool) or (isinstance(got, torch.Tensor) and got.numel() == 1),
        f"{where}, you return {described(got)}, expected True or False",
    )
    expect(bool(got) == expected, f"{where}, you say {bool(got)}, expected {expected}")


def _sees_itself_only(answer):
    """of two words, each must see the other or not"""
    x = _sentences(1, 2)
    everything = torch.ones(2, 2, dtype=torch.bool)
    _verdict(answer, _encoder(everything), True, "an encoder that sees everything", x)
    _verdict(answer, _encoder(everything.tril()), False, "a causal encoder", x)


def _one_word(answer):
    """one word has nothing to its right, so nothing is missing"""
    x = _sentences(2, 1)
    _verdict(answer, _encoder(torch.ones(1, 1, dtype=torch.bool)), True, "any encoder", x)


def _says_yes(answer):
    """an encoder that sees everything passes"""
    _verdict(answer, _encoder(_EVERYTHING), True, "an encoder that sees everything")


def _says_yes_again(answer):
    """one that sees only itself and the right passes: the left is not asked about"""
    which = "an encoder that sees only itself and the right"
    _verdict(answer, _encoder(_EVERYTHING.triu()), True, which)


def _says_yes_to_others(answer):
    """one that sees all but the word itself passes: only the right is asked about"""
    which = "an encoder that sees all but the word itself"
    _verdict(answer, _encoder(_table(_LENGTH, lambda t, s: s != t)), True, which)


def _says_yes_centred(answer):
    """one that ends in a norm passes: its outputs have mean 0"""
    which = "an encoder that sees everything and whose outputs have mean 0, as after a norm"
    centred = _encoder(_EVERYTHING, leaves=lambda out: out - out.mean(dim=-1, keepdim=True))
    _verdict(answer, centred, True, which)
    # here the features of an output sum to 0 exactly
    opposite = _encoder(_EVERYTHING, leaves=lambda out: torch.cat([out, -out], -1)[..., ::2])
    _verdict(answer, opposite, True, which)


def _says_no(answer):
    """a causal encoder does not pass"""
    _verdict(answer, _encoder(_CAUSAL), False, "a causal encoder")


def _says_no_window(answer):
    """one that sees the next word and no further does not pass"""
    window = _encoder(_table(_LENGTH, lambda t, s: s <= t + 1))
    _verdict(answer, window, False, "an encoder that sees one word to the right")


def _says_no_last(answer):
    """one that can't see the last word does not pass"""
    not_last = _encoder(_table(_LENGTH, lambda t, s: (s < _LENGTH - 1) & (t >= 0)))
    _verdict(answer, not_last, False, "an encoder that never sees the last word")


def _says_no_first(answer):
    """one in which only the first word sees the right does not pass"""
    first_only = _encoder(_table(_LENGTH, lambda t, s: (s <= t) | (t == 0)))
    _verdict(answer, first_only, False, "an encoder in which only the first word sees the right")


def _says_no_only_last(answer):
    """one in which a word sees itself and the last word does not pass"""
    only_last = _encoder(_table(_LENGTH, lambda t, s: (s == t) | (s == _LENGTH - 1)))
    which = "an encoder in which each word sees itself and the last word"
    _verdict(answer, only_last, False, which)


@hint("Ask for each output and each input to its right by themselves.")
def _says_no_to_a_gap(answer):
    """one place that one word cannot see is enough for a no"""
    for t in range(_LENGTH):
        for s in range(t + 1, _LENGTH):
            allowed = _EVERYTHING.clone()
            allowed[t, s] = False
            which = f"an encoder that sees everything, but output {t} not input {s}"
            _verdict(answer, _encoder(allowed), False, which)


def _causal_in(blind):
    """An encoder that is causal in the sentence with this number at its very beginning."""

    def encode(x):
        found = (x[:, 0, 0].detach().round() == blind)[:, None, None]
        return _encoder(torch.where(found, _CAUSAL, _EVERYTHING))(x)

    return encode


@hint("Look at each sentence by itself: a sum over the batch hides the one that is blind.")
def _says_no_in_a_sentence(answer):
    """every sentence of the batch counts"""
    x = _sentences(3)
    x[:, 0, 0] = torch.arange(3)
    for blind in range(3):
        which = f"an encoder that is causal in sentence {blind} of 3 only"
        _verdict(answer, _causal_in(blind), False, which, x)


def _read(i):
    return lambda x: x[..., i : i + 1].expand_as(x)


def _kept(i):
    return lambda out: out * (torch.arange(out.size(-1)) == i).to(out)


@hint("A word is a vector: one feature of it that is seen is enough, whichever it is.")
def _says_yes_by_a_feature(answer):
    """one feature that is read is enough for a yes"""
    for i in range(_WIDTH):
        read = _encoder(_EVERYTHING, enters=_read(i))
        _verdict(answer, read, True, f"an encoder that reads feature {i} of every word only")


@hint("The output at a word is a vector: one feature of it that changes is enough.")
def _says_yes_in_a_feature(answer):
    """one feature that changes is enough for a yes"""
    for i in range(_WIDTH):
        said = _encoder(_EVERYTHING, leaves=_kept(i))
        _verdict(answer, said, True, f"an encoder that changes feature {i} of every word only")


def _says_yes_to_a_difference(answer):
    """the features may be read in any way"""
    read = _encoder(_EVERYTHING, enters=lambda x: (x[..., :1] - x[..., 1:2]).expand_as(x))
    which = "an encoder that reads feature 0 less feature 1 of every word"
    _verdict(answer, read, True, which)


def _says_yes_to_a_whisper(answer):
    """a small change is a change, and a word may be all zeros"""
    quiet = _encoder(_EVERYTHING, strength=1e-5)
    _verdict(answer, quiet, True, "an encoder that sees everything, with weights near 0.00001")
    x = _sentences(2, 2)
    which = "x plus 0.000000001 of the two words in the other order"
    _verdict(answer, lambda x: x + 1e-9 * x.flip(1), True, which, x)
    quiet = _encoder(_EVERYTHING, strength=1e-12)
    _verdict(answer, quiet, True, "an encoder that sees everything, with weights near 1e-12")
    x = _sentences()
    x[:, 3] = 0
    _verdict(
        answer, _encoder(_EVERYTHING), True, "an encoder that sees everything, word 3 all 0", x
    )
    which = "an encoder that sees everything, all words all 0"
    _verdict(answer, _encoder(_EVERYTHING), True, which, torch.zeros_like(x))
    _verdict(
        answer, _encoder(_EVERYTHING), True, "float32, an encoder that sees everything", x.float()
    )


@hint("Beside x so small a change is rounded away. A slope keeps its digits; so does float64.")
def _says_yes_in_float32(answer):
    """a change that float32 rounds away is a change"""
    which = "float32, x plus 0.000000001 of the two words in the other order"
    _verdict(answer, lambda x: x + 1e-9 * x.flip(1), True, which, _sentences(2, 2).float())


SEES = Exercise(
    id="12.4",
    title="does it see the right?",
    difficulty=3,
    minutes=15,
    statement=(
        "Write `my_sees_right(encode, x)`, a check that detects a causal encoder. `encode` maps "
        "`(B, S, C)` to `(B, S, C)`. Return `True` if in every sentence *every* output can be "
        "changed by *every* input to its right, and `False` otherwise. Any change counts, however "
        "small it is and whichever features it affects. Use gradients, or change one input at a "
        "time in float64 and compare exactly, because rounding hides small changes."
    ),
    hint=(
        "For each t, take the gradient of `out[:, t]`, its features weighted at random, with "
        "respect to `x`: `torch.autograd.grad(out[:, t], x, weights, retain_graph=True)`. Check "
        "for each position of `[:, t + 1 :]`, in each sentence, whether the gradient is exactly 0 "
        "in all features."
    ),
    function=my_sees_right,
    tests=(
        _sees_itself_only,
        _one_word,
        _says_yes,
        _says_yes_again,
        _says_yes_to_others,
        _says_yes_centred,
        _says_no,
        _says_no_window,
        _says_no_last,
        _says_no_first,
        _says_no_only_last,
        _says_no_to_a_gap,
        _says_no_in_a_sentence,
        _says_yes_by_a_feature,
        _says_yes_in_a_feature,
        _says_yes_to_a_difference,
        _says_yes_to_a_whisper,
        _says_yes_in_float32,
    ),
)


EXERCISES = (LAYER, STACK, MASKED, SEES)
