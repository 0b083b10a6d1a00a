"""30.3 repair a program (★★☆, 10 minutes)

The outputs of `pads_as_keys` for a line depend on how long the other lines of its batch are. Write
`my_repair(text)`, which receives the source of the program and returns it repaired;
`text.replace(old, new)` returns a changed copy of a text.

<details><summary>The rule in detail</summary>

At every real token, the repaired program must have the outputs of the healthy one, however the
batch is padded; everything else stays as it is.

</details>

Hint: `real` is boolean, `(B, T)`, and True at real tokens. Where does `forward` use it? And where
would it have to?

Hint: After the softmax is too late, because the row would no longer sum to 1. A line is missing
before it.

Hint: Scores have the shape `(B, H, T, T)`, and the last axis is that of the keys: `real[:, None,
None, :]`.
"""

import torch

from tinytf.support.randomness import seeded
from tinytf_course.clinic.patients import PATIENTS, healthy, load, source
from tinytf_course.expect import expect
from tinytf_course.grading import hint


def my_repair(text):
    """Return the source of a program without its mistake, given the source with the mistake."""
    line = "        out = scores.softmax(dim=-1) @ v\n"
    mask = "        scores = scores.masked_fill(~real[:, None, None, :], -1e9)\n"
    return text.replace(line, mask + line)


def _mended(answer):
    text = answer(source(PATIENTS["pads_as_keys"]))
    expect(isinstance(text, str), f"you return a {type(text).__name__}, expected a string")
    try:
        m = load(text)
    except SyntaxError as error:
        expect(False, f"what you return is not a program: {error.msg}, line {error.lineno}")
    return m, load(healthy("reader"))


def _both_outputs(answer, lengths, seed):
    mended, twin = _mended(answer)
    with seeded(seed):
        models = [program.make_model(seed).eval() for program in (mended, twin)]
        draws = torch.Generator().manual_seed(seed)
        ids = twin.lines(torch.tensor(lengths), draws)
    with torch.no_grad():
        mine, right = (m.outputs(model, {"ids": ids}) for m, model in
                       zip((mended, twin), models, strict=True))  # fmt: skip
    return mine[ids != twin.PAD], right[ids != twin.PAD]


def test_runs(answer):
    """what it returns is a program that runs"""
    _both_outputs(answer, [6, 6], 0)


@hint("The mask has to reach the scores, before the softmax.")
def test_padding_hidden(answer):
    """in a batch of long and short lines its outputs are those of the healthy program"""
    for seed in range(5):
        mine, right = _both_outputs(answer, [6, 12, 9, 7], seed)
        gap = (mine - right).abs().max().item()
        expect(
            gap < 1e-4,
            f"with lines of 6, 12, 9 and 7 tokens in a batch, seed {seed}, an output at a real "
            f"token is off by {gap:.2g}, expected 0",
        )


def test_rest_kept(answer):
    """where nothing is padded its outputs are what they were before"""
    mine, right = _both_outputs(answer, [9, 9, 9], 1)
    gap = (mine - right).abs().max().item()
    expect(gap < 1e-4, f"with three lines of 9 tokens, an output is off by {gap:.2g}, expected 0")


def test_training_kept(answer):
    """it trains as before"""
    mended, twin = _mended(answer)
    for entrance in ("make_model", "batch", "loss_of", "make_optimizer", "train", "score"):
        expect(hasattr(mended, entrance), f"`{entrance}` is missing from the program")
    with seeded(0):
        mine, right = mended.train(0, steps=4)[1], twin.train(0, steps=4)[1]
    apart = max(abs(a - b) for a, b in zip(mine, right, strict=True))
    expect(apart < 1e-3, f"the losses of four steps are off by {apart:.2g} from the twin's")


MISTAKES = r"""
nothing changed
    return text.replace(line, mask + line) => return text
    says: an output at a real token is off
    The text is unchanged. `replace` changes nothing, and raises no error, if the old text does
    not occur.
the mask inverted
    ~real => real
    says: with three lines of 9 tokens
    `masked_fill` fills where the mask is True: with `real` it hides every token and keeps the
    padding.
queries hidden in place of keys
    [:, None, None, :] => [:, None, :, None]
    says: an output at a real token is off
    The last axis of the scores is that of the keys, and the padded keys must be hidden. A
    padded query does no harm.
weights set to zero after the softmax
    mask + line => line.replace("@", "* real[:, None, None, :] @")
    says: an output at a real token is off
    The weights of the real tokens no longer sum to 1: the padding has kept its share.
the axis of the heads forgotten
    [:, None, None, :] => [:, None, :]
    says: RuntimeError
    (B, 1, T) is aligned with (B, H, T, T) on the right, so its B meets the heads.
"""
