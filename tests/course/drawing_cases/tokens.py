"""Drawings of words, tokens, vectors and positions."""

import torch
import torch.nn.functional as F
from matplotlib.colors import to_rgba

from drawing_cases import case, refused
from tinytf.text.merges import learn_merges
from tinytf.viz.style import CYCLE
from tinytf_course import drawings as viz
from tinytf_course.drawings import clock, reach, recurrent, tokens

CORPUS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
SOURCE, TARGET = ["the", "cat", "slept"], ["猫", "睡", "了"]

# ---- recurrent networks, and what reaches what

case(
    "unrolled",
    lambda: recurrent.draw_unrolled(
        SOURCE, [[1, 0], [0, 1], [1, 1]], [[0.5, 0.25], [-0.5, 1], [0, 0]]
    ),
    has=[*SOURCE, "[0.5, 0.25]", "[−0.5, 1]", "waits for nothing", "waits for $h_2$"],
)
case("one gate", lambda: recurrent.draw_gates(1))
case("two gates", lambda: recurrent.draw_gates(2))
case("gates", recurrent.draw_gates)
case("gru", recurrent.draw_gru)
case("one vector", lambda: recurrent.draw_two_networks(SOURCE, TARGET), has=["one vector"])
case("attention", lambda: recurrent.draw_two_networks(SOURCE, TARGET, [0.1, 0.2, 0.7]),
    has=["0.10", "0.20", "0.70", "context"], said="the thickest goes to slept")  # fmt: skip
case("step 3", lambda: recurrent.draw_two_networks(SOURCE, TARGET, [0.1, 0.2, 0.7], 3))
case(
    "average",
    lambda: reach.draw_average(
        [[2.0, 0.0], [4, 4]], [[1.0, 0], [2, 2]], [1, -1], [0.5, -1], [0.8, 0.2]
    ),
    # 0.8 times the first state and 0.2 times the second
    has=["0.80", "0.20", "sum", "context", "[2.4, 0.8]"],
)
case("reach", reach.draw_reach)
case("reach of 4", lambda: reach.draw_reach(4),
    has=["RNN: 3 steps", "convolution: 3 layers", "attention: 1 step"])  # fmt: skip

# ---- tokens

VECTORS = torch.tensor([[0.5, -1.0], [2, 3]])
case(
    "text to vectors",
    lambda: tokens.draw_text_to_vectors("a cat", ["a", "cat"], [7, 9], VECTORS),
    has=["a cat", "a", "cat", "7", "9", "0.5", "−1", "2", "3", "(2, 2)  is  (T, C)"],
    said="7, 9",
)
refused(lambda: tokens.draw_text_to_vectors("a", ["a"], [7, 9], torch.zeros(2, 2)),
    "1 tokens, 2 ids and 2 vectors")  # fmt: skip


def merged(word):
    """The merges of a word by what was learned from CORPUS."""
    learned = learn_merges({tuple(w.encode()): n for w, n in CORPUS.items()}, 8)
    pieces = [bytes([byte]) for byte in range(256)]
    for a, b in learned:
        pieces.append(pieces[a] + pieces[b])
    return tokens.draw_merges(word, {pair: 256 + i for i, pair in enumerate(learned)}, pieces)


for word, last in {
    "newest": "newest", "lowest": "low | est", "猫": "‹e7› | ‹8c› | ‹ab›", "xyz": "x | y | z"
}.items():  # fmt: skip
    case(f"merges of {word}", lambda word=word: merged(word), end=[f"result:\n{last}"])

IDS = [2, 0, 2]
case(
    "lookup",
    lambda: tokens.draw_lookup(
        F.one_hot(torch.tensor(IDS), 4), torch.arange(8.0).reshape(4, 2), IDS
    ),
    has=["one-hot (3, 4)", "table (4, 2)", "vectors (3, 2)"],
    end=["0", "1", "4", "5", "2", "0", "2", "vectors (3, 2)"],
)
case(
    "cbow",
    lambda: tokens.draw_cbow(["the", "cat"], "sat", ["on", "the"], 604, 32),
    has=["?", "mean", "(32,)", "(604,)", "loss:\n−ln p(sat)"],
    count={"the": 2},
)
case("token rows",
    lambda: viz.token_rows({"bytes": [b" the", b"\xe7\x8c", b"\n"], "words": ["a b", " "]}),
    texts=["bytes", "·the", "‹e7›‹8c›", "↵", "words", "a b", "·"], patches=5,
    said="Text cut into tokens. bytes: ·the | ‹e7›‹8c› | ↵. words: a b | ·.")  # fmt: skip
refused(lambda: viz.token_rows({}), "rows needs at least one")

# ---- vectors of words

WORDS = {"one": {"cat": (0, 0), "dog": (1, 1)}, "two": {"猫": (0, 1)}}
case("word map", lambda: viz.word_map(WORDS, links=[((0, 0), (0, 1))]), has=["cat", "dog"],
    lines=1, legend=["one", "two"],
    said="Words as points of a plane. one: cat, dog; two: 猫. Lines join points: 1.")  # fmt: skip
close = {f"word {i}": (i % 3 * 0.004, i // 3 * 0.004) for i in range(9)}
case("words that touch", lambda: viz.word_map({"close": close, "far": {"one": (1, 1)}}))
refused(lambda: viz.word_map({}), "groups needs at least one")
PATHS = torch.tensor([[0.0, 0], [4, 1], [7, 5], [8, 9]])
PATHS = PATHS + torch.randn(5, 4, 2, generator=torch.Generator().manual_seed(0)) / 9
case(  # the mean comes after the ways
    "word paths",
    lambda: viz.word_paths({"tired": PATHS, "wide": 20 - PATHS[:3]}, colors={"wide": 4}),
    holds=lambda ax: (
        torch.allclose(torch.tensor(ax.lines[5].get_xydata()), PATHS.mean(0).double(), atol=1e-5)
        and (ax.lines[5].get_color(), ax.lines[-1].get_color()) == (CYCLE[0], CYCLE[4])
    ),
    lines=5 + 1 + 3 + 1,
    texts=[*"0123"] * 2,
    legend=["tired", "wide"],
)
refused(lambda: viz.word_paths({}), "paths needs at least one")
refused(lambda: viz.word_paths({"it": torch.zeros(2, 3, 4)}), "4 coordinates, expected 2")
refused(lambda: viz.word_paths({"it": torch.zeros(3, 2)}), "it")
BOLD = ["bold", "normal", "normal"]
ODDS = {
    "model": {"cat": 0.6, "dog": 0.3, "river": 0.1, "wall": 0.0},
    "grammar": {"cat": 0.2, "dog": 0.7, "wall": 0.05},
}
case("word odds", lambda: viz.word_odds(ODDS, top=3, truth="dog", colors={"model": 2}),
    yticks=["dog", "cat", "river"],
    holds=lambda ax: [t.get_fontweight() for t in ax.get_yticklabels()] == BOLD,
    widths=[0.3, 0.6, 0.1, 0.7, 0.2, 0.0], xlim=(0, 1), inks=[to_rgba(CYCLE[2]), ...])  # fmt: skip
case("low word odds", lambda: viz.word_odds({"model": {"cat": 0.3, "dog": 0.2}}), xlim=(0, 0.5),
    yticks=["cat", "dog"])  # fmt: skip
refused(lambda: viz.word_odds([]), "odds needs at least one")
ANGLES = torch.tensor([0.0, 0.1, 1.5, 1.2])
AFTER = torch.stack([ANGLES.cos(), ANGLES.sin()], dim=1)
TABLES = {"before": AFTER.flip(0), "after": AFTER}
NAMES = ["cat", "dog", "on", "in"]
for word, near, angle in (("cat", "dog", 0.1), ("on", "in", 0.3), ("in", "on", 0.3)):
    cosine = torch.tensor(angle).cos().item()
    case(f"nearest words of {word}",
        lambda word=word: viz.nearest_words(TABLES, NAMES, word, count=2)[1], yticks=[near, ...],
        widths=[cosine, ...],
        holds=lambda ax, word=word: ax.get_xlabel() == f"cosine with {word}",
        said=f"after: {near} {cosine:.2f}")  # fmt: skip
refused(lambda: viz.nearest_words(TABLES, NAMES, "cow"), r"'cow' is none of the 4 words")

# ---- positions

PLACES = torch.arange(4)
DIGITS = torch.stack([PLACES % 2, PLACES // 2], dim=1)
case("counting", lambda: clock.draw_counting(DIGITS, DIGITS.float().sin()), texts=[*"00100111"],
    said="from 0 to 3")  # fmt: skip
refused(lambda: clock.draw_counting(DIGITS, DIGITS[:, :1]), r"digits \(4, 2\) and waves \(4, 1\)")
case("clocks",
    lambda: clock.draw_clocks(torch.arange(3)[:, None] * torch.tensor([torch.pi / 2, 0.1])),
    has=["position 0", "position 2", "+1.00  −0.00", "+0.10  +1.00"],
    said="Hand 1 turns by 0.10 radians")  # fmt: skip
case("turned pairs", lambda: clock.draw_turned({"places 1 and 0": ([0.0, 2.0], [1.0, 0.0])}),
    titles=["places 1 and 0: score 0.00"], said="90 degrees ahead")  # fmt: skip
case("ways", clock.draw_ways, within=["1. add", "2. rotate Q and K", "3. subtract"])
BIAS = -0.5 * (torch.arange(2)[:, None] - torch.arange(2)).abs()
case(
    "bias",
    lambda: clock.draw_bias(torch.zeros(2, 2), BIAS, ["a", "b"]),
    count={"−0.50": 4},  # in the bias, and in the sum
    has=["0.62", "0.38"],
)
refused(lambda: clock.draw_distance([1, 0], [0, 1], 0.5, 21), "distance 21 is beyond 20")
