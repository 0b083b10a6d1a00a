"""18.2 what is missing? (★★☆, 10 minutes)

Somebody has built a GPT from these parts and may have forgotten one. You can't read the code, only
run it: `model(ids)` gives logits `(B, T, V)` for ids `(B, T)`. Design an experiment for each part,
and write `my_missing_part(model, vocab_size)`, which returns the name of the missing part.

| the answer | what is wrong |
|---|---|
| `"attention"` | no prediction depends on an earlier token |
| `"mask"` | some prediction depends on a later token, because some layer is not causal |
| `"positions"` | the embeddings get no positional encoding |
| `"nothing"` | all parts are there |

<details><summary>The rule in detail</summary>

At most one part is missing. The model has one layer or more, and its weights are random. It takes
up to 16 tokens, with ids below `vocab_size`, which is at least 2. Logits that should be equal may
differ by 0.00001, which is rounding; what has an influence moves some logit by more than 0.001.

</details>

Hint: Change one token of a text. At which positions may the logits move, and at which must they?

Hint: For the positions, exchanging two earlier tokens works with one layer only: in a deeper stack
the vectors on the way have then seen other prefixes. In which text do only the positions
distinguish one token from the next?
"""

import torch

from tinytf.gpt import GPT, GPTConfig
from tinytf_course.expect import expect, numbers
from tinytf_course.words import short


def my_missing_part(model, vocab_size):
    """Which part of a GPT is missing: "attention", "mask", "positions" or "nothing".

    model(ids) gives logits, (B, T) -> (B, T, V), for ids below vocab_size and at most 16 tokens.
    """
    ids = torch.arange(8)[None] % vocab_size  # (1, T)

    def moved(place):
        other = ids.clone()
        other[0, place] = (other[0, place] + 1) % vocab_size
        return (model(other) - model(ids)).abs().amax(dim=(0, 2)) > 1e-4  # (B, T, V) -> (T,)

    if moved(-1)[:-1].any():
        return "mask"
    if not moved(0)[1:].any():
        return "attention"
    alike = model(torch.zeros_like(ids))  # the same token eight times
    if (alike - alike[:, :1]).abs().max() < 1e-4:
        return "positions"
    return "nothing"


def _gpt(num_layers=1, vocab_size=6, attention=True, positions=True, leak=(), ahead=9, hidden=0,
         seed=1):  # fmt: skip
    """A GPT as a function of ids; layers in `leak` see `ahead` tokens of the future.

    The first of these, `hidden` of them, are not seen.
    """
    model = GPT(GPTConfig(vocab_size, d_model=8, num_heads=2, num_layers=num_layers, max_len=16))
    with torch.no_grad():
        for i, weight in enumerate(model.parameters()):
            weight.copy_(numbers(*weight.shape, seed=100 * seed + i, scale=0.5))
        for layer in model.decoder.layers if not attention else ():
            layer.self_attention.w_o.weight.zero_()
            layer.self_attention.w_o.bias.zero_()
        if not positions:
            model.positions.table.zero_()

    @torch.no_grad()
    def logits(ids):
        T = ids.size(1)
        x = model.embedding(ids) + model.positions.table[:T]  # (B, T) -> (B, T, C)
        for i, layer in enumerate(model.decoder.layers):
            mask = torch.ones(T, T).tril(ahead if i in leak else 0).bool()
            mask &= ~torch.ones(T, T).triu(1).tril(hidden).bool()
            x = layer(x, mask[None, None])
        return model.output(model.decoder.final_norm(x))

    return logits


def _names(got, expected, where, note=""):
    """Compare the name of a part, and show it in quotes."""
    shown = f'"{got}"' if isinstance(got, str) else short(got)
    message = f'{where}, you get {shown}, expected "{expected}". {note}'
    expect(isinstance(got, str) and got == expected, message.strip())


def _is(answer, expected, what, note="", vocab_size=6, depths=(1, 2, 3), **parts):
    """The answer for GPTs of one, two and three layers."""
    for num_layers in depths:
        got = answer(_gpt(num_layers, vocab_size, **parts), vocab_size)
        layers = "1 layer" if num_layers == 1 else f"{num_layers} layers"
        _names(got, expected, f"for a GPT of {layers}, {what}", note)


def test_whole(answer):
    """a whole GPT lacks nothing"""
    _is(answer, "nothing", "with all its parts")


def test_attention(answer):
    """a GPT without attention is found"""
    note = "Only the logits at the changed token move."
    _is(answer, "attention", "without attention", note, attention=False)


def test_mask(answer):
    """a GPT without a causal mask is found, also in one layer or by one token"""
    _is(answer, "mask", "none of which is causal", leak=range(3))
    _is(answer, "mask", "the first of which is not causal", leak=(0,))
    got = answer(_gpt(3, leak=(2,)), 6)
    _names(got, "mask", "for a GPT of 3 layers, the last of which is not causal")
    note = "Only the position before the changed token moves."
    got = answer(_gpt(leak=(0,), ahead=1), 6)
    _names(got, "mask", "for a GPT that sees one token ahead", note)
    got = answer(_gpt(leak=(0,), ahead=2, hidden=1), 6)
    where = "for a GPT that sees the token two ahead, and not the next one"
    _names(got, "mask", where, "The position before the changed token stays as it is.")


def test_positions(answer):
    """a GPT without positional encoding is found, however many layers it has"""
    model, where = _gpt(positions=False), "for a GPT without them whose logits are rounded"
    _names(answer(lambda ids: model(ids).round(decimals=2), 6), "positions", where)
    _is(answer, "positions", "without positional encoding", positions=False)


def test_faint(answer):
    """small influences count, and those on some logits; rounding does not"""
    for expected, parts in (
        ("attention", {"attention": False}), ("nothing", {}), ("mask", {"leak": (0,)}),
        ("positions", {"positions": False}),
    ):  # fmt: skip
        model = _gpt(**parts)

        def faint(ids, model=model):
            rounding = numbers(*ids.shape, 6, seed=int((ids.cumsum(1) ** 2).sum()))
            return 0.01 * model(ids) + (3e-6 * rounding).clamp(-5e-6, 5e-6)

        _names(answer(faint, 6), expected, "for a GPT with small logits, rounded at 0.00001")

        def narrow(ids, model=model):
            logits = model(ids)[..., 1:2]
            return torch.cat([0 * logits, logits, -logits, 0 * logits.expand(-1, -1, 3)], dim=-1)

        where = "for a GPT whose logits stay 0, but for those of 1 and 2, which sum to 0"
        _names(answer(narrow, 6), expected, where)


def test_two_tokens(answer):
    """with another vocabulary, of 2 tokens or of 10"""
    # small, so that an answer that tries each token at each of 16 positions takes a second
    for vocab_size in (2, 10):
        what, sizes = f"of {vocab_size} tokens", {"vocab_size": vocab_size, "depths": (1, 2)}
        for part in ("attention", "positions"):
            _is(answer, part, f"{what}, without {part}", **sizes, **{part: False, "seed": 2})
        _is(answer, "mask", f"{what}, without a mask", **sizes, leak=range(2))
        _is(answer, "nothing", f"{what}, with all parts", **sizes)


MISTAKES = r"""
two earlier tokens exchanged
    alike = model(torch.zeros_like(ids)) =>
        exchanged = ids[:, [1, 0, *range(2, 8)]]
        alike = torch.cat([model(ids)[:, -1:], model(exchanged)[:, -1:]], dim=1)
    says: for a GPT of 2 layers, without positional encoding
    With one layer it works: attention sums over a set. In a deeper stack each vector on the way has
    seen its own prefix, and the causal mask alone makes the order matter.
nothing shows that positions are missing
    alike = model(torch.zeros_like(ids)) =>
        alike = torch.cat([model(ids)[:, -1:], model(ids[:, 1:])[:, -1:]], dim=1)
    says: whose logits are rounded
    Your experiment finds positions in every GPT. A text moved by a place, for example, has lost its
    first token: it is another text, and the logits move whatever the positions.
compared to the last bit
    .max() < 1e-4 => .max() == 0
    says: for a GPT of 1 layer, without positional encoding
    The mean of equal vectors is equal up to rounding only. Allow for a small difference.
rounding taken for an influence
    > 1e-4 => > 0
    says: for a GPT with small logits, rounded
    What has an influence moves the logits by more than rounding does: allow for that.
one position watched
    moved(-1)[:-1].any() => moved(-1)[0]
    says: Only the position before the changed token moves
    A leak may reach one position only: watch all that come before the changed token.
a leak looked for between neighbours only
    moved(-1)[:-1].any() => moved(-1)[-2]
    says: the token two ahead, and not the next one
    A layer may show a token two places ahead and hide the next one. Watch all positions before the
    changed token.
not all logits compared
    .abs().amax(dim=(0, 2)) => .sum(dim=2).abs().amax(dim=0)
    alike[:, :1]).abs().max() => alike[:, :1]).sum(dim=2).abs().max()
    says: for a GPT whose logits stay 0
    An influence may move a few logits only, one up and another down, so that a sum stays as it was.
    Compare each of them.
the token's own logits taken for attention
    moved(0)[1:] => moved(0)
    says: Only the logits at the changed token move
    The logits at the changed token move through the residual stream alone. Watch those after it.
the past changed to find a leak
    moved(-1)[:-1] => moved(0)[1:]
    says: with all its parts, you get "mask"
    What comes later may depend on what came before. For a leak, change the last token.
ids of one vocabulary
    torch.arange(8)[None] % vocab_size => torch.arange(8)[None]
    says: raises IndexError
    The vocabulary may have fewer tokens than your text: keep ids below `vocab_size`.
"""

HARMLESS = r"""
if not moved(0)[1:].any(): => if not moved(0)[1:].all():
    a token moves every later prediction, or none
if not moved(0)[1:].any(): => if not moved(0)[2:].any():
    a token moves every later prediction, or none
alike = model(torch.zeros_like(ids)) => alike = model(torch.ones_like(ids))
    any one token does as well
… => ….max() < 0.0002:
    between rounding and an influence there is room
… => …amax(dim=(0, 2)) > 0.0002
    between rounding and an influence there is room
… => ….amax(dim=(2, 0)) > 0.0001
    the axes have no order
… => if (alike - alike[:, :1]).max() < 0.0001:
    where logits differ, some of them are larger
… => …(other[0, place] - 1) % vocab_size
    any other token does
… => ids = torch.arange(9)[None] % vocab_size
    any length of text does
… => ids = torch.arange(7)[None] % vocab_size
    any length of text does
other[0, place] = … => other[-1, place] = …
    there is one text
other[0, place] = … => …(other[-1, place] + 1)…
    there is one text
other[0, place] = … => …(ids[0, place] + 1)…
    the two are still alike there
other[0, place] = … => ids[0, place] = (other[0, place] + 1) % vocab_size
    the two texts still differ there, and nowhere else
other[0, place] = … => other[0, place] = ((other[0, place] + 1) % vocab_size).item()
    a number does as well
… => …max() <= 0.0001:
    between rounding and an influence there is room
… => …amax(dim=(0, 2)) >= 0.0001
    between rounding and an influence there is room
"""
