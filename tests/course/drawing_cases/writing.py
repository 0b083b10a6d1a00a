"""Drawings of searching, caching, scoring and sampling."""

import math

import torch
from matplotlib.colors import to_hex

from drawing_cases import case, refused
from tinytf.metrics.bleu import clipped_matches, corpus_bleu
from tinytf.viz.style import CYCLE, GOLD
from tinytf_course import drawings as viz
from tinytf_course.drawings import bleu, cache, decoding, sampling
from tinytf_course.drawings.decoding import FATES

# ---- search

STEPS = [
    [(("a",), math.log(0.6), "kept"), (("the",), math.log(0.4), "kept")],
    [
        (("a", "cat"), math.log(0.24), "dropped"),
        (("the", "cat"), math.log(0.36), "ended"),
        (("a", "dog"), math.log(0.0018), "dropped"),
    ],
]
TREE = ["a  0.60", "the  0.40", "cat  0.24", "cat  0.36", "dog  0.0018"]


def won(ax):
    """The texts with a golden outline."""
    return {t.get_text() for t in ax.texts
            if to_hex(t.get_bbox_patch().get_edgecolor()) == GOLD}  # fmt: skip


def ranked(ax, shown):
    """Whether these texts stand one below the other."""
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    return sorted(shown, key=lambda text: -heights[text]) == shown


def joined(ax):
    """The pairs of texts that a line joins, by their heights."""
    named = {text.get_position()[1]: text.get_text() for text in ax.texts}
    return {tuple(named.get(y) for y in line.get_ydata()) for line in ax.lines}


case(
    "beam tree",
    lambda: viz.beam_tree(STEPS, best=("the", "cat"), title="t"),
    count=dict.fromkeys(TREE, 1),
    holds=lambda ax: (
        won(ax) == {"the  0.40", "cat  0.36"}
        and ranked(ax, ["cat  0.36", "cat  0.24"])
        and {t.get_text(): t.get_color() for t in ax.texts}["dog  0.0018"] == FATES["dropped"]
        and {t.get_text(): t.get_color() for t in ax.texts}["cat  0.36"] == FATES["ended"]
        and {("the  0.40", "cat  0.36"), ("a  0.60", "cat  0.24")} <= joined(ax)
    ),
)
case("tree without a winner", lambda: viz.beam_tree(STEPS), holds=lambda ax: not won(ax))
CAT = [[(("猫",), math.log(0.6), "kept")]]
case("tree by sound", lambda: viz.beam_tree(CAT), within=["māo  0.60"])
case("tree by gloss", lambda: viz.beam_tree(CAT, pinyin={"猫": "cat"}), within=["cat  0.60"])
for steps, match in (
    ([], "at least one step"),
    ([[]], "at least one step"),
    ([[(("a",), 0.0, "lost")]], "fate='lost' of .* is not one of"),
    ([[(("a",), 0.0, "kept")], [(("b", "c"), 0.0, "kept")]], "parent of .* is not in the step"),
):
    refused(lambda steps=steps: viz.beam_tree(steps), match)
case("loop of writing", lambda: decoding.draw_writing(("<bos>", "we")),
    has=["<bos> we", "choose"], said="until the word is <eos>")  # fmt: skip
ALIVE = {("the",): math.log(0.4), ("a",): math.log(0.6)}
GROWN = {
    ("the", "cat"): math.log(0.36),
    ("a", "<eos>"): math.log(0.24),
    ("a", "dog"): math.log(0.2),
    ("a", "hat"): math.log(0.01),
}
KEPT = {prefix: GROWN[prefix] for prefix in (("the", "cat"), ("a", "dog"))}
ENDED = {("a", "<eos>"): GROWN["a", "<eos>"]}
RANKED = ["the cat  0.36", "a <eos>  0.24", "a dog  0.20", "a hat  0.01"]
case("beam step", lambda: decoding.draw_beam_step(ALIVE, GROWN, KEPT, ENDED),
    holds=lambda ax: ranked(ax, RANKED),
    count={"● lives on": 2, "■ ended: goes on the list": 1, "× dropped": 1},
    said="a <eos>, ended; a dog, kept")  # fmt: skip
case(
    "moving rows",
    lambda: decoding.draw_moving_rows(
        ["x", "y", "u", "v"], [1, 0, 2, 2], ["a", "b", "c", "d"], beam=2
    ),
    has=["y a", "x b", "u c", "u d", "row 3"],
    count={"keys, values": 8},
    said="row 3 continues row 2, “u”, by “d”",
)
CHANCE = torch.tensor([[0.1, 0.6, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1]])
case(
    "passed over",
    lambda: decoding.passed_over(CHANCE, [1, 0], ["猫", "y", "z", "w"], {"猫": "first"}),
    xticks=["y", "猫 first", "z", "w", "all others"],
    holds=lambda ax: [tick.get_text()[:2] for tick in ax.get_yticklabels()] == ["1:", "2:"],
)
TOLD = {"right": [-1.0, -2.0], "wrong": [-1.0, -5.0]}
case(
    "told and true",
    lambda: decoding.told_and_true(TOLD, {"right": [-1.0, -2.0], "wrong": [-3.0, -4.0]}),
    points={"wrong": [(-3.0, -1.0), (-4.0, -5.0)], "right": [(-1.0, -1.0), (-2.0, -2.0)]},
    holds=lambda ax: len({line.get_marker() for line in ax.lines if line.get_label() in TOLD}) == 2,
)

# ---- cache and BLEU

NEW, KEPT_, AGAIN = (cache.FILLS[kind] for kind in (cache.NEW, cache.KEPT, cache.AGAIN))
case(  # each with one in the legend
    "repeats",
    lambda: cache.draw_repeats(["a", "b", "c", "d"]),
    filled={AGAIN: 6 + 1, KEPT_: 6 + 1, NEW: 6 + 4 + 4 + 1},
    said="again",
)
refused(lambda: cache.draw_repeats(["a"]), "1 words make no two steps")
case("prefill", lambda: cache.draw_prefill(["a", "b", "c", "d", "e"], prompt=3),
    filled={NEW: 6 + 4 + 5 + 1, AGAIN: 0}, said="single row")  # fmt: skip
refused(lambda: cache.draw_prefill(["a", "b"], prompt=2), "a prompt of 2 words of 2")
case(
    "kept",
    lambda: cache.draw_kept(["a", "b", "c"]),
    count={f"{kind}{i}": int(i < 3) for i in range(4) for kind in "qkv"},
    lines=2,  # the older queries are struck out
    said="he 2 older queries",
)
refused(lambda: cache.draw_kept(["a"]), "1 words: nothing is kept yet")
SAT = "the cat sat on the mat"
for translation, reference in (("the the cat sat the", SAT), ("a b", "c d"), ("a a", "a a a"),
                               ("the mat sat on the cat", SAT)):  # fmt: skip
    for n in (1, 2, 3, 4) if reference == SAT else (1,):
        found, wanted = translation.split(), reference.split()
        matches, total = clipped_matches(found, [wanted], n)
        kind = "words" if n == 1 else f"{n}-grams"
        case(f"{kind} of {translation}",
            lambda found=found, wanted=wanted, n=n: bleu.draw_clipping(found, wanted, n),
            arrows=matches,
            has=[" ".join(found[-n:]), *[f"{n}-grams: {matches} of {total} count"] * (n > 1)],
            said=[f"Of {total} {kind} {matches} have"])  # fmt: skip
refused(lambda: bleu.draw_clipping(["a", "b"], ["a", "b", "c"], 3),
    "2 and 3 words, but a run takes 3")  # fmt: skip
SCORE = corpus_bleu([list("abcdef")], [[list("abcdefgh")]])
case(
    "bleu",
    lambda: bleu.draw_bleu(SCORE),
    has=["6 of 6 = 100 %", "6 words for 8", f"BLEU {SCORE.score:.1f}"],
    said="geometric mean",
)

# ---- sampling

BEFORE, LATER = torch.tensor([0.1, 0.5, 0.3, 0.1]), torch.tensor([0.0, 0.6, 0.4, 0.0])
case(
    "token bars",
    lambda: viz.token_bars(BEFORE, LATER, ["a", "b", " c", "\n"], most=3),
    xticks=["b", "c", "a"],
    heights=[0.6, 0.4, 0.0, 0.1],
    holds=lambda ax: (
        {t.get_text() for t in ax.get_legend().get_texts()} == {"before", "after", "ruled out"}
    ),
)
refused(lambda: viz.token_bars(torch.ones(4), torch.ones(3), "abcd"),
    "4 probabilities before and 3 after for 4 tokens")  # fmt: skip
STRIPS = {"human": torch.tensor([0.0, 5.0, 2.0]), "greedy": torch.tensor([1.0, 0.0, 0.0])}
case(
    "text strips",
    lambda: viz.text_strips(STRIPS, title="two texts"),
    images=[[[0.0, 5.0, 2.0], [1.0, 0.0, 0.0]]],
    image_scales=[(0, 8)],
    yticks=["human", "greedy"],
)
for losses in ({}, {"a": [1.0, 2.0], "b": [1.0]}):
    refused(lambda losses=losses: viz.text_strips(losses), "the strips need one length, got")
SETTINGS = {"top-k": {"1": (1.0, 0.5), "40": (2.0, 0.1)}, "top-p": {"0.9": (3.0, 0.2)}}
case("settings plane", lambda: viz.settings_plane(SETTINGS, (2.5, 0.15), colors={"top-p": 4}),
    points={"top-k": [(1.0, 0.5), (2.0, 0.1)], "human": [(2.5, 0.15)]},
    colour_of={"top-p": CYCLE[4]}, texts=["1", "40", "0.9"])  # fmt: skip
case(
    "few notes",
    lambda: viz.settings_plane(
        SETTINGS, (2.5, 0.15), notes={"1", "0.9"}, colors={"top-p": "#0a8f6a"}
    ),
    texts=["1", "0.9"],
    colour_of={"top-p": "#0a8f6a"},
)
case("no notes", lambda: viz.settings_plane(SETTINGS, (2.5, 0.15), notes=False), texts=[])
refused(lambda: viz.settings_plane({}, (0, 0)), "families needs at least one")
WORDS = ["a", "banana", "not", "ripe"]
LOGITS = torch.tensor([[2.0, -2.0, 1.0, 3.0]])
case(
    "loop of sampling",  # "ripe" in the vocabulary, and drawn
    lambda: sampling.draw_writing_loop("the banana is", WORDS, LOGITS[0].tolist(), "ripe"),
    has=["the banana is", *WORDS, "−2", "3", "rules", "draw"],
    count={"ripe": 2},
)
case("interval", lambda: sampling.draw_interval(WORDS, [0.25, 0.25, 0.0, 0.5], (0.1, 0.25, 0.99)),
    has=["0.10: a", "0.25: banana", "0.99: ripe"], widths=[3.5, 3.5, 0.0, 7.0, ...])  # fmt: skip
for p, out in ((0.5, 3), (0.7, 2), (0.9, 1), (0.95, 0)):
    case(f"nucleus of {p}", lambda p=p: sampling.draw_nucleus(WORDS, [0.2, 0.08, 0.12, 0.6], p),
        count={"−∞": out, f"{p:g} is held": 1})  # fmt: skip
RULED = torch.tensor([[2.0, -torch.inf, -torch.inf, 3.0]])
SHOWN = [*LOGITS.softmax(-1)[0].tolist(), *RULED.softmax(-1)[0, [0, 3]].tolist()]
case("rule table", lambda: sampling.rule_table(WORDS, {"as it is": LOGITS, "k = 2": RULED}),
    holds=lambda ax: {t.get_text() for t in ax.texts} == {f"{p:.3f}" for p in SHOWN},
    xticks=["as it is", "k = 2"])  # fmt: skip
refused(lambda: sampling.rule_table(WORDS, {"k = 2": RULED[:, :3]}),
    "k = 2 has 3 logits for 4 words")  # fmt: skip
